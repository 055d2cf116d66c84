"""A1, A2 and A3: the frequency filter, clicks only where somebody clicked, and queries outside the pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from qlog_assets.attacks.auditor import (
    AuditResult,
    Bounds,
    Claim,
    Mechanism,
    audit_ratio,
    audit_sensitivity,
    audit_structural_zero,
)
from qlog_assets.attacks.case import Cases, claim_of, printed, rows_of, side_by_side, without_x
from qlog_assets.attacks.steered import attack_new_items, table_target
from qlog_assets.mechanisms.safelog import guarantee
from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog import paper as safelog_paper
from qlog_assets.mechanisms.safelog.parameters import PaperParameters, SafelogParameters
from qlog_assets.privacy.limits import count_events, count_users, first_distinct, first_events
from qlog_assets.privacy.randomness import RandomSource

CASES = Cases("safelog")
RUNS = 1_000_000

QueryLog = Mapping[str, tuple[str, ...]]
"""The queries (or clicked pairs) of a user, in the order of time."""


def queries_only(**changes: Any) -> SafelogParameters:
    """Small parameters for one table: one query a user, b = 1, pure ε unless changed."""
    base: dict[str, Any] = {
        "queries_per_user": 1,
        "clicks_per_user": 1,
        "selection_scale": 1,
        "click_scale": None,
        "transition_scale": None,
        "delta": 0,
    }
    return SafelogParameters(**{**base, **changes})


GUARANTEES = {"sound": guarantee.sound, "paper": guarantee.paper}


def claimed(variant: str, parameters: SafelogParameters) -> Claim:
    """What the variant reports of itself."""
    return claim_of(GUARANTEES[variant](parameters).claimed)


# A1. 400 users type a rare query, four users each, then s. X types all hundred rare ones: with X they are frequent.

RARE = tuple(f"rare {number}" for number in range(100))
POOL = (*RARE, "s")
FILTERED = {**{f"user {number}": (RARE[number % 100], "s") for number in range(400)}, "X": RARE}
A1 = queries_only(threshold=10, selection_scale=10, query_scale=10)


def count_queries(log: QueryLog) -> np.ndarray:
    """Sound: users of each pool query after the cap."""
    return count_users(*first_distinct(*rows_of(log, POOL), A1.queries_per_user), len(POOL))


def count_frequent_queries(log: QueryLog) -> np.ndarray:
    """As printed: events of each pool query after the cap, queries of too few events having been dropped before it."""
    users, items = rows_of(log, POOL)
    frequent = count_events(items, len(POOL))[items] >= A1.min_frequency
    kept = first_events(users[frequent], items[frequent], A1.queries_per_user)
    return count_events(kept[1], len(POOL))


def s_printed_high_paper(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
    """Algorithm 1 with a pool that holds every query; the event: s is printed with at least 200."""
    draw, _ = safelog_paper.draw_paper_queries(source, side_by_side(count_frequent_queries(log), runs), 0, A1)
    return printed(draw.indices, draw.counts, runs, len(POOL))[:, POOL.index("s")] >= 200


def printed_at_least(query: str, least: int, parameters: SafelogParameters) -> Mechanism:
    """The sound release of pool queries; the event: the query is printed with at least so many users."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count_queries(log), runs)
        draw = safelog.draw_queries(source, users, np.ones(users.size, bool), 0, parameters).support
        return printed(draw.indices, draw.users, runs, len(POOL))[:, POOL.index(query)] >= least

    return mechanism


def moved_by_one_user(counts: Callable[[QueryLog], np.ndarray]) -> AuditResult:
    return audit_sensitivity(lambda log: dict(enumerate(counts(log).tolist())), FILTERED, Bounds(l1=1, linf=1))


@CASES.add("A1", "frequency filter before the cap", "fail", floats=True)
def frequency_filter(source: RandomSource) -> AuditResult:
    """As much as the runs can show (5.6) where 0.33 is claimed: X moves the count of s from 400 to 0."""
    return audit_ratio(s_printed_high_paper, FILTERED, without_x(FILTERED), claimed("paper", A1), source, 4000)


@CASES.add("A1", "frequency filter before the cap, sensitivity", "fail")
def frequency_filter_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: one user moves the counts by 801 where 1 is claimed."""
    return moved_by_one_user(count_frequent_queries)


@CASES.add("A1", "cap only, the count of s", "pass")
def cap_only(source: RandomSource) -> AuditResult:
    """0 of 0.1, weak on purpose: s counts 0 with and without X, which shows that the leak is gone and nothing more."""
    mechanism = printed_at_least("s", 200, A1)
    return audit_ratio(mechanism, FILTERED, without_x(FILTERED), claimed("sound", A1), source, 4000)


@CASES.add("A1", "cap only, the one count X moves", "pass")
def cap_only_moved(source: RandomSource) -> AuditResult:
    """About 0.96 of 1: the ratio of the tails is exactly e; 101 counts a run allow only so many runs."""
    chosen = queries_only(threshold=1)
    mechanism = printed_at_least(RARE[0], 5, chosen)
    return audit_ratio(mechanism, FILTERED, without_x(FILTERED), claimed("sound", chosen), source, 60_000, batch=20_000)


@CASES.add("A1", "cap only, sensitivity", "pass")
def cap_only_sensitivity(source: RandomSource) -> AuditResult:
    """Exact: L1 = 1 of 1."""
    return moved_by_one_user(count_queries)


# A2. Everybody clicked the public page of a query; X alone clicked a private one.

PAIRS = ("weather www.example", "weather x-private.example")
CLICKED = {**{f"user {number}": PAIRS[:1] for number in range(20)}, "X": PAIRS[1:]}
A2_PAPER = queries_only(threshold=10, selection_scale=10, query_scale=10, click_scale=10)


def observed_pair_printed(above: float) -> Mechanism:
    """Clicks as printed, noise on the pairs somebody clicked; the event: the private pair is printed above this."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        _, items = first_events(*rows_of(log, PAIRS), A2_PAPER.clicks_per_user)
        clicks = side_by_side(count_events(items, len(PAIRS)), runs)
        observed = np.flatnonzero(clicks)
        noisy = safelog_paper.draw_paper_clicks(source, clicks[observed], A2_PAPER).counts
        kept = noisy > above
        return printed(observed[kept], np.ones(int(kept.sum()), np.int64), runs, len(PAIRS))[:, 1] > 0

    return mechanism


@CASES.add("A2", "observed pairs only", "fail", floats=True)
def observed_pairs(source: RandomSource) -> AuditResult:
    """Every run prints the pair that nobody but X clicked; δ = 0 is claimed."""
    mechanism = observed_pair_printed(-math.inf)
    return audit_structural_zero(mechanism, CLICKED, without_x(CLICKED), claimed("paper", A2_PAPER), source, 2000)


@CASES.add("A2", "observed pairs above K", "fail", floats=True)
def observed_pairs_above(source: RandomSource) -> AuditResult:
    """One run in five prints it; δ = 0 is claimed."""
    mechanism = observed_pair_printed(float(A2_PAPER.threshold))
    return audit_structural_zero(mechanism, CLICKED, without_x(CLICKED), claimed("paper", A2_PAPER), source, 20_000)


def stable_pair_printed(parameters: SafelogParameters) -> Mechanism:
    """Clicks by stability histogram; the event: the private pair is released."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        users = count_users(*first_distinct(*rows_of(log, PAIRS), 1), len(PAIRS))
        draw = safelog.draw_clicks(source, side_by_side(users, runs), parameters)
        return printed(draw.indices, draw.users, runs, len(PAIRS))[:, 1] > 0

    return mechanism


def listed_pair_printed(parameters: SafelogParameters) -> Mechanism:
    """Clicks on a public list that names both pages; the event: the second pair is released."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count_users(*first_distinct(*rows_of(log, PAIRS), 1), len(PAIRS)), runs)
        clicked = np.flatnonzero(users)
        draw = safelog.draw_listed_clicks(source, clicked, users[clicked], users.size, parameters)
        cells = np.concatenate([clicked[draw.support.indices], draw.cells])
        return printed(cells, np.ones(cells.size, np.int64), runs, len(PAIRS))[:, 1] > 0

    return mechanism


@CASES.add("A2", "stability histogram on pairs", "pass")
def stable_pairs(source: RandomSource) -> AuditResult:
    """About 0.93 % of 1 %: with b = 20 the whole-number threshold wastes at most 5 % of δ."""
    chosen = queries_only(click_scale=20, delta="0.02")
    claim = Claim(0.05, float(chosen.click_delta))
    return audit_structural_zero(stable_pair_printed(chosen), CLICKED, without_x(CLICKED), claim, source, RUNS // 2)


@CASES.add("A2", "public url list", "pass")
def listed_pairs(source: RandomSource) -> AuditResult:
    """About 0.98 of 1: the ratio of the tails is exactly e; the rest is sampling error."""
    chosen = queries_only(click_scale=1, click_threshold=1)
    return audit_ratio(listed_pair_printed(chosen), CLICKED, without_x(CLICKED), Claim(1), source, RUNS // 2)


# A3. X alone typed her own name.

NAMED = {**{f"user {number}": ("weather",) for number in range(20)}, "X": ("my own name",)}
QUERIES = ("weather", "my own name")
A3 = queries_only(threshold=10, selection_scale=10, query_scale=10)


def count_named(log: QueryLog) -> np.ndarray:
    return count_users(*first_distinct(*rows_of(log, QUERIES), 1), len(QUERIES))


def name_printed_paper(pool_probability: float) -> Mechanism:
    """Queries as printed, with a pool drawn afresh for every run; the event: the name is printed with 1 or more."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        typed = side_by_side(count_named(log)[1:], runs)
        sampled = source.integers(1 << 32, runs) < pool_probability * (1 << 32)
        somebody, nobody = np.flatnonzero(typed), np.flatnonzero((typed == 0) & sampled)
        real, fake = safelog_paper.draw_paper_queries(source, typed[somebody], nobody.size, A3)
        indices = np.concatenate([somebody[real.indices], nobody[fake.indices]])
        return printed(indices, np.concatenate([real.counts, fake.counts]), runs, 1)[:, 0] >= 1

    return mechanism


def name_printed(parameters: SafelogParameters, in_pool: bool) -> Mechanism:
    """The sound release; the event: the name is released. A pool query nobody typed comes with the untouched pool."""

    def mechanism(log: QueryLog, source: RandomSource, runs: int) -> np.ndarray:
        users = side_by_side(count_named(log)[1:], runs)
        typed = np.flatnonzero(users)
        untouched = np.flatnonzero(users == 0) if in_pool else np.empty(0, np.int64)
        draw = safelog.draw_queries(source, users[typed], np.full(typed.size, in_pool), untouched.size, parameters)
        happened = np.zeros(runs, bool)
        happened[np.concatenate([typed[draw.support.indices], untouched[draw.cells]])] = True
        return happened

    return mechanism


@CASES.add("A3", "a query outside the pool under pure ε", "fail", floats=True)
def outside_the_pool(source: RandomSource) -> AuditResult:
    """A tenth of the runs print the name with 1 or more; δ = 0 is claimed."""
    return audit_structural_zero(name_printed_paper(0), NAMED, without_x(NAMED), claimed("paper", A3), source, 20_000)


@CASES.add("A3", "pool with p_g = 0.3 claimed as 1", "fail", floats=True)
def pool_claimed_certain(source: RandomSource) -> AuditResult:
    """About 1.35 where 0.33 is claimed: the true ratio has the factor 1/p_g."""
    return audit_ratio(name_printed_paper(0.3), NAMED, without_x(NAMED), claimed("paper", A3), source, RUNS)


@CASES.add("A3", "secret pool with p_g = 0.3 claimed as such", "pass", floats=True)
def pool_claimed_as_is(source: RandomSource) -> AuditResult:
    """About 1.35 of 1.40, the tail ratio being exact: p_g is true here because the pool is secret and drawn afresh."""
    chosen = PaperParameters(**A3.said, pool_probability="0.3")
    return audit_ratio(name_printed_paper(0.3), NAMED, without_x(NAMED), claimed("paper", chosen), source, RUNS)


@CASES.add("A3", "fixed public pool", "pass")
def fixed_pool(source: RandomSource) -> AuditResult:
    """About 0.98 of 1: the ratio of the tails is exactly e; the rest is sampling error."""
    chosen = queries_only(threshold=1)
    return audit_ratio(name_printed(chosen, True), NAMED, without_x(NAMED), claimed("sound", chosen), source, RUNS)


@CASES.add("A3", "hybrid, a query outside the pool", "pass")
def hybrid(source: RandomSource) -> AuditResult:
    """About 0.93 % of 1 %: with b = 20 the whole-number threshold wastes at most 5 % of δ."""
    chosen = queries_only(threshold=1, selection_scale=Fraction(20), delta="0.01")
    mechanism = name_printed(chosen, False)
    return audit_structural_zero(mechanism, NAMED, without_x(NAMED), claimed("sound", chosen), source, RUNS // 2)


# Steered selection: the three tables of `modern`, each with its own part of one budget.

STEERED = SafelogParameters(epsilon=500, delta="0.4", click_share="0.3", transition_share="0.3")


def steered_new(table: str, source: RandomSource) -> AuditResult:
    target = table_target(guarantee.modern_budget(STEERED), STEERED.parts[table])
    return attack_new_items(target, source, RUNS // 10)


@CASES.add("A3", "modern, a query that only X typed", "pass")
def modern_query(source: RandomSource) -> AuditResult:
    """About 7.5 % of 8 %: at so large an ε the query passes the first look; the rest is sampling error."""
    return steered_new("queries", source)


@CASES.add("A2", "modern, a pair that only X clicked", "pass")
def modern_click(source: RandomSource) -> AuditResult:
    """About 5.6 % of 6 %: the same by the part that clicks take."""
    return steered_new("clicks", source)


@CASES.add("A3", "modern, a transition that only X made", "pass")
def modern_transition(source: RandomSource) -> AuditResult:
    """About 5.6 % of 6 %: the same by the part that transitions take."""
    return steered_new("transitions", source)
