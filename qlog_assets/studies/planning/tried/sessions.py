"""What a plan tries of session logs.

Made-up users have no long sessions: a query and the one that follows it stand for the pairs of a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from qlog_assets.mechanisms.sessions import noise as sessions
from qlog_assets.mechanisms.sessions.guarantee import modern_budget
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.privacy.limits import count_users, first_distinct
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.privacy.steered import PublicItems, release_steered
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import Settings
from qlog_assets.studies.planning.trials import Outcomes, outcome

KINDS = {"sessions": "pairs", "clicks": "clicks"}
SESSIONS_PER_USER = (1, 3, 10, 30)
CLICK_SHARES = (Fraction(1, 4), Fraction(1, 2))


def settings(section: SessionParameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    """Limits and methods at one price; a part that the section leaves out stays out."""
    both = section.has_sessions and section.has_clicks
    for share in CLICK_SHARES if both else CLICK_SHARES[:1]:
        for sessions_per_user in SESSIONS_PER_USER:
            limits = {"sessions_per_user": sessions_per_user, "queries_per_session": 2, "items": "pairs"}
            limits |= {"clicks_per_user": 2 * sessions_per_user, "delta": delta}
            clicks = epsilon * share if both else epsilon
            scales = {"session_scale": sessions_per_user / (epsilon - clicks if both else epsilon)}
            scales["click_scale"] = 2 * sessions_per_user / clicks
            kept = {name: None if getattr(section, name) is None else scale for name, scale in scales.items()}
            if sessions_per_user in SESSIONS_PER_USER[:2]:
                yield {"variant": "sound", "threshold": 1, **limits, **kept}
            for method in ("steered", "weighted_gaussian", "gaussian_counts"):
                yield {
                    "variant": "modern",
                    "method": method,
                    "epsilon": epsilon,
                    "click_share": share,
                    **limits,
                    **kept,
                }


def trial(people: Population, variant: str, chosen: SessionParameters, seed: int, pool: Pool) -> Outcomes:
    told: Outcomes = {}
    for name, kind in sessions.kinds(chosen).items():
        source, rows = SeededRandom(seed), KINDS[name]
        users, items = first_distinct(*people.rows[rows], kind.items_per_user)
        counted = count_users(users, items, people.domain(rows))
        drawn: sessions.Released
        if sessions.is_steered(variant, chosen):
            steered = release_steered(
                source, users, items, people.domain(rows), PublicItems(), modern_budget(chosen), kind.part
            )
            drawn = sessions.Released(steered.items, steered.users)
        elif sessions.takes_rows(variant, chosen):
            drawn = sessions.draw_rows(source, users, items, kind, chosen)
        else:
            typed = np.flatnonzero(counted)
            found = sessions.draw_counts(source, counted[typed], variant, kind, chosen)
            drawn = sessions.Released(typed[found.indices], found.users)
        told[name] = outcome(drawn.users, counted[drawn.indices], people.truth[rows][drawn.indices])
    return told
