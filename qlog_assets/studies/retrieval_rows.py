"""Rows of the studies of retrieval: every log searched in the same ways, and the folds of a split put together.

Means stand in the order in which they should be read: with zero for missing queries, as the paper has it, and on the
queries that two logs share. What is leaky says so in its row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures.bootstrap import mean_interval, paired_interval
from qlog_assets.studies.measures.ranking_scores import QueryScores
from qlog_assets.studies.measures.retrieval import FeedbackRank, TestedClicks, score_retrieval
from qlog_assets.studies.parts import Fold, SplitSettings
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import Row, Tables

LEAKY = " (leaky)"
MEASURE_NAMES = {"ndcg": "nDCG@10", "average_precision": "MAP", "precision": "P@10", "recall": "R@10"}


@dataclass(frozen=True)
class Method:
    """One way to search a log, as tables call it."""

    name: str
    algorithm: str
    feedback_rank: FeedbackRank = "test"


RW, RW_2 = Method("RW", "random_walk"), Method("RW-2", "impact_walk")
IF_TEST = Method(f"IF, rank of the test{LEAKY}", "implicit_feedback")
IF_TRAIN = Method("IF, rank of training", "implicit_feedback", "train")
METHODS = (RW, RW_2, IF_TEST, IF_TRAIN)


def split_words(settings: SplitSettings) -> str:
    """How the month was divided, as every table and picture says it."""
    return settings.split if settings.split == "user" else f"{settings.split}{LEAKY}"


def tested_clicks(engine: Engine, fold: Fold) -> TestedClicks:
    """What is asked of every log of a fold, with the ranks of the log that is drawn from."""
    return TestedClicks.of_log(engine, fold.tested.cleaned, fold.trained.cleaned)


def score_methods(log: SearchLog, tested: TestedClicks, methods: Sequence[Method] = METHODS) -> dict[str, QueryScores]:
    """A log searched in some ways, by their names."""
    return {
        each.name: score_retrieval(log, tested, each.algorithm, feedback_rank=each.feedback_rank) for each in methods
    }


def mean_columns(scores: QueryScores, measure: str, seed: int) -> Row:
    """Both means of a measure with their intervals, and over how many queries."""
    values = scores.of(measure)
    return {
        "tested": len(values),
        "with_zeros": scores.with_zeros(measure),
        **ends("zeros", *mean_interval(values, seed)),
        "evaluated": scores.evaluated,
        "as_paper": scores.as_paper(measure),
        **ends("paper", *mean_interval(values[scores.answered], seed)),
    }


def paired_columns(scores: QueryScores, original: QueryScores, measure: str, seed: int) -> Row:
    """A log beside the one that it was drawn from, on the queries that both answer."""
    both = scores.answered & original.answered
    ours, theirs = scores.of(measure)[both], original.of(measure)[both]
    return {
        "common": int(both.sum()),
        "on_common": scores.among(measure, both),
        "original_on_common": original.among(measure, both),
        "difference": float((ours - theirs).mean()) if both.any() else None,
        **ends("difference", *paired_interval(ours, theirs, seed)),
    }


def ends(name: str, low: float, high: float) -> Row:
    """An interval as two columns; None where there is none."""
    return {f"{name}_low": None if math.isnan(low) else low, f"{name}_high": None if math.isnan(high) else high}


COUNTS = ("tested", "evaluated", "common")
INTERVALS = {"zeros": "with_zeros", "paper": "as_paper", "difference": "difference"}
"""Columns of ends, and the column of the mean that they belong to."""


COLUMNS = (
    "tested", "with_zeros", "zeros_low", "zeros_high",
    "evaluated", "as_paper", "paper_low", "paper_high",
    "common", "on_common", "original_on_common", "difference", "difference_low", "difference_high",
)  # fmt: skip
"""The order in which measures are read: what cannot flatter comes first."""


def by_fold_and_over_folds(name: str, tables: Tables, keys: Sequence[str]) -> Tables:
    """The table of a study's folds, and before it that of all folds together, both with their columns in order."""
    by_fold = f"{name}_by_fold"
    rows = [in_order(row, ("fold", *keys)) for row in tables[by_fold]]
    return {**tables, name: over_folds(rows, keys), by_fold: rows}


def in_order(row: Row, first: Sequence[str]) -> Row:
    """A row with its columns in the order in which they are read."""
    return {name: row[name] for name in dict.fromkeys((*first, *COLUMNS, *row)) if name in row}


def over_folds(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """One row for those that differ by their fold alone: counts added up, means and the widths of intervals averaged.

    Folds share no tested user, but popular queries and most of what they are drawn from: several of them make an
    interval no narrower.
    """
    order = {tuple(row[key] for key in keys): place for place, row in reversed(list(enumerate(rows)))}
    ranked = sorted(rows, key=lambda row: order[tuple(row[key] for key in keys)])
    return [_combine(list(group), keys) for _, group in groupby(ranked, key=lambda row: [row[key] for key in keys])]


def _combine(group: Sequence[Row], keys: Sequence[str]) -> Row:
    means = {
        name: average(row[name] for row in group)
        for name in group[0]
        if name not in (*keys, *COUNTS, "fold") and not name.endswith(("_low", "_high"))
    }
    combined: Row = {}
    for name in group[0]:
        if name in keys:
            combined[name] = group[0][name]
        elif name in COUNTS:
            combined[name] = sum(row[name] for row in group)
        elif name in means:
            combined[name] = means[name]
        elif name != "fold":
            of, _, end = name.rpartition("_")
            combined[name] = _combined_end(group, INTERVALS[of], name, 1 if end == "high" else -1)
    return combined


def _combined_end(group: Sequence[Row], mean: str, end: str, sign: int) -> float | None:
    known = [(row[mean], row[end]) for row in group if row[end] is not None]
    if not known:
        return None
    apart = np.mean([abs(middle - edge) for middle, edge in known])
    return float(np.mean([middle for middle, _ in known]) + sign * apart)


def average(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; of whole numbers it is one."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = float(np.mean(known))
    return round(mean) if all(isinstance(value, int) for value in known) else mean


def told(row: Mapping[str, Any], name: str, low: str, high: str) -> str:
    """A mean with its interval, in words."""
    if row[name] is None:
        return "none"
    return f"{row[name]:.3f} ({row[low]:.3f} to {row[high]:.3f})"
