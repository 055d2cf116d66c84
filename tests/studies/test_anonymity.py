"""The study of k-anonymity: what is printed shrinks with k, accounts are certain, and groups that are alike betray."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.anonymity import comparison, study
from qlog_assets.studies.anonymity.comparison import AnonymitySettings
from qlog_assets.studies.spread import MONTH, make_twin
from qlog_assets.studies.study import StudyWork

ROWS = 3_000
THRESHOLDS = (1, 2, 5)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    warehouse, policy = make_twin(tmp_path_factory.mktemp("anonymity"), Policy(), ROWS, 1)
    reads = {"raw_log": warehouse.current("raw_log", MONTH).provenance.shape}
    with Engine.open(warehouse) as engine:
        settings = AnonymitySettings(thresholds=THRESHOLDS)
        yield StudyWork(warehouse, engine, policy, settings, MONTH, reads=reads)


@pytest.mark.parametrize("variant", comparison.variants())
def test_with_one_user_enough_everything_is_printed_and_with_more_ever_less(work: StudyWork, variant: str) -> None:
    rows = comparison.compare(work, variant)["anonymity"]
    assert [row["k"] for row in rows] == list(THRESHOLDS)
    assert rows[0]["impressions_share"] == rows[0]["users_share"] == 1
    for measure in ("items", "impressions_share", "users"):
        values = [row[measure] for row in rows]
        assert values == sorted(values, reverse=True) and values[-1] < values[0]
    for row in rows:
        assert 0 <= row["homogeneous"] <= row["of_several_queries"] <= row["items"]
        assert 0 <= row["betraying"] <= row["known_queries"]


def test_only_items_of_several_queries_betray_and_a_single_users_history_betrays_all(work: StudyWork) -> None:
    found = {variant: comparison.compare(work, variant)["anonymity"][0] for variant in comparison.variants()}
    assert {variant for variant, row in found.items() if row["homogeneous"]} == {"histories", "sessions"}
    # Of people whom nobody is like, whatever is theirs alone betrays all the rest.
    assert found["histories"]["homogeneous"] > 0.9 * found["histories"]["of_several_queries"]


def test_accounts_are_certain_of_every_variant_and_groups_that_are_alike_betray_the_sensitive_query(
    work: StudyWork,
) -> None:
    section = work.policy.section("baselines")
    rows: list[dict[str, Any]] = comparison.attack(work)["attacks"]
    assert [row["variant"] for row in rows] == comparison.variants()
    assert all(row["k"] == section.k and row["accounts_are_certain"] and not row["printed_without"] for row in rows)
    assert {row["variant"] for row in rows if row["sensitive_query_inferred"]} == {"histories", "sessions"}
    words = study.words({"attacks": rows, "anonymity": []}, AnonymitySettings())
    assert words.startswith("k - 1 fake accounts are certain") and "under: histories, sessions." in words


@pytest.mark.slow
def test_the_whole_study_has_a_picture_and_no_text_of_the_log(work: StudyWork) -> None:
    tables = {name: rows for step in study.steps(work) for name, rows in step.measure(replace(work)).items()}
    assert study.pictures(tables)["anonymity.png"].startswith(b"\x89PNG")
    assert comparison.SENSITIVE not in str(tables)
