"""What settings are that a plan tries, at one ε and δ. Public numbers alone decide which; they are in `tried/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.safelog.parameters import SafelogPolicy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.public_domain import few_fakes_threshold

Settings = dict[str, Any]
Tried = Callable[[Any, Fraction, Fraction, int], Iterator[Settings]]
"""From a section of the policy, ε, δ and the size of the pool to changes of the section, each at that cost."""

ITEMS_PER_USER = (5, 20, 50, 200)
MANY_ITEMS_PER_USER = (50, 1000)
"""For noise that does not grow with the limit: steered selection."""
FEW_ITEMS_PER_USER = (1, 2, 5, 10)
"""For noise that grows with the limit itself and not with its root."""


def with_pool(section: Parameters, pool: int) -> Parameters:
    """A section with the threshold that a pool of so many queries asks for: one of them is expected to be fake.

    Safelog alone reads a pool, and its variant `modern` sets that threshold itself.
    """
    if not isinstance(section, SafelogPolicy) or section.variant != "sound":
        return section
    return section.with_changes(threshold=few_fakes_threshold(pool, section.selection_scale))
