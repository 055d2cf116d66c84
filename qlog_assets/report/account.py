"""What a mechanism did to the data, in sentences: the type, and the words every mechanism shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Account:
    """The steps in order, what a reader must mind, and per table the noise scale and the expected invented rows."""

    steps: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    noise_scales: Mapping[str, float] = field(default_factory=dict)
    expected_inventions: Mapping[str, float] = field(default_factory=dict)
    counts_were_tested: bool = True
    """Whether a row is printed because of the very count that is printed with it."""


def survival(scale: float, at_least: int) -> float:
    """The probability that two-sided geometric noise of this scale reaches a value; for words, not for decisions."""
    decay = math.exp(-1 / scale)
    if at_least <= 0:
        return 1 - decay ** (1 - at_least) / (1 + decay)
    return decay**at_least / (1 + decay)


def _suppression(manifest: Mapping[str, Any]) -> str:
    suppressed = sum(table["suppressed_rows"] for table in manifest["tables"].values())
    rows = "No row was" if suppressed == 0 else f"{suppressed:,} row{' was' if suppressed == 1 else 's were'}"
    return (
        "Rows that look like an e-mail address, a payment card, a phone number or a US social security number, and "
        f"were not in a public list, were then left out. {rows} left out for that reason."
    )


def _some(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _joined(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
