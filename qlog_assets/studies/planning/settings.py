"""What settings are that a plan tries, at one ε and δ. Public numbers alone decide which; they are in `tried/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.public_domain import few_fakes_threshold

Settings = dict[str, Any]
Tried = Callable[[Any, Fraction, Fraction, int], Iterator[Settings]]
"""From a section of the policy, ε, δ and the size of the pool to changes of the section, each at that cost."""

ITEMS_PER_USER = (5, 20, 50, 200)
FEW_ITEMS_PER_USER = (1, 2, 5, 10)
"""For noise that grows with the limit itself and not with its root."""


def with_pool(section: SafelogParameters, pool: int) -> SafelogParameters:
    """A section with the threshold that a pool of so many queries asks for: one of them is expected to be fake."""
    return section.with_changes(threshold=few_fakes_threshold(pool, section.selection_scale))
