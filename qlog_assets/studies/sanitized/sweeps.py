"""The sweeps over B and |O|: what the paper's programme gives of one log, every row with the bound n·B.

Everything here is private and seeded. What a measure means is in `measures/`, what the paper prints in `printed.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from qlog_assets.mechanisms.sanitized.instance import make_instance
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.objectives import Goal, largest_size, relaxed
from qlog_assets.mechanisms.sanitized.paper import sample_users
from qlog_assets.mechanisms.sanitized.programme import Programme
from qlog_assets.mechanisms.sanitized.rounding import Rounding, round_down, whole_counts
from qlog_assets.mechanisms.sanitized.solvers import NothingFitsError
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.measures import sanitization
from qlog_assets.studies.sanitized import printed
from qlog_assets.studies.sanitized.settings import LN_2, MADE_UP, StudySettings
from qlog_assets.studies.study import Row

MIDDLE_SUPPORT = 1 / 500
"""s of Figures 3(a), 3(b) and 6."""
RATIO_STEPS = tuple(step / 10 for step in range(1, 11))
LARGEST, DIVERSITY = Goal("output_size"), Goal("diversity")


@dataclass(frozen=True)
class Clicks:
    """One log without its unique pairs, and the query of each pair."""

    name: str
    rows: PairCounts
    queries: np.ndarray

    def programme(self, limit: float) -> Programme:
        return Programme.of(self.rows, self.queries.size, limit)

    @property
    def is_papers(self) -> bool:
        """Whether the paper's values may stand beside: they are of a log of this size."""
        return self.name == MADE_UP


def take_users(clicks: Clicks, most_pairs: int, seed: int) -> Clicks:
    """The clicks of half of the users, of a quarter, and so on, until no more pairs are shared than asked for."""
    rows, queries = clicks.rows, clicks.queries
    everybody = np.random.default_rng(seed).permutation(np.unique(rows.users))
    users = everybody
    while queries.size > most_pairs:
        users = users[: users.size // 2]
        rows = rows.keep(np.isin(rows.users, users))
        # A pair that is one user's alone now is left out, as it is of the whole month.
        rows = rows.keep(np.bincount(rows.pairs)[rows.pairs] > 1)
        kept, pairs = np.unique(rows.pairs, return_inverse=True)
        rows, queries = replace(rows, pairs=pairs), queries[kept]
    if users is everybody:
        return clicks
    rows = replace(rows, users=np.unique(rows.users, return_inverse=True)[1])
    return Clicks(f"{users.size:,} of {everybody.size:,} users of {clicks.name}", rows, queries)


def made_up_clicks() -> Clicks:
    """The made-up log; its queries, which it does not tell, have a pair and a quarter each as the paper's do."""
    rows = make_instance()
    pairs = int(rows.pairs.max()) + 1
    return Clicks(MADE_UP, rows, np.arange(pairs) * 4971 // printed.PAIRS)


def all_budgets(clicks: Clicks, plan: StudySettings, of_paper: dict[float, Any]) -> list[float]:
    """B of the settings and, on the made-up log, of the paper's table, without near repetitions."""
    wanted = sorted({*map(float, plan.budgets), *(of_paper if clicks.is_papers else ())})
    return [limit for place, limit in enumerate(wanted) if place == 0 or limit > wanted[place - 1] * 1.001]


def of_paper(values: dict[float, Any], limit: float) -> Any:
    """What a table of the paper has at this B; None where nothing."""
    return next((value for at, value in values.items() if abs(at - limit) <= 1e-3 * limit), None)


def label(clicks: Clicks, programme: Programme) -> Row:
    return {"log": clicks.name, "B": round(programme.limit, 6), "bound": round(programme.largest_size, 3)}


def output_sizes(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Table 4: the largest output, relaxed and whole. Relaxed it is linear in B, so it is solved once."""
    unit = clicks.programme(1.0)
    best = relaxed(unit, LARGEST)
    for limit in all_budgets(clicks, plan, printed.OUTPUT_SIZES):
        programme = replace(unit, limit=limit)
        yield {
            **label(clicks, programme),
            "relaxed": round(float(best.sum()) * limit, 3),
            "printed": int(round_down(programme, programme.scale_into(best * limit)).sum()),
            "filled": int(whole_counts(programme, LARGEST, "fill").sum()),
            "paper": of_paper(printed.OUTPUT_SIZES, limit) if clicks.is_papers else None,
        }


def supports(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Tables 5 and 6 and Figure 3(c): frequent pairs by minimum support and output size, at each B.

    Without the constraint that the paper takes for granted, infrequent pairs become frequent; with it none does.
    """
    for limit in map(float, plan.support_budgets):
        programme = clicks.programme(limit)
        sizes = asked_sizes(programme, plan)
        for support in map(float, plan.supports):
            for size in sizes:
                for stay in (False, True):
                    goal = Goal("frequent_pairs", support, size, stay)
                    yield {
                        **label(clicks, programme),
                        "support": round(support, 6),
                        "asked": size,
                        "infrequent_stay": stay,
                        **measured(programme, goal, "printed", "printed_"),
                        **measured(programme, goal, "fill", ""),
                    }


def supports_by_budget(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Figures 3(a) and 3(b): one output size, the least of the paper's shares at ln 2, and B from small to large."""
    size = min(asked_sizes(clicks.programme(float(LN_2)), plan))
    for limit in all_budgets(clicks, plan, printed.OUTPUT_SIZES):
        programme = clicks.programme(limit)
        goal = Goal("frequent_pairs", MIDDLE_SUPPORT, size)
        yield {
            **label(clicks, programme),
            "asked": size,
            **measured(programme, goal, "printed", "printed_"),
            **measured(programme, goal, "fill", ""),
        }


def asked_sizes(programme: Programme, plan: StudySettings) -> list[int]:
    """The output sizes to ask for: shares of the largest one, whole and at least 1."""
    largest = largest_size(programme)
    return [max(int(largest * share), 1) for share in map(float, plan.sizes)]


def measured(programme: Programme, goal: Goal, rounding: Rounding, prefix: str) -> Row:
    """What one output keeps; nothing where the asked size does not fit."""
    try:
        counts = whole_counts(programme, goal, rounding)
    except NothingFitsError:
        names = ("size", "precision", "recall", "distance_sum", "distance_mean", "diversity")
        return {f"{prefix}{name}": None for name in names}
    found = asdict(sanitization.compare(programme.events, counts, goal.minimum_support))
    return {f"{prefix}{name}": rounded(value) for name, value in found.items()}


def diversity(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Table 7 and Figure 4: how many different pairs, and queries, by B."""
    for limit in all_budgets(clicks, plan, printed.DIVERSITY):
        programme = clicks.programme(limit)
        kept = {how: whole_counts(programme, DIVERSITY, how) > 0 for how in ("printed", "tested_first", "fill")}
        by_query = whole_counts(programme, Goal("diversity", queries=clicks.queries), "fill") > 0
        share = of_paper(printed.DIVERSITY, limit) if clicks.is_papers else None
        yield {
            **label(clicks, programme),
            "pairs": programme.pairs,
            "relaxed": round(float(relaxed(programme, DIVERSITY).sum()), 3),
            "eliminated": int(kept["printed"].sum()),
            "eliminated_tested_first": int(kept["tested_first"].sum()),
            "filled": int(kept["fill"].sum()),
            "queries_filled": int(np.unique(clicks.queries[kept["fill"]]).size),
            "queries_by_query": int(np.unique(clicks.queries[by_query]).size),
            "paper": None if share is None else round(share * printed.PAIRS),
        }


def runtimes(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Figure 5: pairs kept and seconds taken at ln 2. At the paper's own B = 0.001 only the empty output fits."""
    programme = clicks.programme(float(LN_2))
    for rounding in ("printed", "fill", "mip"):
        started = time.perf_counter()
        counts = whole_counts(programme, DIVERSITY, rounding, plan.search_seconds)
        seconds = time.perf_counter() - started
        yield {**label(clicks, programme), "method": rounding, "kept": int(counts.sum()), "seconds": round(seconds, 3)}


def differences(clicks: Clicks, plan: StudySettings) -> Iterator[Row]:
    """Figure 6: how far each user's count of each frequent pair is from the log's, over some draws."""
    for limit in map(float, plan.support_budgets):
        programme = clicks.programme(limit)
        looked = sanitization.frequent_pairs(programme.events, MIDDLE_SUPPORT)
        for size in asked_sizes(programme, plan):
            counts = whole_counts(programme, Goal("frequent_pairs", MIDDLE_SUPPORT, size), "fill")
            drawn = [
                sanitization.difference_ratios(clicks.rows, sample_users(source, clicks.rows, counts), looked)
                for source in (SeededRandom(plan.seed + number) for number in range(plan.draws))
            ]
            ratios = np.concatenate(drawn) if looked.any() else np.empty(0)
            below = {
                f"up_to_{step:.0%}": rounded(float((ratios <= step).mean())) if ratios.size else None
                for step in RATIO_STEPS
            }
            yield {
                **label(clicks, programme),
                "asked": size,
                "size": int(counts.sum()),
                "draws": plan.draws,
                "below_40%": rounded(float((ratios < 0.4).mean())) if ratios.size else None,
                **below,
            }


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


Sweep = Callable[[Clicks, StudySettings], Iterator[Row]]
SWEEPS: dict[str, Sweep] = {
    "output_size": output_sizes,
    "supports": supports,
    "supports_by_budget": supports_by_budget,
    "diversity": diversity,
    "runtime": runtimes,
    "difference": differences,
}
"""The study's tables."""
