"""Mechanisms as the door sees them: what each reads, what shaped it, and the tables it draws.

The register and its types; one module a mechanism joins counting statements to its pure functions. Nothing here
charges, stores or publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from qlog_assets.engine import Engine
from qlog_assets.privacy.errors import ParameterError
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.settings import Policy
from qlog_assets.warehouse import Partition


@dataclass(frozen=True)
class ReleasedTable:
    """A table that a release holds: its columns with their meaning, in order. The last one is the noisy count."""

    name: str
    columns: Mapping[str, str]
    suite: str

    @property
    def text_columns(self) -> tuple[str, ...]:
        return tuple(self.columns)[:-1]


@dataclass(frozen=True)
class DrawnTable:
    """A drawn table before publication: the released columns, and for each row whether its texts are all public."""

    rows: pa.Table
    public: pa.ChunkedArray | pa.Array
    threshold: int
    expected_fakes: float | None = None
    """How many rows nobody's data caused, on average; a public fact of the parameters. None where it does not apply."""


@dataclass(frozen=True)
class MechanismEntry:
    """One mechanism: its version, its inputs, and how it draws."""

    name: str
    version: int
    inputs: tuple[str, ...]
    """Assets whose current partitions of the month the mechanism reads; the first one is what limits are checked on."""
    public_inputs: tuple[str, ...]
    """Assets that are public material (a pool, a url list); not by month."""
    tables: tuple[ReleasedTable, ...]
    parameters: Callable[[Policy], Parameters]
    draw: Callable[[Engine, Mapping[str, Partition], Any, RandomSource], dict[str, DrawnTable]]
    sources: tuple[str, ...] = field(default=())
    """Files, from the project's root, whose text decides the law of the output; a test pins `version` to their digest."""


@cache
def register() -> dict[str, MechanismEntry]:
    """All mechanisms that can be released."""
    from qlog_assets.drawing import safelog

    return {entry.name: entry for entry in (safelog.ENTRY,)}


def mechanism(name: str) -> MechanismEntry:
    if name not in register():
        raise ParameterError(f"no mechanism {name!r} can be released: choose one of {', '.join(register())}")
    return register()[name]
