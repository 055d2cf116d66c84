"""What a mechanism did to the data, in sentences for somebody who does not read formulas: the type and shared words.

Everything is derived from the manifest, which is public: limits, noise scales, thresholds, and how many rows the noise
alone is expected to put into a table. A mechanism's own sentences are in its folder. No HTML here.
"""

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
    holds: str = (
        "each with the noisy number of users behind it. It is not a sample of the log and holds no record of any "
        "person: no user identifier, no time, no sequence of one user's searches."
    )
    """What a row of the tables is, and is not; ends the sentence that names the tables."""
    made_from: str = "computed from a query log"
    """What the statistics were made from, in that same sentence."""
    one_user: str = "What one user adds to the statistics was limited before anything was counted."
    """What one user can change in the counts, before the noise: in how many of them one user is, and how often."""


def general_account(manifest: Mapping[str, Any]) -> Account:
    """The account of a mechanism that has no sentences of its own."""
    return Account(
        steps=(
            "What one user adds to the statistics was limited before anything was counted.",
            *(f"{part['name'].capitalize()}: {part['sentence']}" for part in manifest["guarantee"]["parts"]),
            "Random noise was added once to the counts, and what stayed below a threshold was left out.",
            suppression_words(manifest),
        )
    )


def survival(scale: float, at_least: int) -> float:
    """The probability that two-sided geometric noise of this scale reaches a value; for words, not for decisions."""
    decay = math.exp(-1 / scale)
    if at_least <= 0:
        return 1 - decay ** (1 - at_least) / (1 + decay)
    return decay**at_least / (1 + decay)


def suppression_words(manifest: Mapping[str, Any]) -> str:
    """That rows which look personal were left out, and how many that were."""
    suppressed = sum(table["suppressed_rows"] for table in manifest["tables"].values())
    rows = "No row was" if suppressed == 0 else f"{suppressed:,} row{' was' if suppressed == 1 else 's were'}"
    return (
        "Rows that look like an e-mail address, a payment card, a phone number or a US social security number, and "
        f"were not in a public list, were then left out. {rows} left out for that reason."
    )


def one_user_words(items: Sequence[str]) -> str:
    """In how many counts one user is, from what was kept of each user at most."""
    return f"What one user did is in the counts of at most {join_words(items)}, and adds at most one to each."


def counted(number: int, one: str, several: str) -> str:
    """`1 query`, `2 queries`."""
    return f"{number:,} {one if number == 1 else several}"


def join_words(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
