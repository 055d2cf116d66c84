"""Computes private tables again from what they were made from, in scratch, and compares: `qlog audit --deep`.

Every kind of table by the code that makes it: landing files by the reader, stages by their own `write`, public lists by
their loader. Rows are compared, not bytes, and nothing of the scratch is kept. Knows no mechanism by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.mechanisms.inputs import is_of_this_version, stages
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import (
    LANDING_BATCH,
    READER_VERSION,
    Admission,
    describe_reading,
    ingest_batch,
)
from qlog_assets.pipeline.landing import batch_of, landed_files, landing_checksum
from qlog_assets.pipeline.public_material import PUBLIC_LISTS, PublicLists, pool_spec
from qlog_assets.pipeline.released_domain import domains_of
from qlog_assets.pipeline.stage import ORIGIN, Stage, Work
from qlog_assets.pipeline.user_key import with_user_key
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.sources.pools import load_pool, load_url_list
from qlog_assets.sources.readers import MonthRange
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.workplace import Workplace

RAW_LOG = "raw_log"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What came of computing one partition again: it is the same, it differs, or it could not be computed."""

    sentence: str
    same: bool = False
    differs: bool = False


class Recomputation:
    """Computes each partition of a warehouse again, once, however many releases were made from it."""

    def __init__(
        self, warehouse: Warehouse, workplace: Workplace, lists: PublicLists, tell: Tell = lambda step: None
    ) -> None:
        self.warehouse = warehouse
        self.workplace = workplace
        self.lists = lists
        self.tell = tell
        self._outcomes: dict[str, Outcome] = {}

    def compute(self, partition: Partition, parameters: Parameters, forgotten: frozenset[str]) -> Outcome:
        """Compute a partition again. The parameters are those that the ledger recorded for the release; `forgotten` are
        the months that retention took out of batches."""
        made = partition.provenance
        key = f"{made.asset} {made.month} {made.shape} {parameters.as_public()}"
        if key not in self._outcomes:
            self.tell(f"computing {made.asset} {made.month} again")
            self._outcomes[key] = self._compute(partition, parameters, forgotten)
        return self._outcomes[key]

    def _compute(self, partition: Partition, parameters: Parameters, forgotten: frozenset[str]) -> Outcome:
        made = partition.provenance
        label = f"{made.asset} {made.month}"
        stage = next((stage for stage in stages() if stage.name == made.asset), None)
        try:
            if made.asset == RAW_LOG:
                return self._raw_log(label, partition)
            if made.asset == LANDING_BATCH:
                return self._batch(label, partition, forgotten)
            if made.asset in PUBLIC_LISTS:
                return self._public_list(label, partition)
            if stage is not None and is_of_this_version(partition):
                return self._stage(label, stage, partition, parameters)
        except WarehouseError as error:
            return Outcome(f"{label}: it cannot be computed again: {error}")
        return Outcome(f"{label}: it was made by another version of qlog")

    def _stage(self, label: str, stage: Stage, partition: Partition, parameters: Parameters) -> Outcome:
        made = partition.provenance
        month = Month(made.month)
        asked = parameters.as_public()
        for name, value in made.parameters.items():
            if name in asked and asked[name] != value:
                return Outcome(f"{label} was made with {name} = {value}, and charged with {asked[name]}", differs=True)
        if stage.origin is not None:
            there = {f"{ORIGIN}:{name}": digest for name, digest in stage.origin(self.warehouse, month).items()}
            if any(made.upstream.get(name) != digest for name, digest in there.items()):
                return Outcome(f"{label}: what it was made from is no longer there as it was read")
        inputs = {
            name: self._above(name, made.month, shape) for name, shape in made.upstream.items() if ":" not in name
        }
        try:
            domain = next(iter(domains_of(self.warehouse, partition)), None)
        except RefusedError as error:
            return Outcome(f"{label}: it cannot be computed again: {error}")
        if domain is not None and domain.trouble is not None:
            return Outcome(f"{label}: it cannot be computed again: {domain.charge.release_id}: {domain.trouble}")
        with self.workplace.engine() as engine, self.workplace.directory() as directory:
            work = Work(self.warehouse, engine, month, parameters, domain=domain)
            again = stage.write(work, inputs, directory)
            files = {name: [directory / file for file in facts.files] for name, facts in again.items()}
            return compared(label, " and ".join(inputs) or "what was collected", engine, partition, files)

    def _above(self, name: str, month: str, shape: str) -> Partition:
        key = PUBLIC_MATERIAL if name in PUBLIC_LISTS else month
        if not (self.warehouse.private / name / key / shape).is_dir():
            raise WarehouseError(f"its {name} is no longer there")
        partition = self.warehouse.partition(name, key, shape)
        partition.verify()
        return partition

    def _raw_log(self, label: str, partition: Partition) -> Outcome:
        """The raw log is made of the batches' own files: their checksums tell everything."""
        made = partition.provenance
        found: list[str] = []
        for name, shape in made.upstream.items():
            asset, _, key = name.partition(":")
            if not (self.warehouse.private / asset / key / shape).is_dir():
                return Outcome(f"{label}: its {asset} is no longer there")
            batch = self.warehouse.partition(asset, key, shape)
            if made.month not in batch.provenance.tables:
                return Outcome(f"{label}: its {asset} has no rows of that month any more")
            batch.verify(made.month)
            found += batch.provenance.tables[made.month].files.values()
        if sorted(found) != sorted(made.tables["log"].files.values()):
            return Outcome(f"{label} does not hold the rows of its batches", differs=True)
        return Outcome(f"{label}, from its batches", same=True)

    def _batch(self, label: str, partition: Partition, forgotten: frozenset[str]) -> Outcome:
        made = partition.provenance
        landed = [
            (path, format)
            for path, format in landed_files(self.warehouse)
            if format == made.parameters["format"] and landing_checksum(path) == made.upstream["landing"]
        ]
        if not landed:
            return Outcome(f"{label}: its landing file is no longer there as it was read")
        if made.code_version != READER_VERSION:
            return Outcome(f"{label}: it was read by another version of qlog")
        try:
            batch = with_user_key(self.warehouse, batch_of(*landed[0]), [partition])
        except QlogError as error:
            return Outcome(f"{label}: it cannot be read again: {error}")
        months = MonthRange(Month(made.parameters["first"]), Month(made.parameters["last"]))
        admission = Admission(months, Fraction(1))
        if describe_reading(batch, admission) != made.parameters:
            return Outcome(f"{label}: the column map beside its landing file is another one now", differs=True)
        with self.workplace.engine() as engine:
            try:
                again, _ = ingest_batch(self.workplace.warehouse, engine, batch, admission)
            except QlogError as error:
                # Readers of one number may differ in which files they refuse whole, never in what they make of one.
                return Outcome(f"{label}: it cannot be read again: {error}")
            # What a forgotten month took with it is not looked for.
            gone = forgotten - set(made.tables)
            files = {name: again.files(name) for name in again.provenance.tables if name not in gone}
            return compared(label, "its landing file", engine, partition, files)

    def _public_list(self, label: str, partition: Partition) -> Outcome:
        made = partition.provenance
        table = PUBLIC_LISTS[made.asset]
        with self.workplace.directory() as cache:
            try:
                if made.asset == "pool":
                    loaded = load_pool(pool_spec(self.warehouse, self.lists.pool, None), cache)
                elif self.lists.url_list is not None:
                    loaded = load_url_list(self.lists.url_list, cache)
                else:
                    return Outcome(f"{label}: the policy names no such list any more")
            except QlogError as error:
                return Outcome(f"{label}: it cannot be loaded again: {error}")
            if not _same_sources(made.parameters, loaded.provenance):
                return Outcome(f"{label}: the policy names another list now, or its file was changed since")
            with self.workplace.engine() as engine:
                return compared(label, "the file that the policy names", engine, partition, {table: [loaded.path]})


def _same_sources(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a list was made from the same files in the same way; what came out is what is to be compared."""
    result = {"rows", "sha256"}
    return {k: v for k, v in then.items() if k not in result} == {k: v for k, v in now.items() if k not in result}


def compared(
    label: str, source: str, engine: Engine, partition: Partition, again: Mapping[str, Sequence[Path]]
) -> Outcome:
    """Whether a partition's tables hold the rows that computing them again gave."""
    different = sorted(set(again) ^ set(partition.provenance.tables))
    for name in sorted(set(again) & set(partition.provenance.tables)):
        if digest_all(engine, partition.files(name)) != digest_all(engine, again[name]):
            different.append(name)
    if different:
        return Outcome(f"{label} does not follow from {source}: {', '.join(different)} differs", differs=True)
    return Outcome(f"{label}, from {source}", same=True)


def digest_all(engine: Engine, files: Sequence[Path]) -> tuple[Any, ...]:
    """What some files say: the names and types of their columns, and all their rows in whatever order."""
    engine.view("compared", files)
    return (*engine.columns("compared").items(), engine.row("storage/digest_all_columns")["digest"])
