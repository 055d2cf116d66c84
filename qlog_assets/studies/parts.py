"""Parts of a month: one is tested, the others are drawn from, as a log of their own. What people share is users.

Users are held out, never rows: a person in both parts would be found again by their own searches. Dealing rows instead
is there because papers do it, and is called leaky wherever it is shown. A part lies in a warehouse of its own, in a
private folder that is removed afterwards, so that every mechanism is drawn from it by the stages of a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.raw_log import RAW_LOG_VERSION
from qlog_assets.pipeline.stage import Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, describe
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import Prepared, Simulated, draw_simulated, prepare_draws
from qlog_assets.studies.study import StudyWork

PARTS = 5
"""Folds of the papers' cross-validation."""


class SplitSettings(Parameters):
    """How a month is divided, for studies that test on what they did not draw from."""

    seed: int = Field(1, ge=0)
    """Seed of the noise."""
    folds: int = Field(PARTS, ge=1, le=PARTS)
    """How many of the five parts are tested, one after the other."""
    split: Literal["user", "record"] = "user"
    """What is dealt to the parts: users, or records as papers do, which is leaky: a person is then in both."""


@dataclass(frozen=True)
class Part:
    """Some rows of a month in a warehouse of their own."""

    warehouse: Warehouse
    engine: Engine
    policy: Policy
    month: Month

    @property
    def cleaned(self) -> Partition:
        """Its cleaned log."""
        made_by = Work(self.warehouse, self.engine, self.month, make_current=False)
        return CLEANED_LOG.make(made_by, {"raw_log": self.warehouse.current("raw_log", self.month)})[0]

    def prepare(self, engine: Engine, mechanism: str, variant: str) -> Prepared:
        """What a variant draws from, made once for many draws in one engine, which no other mechanism has used."""
        return prepare_draws(mechanism, self.warehouse, engine, self.policy, self.month, variant)

    def draw(self, mechanism: str, variant: str, seed: int, policy: Policy | None = None) -> Simulated:
        """A seeded draw of a variant of any registered mechanism, as the policy, or another one, has it.

        In an engine of its own: what one mechanism names there, another one may name otherwise.
        """
        with Engine.open(self.warehouse) as engine:
            return draw_simulated(mechanism, self.warehouse, engine, policy or self.policy, self.month, variant, seed)


@dataclass(frozen=True)
class Fold:
    """One way to hold out a part of a month."""

    trained: Part
    tested: Part


@contextmanager
def hold_out(work: StudyWork, part: int, by: Literal["user", "record"] = "user") -> Iterator[Fold]:
    """The month divided: part number `part` of five tested, all others to draw from; for the time of a block."""
    assert work.month is not None
    raw = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"])
    with temporary_directory(work.warehouse.studies) as folder:
        divided = {
            tested: _divide(work, raw, part, by, tested=tested, home=folder / name)
            for name, tested in (("trained", False), ("tested", True))
        }
        yield Fold(trained=divided[False], tested=divided[True])


@contextmanager
def change_people(
    work: StudyWork, left_out: pa.Table | None = None, copied: pa.Table | None = None, accounts: int = 0
) -> Iterator[Part]:
    """The month without some users, and with accounts that repeat some rows; for the time of a block.

    `left_out` has a column `user`; `copied` are rows of the raw log. Neither gets into any provenance.
    """
    assert work.month is not None
    raw = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"])
    nobody, nothing = pa.table({"user": pa.array([], pa.string())}), pq.read_schema(raw.files("log")[0]).empty_table()
    stated = {"left_out": left_out is not None, "accounts": accounts}
    with temporary_directory(work.warehouse.studies) as folder:
        with (
            work.engine.table("people_left_out", nobody if left_out is None else left_out),
            work.engine.table("copied_rows", nothing if copied is None else copied),
        ):
            part = _write_part(work, raw, folder, "studies/raw_log_with_other_people", stated, {"accounts": accounts})
        yield part


def _divide(work: StudyWork, raw: Partition, part: int, by: str, *, tested: bool, home: Path) -> Part:
    stated = {"part": part, "parts": PARTS, "by": by, "tested": tested}
    asked = {"by_record": by == "record", "parts": PARTS, "part": part, "tested": tested}
    return _write_part(work, raw, home, "studies/part_of_raw_log", stated, asked)


def _write_part(
    work: StudyWork, raw: Partition, home: Path, statement: str, stated: dict[str, Any], asked: dict[str, Any]
) -> Part:
    """Some rows of a month as the raw log of a warehouse of their own; `stated` is what its provenance says of them."""
    assert work.month is not None
    warehouse = _warehouse_within(work.warehouse, home)
    provenance = describe(
        "raw_log",
        work.month,
        code_version=RAW_LOG_VERSION,
        parameters=stated,
        upstream={"raw_log": raw},
        run_id=work.run_id,
    )

    def write(directory: Path) -> dict[str, TableFacts]:
        with raw.verifying():
            work.engine.view("raw_log", raw.files("log"))
            return {"log": work.engine.write(statement, directory / "log.parquet", **asked)}

    warehouse.write_partition(provenance, write)
    return Part(warehouse, work.engine, work.policy, work.month)


def _warehouse_within(whole: Warehouse, home: Path) -> Warehouse:
    """A warehouse of a part, which finds the whole one's ledger and releases: a pool may be made of them."""
    made = Warehouse(whole.settings.for_scratch(home).model_copy(update={"ledger_url": whole.ledger_url}))
    made.released = whole.released
    return made.make()
