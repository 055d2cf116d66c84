"""What a plan tries of Safelog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog.guarantee import modern_budget
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters, SafelogPolicy
from qlog_assets.privacy.limits import count_users, first_distinct
from qlog_assets.privacy.public_domain import few_fakes_threshold
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import PublicItems, no_items, release_steered
from qlog_assets.privacy.zero_domain import encode_pairs
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import Settings
from qlog_assets.studies.planning.trials import Outcomes, capped_counts, outcome

QUERIES_PER_USER = (1, 2, 3, 5)
QUERY_SHARES = {1: (Fraction(1),), 2: (Fraction(1, 2), Fraction(2, 3)), 3: (Fraction(1, 2),)}
"""What queries take of ε, by the number of tables: the others share the rest equally."""


TABLES = {
    "clicks": {"sound": "click_scale", "modern": "click_share"},
    "transitions": {"sound": "transition_scale", "modern": "transition_share"},
}
"""The tables that may be left out, and the key that says so in each variant."""
MODERN_SHARES = (Fraction(2, 5), Fraction(1, 4))
"""What the tables beside queries take of the budget of `modern`, all together."""
MODERN_LIMITS = {"queries_per_user": 1000, "clicks_per_user": 1000}
PAPERS_SCALE = Fraction(10)
printed: Mapping[str, Settings] = {
    "paper": {
        "queries_per_user": 100,
        "clicks_per_user": 100,
        "threshold": 500,
        "selection_scale": PAPERS_SCALE,
        "query_scale": PAPERS_SCALE,
        "click_scale": PAPERS_SCALE,
        "transition_scale": None,
    }
}
"""Figure 3, whose ε = 29.99 pays for no transitions."""


def settings(section: SafelogPolicy, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Variants, limits and which tables share ε; `sound` with the threshold at which one query of the pool is expected
    to be fake. Tables that the section leaves out stay out.
    """
    modern = section.variant == "modern"
    wanted = [
        name for name, keys in TABLES.items() if getattr(section, keys["modern" if modern else "sound"]) is not None
    ]
    yield from modern_settings(wanted, epsilon, delta)
    optional = [TABLES[name]["sound"] for name in wanted]
    for tables in ([], *([name] for name in optional), *([optional] if len(optional) > 1 else [])):
        for per_user in QUERIES_PER_USER:
            if "transition_scale" in tables and per_user == 1:
                continue
            for share in QUERY_SHARES[1 + len(tables)]:
                each = epsilon * (1 - share) / max(len(tables), 1)
                scale = per_user / (epsilon * share)
                yield {
                    "variant": "sound",
                    "queries_per_user": per_user,
                    **({"clicks_per_user": per_user} if "click_scale" in tables else {}),
                    "selection_scale": scale,
                    "click_scale": per_user / each if "click_scale" in tables else None,
                    "transition_scale": (per_user - 1) / each if "transition_scale" in tables else None,
                    "threshold": few_fakes_threshold(pool, scale),
                    "delta": delta,
                }


def modern_settings(wanted: Sequence[str], epsilon: Fraction, delta: Fraction) -> Iterator[Settings]:
    """`modern` with every choice of the tables that are wanted, and two ways to share the budget among them."""
    for tables in ([], *([name] for name in wanted), *([wanted] if len(wanted) > 1 else [])):
        for share in MODERN_SHARES if tables else MODERN_SHARES[:1]:
            shares = {keys["modern"]: share / len(tables) if name in tables else None for name, keys in TABLES.items()}
            yield {"variant": "modern", "epsilon": epsilon, "delta": delta, **MODERN_LIMITS, **shares}


def trial(people: Population, variant: str, chosen: SafelogParameters, seed: int, pool: Pool) -> Outcomes:
    return (modern_trial if variant == "modern" else sound_trial)(people, chosen, seed, pool)


def modern_trial(people: Population, chosen: SafelogParameters, seed: int, pool: Pool) -> Outcomes:
    """A first month: what the month before published cannot be told from a description."""
    source, budget, told = SeededRandom(seed), modern_budget(chosen), {}
    released = np.ones(people.domain("queries"), dtype=bool)
    for table, kind, limit in (
        ("queries", "queries", chosen.queries_per_user),
        ("clicks", "clicks", chosen.clicks_per_user),
        ("transitions", "pairs", chosen.transitions_per_user),
    ):
        if table not in chosen.parts:
            continue
        users, items = first_distinct(*people.rows[kind], limit)
        counted, size, listed = count_users(users, items, people.domain(kind)), people.domain(kind), no_items()
        if table == "queries":
            # Queries of the list that nobody typed are numbered behind all others.
            held = np.flatnonzero(pool.holds)
            listed = np.concatenate([held, size + np.arange(max(pool.size - len(held), 0))])
            size += max(pool.size - len(held), 0)
        else:
            parts = people.parts[kind] if table == "transitions" else people.parts[kind][:1]
            kept = np.logical_and.reduce([released[part[items]] for part in parts])
            users, items = users[kept], items[kept]
        drawn = release_steered(source, users, items, size, PublicItems(listed=listed), budget, chosen.parts[table])
        real = drawn.items < people.domain(kind)
        real[real] = counted[drawn.items[real]] > 0
        found = drawn.items[real]
        told[table] = outcome(drawn.users[real], counted[found], people.truth[kind][found], int((~real).sum()))
        if table == "queries":
            released[:] = False
            released[found] = True
    return told


def sound_trial(people: Population, chosen: SafelogParameters, seed: int, pool: Pool) -> Outcomes:
    source = SeededRandom(seed)
    counts = capped_counts(people, "queries", chosen.queries_per_user)
    typed = np.flatnonzero(counts)
    held = pool.holds[typed]
    untouched = max(pool.size - int(held.sum()), 0)
    drawn = safelog.draw_queries(source, counts[typed], held, untouched, chosen)
    released = typed[drawn.support.indices]
    # Which of the list's queries that nobody typed were drawn does not matter, only how many queries there are now.
    number = len(released) + len(drawn.cells)
    told = {
        "queries": outcome(drawn.support.users, counts[released], people.truth["queries"][released], len(drawn.cells))
    }
    places = np.full(len(people.truth["queries"]), -1)
    places[released] = np.arange(len(released))
    if chosen.click_scale is not None:
        users = capped_counts(people, "clicks", chosen.clicks_per_user)
        clicks = np.flatnonzero((users > 0) & (places[people.parts["clicks"][0]] >= 0))
        kept = safelog.draw_clicks(source, users[clicks], chosen)
        clicks = clicks[kept.indices]
        told["clicks"] = outcome(kept.users, users[clicks], people.truth["clicks"][clicks])
    if chosen.transition_scale is not None:
        users = capped_counts(people, "pairs", chosen.transitions_per_user)
        before, after = people.parts["pairs"]
        pairs = np.flatnonzero((users > 0) & (places[before] >= 0) & (places[after] >= 0))
        cells = encode_pairs(places[before[pairs]], places[after[pairs]], number)
        moved = safelog.draw_transitions(source, cells, users[pairs], number, chosen)
        pairs = pairs[moved.support.indices]
        told["transitions"] = outcome(moved.support.users, users[pairs], people.truth["pairs"][pairs], len(moved.cells))
    return told
