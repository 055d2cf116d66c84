"""Follows a release back to its landing files and counts its limits again, as far as the data is still there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from qlog_assets.door.draws import Draw
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.mechanisms.inputs import is_of_this_version, stages
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable_mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.landing import landed_files
from qlog_assets.pipeline.stage import ORIGIN, Stage
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse


@dataclass
class Followed:
    """What was found on the way back, and the runs that wrote what was passed."""

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)


class Lineage:
    """The way back from any release of one warehouse. Landing files and shared partitions are read once."""

    def __init__(self, warehouse: Warehouse, ledger: Ledger) -> None:
        self.warehouse = warehouse
        self.ledger = ledger
        self._verdicts: dict[tuple[str, str, str], str | None] = {}

    @cached_property
    def landing_checksums(self) -> set[str]:
        return {file_checksum(path) for path, _ in landed_files(self.warehouse)}

    @cached_property
    def forgotten(self) -> dict[tuple[str, str], str]:
        """The day on which each (data set, month) was last forgotten."""
        return {
            (event.dataset, month): event.at[:10]
            for event in self.ledger.events()
            if event.kind == "forgotten"
            for month in event.facts.get("months", [])
        }

    def follow(self, charge: Charge, draw: Draw | None) -> Followed:
        """From a charge to the landing files."""
        found = Followed()
        try:
            mechanism = releasable_mechanism(charge.mechanism)
        except ParameterError:
            found.notes.append(
                f"this version of the software knows no {charge.mechanism}: its inputs were not followed"
            )
            return found
        partition = self._limited_input(mechanism, charge, draw, found)
        if partition is not None and self._verify(partition, found):
            self._count_again(mechanism, partition, found)
            self._follow_up(partition, found)
        if draw is not None:
            for asset in (name for name in mechanism.inputs if name != mechanism.limited_stage.name):
                self._pass(asset, charge.month, draw.release.inputs[asset], found)
        for asset in mechanism.public_inputs:
            if asset in charge.inputs:
                self._public_input(asset, charge.inputs[asset], found)
        return found

    def _limited_input(
        self, mechanism: Mechanism, charge: Charge, draw: Draw | None, found: Followed
    ) -> Partition | None:
        """The partition whose content the ledger recorded for a release."""
        asset = mechanism.limited_stage.name
        wanted = charge.inputs.get(asset)
        shape = None if draw is None else draw.release.inputs[asset]
        unreadable = None
        for path in sorted((self.warehouse.private / asset / charge.month).glob("*/provenance.json")):
            try:
                partition = self.warehouse.partition(asset, charge.month, path.parent.name)
                if partition.provenance.content_digest == wanted:
                    return partition
            except WarehouseError as error:
                unreadable = f"lineage: {error}"
                continue
            if partition.provenance.shape == shape:
                found.findings.append(f"lineage: {asset} {charge.month} is not what was released from: its rows differ")
                return None
        if unreadable is not None:
            found.findings.append(unreadable)
            return None
        day = self.forgotten.get((charge.dataset, charge.month))
        why = f"was forgotten on {day}" if day else "is not there with the rows that were released from"
        found.notes.append(f"{asset} {why}: its limits cannot be counted again")
        return None

    def _count_again(self, mechanism: Mechanism, partition: Partition, found: Followed) -> None:
        """Count every user's contributions, and digest every row, as the door and the chain did."""
        label = f"{partition.provenance.asset} {partition.provenance.month}"
        with Engine.open(self.warehouse) as engine:
            if is_of_this_version(partition):
                try:
                    self._inspect(engine, mechanism, partition, found)
                except QlogError as error:
                    found.findings.append(f"limits: {label}: {error}")
            else:
                found.notes.append(f"{label} was made by another version of qlog: its limits are not counted again")
            for table, facts in partition.provenance.tables.items():
                again = engine.facts(partition.path, partition.files(table), digest=True)
                if (again.content_digest, again.rows) != (facts.content_digest, facts.rows):
                    found.findings.append(f"lineage: {label}: {table} does not hold the rows its provenance says")

    def _inspect(self, engine: Engine, mechanism: Mechanism, partition: Partition, found: Followed) -> None:
        """The limits, and where the rows come from if they keep them."""
        stage = mechanism.limited_stage
        assert stage.inspect is not None
        result = stage.inspect(engine, partition)
        if result.passed:
            self._trace(engine, stage, partition, found)
        else:
            label = f"{partition.provenance.asset} {partition.provenance.month}"
            found.findings.append(f"limits: {label}: {result.reason}")

    def _trace(self, engine: Engine, stage: Stage, partition: Partition, found: Followed) -> None:
        """Look for rows that the cleaned log does not account for, while it is still there."""
        made = partition.provenance
        shape = made.upstream.get("cleaned_log", "")
        there = (self.warehouse.private / "cleaned_log" / made.month / shape).is_dir()
        if stage.count_rows_from_nowhere is None or not shape or not there:
            return
        try:
            cleaned = self.warehouse.partition("cleaned_log", made.month, shape)
            cleaned.verify()
        except WarehouseError:
            return  # Following the lineage up says so.
        if stage.count_rows_from_nowhere(engine, partition, cleaned):
            found.findings.append(f"lineage: {made.asset} {made.month} holds rows that are not in its cleaned_log")

    def _public_input(self, asset: str, digest: str, found: Followed) -> None:
        """The pool or url list, by its content."""
        for path in sorted((self.warehouse.private / asset / PUBLIC_MATERIAL).glob("*/provenance.json")):
            try:
                partition = self.warehouse.partition(asset, PUBLIC_MATERIAL, path.parent.name)
            except WarehouseError as error:
                found.findings.append(f"lineage: {error}")
                return
            if partition.provenance.content_digest == digest:
                self._verify(partition, found)
                return
        found.notes.append(f"the {asset.replace('_', ' ')} is no longer there")

    def _follow_up(self, partition: Partition, found: Followed) -> None:
        """Everything above a partition, up to the landing files."""
        for name, shape in partition.provenance.upstream.items():
            asset, _, batch = name.partition(":")
            if asset == "landing":
                if shape not in self.landing_checksums:
                    _note(found, f"the landing file of {partition.provenance.month} is no longer there")
            elif asset == ORIGIN:
                self._origin(partition, batch, shape, found)
            elif not (self.warehouse.private / asset / PUBLIC_MATERIAL).is_dir():
                # Public material belongs to no month; it is looked at by its content.
                self._pass(asset, batch or partition.provenance.month, shape, found)

    def _origin(self, partition: Partition, name: str, digest: str, found: Followed) -> None:
        """What a stage was made from that is no partition."""
        made = partition.provenance
        stage = next((stage for stage in stages() if stage.name == made.asset and stage.origin is not None), None)
        if stage is None or stage.origin is None:
            return
        if stage.origin(self.warehouse, Month(made.month)).get(name) != digest:
            _note(found, f"the {name.replace('_', ' ')} of {made.month} is no longer there as it was read")

    def _pass(self, asset: str, month: str, shape: str, found: Followed) -> None:
        """One partition on the way and what is above it; what retention deleted becomes a note."""
        if not (self.warehouse.private / asset / month / shape).exists():
            _note(found, f"{asset} {month} is no longer there")
            return
        try:
            partition = self.warehouse.partition(asset, month, shape)
        except WarehouseError as error:
            found.findings.append(f"lineage: {error}")
            return
        if self._verify(partition, found):
            self._follow_up(partition, found)

    def _verify(self, partition: Partition, found: Followed) -> bool:
        """Whether a partition's files are those it was written with."""
        facts = partition.provenance
        key = (facts.asset, facts.month, facts.shape)
        if key not in self._verdicts:
            try:
                partition.verify()
                self._verdicts[key] = None
            except WarehouseError as error:
                self._verdicts[key] = f"lineage: {error}"
        verdict = self._verdicts[key]
        if verdict is not None and verdict not in found.findings:
            found.findings.append(verdict)
        if facts.run_id is not None:
            found.run_ids.add(facts.run_id)
        return verdict is None


def _note(found: Followed, note: str) -> None:
    if note not in found.notes:
        found.notes.append(note)
