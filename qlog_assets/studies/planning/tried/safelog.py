"""What a plan tries of Safelog."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.safelog import noise as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.public_domain import few_fakes_threshold
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.zero_domain import encode_pairs
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import Settings
from qlog_assets.studies.planning.trials import Outcomes, capped_counts, outcome

QUERIES_PER_USER = (1, 2, 3, 5)
QUERY_SHARES = {1: (Fraction(1),), 2: (Fraction(1, 2), Fraction(2, 3)), 3: (Fraction(1, 2),)}
"""What queries take of ε, by the number of tables: the others share the rest equally."""


def settings(section: SafelogParameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Limits and which tables share ε; each with the threshold at which one query of the pool is expected to be fake.

    Tables that the section leaves out stay out.
    """
    optional = [name for name in ("click_scale", "transition_scale") if getattr(section, name) is not None]
    for tables in ([], *([name] for name in optional), *([optional] if len(optional) > 1 else [])):
        for per_user in QUERIES_PER_USER:
            if "transition_scale" in tables and per_user == 1:
                continue
            for share in QUERY_SHARES[1 + len(tables)]:
                each = epsilon * (1 - share) / max(len(tables), 1)
                scale = per_user / (epsilon * share)
                yield {
                    "queries_per_user": per_user,
                    **({"clicks_per_user": per_user} if "click_scale" in tables else {}),
                    "selection_scale": scale,
                    "click_scale": per_user / each if "click_scale" in tables else None,
                    "transition_scale": (per_user - 1) / each if "transition_scale" in tables else None,
                    "threshold": few_fakes_threshold(pool, scale),
                    "delta": delta,
                }


def trial(people: Population, variant: str, chosen: SafelogParameters, seed: int, pool: Pool) -> Outcomes:
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
