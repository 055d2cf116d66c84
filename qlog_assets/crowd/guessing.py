"""The dictionary attack: which of a list of guesses are among the reports that a thief or the collector holds.

Who can compute a guess's key material finds its tag, and needs no shares: the threshold k does not protect what can be
guessed. Under the paper's key, a hash of the artifact, everybody can (`by_hash`). Under the oblivious function only who
holds the epoch's key can (`by_epoch_key`). So this is also what randomness server and collector learn if they work
together while the key exists: everything that they can guess, with the number of its reports, however rare it is. Once
the key is deleted, neither they nor who takes over both can test any guess.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import derive, hashed, prf_input
from qlog_assets.crowd.messages import MalformedError, open_ciphertext

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

Randomness = Callable[[bytes], bytes]
"""What an attacker takes for the pseudorandom function's output at an artifact."""


def confirm_guesses(
    sealed: Iterable[tuple[bytes, bytes]], guesses: Iterable[bytes], job: Job, randomness: Randomness
) -> dict[bytes, int]:
    """The guesses that somebody reported, each confirmed by opening its ciphertext, and in how many reports they are.

    `sealed` holds tag and ciphertext of each report: no share is used.
    """
    held: dict[bytes, Counter[bytes]] = defaultdict(Counter)
    for tag, ciphertext in sealed:
        held[tag][ciphertext] += 1
    found: dict[bytes, int] = {}
    for guess in guesses:
        material = derive(randomness(guess), job, guess)
        for ciphertext, reports in held.get(material.tag, Counter()).items():
            try:
                opened = open_ciphertext(material.polynomial.at(0), job, material.tag, ciphertext)
            except MalformedError:
                continue  # somebody's forged one under the same tag
            if opened == guess:
                found[guess] = reports
    return found


def by_hash(job: Job) -> Randomness:
    """What anybody computes from a guess where keys are made as in the paper."""
    return lambda artifact: hashed(job, artifact)


def by_epoch_key(evaluator: Evaluator, job: Job) -> Randomness:
    """What the holder of an epoch's key computes, and nobody else."""
    return lambda artifact: evaluator.evaluate_known_input(prf_input(job, artifact))
