"""ZEALOUS studies: seeded draws, and the comparison of baselines, paper, sound and modern at one (ε, δ) over m.

Everything here is private and made with seeded noise; nothing passes the door. What a table means is in
`evaluation/`, how it is drawn in `studies_plots`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.baselines import paper as baselines
from qlog_assets.mechanisms.guarantees import guarantee
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.draw import count_items, item_counts, name_items
from qlog_assets.mechanisms.zealous.paper import release_paper
from qlog_assets.mechanisms.zealous.parameters import SelectionMethod, ZealousParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.chain import SESSION_GAP_MINUTES, Chain
from qlog_assets.pipeline.inspection import view_cleaned
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import RandomSource, SeededRandom
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.studies.measures import caching, frequent, substitution

METHODS: tuple[SelectionMethod, ...] = ("truncated_geometric", "gaussian_counts", "weighted_gaussian", "sips")
BASELINES = ("users", "frequency", "secret_sharing")
CACHE_SHARE = 0.1
"""The memory of the index cache, as a share of all posting lists."""
LEAST_SUBSTITUTE_USERS = 2
"""A pair that one user alone typed is nobody's idea of a substitute."""


@dataclass(frozen=True)
class StudyPlan:
    """What the comparison varies. Frequent is τ and slack ζ of the inaccuracy, in users; k is the baselines'."""

    items_per_user: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    frequent: int = 50
    slack: int = 10
    k: int = 50
    seed: int = 1


@dataclass(frozen=True)
class Items:
    """One kind of items of a log: the truth, each event as (user, item), and what a draw is made from."""

    kind: str
    texts: pa.Table
    truth: frequent.Truth
    event_users: np.ndarray
    event_items: np.ndarray


def draw_zealous(
    chain: Chain, month: Month, cleaned: Partition, policy: Policy, variant: str, source: SeededRandom
) -> dict[str, pa.Table]:
    """One seeded draw of a month."""
    chosen = policy.zealous.parameters
    items, _ = chain.choose_items(month, cleaned, chosen.items_per_user)
    if variant == "paper":
        return draw_paper(chain, items, chosen, source)
    drawn = mechanism("zealous").draw(chain.engine, {"zealous_items": items}, variant, chosen, source)
    return {name: table.rows for name, table in drawn.tables.items()}


def draw_paper(chain: Chain, items: Partition, chosen: ZealousParameters, source: SeededRandom) -> dict[str, pa.Table]:
    """The two thresholds of the theorem, on float noise."""
    tables: dict[str, pa.Table] = {}
    for kind in chosen.kinds:
        count_items(chain.engine, items, kind)
        drawn = _paper(source, item_counts(chain.engine), chosen)
        tables[kind] = name_items(chain.engine, drawn.indices, drawn.counts)
    return tables


def _paper(source: RandomSource, counts: np.ndarray, chosen: ZealousParameters) -> Any:
    promise = guarantee("zealous", "paper", chosen)
    return release_paper(
        source,
        counts,
        promise.thresholds["before_noise"],
        promise.figures["noise_scale"],
        promise.figures["noisy_threshold"],
    )


# The comparison -------------------------------------------------------------------------------------------------------


def compare_methods(
    chain: Chain, cleaned: Partition, chosen: ZealousParameters, plan: StudyPlan
) -> dict[str, list[dict[str, Any]]]:
    """The tables of the study: frequent items by kind and method, the two applications, and the attack."""
    engine = chain.engine
    view_cleaned(engine, cleaned)
    measured: dict[str, list[dict[str, Any]]] = {"frequent_items": [], "caching": [], "substitution": []}
    for kind in chosen.kinds:
        items = read_items(engine, kind)
        for label, drawn, counts in draws_of(engine, items, chosen, plan):
            result = frequent.compare(items.truth, drawn, counts, plan.frequent, plan.slack)
            measured["frequent_items"].append({"kind": kind, **label, **asdict(result)})
            if kind == "keywords":
                measured["caching"].append({**label, **cache_hits(engine, items, drawn, counts)})
            if kind == "pairs":
                measured["substitution"].append({**label, **substitutes(items, drawn, counts)})
    measured["attack"] = list(attack(chosen, plan))
    return measured


def read_items(engine: Engine, kind: str) -> Items:
    """All items of a kind with their numbers of users and events, and every event by number."""
    gap = {"session_gap_minutes": SESSION_GAP_MINUTES} if kind == "pairs" else {}
    engine.statement_table(f"events_{kind}", "events", **gap)
    engine.statement_table("study_items", "counted_items")
    texts = engine.arrow("study_texts")
    truth = frequent.Truth(texts["held_by"].to_numpy(), texts["happened"].to_numpy())
    return Items(kind, texts, truth, *numbered(engine, "events"))


def draws_of(
    engine: Engine, items: Items, chosen: ZealousParameters, plan: StudyPlan
) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """One draw of every method, labelled: the baselines on all events, the others on m chosen items a user."""
    domain = items.texts.num_rows
    for name in BASELINES:
        printed = draw_baseline(name, items.event_users, items.event_items, domain, plan.k)
        # All three print exact counts, two of them of events: as counts of users they are taken to be exact, too.
        yield {"method": f"k-anonymity: {name}", "m": None}, printed.indices, items.truth.users[printed.indices]
    for per_user in plan.items_per_user:
        users, numbers = chosen_rows(engine, per_user)
        counts = np.bincount(numbers, minlength=domain)
        settings = chosen.with_changes(items_per_user=per_user)
        paper = _paper(SeededRandom(plan.seed), counts, settings)
        yield {"method": "paper", "m": per_user}, paper.indices, paper.counts
        drawn = zealous.draw_counts(SeededRandom(plan.seed), counts, "sound", settings)
        yield {"method": "sound", "m": per_user}, drawn.items, drawn.users
        for method in METHODS:
            modern = settings.with_changes(method=method)
            source = SeededRandom(plan.seed)
            if zealous.takes_rows("modern", modern):
                drawn = zealous.draw_rows(source, users, numbers, modern)
            else:
                drawn = zealous.draw_counts(source, counts, "modern", modern)
            yield {"method": f"modern: {method}", "m": per_user}, drawn.items, drawn.users


def draw_baseline(name: str, users: np.ndarray, items: np.ndarray, domain: int, k: int) -> baselines.Baseline:
    """What a baseline prints of a kind's events."""
    if name == "users":
        return baselines.anonymous_by_users(users, items, domain, k)
    if name == "frequency":
        return baselines.anonymous_by_frequency(items, domain, k)
    return baselines.secret_shared(users, items, domain, k)


def chosen_rows(engine: Engine, per_user: int) -> tuple[np.ndarray, np.ndarray]:
    """Users and items of a kind after each user's keyed choice."""
    engine.statement_table("chosen_items", key="study ", items_per_user=per_user)
    return numbered(engine, "chosen_items")


def numbered(engine: Engine, table: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a table of users and items as numbers, by user and item."""
    engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW contributions AS SELECT * FROM {table}")
    rows = engine.arrays("numbered_contributions")
    users, items = rows["user_id"].astype(np.int64), rows["item_id"].astype(np.int64)
    order = np.lexsort((items, users))
    return users[order], items[order]


def cache_hits(engine: Engine, items: Items, drawn: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    """The hit rate of a cache filled by a release beside that of one filled by the log itself.

    A word's posting list is taken to be as long as the number of different queries that hold it.
    """
    sizes = engine.arrays("study_posting_lists")["queries"].astype(float)
    capacity = CACHE_SHARE * sizes.sum()
    lookups = items.truth.events
    released = np.zeros(len(lookups))
    released[drawn] = counts
    best = caching.hit_rate(caching.fill_cache(lookups, sizes, capacity), lookups)
    return {"hit_rate": caching.hit_rate(caching.fill_cache(released, sizes, capacity), lookups), "best": best}


def substitutes(items: Items, drawn: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
    """Substitutes from released pairs against those of the raw log that two or more users typed."""
    shared = np.flatnonzero(items.truth.users >= LEAST_SUBSTITUTE_USERS)
    raw = rankings(items.texts, shared, items.truth.users[shared])
    return asdict(substitution.compare(raw, rankings(items.texts, drawn, counts)))


def rankings(texts: pa.Table, numbers: np.ndarray, counts: np.ndarray) -> dict[str, list[tuple[str, float]]]:
    chosen = texts.take(pa.array(numbers))
    found: dict[str, list[tuple[str, float]]] = {}
    for query, following, count in zip(
        chosen["query"].to_pylist(), chosen["next_query"].to_pylist(), counts.tolist(), strict=True
    ):
        found.setdefault(query, []).append((following, float(count)))
    return found


# The attack -----------------------------------------------------------------------------------------------------------


def attack(chosen: ZealousParameters, plan: StudyPlan, runs: int = 100_000) -> Iterator[dict[str, Any]]:
    """k - 1 fake accounts type a guessed query. How much more often is it printed if the victim typed it, too?

    Baselines print it exactly then. Under ZEALOUS the attacker takes as many accounts as the threshold asks for,
    which is where one user more matters most.
    """
    for name in BASELINES:
        printed = []
        for people in (plan.k, plan.k - 1):
            one_query = np.zeros(people, np.int64)
            printed.append(len(draw_baseline(name, np.arange(people), one_query, 1, plan.k).indices))
        yield {
            "method": f"k-anonymity: {name}",
            "accounts": plan.k - 1,
            "with_victim": printed[0],
            "without": printed[1],
        }
    least = guarantee("zealous", "sound", chosen).thresholds[chosen.kinds[0]]
    for accounts in sorted({plan.k - 1, least - 1}):
        shares = [
            len(zealous.draw_counts(SeededRandom(plan.seed), np.full(runs, people), "sound", chosen).items) / runs
            for people in (accounts + 1, accounts)
        ]
        yield {"method": "sound", "accounts": accounts, "with_victim": shares[0], "without": shares[1]}


def as_tables(measured: dict[str, list[dict[str, Any]]]) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(rows) for name, rows in measured.items()}
