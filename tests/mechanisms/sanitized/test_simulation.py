"""The paper's sanitized log and its study, by the command: drawn, labelled, private, and within its constraints."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.instances import MONTHS, POPULAR, USERS

from qlog_assets.studies.sanitized.study import TABLES

MARCH = MONTHS[0]
LN_2 = ("--set", "delta=0.5", "--set", "epsilon=0.6931471806")


@pytest.mark.slow
def test_the_papers_log_has_real_users_shared_pairs_and_a_label_that_says_what_holds(ingested: Path) -> None:
    """Forty users share four pairs: ln 2 / ln(40/39) is 27.4, so 27 events fit, and nobody's own pair is among them."""
    asked = ("simulate", "sanitized", "--month", MARCH, "--variant", "paper", *LN_2, "--set", "rounding=fill")
    facts = qlog(ingested, *asked, "--json").json
    rows = pq.read_table(Path(facts["path"]) / "log.parquet").to_pylist()
    assert list(rows[0]) == ["user", "query", "url", "count"]
    assert sum(row["count"] for row in rows) == 27
    assert {row["query"] for row in rows} <= set(POPULAR)
    assert {row["user"] for row in rows} <= {str(user) for user in range(1, USERS + 1)}
    assert max(Counter((row["user"], row["query"], row["url"]) for row in rows).values()) == 1
    assert facts["label"].startswith("sampling-step-only") and facts["proven"] is None and not facts["charged"]
    said = qlog(ingested, *asked).out
    assert "sampling-step-only" in said and "private, not charged" in said


@pytest.mark.study
def test_every_objective_rounding_and_the_noise_of_section_4_2_can_be_asked_for(ingested: Path) -> None:
    def size(*settings: str) -> int:
        words = [word for setting in settings for word in ("--set", setting)]
        facts = qlog(ingested, "simulate", "sanitized", "--month", MARCH, "--variant", "paper", *LN_2, *words, "--json")
        rows = pq.read_table(Path(facts.json["path"]) / "log.parquet")
        return sum(rows["count"].to_pylist())

    assert size("objective=diversity", "rounding=fill") == 4 == size("objective=diversity", "rounding=tested_first")
    assert size("objective=diversity") == 3, "as printed, Algorithm 2 drops a pair though nothing is violated"
    assert size("objective=diversity", "diversity_of=queries", "rounding=mip", "solver_seconds=5") == 4
    assert size("objective=frequent_pairs", "asked_size=20") == 20
    assert size("objective=frequent_pairs", "asked_size=12", "infrequent_stay=true", "rounding=fill") == 12
    assert size("count_epsilon=100", "largest_change=100") > 0
    refused = qlog(
        ingested, "simulate", "sanitized", "--month", MARCH, "--variant", "paper", *LN_2,
        "--set", "objective=frequent_pairs", "--set", "asked_size=28",
    )  # fmt: skip
    assert "the asked size is above the largest one" in refused.refusal


@pytest.mark.study
def test_the_study_answers_with_every_sweep_and_the_bound_in_each_row(ingested: Path) -> None:
    quick = ("budgets=0.1,0.6931471806", "supports=1/500", "support_budgets=0.6931471806", "sizes=0.4", "draws=2")
    words = [word for setting in (*quick, "search_seconds=1", "made_up=false") for word in ("--set", setting)]
    facts = qlog(ingested, "study", "sanitized", "--month", MARCH, *words, "--json").json
    assert set(facts["tables"]) == set(TABLES) and facts["finished"]
    for rows in facts["tables"].values():
        assert rows and all(row["bound"] == pytest.approx(USERS * row["B"], abs=1e-3) for row in rows)
    (at_ln_2,) = (row for row in facts["tables"]["output_size"] if row["B"] > 0.6)
    assert at_ln_2["filled"] == 27 and 27 <= at_ln_2["relaxed"] <= at_ln_2["bound"] and at_ln_2["paper"] is None
    assert {row["filled"] for row in facts["tables"]["diversity"]} == {3, 4}
    (precise,) = (row for row in facts["tables"]["supports"] if row["infrequent_stay"])
    assert precise["precision"] == 1
    folder = Path(facts["path"])
    for name in ("output_size", "supports", "diversity", "difference"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "Precision, which the paper reports as 1" in (folder / "study.md").read_text(encoding="utf-8")
