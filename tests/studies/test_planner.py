"""The planner tries every method on the twin, never opens a warehouse, and names the best setting first."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import qlog

from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.studies.zealous import planner


def test_the_best_setting_has_good_counts_and_most_items(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QLOG_HOME", str(tmp_path / "nowhere"))
    tried = planner.plan_modern(ZealousParameters(kinds=("keywords",), epsilon=8), rows=20_000, seed=1)
    assert len(tried) == len(planner.ITEMS_PER_USER) * (2 + 2 * len(planner.SET_SHARES))
    assert {row["method"] for row in tried} == set(planner.METHODS)
    good = [row for row in tried if row["relative_error"] <= planner.WORST_ERROR]
    assert tried[0]["released"] == max(row["released"] for row in good) > 0
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_the_plan_is_a_policy_that_loads(home: Path) -> None:
    answer = qlog(
        home, "plan", "zealous", "--rows", 5000, "--set", "epsilon=8", "--set", "kinds=keywords", "--json"
    ).json
    (home / "policy.toml").write_text(answer["policy"], encoding="utf-8")
    assert qlog(home, "guarantee", "zealous", "--json").json["variant"] == "modern"
