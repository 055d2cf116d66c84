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

KNOWN_FAKES = "about one in 740"
"""How many rows of an earlier release noise alone prints again where nobody holds them: three deviations above 0."""
Origin = Literal["set", "derived", "unknown"]
NO_URLS = "clicks are off: the policy says that the log has no urls (has_urls = false)"
"""Why a part that counts clicks is neither released nor paid for."""


@dataclass(frozen=True)
class Expectation:
    """What is known of the rows of one table, or of some of them."""

    rows: str
    """Which rows, such as `queries of the pool`."""
    least: int
    """The least noisy number of users that such a row can have."""
    origin: Origin
    """Whether a parameter sets it, or ε and δ do. Unknown of papers, which are never released."""
    noise_rows: float | None = 0
    """At most about how many rows noise alone is expected to make. None: not known, as where it hangs on the size of a
    public list that was not read."""
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
    """What the thresholds of a guarantee tell, of a mechanism that says no more. Publishable variants without a public
    list print only what somebody holds; of papers nothing is said."""
    known = guarantee.publishable
    return tuple(
        Expectation(name.replace("_", " "), least, *(("derived", 0) if known else ("unknown", None)))
        for name, least in guarantee.thresholds.items()
    )


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
        return "how many rows noise alone makes is for the public list's size to say"
    total = sum(each.noise_rows or 0 for each in expected)
    return "no row comes from noise alone" if total == 0 else f"at most about {total:.2g} rows come from noise alone"
