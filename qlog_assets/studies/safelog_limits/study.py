"""The study `safelog-limits`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated

from pydantic import Field

from qlog_assets.privacy.parameters import Listed, Scale
from qlog_assets.studies import retrieval_plots
from qlog_assets.studies.paper_draws import PaperCounts, claimed_epsilon, paper_parameters, pool_of
from qlog_assets.studies.parts import PARTS, SplitSettings, hold_out
from qlog_assets.studies.retrieval_plots import Line, Panel
from qlog_assets.studies.retrieval_rows import (
    IF_TEST,
    METHODS,
    by_fold_and_over_folds,
    mean_columns,
    score_methods,
    split_words,
    tested_clicks,
    told,
)
from qlog_assets.studies.safelog_limits import printed
from qlog_assets.studies.safelog_limits.sampling import UserHistories, view_first_users
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "Is a log of few users with many searches each as good for search as one of many users with few, when both hold "
    "equally many queries and clicks (Table 3)? Safelog as the paper prints it, at K = b = 10."
)
KEYS = ("split", "limit", "method")


class LimitSettings(SplitSettings):
    """The limits per user of Table 3, and how the month is divided."""

    folds: int = Field(2, ge=1, le=PARTS)
    """How many of the five parts are tested. Two, for the time it takes; the intervals say how much chance is left."""
    limits: Annotated[tuple[Annotated[int, Field(ge=1, le=10_000)], ...], Listed, Field(min_length=1)] = (
        10, 50, 100, 150, 200,
    )  # fmt: skip
    """q_f = c_f: queries and clicks kept per user."""
    threshold: int = Field(10, ge=1, le=10**9)
    """K."""
    scale: Scale = Field(Fraction(10), validate_default=True)
    """b, and b_q, b_c and b_t with it."""


def measure(work: StudyWork, part: int) -> Tables:
    """One part of five held out: for each limit a sample of the others that keeps equally much, drawn and searched."""
    settings: LimitSettings = work.settings
    scales = ("selection_scale", "query_scale", "click_scale", "transition_scale")
    base = {"threshold": settings.threshold, **dict.fromkeys(scales, settings.scale)}
    rows: list[Row] = []
    with hold_out(work, part, settings.split) as fold:
        tested, pool = tested_clicks(work.engine, fold), pool_of(work)
        histories = UserHistories.of_log(work.engine, fold.trained.cleaned)
        least_frequent = paper_parameters(work.policy).min_frequency
        # Under the smallest limit all users together keep least: as much is kept under the others, of fewer users.
        total = histories.keep(histories.users, min(settings.limits), least_frequent).total
        for limit in settings.limits:
            chosen = paper_parameters(work.policy, queries_per_user=limit, clicks_per_user=limit, **base)
            kept = histories.sample(total, limit, least_frequent)
            view_first_users(work.engine, kept.users)
            log = PaperCounts.count(work.engine, pool, chosen).draw_log(chosen, settings.seed)
            rows += [
                {
                    "fold": part,
                    "split": split_words(settings),
                    "limit": limit,
                    "users": kept.users,
                    "queries_kept": kept.queries,
                    "clicks_kept": kept.clicks,
                    **claimed_epsilon(chosen),
                    "paper_epsilon": printed.EPSILONS.get(limit),
                    "method": method,
                    **mean_columns(found, "ndcg", settings.seed),
                    "paper_ndcg": printed.NDCG.get(method, {}).get(limit),
                }
                for method, found in score_methods(log, tested).items()
            ]
    return {"limits_by_fold": rows}


def steps(work: StudyWork) -> Sequence[Step]:
    return [Step(f"fold-{part}", partial(measure, part=part)) for part in range(work.settings.folds)]


def combine(tables: Tables) -> Tables:
    return by_fold_and_over_folds("limits", tables, KEYS)


def pictures(tables: Tables) -> dict[str, bytes]:
    rows = tables["limits"]
    panels = []
    for mean, ends, words in (("with_zeros", "zeros", "zero for missing"), ("as_paper", "paper", "as the paper")):
        lines = []
        for method in METHODS:
            line = [row for row in rows if row["method"] == method.name]
            lines.append(
                Line(
                    method.name,
                    [(row["limit"], row[mean]) for row in line],
                    [None if row[f"{ends}_low"] is None else (row[f"{ends}_low"], row[f"{ends}_high"]) for row in line],
                    [f"{row['evaluated']:,}" for row in line] if method == METHODS[0] else (),
                )
            )
        panels.append(Panel(f"nDCG@10, {words}", "q_f = c_f", lines))
    title = (
        f"Limits per user with equally many queries and clicks kept, split by {rows[0]['split']}. Beside the points: "
        f"queries evaluated of {rows[0]['tested']:,}"
    )
    return {"limits.png": retrieval_plots.line_panels([panels], title, logarithmic=False)}


def words(tables: Tables, settings: LimitSettings) -> str:
    """Both ends of the table."""
    sentences = [f"Split by {split_words(settings)}, {settings.folds} of five folds."]
    for row in tables["limits"]:
        if row["method"] == IF_TEST.name:
            sentences.append(
                f"q_f = c_f = {row['limit']}, {row['users']:,.0f} users: {IF_TEST.name} has nDCG@10 with zeros "
                f"{told(row, 'with_zeros', 'zeros_low', 'zeros_high')}, as the paper "
                f"{told(row, 'as_paper', 'paper_low', 'paper_high')} over {row['evaluated']:,} of {row['tested']:,} "
                f"queries; ε without transitions is {row['epsilon_without_transitions']:.2f}."
            )
    return " ".join(sentences)


SHOWN = ("tested", "with_zeros", "zeros_low", "zeros_high", "evaluated", "as_paper", "paper_low", "paper_high")
STUDY = Study(
    name="safelog-limits",
    title="Limits per user at equal sizes",
    question=QUESTION,
    settings=LimitSettings,
    steps=steps,
    mechanism="safelog",
    combine=combine,
    columns={
        "limits": (
            "split", "limit", "users", "queries_kept", "clicks_kept", "epsilon_without_transitions", "paper_epsilon",
            "method", *SHOWN, "paper_ndcg",
        ),
        "limits_by_fold": ("fold", *KEYS, *SHOWN),
    },
    shown_rows={"limits_by_fold": lambda row: False},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)  # fmt: skip
