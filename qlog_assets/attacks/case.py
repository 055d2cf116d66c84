"""What one audit case is, and the tricks all cases share: numbering a small log, and many runs in one draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from qlog_assets.attacks.auditor import AuditResult, Claim, Verdict
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.privacy.randomness import RandomSource, SeededRandom

Records = TypeVar("Records")
Examination = Callable[[RandomSource], AuditResult]
NEVER = np.iinfo(np.int64).min
"""The value of a cell that a run did not print: below every threshold."""


@dataclass(frozen=True)
class Case:
    """One variant under one audit. The docstring of `examine` says how near the claim it comes and why not nearer."""

    audit: str
    mechanism: str
    variant: str
    expected: Verdict
    examine: Examination
    floats: bool = False
    """Whether the variant draws float noise, which refuses a secure source: it gets a seeded one with a secret seed."""

    @property
    def name(self) -> str:
        return f"{self.audit} {self.variant}"

    def run(self, source: RandomSource) -> AuditResult:
        """Examine with this source and say what was expected."""
        if self.floats and source.secure:
            source = SeededRandom(source.bigint(128))
        return replace(self.examine(source), audit=self.audit, variant=self.variant, expected=self.expected)


class Cases(list[Case]):
    """The cases of one mechanism, in the order their functions are written."""

    def __init__(self, mechanism: str) -> None:
        super().__init__()
        self.mechanism = mechanism

    def add(
        self, audit: str, variant: str, expected: Verdict, floats: bool = False
    ) -> Callable[[Examination], Examination]:
        """Register the decorated function as the examination of this variant."""

        def register(examine: Examination) -> Examination:
            self.append(Case(audit, self.mechanism, variant, expected, examine, floats))
            return examine

        return register


def claim_of(loss: PrivacyLoss | None) -> Claim:
    """A reported loss as the claim to be tested."""
    if loss is None:
        raise ValueError("a variant that claims nothing cannot be audited against its claim")
    return Claim(float(loss.epsilon), float(loss.delta))


def without_x(log: Mapping[str, Records]) -> dict[str, Records]:
    """The neighbouring log: everybody but X."""
    return {user: records for user, records in log.items() if user != "X"}


def rows_of(log: Mapping[str, Iterable[Hashable]], vocabulary: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """A small log as (user, item) rows: each user's records in their order, items numbered by the vocabulary."""
    numbers = {item: number for number, item in enumerate(vocabulary)}
    rows = [(user, numbers[item]) for user, records in enumerate(log.values()) for item in records]
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def side_by_side(counts: np.ndarray, runs: int) -> np.ndarray:
    """`runs` copies of a histogram in one array.

    A mechanism that noises and tests every cell on its own makes `runs` independent releases of it in one call.
    """
    return np.tile(counts, runs)


def printed(indices: np.ndarray, values: np.ndarray, runs: int, cells: int) -> np.ndarray:
    """What each run printed for each cell, as a (runs, cells) table, with NEVER where it printed nothing."""
    table = np.full(runs * cells, NEVER, dtype=np.asarray(values).dtype)
    table[indices] = values
    return table.reshape(runs, cells)
