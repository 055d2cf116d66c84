"""The k-anonymity methods people still use. Studies only: no (ε, δ) holds for any of them and the door refuses them.

All print exact counts. An attacker with k - 1 accounts holding a guessed query learns with certainty whether the victim
holds it too: the query is printed exactly when the victim is the k-th (Götz et al. III, CrowdLogging 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qlog_assets.privacy.limits import count_events, count_users

BASELINES = ("users", "frequency", "secret_sharing")


@dataclass(frozen=True)
class Baseline:
    """Items a baseline prints, by index, with exact counts. Never publishable."""

    indices: np.ndarray
    counts: np.ndarray


def anonymous_by_users(users: np.ndarray, items: np.ndarray, domain: int, least: int) -> Baseline:
    """Items held by at least `least` different users, with their users. KA of the session paper is least = K + 1."""
    held = count_users(users, items, domain)
    indices = np.flatnonzero(held >= max(least, 1))
    return Baseline(indices, held[indices])


def anonymous_by_frequency(items: np.ndarray, domain: int, least: int) -> Baseline:
    """Items that occur at least `least` times, with their events: one user who repeats herself is enough."""
    events = count_events(items, domain)
    indices = np.flatnonzero(events >= max(least, 1))
    return Baseline(indices, events[indices])


def secret_shared(users: np.ndarray, items: np.ndarray, domain: int, shares: int) -> Baseline:
    """What Adar's scheme decodes: an item with the shares of `shares` different users; all its events are then read."""
    decoded = np.flatnonzero(count_users(users, items, domain) >= max(shares, 1))
    return Baseline(decoded, count_events(items, domain)[decoded])


def print_baseline(name: str, users: np.ndarray, items: np.ndarray, domain: int, k: int) -> Baseline:
    """What a baseline prints of rows of (user, item)."""
    if name == "users":
        return anonymous_by_users(users, items, domain, k)
    if name == "frequency":
        return anonymous_by_frequency(items, domain, k)
    return secret_shared(users, items, domain, k)
