"""Safelog as printed over a grid of thresholds K and noise scales b, each release searched: Figures 4 and 5.

The paper does not print its grid of b, nor whether the other noises grow with it. Here b takes the values below, once
alone, with b_q, b_c and b_t as the paper's other experiments have them, and once with all four the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.privacy.parameters import Listed, Scale
from qlog_assets.studies.paper_draws import PaperCounts, claimed_epsilon, paper_parameters, pool_of
from qlog_assets.studies.parts import PARTS, SplitSettings, hold_out
from qlog_assets.studies.retrieval_rows import Method, mean_columns, score_methods, split_words, tested_clicks
from qlog_assets.studies.study import Row, StudyWork

B_ALONE, ALL_SCALES = "b alone", "all scales"
"""Which noise grows with b."""
OTHERS = ("query_scale", "click_scale", "transition_scale")


class GridSettings(SplitSettings):
    """The grid, and how the month is divided."""

    folds: int = Field(1, ge=1, le=PARTS)
    """How many of the five parts are tested. One: a grid has 25 releases and more, and the paper's five folds would
    take five times as long; the intervals say how much chance is left."""
    thresholds: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], Listed, Field(min_length=1)] = (
        10, 30, 50, 100, 500,
    )  # fmt: skip
    """K: the paper's five."""
    scales: Annotated[tuple[Scale, ...], Listed, Field(min_length=1)] = Field(
        tuple(map(Fraction, (5, 10, 20, 50, 100, 200))), validate_default=True
    )
    """b: from half of the paper's 10 to beyond the last turning point, which is 121 at K = 500."""
    other_scale: Scale = Field(Fraction(10), validate_default=True)
    """b_q, b_c and b_t where b grows alone."""
    limit: int = Field(100, ge=1, le=10_000)
    """q_f and c_f: queries and clicks kept per user."""

    @property
    def base(self) -> dict[str, Any]:
        """The paper's parameters without K and b."""
        limits = dict.fromkeys(("queries_per_user", "clicks_per_user"), self.limit)
        return {**limits, **dict.fromkeys(OTHERS, self.other_scale)}


def at_point(chosen: SafelogParameters, threshold: int, scale: Fraction, growing: str) -> SafelogParameters:
    """The paper's parameters at one point of the grid."""
    others = dict.fromkeys(OTHERS, scale) if growing == ALL_SCALES else {}
    return chosen.with_changes(threshold=threshold, selection_scale=scale, **others)


def search_grid(work: StudyWork, part: int, methods: Sequence[Method], growing: Sequence[str]) -> list[Row]:
    """One part of five held out: a release for each point of the grid, searched in some ways, scored by nDCG@10."""
    settings: GridSettings = work.settings
    chosen, rows = paper_parameters(work.policy, **settings.base), []
    with hold_out(work, part, settings.split) as fold:
        tested = tested_clicks(work.engine, fold)
        view_cleaned(work.engine, fold.trained.cleaned)
        counts = PaperCounts.count(work.engine, pool_of(work), chosen)
    for which in growing:
        for threshold in settings.thresholds:
            for scale in settings.scales:
                point = at_point(chosen, threshold, scale, which)
                log = counts.draw_log(point, settings.seed)
                rows += [
                    {
                        "fold": part,
                        "split": split_words(settings),
                        "growing": which,
                        "K": threshold,
                        "b": float(scale),
                        **claimed_epsilon(point),
                        "queries": log.queries.num_rows,
                        "method": method,
                        **mean_columns(found, "ndcg", settings.seed),
                    }
                    for method, found in score_methods(log, tested, methods).items()
                ]
    return rows
