"""The log itself, Safelog as printed and as it can be released, searched for what held-out people clicked."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from pydantic import Field

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Scale
from qlog_assets.studies.measures.ranking_scores import QueryScores
from qlog_assets.studies.paper_draws import PAPER, SAFELOG, claimed_epsilon, paper_parameters, paper_policy
from qlog_assets.studies.parts import Fold, SplitSettings, hold_out
from qlog_assets.studies.retrieval_rows import (
    MEASURE_NAMES,
    mean_columns,
    paired_columns,
    score_methods,
    split_words,
    tested_clicks,
)
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import StudyWork, Tables

ORIGINAL = "original"
Cost = tuple[float | None, float | None]
Searched = tuple[str, Cost, int, dict[str, QueryScores]]
"""A log by its name, its (ε, δ), how many queries it holds, and what was found in it."""


class RetrievalSettings(SplitSettings):
    """The paper's log of Figure 3, and how the month is divided."""

    threshold: int = Field(500, ge=1, le=10**9)
    """K."""
    scale: Scale = Field(Fraction(10), validate_default=True)
    """b, and b_q, b_c and b_t with it."""
    limit: int = Field(100, ge=1, le=10_000)
    """q_f and c_f: queries and clicks kept per user."""

    @property
    def paper(self) -> dict[str, Any]:
        """What of the paper's parameters is set."""
        scales = ("selection_scale", "query_scale", "click_scale", "transition_scale")
        limits = ("queries_per_user", "clicks_per_user")
        return {
            "threshold": self.threshold,
            **dict.fromkeys(scales, self.scale),
            **dict.fromkeys(limits, self.limit),
        }


def compare_logs(work: StudyWork, part: int) -> Tables:
    """One part of five held out: every log, every way to search it, every measure."""
    settings: RetrievalSettings = work.settings
    rows = []
    with hold_out(work, part, settings.split) as fold:
        tested = tested_clicks(work.engine, fold)
        log = SearchLog.of_log(work.engine, fold.trained.cleaned, "events")
        original = score_methods(log, tested)
        logs: list[Searched] = [(ORIGINAL, (None, None), log.queries.num_rows, original)]
        logs += [
            (name, cost, drawn.queries.num_rows, score_methods(drawn, tested))
            for name, cost, drawn in _drawn_logs(fold, work.policy, settings)
        ]
    for name, (epsilon, delta), queries, scores in logs:
        for method, found in scores.items():
            for measure in MEASURE_NAMES:
                rows.append(
                    {
                        "fold": part,
                        "split": split_words(settings),
                        "log": name,
                        "epsilon": epsilon,
                        "delta": delta,
                        "queries": queries,
                        "method": method,
                        "measure": measure,
                        **mean_columns(found, measure, settings.seed),
                        **paired_columns(found, original[method], measure, settings.seed),
                    }
                )
    return {"retrieval_by_fold": rows}


def _drawn_logs(fold: Fold, policy: Policy, settings: RetrievalSettings) -> Iterator[tuple[str, Cost, SearchLog]]:
    """The paper's log with what it claims, then those that can be released, at what a release of the policy costs."""
    printed = fold.trained.draw(SAFELOG, PAPER, settings.seed, paper_policy(policy, **settings.paper))
    claimed = claimed_epsilon(paper_parameters(policy, **settings.paper))["epsilon"]
    yield f"{PAPER}, K = {settings.threshold}", (claimed, 0.0), SearchLog.of_tables(printed.tables)
    safelog = mechanism(SAFELOG)
    proven = safelog.guarantee(policy.variant(safelog), policy.parameters(safelog)).proven
    assert proven is not None
    for variant in ("sound", "modern") if proven.delta else ("sound",):
        chosen = policy.for_variant(safelog, variant)
        section = safelog.at_cost(chosen.section(SAFELOG), Fraction(proven.epsilon), Fraction(proven.delta))
        at_cost = chosen.with_changes(mechanisms={**chosen.mechanisms, SAFELOG: section})
        drawn = fold.trained.draw(SAFELOG, variant, settings.seed, at_cost)
        cost = drawn.guarantee.claimed
        assert cost is not None
        yield variant, (float(cost.epsilon), float(cost.delta)), SearchLog.of_tables(drawn.tables)
