"""The stage of sanitized logs: a few (query, url) pairs of each user, chosen by a keyed rule among that user's own."""

from __future__ import annotations

from pathlib import Path

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts

CHOSEN_PAIRS, CLICKED_PAIRS = "contributions/chosen_items", "sanitized/clicked_pairs"
"""The statement that chooses, and what it chooses from."""


def choice_key(month: str) -> str:
    """The public key of the choice. Choices of two months are then no more alike than chance makes them."""
    return f"sanitized {month} "


def write_sanitized_pairs(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    cleaned = inputs["cleaned_log"]
    with cleaned.verifying():
        view_cleaned(work.engine, cleaned, transitions=False)
        written = work.engine.write(
            CHOSEN_PAIRS,
            directory / "pairs.parquet",
            events=CLICKED_PAIRS,
            digest=True,
            key=choice_key(work.month),
            items_per_user=work.parameters.pairs_per_user,
        )
    return {"pairs": written}


@memoize_by_content
def inspect_sanitized_pairs(engine: Engine, partition: Partition) -> CheckResult:
    """Whether no user holds more pairs than this very partition was made with, and none twice."""
    engine.view("contributions", partition.files("pairs"))
    return run_suite(
        "sanitized/sanitized_pairs",
        {"table": engine.frame("contributions/check_contributions", table_name="pairs")},
        parameters={"pairs_per_user": partition.provenance.parameters["pairs_per_user"]},
    )


SANITIZED_PAIRS = Stage(
    name="sanitized_pairs",
    description="What each user may contribute: a few of their distinct clicked (query, url) pairs, chosen by a keyed "
    "rule. Reads one user's rows at a time, so one user changes no other user's rows.",
    reads=("cleaned_log",),
    write=write_sanitized_pairs,
    statements=(CHOSEN_PAIRS, CLICKED_PAIRS, "log/cleaned_clicks"),
    shaped_by=lambda chosen, _: {"pairs_per_user": chosen.pairs_per_user},
    inspect=inspect_sanitized_pairs,
    limits_users=True,
)
STAGES = (SANITIZED_PAIRS,)
