"""The study `safelog-noise`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from qlog_assets.studies import retrieval_plots
from qlog_assets.studies.paper_grid import ALL_SCALES, B_ALONE, GridSettings, search_grid
from qlog_assets.studies.retrieval_plots import Line, Panel
from qlog_assets.studies.retrieval_rows import IF_TEST, IF_TRAIN, RW, by_fold_and_over_folds, split_words, told
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "How well does search work on Safelog as the paper prints it, as the noise b grows, for thresholds K from 10 to "
    "500 (Figure 4)? Scored first with zero for queries that a release does not hold, then as the paper does, over "
    "those that it holds."
)
KEYS = ("split", "growing", "K", "b", "method")
METHODS = (RW, IF_TEST, IF_TRAIN)
"""Those of Figure 4, and the feedback that does not leak."""


def measure(work: StudyWork, part: int) -> Tables:
    return {"noise_by_fold": search_grid(work, part, METHODS, (B_ALONE, ALL_SCALES))}


def steps(work: StudyWork) -> Sequence[Step]:
    return [Step(f"fold-{part}", partial(measure, part=part)) for part in range(work.settings.folds)]


def combine(tables: Tables) -> Tables:
    return by_fold_and_over_folds("noise", tables, KEYS)


def pictures(tables: Tables) -> dict[str, bytes]:
    """One for each meaning of b: above with zeros, below as the paper, which has another scale."""
    rows = tables["noise"]
    thresholds = list(dict.fromkeys(row["K"] for row in rows))
    return {
        f"noise_{growing.replace(' ', '_')}.png": retrieval_plots.line_panels(
            [
                [_panel(rows, growing, threshold, *mean) for threshold in thresholds]
                for mean in (("with_zeros", "zeros", "zero for missing"), ("as_paper", "paper", "as the paper"))
            ],
            f"nDCG@10 over b, {growing}, split by {rows[0]['split']}. Beside the points of RW: queries evaluated of "
            f"{rows[0]['tested']:,}",
        )
        for growing in (B_ALONE, ALL_SCALES)
    }


def _panel(rows: Sequence[Row], growing: str, threshold: int, mean: str, ends: str, words: str) -> Panel:
    lines = []
    for method in METHODS:
        line = [row for row in rows if (row["growing"], row["K"], row["method"]) == (growing, threshold, method.name)]
        lines.append(
            Line(
                method.name,
                [(row["b"], row[mean]) for row in line],
                [None if row[f"{ends}_low"] is None else (row[f"{ends}_low"], row[f"{ends}_high"]) for row in line],
                [f"{row['evaluated']:,}" for row in line] if method == RW else (),
            )
        )
    return Panel(f"K = {threshold}, {words}", "b", lines)


def is_shown(row: Row) -> bool:
    """What Figure 4 has; the rest is in the file."""
    return row["growing"] == B_ALONE and row["method"] != IF_TRAIN.name


def words(tables: Tables, settings: GridSettings) -> str:
    """For each K, both ends of b, with zeros and as the paper does."""
    sentences = [f"Split by {split_words(settings)}, {settings.folds} of five folds."]
    for threshold in settings.thresholds:
        line = [
            row
            for row in tables["noise"]
            if (row["K"], row["growing"], row["method"]) == (threshold, B_ALONE, IF_TEST.name)
        ]
        ends = [
            f"b = {row['b']:g}: with zeros {told(row, 'with_zeros', 'zeros_low', 'zeros_high')}, as the paper "
            f"{told(row, 'as_paper', 'paper_low', 'paper_high')} over {row['evaluated']:,} of {row['tested']:,} queries"
            for row in (line[0], line[-1])
        ]
        sentences.append(f"K = {threshold}, {IF_TEST.name}, {B_ALONE}: {'; '.join(ends)}.")
    return " ".join(sentences)


SHOWN = ("tested", "with_zeros", "zeros_low", "zeros_high", "evaluated", "as_paper", "paper_low", "paper_high")
STUDY = Study(
    name="safelog-noise",
    title="Search on Safelog as the noise grows",
    question=QUESTION,
    settings=GridSettings,
    steps=steps,
    mechanism="safelog",
    combine=combine,
    columns={
        "noise": (*KEYS, *SHOWN),
        "noise_by_fold": ("fold", *KEYS, *SHOWN),
    },
    shown_rows={"noise": is_shown, "noise_by_fold": lambda row: False},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
