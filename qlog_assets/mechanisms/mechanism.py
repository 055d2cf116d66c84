"""What a mechanism is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from qlog_assets.checks.suites import CheckResult
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import TableLayout
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition


@dataclass(frozen=True)
class DrawnTable:
    """A drawn table before publication, in public order: by noisy count and key, so that order tells nothing."""

    rows: pa.Table
    threshold: int
    """The least noisy count a row may have."""
    threshold_outside_pool: int | None = None
    """The least noisy count of a row whose text is not public, where that is another one."""
    only_public: bool = False
    """Whether every text must have been public before: then no count is high enough for another one."""


@dataclass(frozen=True)
class Drawn:
    """Everything a mechanism drew for one release."""

    tables: dict[str, DrawnTable]
    public_texts: pa.Array
    """The released texts that were public before anything was drawn: pool queries, listed urls."""


@dataclass(frozen=True)
class MechanismEntry:
    """One mechanism: its version, its inputs, and how it draws."""

    name: str
    version: int
    inputs: tuple[str, ...]
    """Assets whose current partitions of the month the mechanism reads; the first one is what limits are checked on."""
    public_inputs: tuple[str, ...]
    """Assets that are public material (a pool, a url list); not by month."""
    tables: tuple[TableLayout, ...]
    parameters: Callable[[Policy], Parameters]
    variant: Callable[[Policy], str]
    """Which of the mechanism's publishable variants the policy chose."""
    inspect: Callable[[Engine, Partition], CheckResult]
    """Counts what each user contributes to the first input, on the very partition that is about to be used."""
    draw: Callable[[Engine, Mapping[str, Partition], str, Any, RandomSource], Drawn]
    """From inputs, variant and parameters to every table of a release."""
    draw_asset: str = "selected"
    """The asset that asks the door to draw; those that ask it to publish are `released_assets`."""
    released_prefix: str = "released_"
    sources: tuple[str, ...] = field(default=())
    """Files, from the project's root, that decide the law of the output; a test pins `version` to their digest."""

    @property
    def released_assets(self) -> dict[str, str]:
        """The public tables' assets, by table."""
        return {layout.name: f"{self.released_prefix}{layout.name}" for layout in self.tables}
