"""What a plan tries of the sanitized log."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from qlog_assets.mechanisms.sanitized import noise as sanitized
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.planning.population import Pool, Population
from qlog_assets.studies.planning.settings import FEW_ITEMS_PER_USER, Settings
from qlog_assets.studies.planning.trials import Outcomes, capped_counts, outcome


def settings(section: Parameters, epsilon: Fraction, delta: Fraction, pool: int) -> Iterator[Settings]:
    for per_user in FEW_ITEMS_PER_USER:
        yield {"pairs_per_user": per_user, "epsilon": epsilon, "delta": delta}


def trial(people: Population, variant: str, chosen: SanitizedParameters, seed: int, pool: Pool) -> Outcomes:
    """The clicked pairs that the made-up users of `synth` can have: the log that is sampled from them costs nothing."""
    counts = capped_counts(people, "clicks", chosen.pairs_per_user)
    drawn = sanitized.release_pairs(
        SeededRandom(seed), counts, chosen.pairs_per_user, chosen.pair_scale, chosen.pair_delta
    )
    return {"pairs": outcome(drawn.users, counts[drawn.indices], people.truth["clicks"][drawn.indices])}
