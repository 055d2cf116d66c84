"""A manifest prints what its variant read: parameters that are left out change neither the draw nor the guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import MARCH, warehouse_at
from support.instances import edit_policy

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import WORDS
from qlog_assets.report.manifest import load_manifest
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.simulation import simulate
from qlog_assets.verify.audit import audit_warehouse

OTHER = {
    "clicks_per_user": "1",
    "click_threshold": "3",
    "click_support": "public_list",
    "delta_share_clicks": "0.25",
    "transition_threshold": "4",
    "method": "sips",
    "set_share": "0.5",
    "counted_items_per_user": "3",
    "min_users": "5",
    "selection_scale": "3",
    "session_scale": "7",
    "click_scale": "5",
    "transition_scale": "7",
    "threshold": "33",
    "epsilon": "3",
    "click_share": "0.5",
    "transition_share": "0.3",
    "counted_pairs_per_user": "3",
    "delta_share_associations": "0.25",
    "minimum_support": "0.1",
    "diversity_of": "queries",
    "clicks": "false",
}
"""Another value for every parameter that some variant does not read."""
SETTINGS: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("safelog", "modern", {}, set()),
    ("safelog", "modern", {"transition_share": None}, set()),
    ("safelog", "modern", {"click_share": None}, {"clicks_per_user", "click_support"}),
    ("safelog", "sound", {}, set()),
    ("safelog", "sound", {"transition_scale": None}, {"transition_threshold"}),
    (
        "safelog",
        "sound",
        {"click_scale": None},
        {"clicks_per_user", "click_threshold", "click_support", "delta_share_clicks"},
    ),
    ("safelog", "sound", {"delta": "0", "click_support": "public_list"}, {"delta_share_clicks"}),
    ("zealous", "sound", {}, {"method", "set_share", "counted_items_per_user"}),
    ("zealous", "modern", {}, {"min_users"}),
    ("zealous", "modern", {"method": "steered"}, {"min_users", "set_share", "counted_items_per_user"}),
    ("zealous", "modern", {"method": "gaussian_counts"}, {"min_users", "set_share", "counted_items_per_user"}),
    ("zealous", "modern", {"method": "truncated_geometric"}, {"min_users", "set_share", "counted_items_per_user"}),
    (
        "sessions",
        "modern",
        {"method": "steered"},
        {"session_scale", "click_scale", "threshold", "delta_share_clicks", "set_share", "counted_items_per_user"},
    ),
    (
        "sanitized",
        "sound",
        {"method": "steered"},
        {
            "set_share",
            "counted_pairs_per_user",
            "delta_share_associations",
            "minimum_support",
            "diversity_of",
            "clicks",
        },
    ),
]
IDS = [f"{name} {variant} {chosen}" for name, variant, chosen, _ in SETTINGS]


@pytest.mark.parametrize(("name", "variant", "chosen", "unread"), SETTINGS, ids=IDS)
def test_what_is_not_printed_does_not_change_the_guarantee(
    name: str, variant: str, chosen: dict[str, Any], unread: set[str]
) -> None:
    asked = mechanism(name)
    parameters = asked.parameters(**chosen)
    charged = asked.charged_parameters(variant, parameters)
    # What belongs to other variants is no part of the request at all.
    left_out = set(parameters.as_released()) - set(charged)
    assert left_out == asked.variant(variant).leaves_out
    assert set(charged) - set(asked.printed_parameters(variant, charged)) == unread
    assert asked.printed_parameters(variant, charged, words=1) == charged
    stated = asked.guarantee(variant, parameters).as_json()
    for other in unread | left_out:
        changed = parameters.with_changes(**{other: OTHER[other]})
        assert dict(changed)[other] != dict(parameters)[other]
        assert asked.guarantee(variant, changed).as_json() == stated, other


@pytest.mark.parametrize(
    ("name", "variant", "settings", "other"),
    [
        ("safelog", "sound", {"transition_scale": "none"}, "transition_threshold"),
        ("safelog", "sound", {"click_scale": "none"}, "clicks_per_user"),
        ("safelog", "sound", {"click_scale": "none"}, "click_threshold"),
        ("safelog", "sound", {"click_scale": "none"}, "delta_share_clicks"),
        ("zealous", "sound", {"variant": "sound"}, "method"),
        ("zealous", "sound", {"variant": "sound"}, "set_share"),
        ("zealous", "sound", {"variant": "sound"}, "counted_items_per_user"),
        ("safelog", "modern", {"click_share": "none"}, "clicks_per_user"),
        ("zealous", "modern", {"method": "gaussian_counts"}, "set_share"),
        ("zealous", "modern", {"method": "truncated_geometric"}, "counted_items_per_user"),
    ],
)
def test_what_is_not_printed_does_not_change_the_draw(
    ingested: Path, name: str, variant: str, settings: dict[str, str], other: str
) -> None:
    def drawn(changes: dict[str, str], run: str) -> dict[str, Any]:
        little_noise = {"epsilon": "20", "delta": "0.01"} if (name, variant) != ("safelog", "sound") else {}
        if name == "zealous":
            little_noise["items_per_user"] = "4"
        texts = {f"{name}.{key}": text for key, text in {**little_noise, **settings, **changes}.items()}
        warehouse, policy = warehouse_at(ingested), Policy.load(ingested / "policy.toml").with_settings(texts)
        with Engine.open(warehouse) as engine:
            facts = simulate(name, warehouse, engine, policy, MARCH, variant, 5, run)
        assert sum(facts["rows"].values()) > 0
        return {table: pq.read_table(Path(facts["path"]) / f"{table}.parquet") for table in facts["rows"]}

    assert drawn({}, "first000") == drawn({other: OTHER[other]}, "second00")


def test_modern_with_a_minimum_of_users_is_refused_before_anything_is_charged(ingested: Path) -> None:
    asked = ("zealous", "--set", "zealous.min_users=3")
    reason = 'min_users = 3 is kept by variant = "sound" alone'
    assert reason in qlog(ingested, "guarantee", *asked).refusal
    assert reason in qlog(ingested, "release", *asked, "--month", MARCH).refusal
    assert qlog(ingested, "ledger", "--json").json["charges"] == []


def test_a_scale_that_cannot_be_drawn_is_refused_before_anything_is_charged(ingested: Path) -> None:
    edit_policy(ingested, safelog='click_scale = "1e-7"')
    refusal = qlog(ingested, "release", "safelog", "--month", MARCH).refusal
    assert "a noise scale lies between" in refusal
    assert qlog(ingested, "ledger", "--json").json["charges"] == []


def test_a_pool_that_would_drown_the_release_in_fakes_is_refused_by_its_size_alone() -> None:
    asked = mechanism("safelog")
    chosen = asked.parameters(threshold=1, selection_scale="1000")
    asked.refuse_unusable("sound", chosen, {"pool": 10**6})
    with pytest.raises(ParameterError, match="of the pool's 100,000,000 queries would pass threshold = 1"):
        asked.refuse_unusable("sound", chosen, {"pool": 10**8})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "second_step"),
    [("steered", set()), ("weighted_gaussian", {"set_share", "counted_items_per_user"})],
)
def test_the_manifest_prints_what_modern_read_and_audits_green(
    ingested: Path, method: str, second_step: set[str]
) -> None:
    edit_policy(ingested, zealous=f'method = "{method}"\nepsilon = 20\ndelta = "0.01"')
    answer = qlog(ingested, "release", "zealous", "--month", MARCH, "--json").json
    manifest = load_manifest(Path(answer["path"]) / "manifest.json")
    assert manifest["words"] == WORDS
    assert set(manifest["parameters"]) == {
        "items_per_user", "kinds", "epsilon", "delta", "method", *second_step,
    }  # fmt: skip
    assert "min_users" not in (Path(answer["path"]) / "datasheet.html").read_text(encoding="utf-8")
    report = audit_warehouse(warehouse_at(ingested))
    assert report.ok, report.all_findings
