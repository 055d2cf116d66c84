"""ZEALOUS through the door as a person uses it: four kinds, one charge, one manifest; what the door refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import latest_folder
from support.instances import MONTHS, POPULAR, PRIVATE_QUERY, Prepared, copy_warehouse, edit_policy

MARCH = MONTHS[0]
# Little noise, so that forty users have something to release; the test's budget is as large.
LOUD_POLICY = 'epsilon = 40\ndelta = "1e-3"\nitems_per_user = 8'
LOUD = ("--set", "epsilon=40", "--set", "delta=1e-3", "--set", "items_per_user=8")


@pytest.fixture(scope="module")
def zealous(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a release of March; the tests that share it leave it as it is."""
    home = copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("zealous") / "home")
    edit_policy(home, zealous=LOUD_POLICY)
    assert qlog(home, "release", "zealous", "--month", MARCH, "--json").json["charged"] is True
    return home


def manifest_of(home: Path) -> dict:
    return json.loads((latest_folder(home, "zealous") / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "method", "reaches"),
    # Of users of many items nothing can be said where a look that nobody sees steers their weight.
    [("sound", "steered", 0), ("modern", "steered", 1), ("modern", "weighted_gaussian", 2)],
)
def test_one_release_holds_four_kinds_and_costs_their_sum(
    ingested: Path, variant: str, method: str, reaches: int
) -> None:
    edit_policy(ingested, zealous=f'{LOUD_POLICY}\nmethod = "{method}"')
    answer = qlog(ingested, "release", "zealous", "--month", MARCH, "--set", f"variant={variant}", "--json").json
    assert (answer["variant"], answer["epsilon"], answer["delta"]) == (variant, 40.0, 0.001)
    assert set(answer["rows"]) == {"keywords", "queries", "pairs", "clicks"}
    manifest = manifest_of(ingested)
    assert [part["name"] for part in manifest["guarantee"]["parts"]] == ["keywords", "queries", "pairs", "clicks"]
    if variant == "sound":
        assert sum(part["epsilon"] for part in manifest["guarantee"]["parts"]) == pytest.approx(answer["epsilon"])
    stated = [table["noise"] for table in manifest["tables"].values()]
    assert {noise["tested"] for noise in stated} == {variant == "sound"}
    assert {len(noise["reaches"]) for noise in stated} == {reaches}
    queries = pq.read_table(Path(answer["path"]) / "queries.parquet")["query"].to_pylist()
    assert set(queries) == set(POPULAR)
    pairs = pq.read_table(Path(answer["path"]) / "pairs.parquet").to_pylist()
    assert ("weather", "train times") in {(pair["query"], pair["next_query"]) for pair in pairs}
    ledger = qlog(ingested, "ledger", "--json").json
    assert len([charge for charge in ledger["charges"] if charge["mechanism"] == "zealous"]) == 1


def test_asking_again_costs_nothing_and_changes_nothing(zealous: Path) -> None:
    before = manifest_of(zealous)
    assert qlog(zealous, "release", "zealous", "--month", MARCH, "--json").json["charged"] is False
    assert manifest_of(zealous) == before


def test_another_variant_of_a_released_month_is_refused(zealous: Path) -> None:
    refusal = qlog(zealous, "release", "zealous", "--month", MARCH, "--set", "variant=sound", "--json").refusal
    assert "--again" in refusal and "variant" in refusal


def test_nothing_of_one_user_alone_is_released(zealous: Path) -> None:
    folder = latest_folder(zealous, "zealous")
    texts = "".join((folder / f"{kind}.csv").read_text(encoding="utf-8") for kind in ("queries", "pairs", "clicks"))
    assert PRIVATE_QUERY.format(1) not in texts and "weather" in texts


def test_the_audit_follows_a_release_back_to_its_items(zealous: Path) -> None:
    report = qlog(zealous, "audit", "--json").json
    assert report["ok"] is True and len(report["releases"]) == 1


def test_the_door_refuses_items_chosen_with_another_limit(zealous: Path) -> None:
    """A partition shaped by one limit is never priced by another."""
    from support.door import door_at

    from qlog_assets.door.inputs import DoorError
    from qlog_assets.months import Month

    door = door_at(zealous, {"zealous.items_per_user": "2"})
    with pytest.raises(DoorError, match="items_per_user = 8"):
        door.draw("zealous", Month(MARCH), again="another limit")


@pytest.mark.parametrize("name", ["baselines", "k_anonymity"])
def test_the_door_refuses_the_baselines(ingested: Path, name: str) -> None:
    assert "can be released" in qlog(ingested, "release", name, "--month", MARCH, "--json").refusal


def test_the_door_refuses_the_paper_and_a_policy_cannot_ask_for_it(zealous: Path) -> None:
    from support.door import door_at

    from qlog_assets.door.inputs import DoorError
    from qlog_assets.months import Month

    refusal = qlog(zealous, "release", "zealous", "--month", MARCH, "--set", "variant=paper", "--json").refusal
    assert "variant" in refusal
    door = door_at(zealous, {"zealous.items_per_user": "8"})
    with pytest.raises(DoorError, match="studies alone"):
        door.draw("zealous", Month(MARCH), variant="paper")


def test_an_ambiguous_setting_asks_which(ingested: Path) -> None:
    from qlog_assets.errors import ParameterError
    from qlog_assets.policy import Policy

    with pytest.raises(ParameterError, match=r"safelog\.delta or .*zealous\.delta"):
        Policy().with_settings({"delta": "0.1"})
    assert qlog(ingested, "guarantee", "zealous", "--set", "epsilon=1", "--json").json["proven"]["epsilon"] == 1


@pytest.mark.study
def test_seeded_simulations_repeat_themselves_and_never_charge(ingested: Path) -> None:
    for variant in ("paper", "sound", "modern"):
        command = ("simulate", "zealous", "--month", MARCH, "--variant", variant, *LOUD, "--json")
        first, second = (qlog(ingested, *command).json for _ in range(2))
        assert first["charged"] is False and first["rows"]["queries"] >= (0 if variant == "paper" else 4)
        tables = [pq.read_table(Path(facts["path"]) / "queries.parquet").to_pylist() for facts in (first, second)]
        assert sorted(map(str, tables[0])) == sorted(map(str, tables[1]))
    assert qlog(ingested, "ledger", "--json").json["charges"] == []


@pytest.mark.study
def test_the_study_compares_all_methods_and_draws_its_pictures(ingested: Path) -> None:
    facts = qlog(
        ingested, "study", "zealous", "--month", MARCH, "--set", "frequent=10", "--set", "k=20", *LOUD[:4], "--json"
    ).json
    methods = {row["method"] for row in facts["tables"]["frequent_items"]}
    assert {"paper", "sound", "modern: weighted_gaussian", "k-anonymity: users"} < methods
    folder = Path(facts["path"])
    assert folder.parent == ingested / "private" / "studies" and folder.stat().st_mode & 0o077 == 0
    assert all(
        (folder / name).read_bytes().startswith(b"\x89PNG") for name in ("frequent_items.png", "applications.png")
    )
    baseline = [row for row in facts["tables"]["attack"] if row["method"].startswith("k-anonymity")]
    assert len(baseline) == 3 and all((row["with_victim"], row["without"]) == (1, 0) for row in baseline)
