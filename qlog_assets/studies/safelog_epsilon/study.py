"""The study `safelog-epsilon`: what the register finds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from qlog_assets.studies import retrieval_plots
from qlog_assets.studies.paper_grid import B_ALONE, GridSettings, search_grid
from qlog_assets.studies.retrieval_plots import Line, Panel
from qlog_assets.studies.retrieval_rows import IF_TEST, IF_TRAIN, by_fold_and_over_folds, split_words
from qlog_assets.studies.safelog_epsilon.theorem import (
    LOOSE,
    TIGHT,
    epsilon_columns,
    epsilon_lines,
    turning_points,
)
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "What does Safelog's Theorem 1 charge as the noise b grows, where does its ε turn, and how well does search work "
    "there (Figure 5)? Beside it the same theorem without the slack that makes it turn."
)
KEYS = ("split", "growing", "K", "b", "method")
HEADROOM = 1.6
"""How far the picture goes above the highest release, for the labels."""


def measure(work: StudyWork, part: int) -> Tables:
    rows = search_grid(work, part, (IF_TEST, IF_TRAIN), (B_ALONE,))
    chance = float(work.policy.pool.probability)
    return {"epsilon_by_fold": [row | epsilon_columns(work.settings, row["K"], row["b"], chance) for row in rows]}


def steps(work: StudyWork) -> Sequence[Step]:
    def turn(at: StudyWork) -> Tables:
        return {
            "turning_points": turning_points(at.settings, float(at.policy.pool.probability)),
            "lines": epsilon_lines(at.settings, float(at.policy.pool.probability)),
        }

    folds = [Step(f"fold-{part}", partial(measure, part=part)) for part in range(work.settings.folds)]
    return [Step("theorem", turn), *folds]


def combine(tables: Tables) -> Tables:
    return by_fold_and_over_folds("epsilon", tables, KEYS)


def pictures(tables: Tables) -> dict[str, bytes]:
    rows = [row for row in tables["epsilon"] if row["method"] == IF_TEST.name]
    turning = {row["K"]: row["paper"] for row in tables["turning_points"]}
    highest = HEADROOM * max(row[LOOSE] for row in rows)
    panels = []
    for threshold in dict.fromkeys(row["K"] for row in rows):
        curve = [row for row in tables["lines"] if row["K"] == threshold]
        points = [row for row in rows if row["K"] == threshold]
        lines = [
            Line("Theorem 1", [(row["b"], row[LOOSE]) for row in curve]),
            Line("Theorem 1, tight", [(row["b"], row[TIGHT]) for row in curve], style="--"),
            Line(
                "releases",
                [(row["b"], row[LOOSE]) for row in points],
                labels=[_label(row) for row in points],
                style="o",
                slanted=True,
            ),
        ]
        across = "b (dotted: the paper's turning point)"
        panels.append(Panel(f"K = {threshold}", across, lines, turning[threshold], highest))
    title = (
        f"ε over b. At the points: nDCG@10 of {IF_TEST.name} with zeros / as the paper, and queries evaluated of "
        f"{rows[0]['tested']:,}; split by {rows[0]['split']}"
    )
    return {"epsilon.png": retrieval_plots.line_panels([panels], title)}


def _label(row: Row) -> str:
    over = "none" if row["as_paper"] is None else f"{row['as_paper']:.2f}"
    return f"{row['with_zeros']:.3f} / {over} ({row['evaluated']:,})"


def words(tables: Tables, settings: GridSettings) -> str:
    """Where ε turns, by either theorem, and how well search works on the release of the grid that is nearest."""
    sentences = [f"Split by {split_words(settings)}, {settings.folds} of five folds."]
    for row in tables["turning_points"]:
        told = "does not turn" if row["tight"] is None else f"turns at b = {row['tight']:.4g}"
        paper = "has none" if row["paper"] is None else f"is b = {row['paper']:.4g}, ε = {row[LOOSE]:.4g}"
        sentences.append(f"K = {row['K']}: the paper's turning point {paper}; the tight ε {told}.")
        if row["paper"] is not None:
            nearest = min(
                (each for each in tables["epsilon"] if (each["K"], each["method"]) == (row["K"], IF_TEST.name)),
                key=lambda each: abs(math.log(each["b"] / row["paper"])),
            )
            sentences.append(
                f"At b = {nearest['b']:g} {IF_TEST.name} has nDCG@10 {nearest['with_zeros']:.4f} with zeros, as the "
                f"paper {nearest['as_paper'] or 0:.3f} over {nearest['evaluated']:,} of {nearest['tested']:,} queries."
            )
    return " ".join(sentences)


SHOWN = ("tested", "with_zeros", "evaluated", "as_paper")
STUDY = Study(
    name="safelog-epsilon",
    title="What Safelog's noise costs",
    question=QUESTION,
    settings=GridSettings,
    steps=steps,
    mechanism="safelog",
    combine=combine,
    columns={
        "epsilon": ("split", "K", "b", LOOSE, TIGHT, "epsilon", "method", *SHOWN),
        "turning_points": ("K", "pool_probability", "paper", LOOSE, "tight", TIGHT),
        "epsilon_by_fold": ("fold", "split", "K", "b", "method", *SHOWN),
    },
    shown_rows={"epsilon_by_fold": lambda row: False, "lines": lambda row: False},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
