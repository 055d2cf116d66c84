"""The study `suggestion`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Step, Study, StudyWork, Tables
from qlog_assets.studies.suggestion import plots
from qlog_assets.studies.suggestion.comparison import (
    ALL_LOGS,
    DP_C,
    DP_S,
    KA,
    ORIGINAL,
    PAPERS,
    PAPERS_LOGS,
    Comparison,
    SuggestionSettings,
)

QUESTION = (
    "Which log suggests the next query best: the original, k-anonymity, clicks or sessions and clicks as the paper "
    "prints them (Table 5), or what can be released? Measured on people whose searches are in none of the logs."
)


def steps(work: StudyWork) -> Sequence[Step]:
    comparison = Comparison(work)

    def choose(group: str) -> Step:
        return Step(f"lambda-{group}", lambda at: comparison.choose(group))

    def measure(group: str) -> Step:
        return Step(group, lambda at: comparison.measure(group))

    return [
        *(choose(group) for group in comparison.groups),
        *(measure(group) for group in comparison.groups),
        Step("same-prefixes", lambda at: comparison.compare()),
    ]


def pictures(tables: Tables) -> dict[str, bytes]:
    shared = [row for row in tables["same_prefixes"] if row["answered_by"] == ALL_LOGS]
    return {"suggestion.png": plots.bars(tables["suggestion"], shared)}


def words(tables: Tables, settings: SuggestionSettings) -> str:
    """The paper's order on equal prefixes, and what the releasable logs answer."""
    shared = {
        row["log"]: row
        for row in tables["same_prefixes"]
        if row["answered_by"] == PAPERS_LOGS and (row["reading"] == "all" or row["log"] == ORIGINAL)
    }
    sentences = []
    if not all(row["prefixes"] for row in shared.values()):
        sentences.append("No prefix is answered by all of the paper's logs: the log is too small for this K.")
    else:
        precision = {name: row["precision"] for name, row in shared.items()}
        told = ", ".join(
            f"{name} {precision[name]:.4f}" for name in sorted(precision, key=lambda name: -precision[name])
        )
        holds = precision[DP_S] > precision[DP_C] > precision[KA]
        sentences.append(
            f"On the {shared[DP_S]['prefixes']:,} prefixes that all of the paper's logs answer, Precision@5 is {told} "
            f"(standard error {shared[DP_S]['error']:.4f}): the paper's order DP_S > DP_C > KA "
            f"{'holds' if holds else 'does not hold'}."
        )
    for row in tables["suggestion"]:
        if row["log"] not in PAPERS:
            sentences.append(
                f"{row['log']} (ε = {row['epsilon']:.3g}) holds {row['sequences']:,} sequences and {row['clicks']:,} "
                f"clicked pairs and answers {row['sessions']:,} sessions."
            )
    return " ".join(sentences)


SHOWN = ("precision", "error", "recall", "prefixes", "sessions")
STUDY = Study(
    name="suggestion",
    title="Query suggestion from session logs",
    question=QUESTION,
    settings=SuggestionSettings,
    steps=steps,
    mechanism="sessions",
    columns={
        "weights": ("log", "reading", "lambda"),
        "suggestion": ("log", "reading", "epsilon", "delta", "sequences", "clicks", "lambda", *SHOWN),
        "same_prefixes": ("answered_by", "log", "reading", *SHOWN),
    },
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
