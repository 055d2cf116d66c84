"""The study `safelog-retrieval`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from qlog_assets.studies import retrieval_plots
from qlog_assets.studies.retrieval_rows import MEASURE_NAMES, METHODS, by_fold_and_over_folds, split_words, told
from qlog_assets.studies.safelog_retrieval.comparison import ORIGINAL, RetrievalSettings, compare_logs
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "Does search still work on a Safelog release (Figure 3)? Three ways to search, on the log itself, on what the "
    "paper prints and on what can be released; scored by what held-out people clicked, first of all with zero for "
    "queries that a log does not hold."
)
KEYS = ("split", "log", "epsilon", "delta", "method", "measure")
FIGURE = {name: MEASURE_NAMES[name] for name in ("ndcg", "average_precision")}
"""What Figure 3 shows."""
BARS = {
    "with_zeros": "zero for missing queries",
    "as_paper": "as the paper: over the queries it holds",
    "original_on_common": "the original log on the same queries",
}


def steps(work: StudyWork) -> Sequence[Step]:
    return [Step(f"fold-{part}", partial(compare_logs, part=part)) for part in range(work.settings.folds)]


def combine(tables: Tables) -> Tables:
    return by_fold_and_over_folds("retrieval", tables, KEYS)


def pictures(tables: Tables) -> dict[str, bytes]:
    rows = tables["retrieval"]
    title = f"Search on the log and on releases of it, split by {rows[0]['split']}"
    return {"retrieval.png": retrieval_plots.bar_panels(rows, FIGURE, BARS, title)}


def is_shown(row: Row) -> bool:
    return row["measure"] in FIGURE


def words(tables: Tables, settings: RetrievalSettings) -> str:
    """Each log's nDCG@10, first with zeros, and beside the original on equal queries."""
    ndcg = [row for row in tables["retrieval"] if row["measure"] == "ndcg"]
    sentences = [f"Split by {split_words(settings)}, {settings.folds} of five folds."]
    for method in METHODS:
        for row in (row for row in ndcg if row["method"] == method.name and row["log"] != ORIGINAL):
            original = next(each for each in ndcg if each["method"] == method.name and each["log"] == ORIGINAL)
            sentences.append(
                f"{row['log']}, {method.name}: nDCG@10 with zeros "
                f"{told(row, 'with_zeros', 'zeros_low', 'zeros_high')}, the original {original['with_zeros']:.3f}."
            )
            if row["common"]:
                sentences.append(
                    f"On the {row['common']:,} of {row['tested']:,} queries that both hold {row['on_common']:.3f}, the "
                    f"original {row['original_on_common']:.3f}: a difference of "
                    f"{told(row, 'difference', 'difference_low', 'difference_high')}."
                )
    return " ".join(sentences)


SHOWN = ("tested", "with_zeros", "evaluated", "as_paper", "common", "on_common", "original_on_common")
STUDY = Study(
    name="safelog-retrieval",
    title="Search on a Safelog release",
    question=QUESTION,
    settings=RetrievalSettings,
    steps=steps,
    mechanism="safelog",
    combine=combine,
    columns={
        "retrieval": ("split", "log", "epsilon", "method", "measure", *SHOWN, "difference_low", "difference_high"),
        "retrieval_by_fold": ("fold", "log", "method", "measure", *SHOWN),
    },
    shown_rows={"retrieval": is_shown, "retrieval_by_fold": lambda row: False},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
