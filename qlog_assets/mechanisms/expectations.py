"""What is known in public of a release before it is drawn: what a row must reach, and how many rows noise alone makes.

Parameters and sizes of public lists in, numbers and words out. Nothing of a log is read, so all of it may be said to
anybody before anything is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.report.account import join_words

Origin = Literal["set", "derived"]


@dataclass(frozen=True)
class Expectation:
    """What is known of the rows of one table, or of some of them."""

    rows: str
    """Which rows, such as `queries of the pool`."""
    least: int
    """The least noisy number of users that such a row can have."""
    origin: Origin
    """Whether a parameter sets it, or ε and δ do."""
    noise_rows: float | None = 0
    """At most about how many rows noise alone is expected to make. None: as many as a public list of unknown size
    decides."""
    note: str = ""
    """What a reader must know to read the number."""

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "threshold": self.least,
            "origin": self.origin,
            "noise_rows": self.noise_rows,
            "note": self.note,
        }


def expect_thresholds(guarantee: Guarantee) -> tuple[Expectation, ...]:
    """What the thresholds of a guarantee tell, of a mechanism that says no more."""
    return tuple(Expectation(name.replace("_", " "), least, "derived") for name, least in guarantee.thresholds.items())


def threshold_words(expected: Sequence[Expectation]) -> str:
    """How many users a row needs, table by table; tables of which the same is known are named together."""
    together: dict[tuple[int, str], list[str]] = {}
    for each in expected:
        together.setdefault((each.least, each.note), []).append(each.rows)
    return ", ".join(
        f"{least:,} for {join_words(rows)}" + (f" ({note})" if note else "") for (least, note), rows in together.items()
    )


def noise_words(expected: Sequence[Expectation]) -> str:
    """How many rows noise alone is expected to make, over all tables."""
    if any(each.noise_rows is None for each in expected):
        return "rows from noise alone: as many as the size of the public list decides"
    total = sum(each.noise_rows or 0 for each in expected)
    return "no row comes from noise alone" if total == 0 else f"at most about {total:.2g} rows come from noise alone"
