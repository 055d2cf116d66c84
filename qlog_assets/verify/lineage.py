"""Follows a release back to its landing files and counts its limits again, as far as the data is still there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

from qlog_assets.door.draws import Draw
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger import BatchWithdrawal, Charge, Ledger, Made
from qlog_assets.ledger.book import find_trouble
from qlog_assets.ledger.chain import BATCH_RESTORED, BATCH_WITHDRAWN
from qlog_assets.mechanisms.inputs import is_of_this_version, stages
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable_mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import EARLIER_NAME, LANDING_BATCH, identity_of
from qlog_assets.pipeline.landing import landed_files, name_part
from qlog_assets.pipeline.released_domain import RELEASE, find_domain
from qlog_assets.pipeline.stage import ORIGIN, Stage
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine, OpenEngine
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.recompute import Recomputation
from qlog_assets.verify.steering import steering_findings


@dataclass
class Followed:
    """What was found on the way back, and the runs that wrote what was passed."""

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    recomputed: list[str] = field(default_factory=list)
    """What was computed again and came out the same."""
    believed: list[str] = field(default_factory=list)
    """What was taken for true."""
    dataset: str = ""
    charged_seq: int = 0
    """The event of the release's reservation."""
    parameters: Parameters | None = None
    """Of the release: what its stages are computed with again. None where this version cannot read them."""


class Lineage:
    """The way back from any release of one warehouse. Landing files and shared partitions are read once."""

    def __init__(
        self,
        warehouse: Warehouse,
        ledger: Ledger,
        open_engine: OpenEngine | None = None,
        deep: Recomputation | None = None,
    ) -> None:
        self.warehouse = warehouse
        self.ledger = ledger
        self.open_engine = open_engine or partial(Engine.open, warehouse)
        self.deep = deep
        """What computes partitions again; None: what they were made by is believed."""
        self._verdicts: dict[tuple[str, str, str], str | None] = {}
        self._entries: dict[str, dict[tuple[str, str, str], Made]] = {}
        self._withdrawals: dict[str, list[BatchWithdrawal]] = {}

    @cached_property
    def landing_checksums(self) -> set[str]:
        return {file_checksum(path) for path, _ in landed_files(self.warehouse)}

    def entries(self, dataset: str) -> dict[tuple[str, str, str], Made]:
        """What the ledger says was written."""
        if dataset not in self._entries:
            self._entries[dataset] = self.ledger.made(dataset)
        return self._entries[dataset]

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
        found = Followed(dataset=charge.dataset, charged_seq=charge.seq)
        try:
            mechanism = releasable_mechanism(charge.mechanism)
        except ParameterError:
            found.notes.append(
                f"this version of the software knows no {charge.mechanism}: its inputs were not followed"
            )
            return found
        # Parameters that this version cannot read are for the audit of the guarantee to tell.
        with suppress(QlogError):
            found.parameters = mechanism.parameters(**charge.parameters)
        partition = self._limited_input(mechanism, charge, draw, found)
        if partition is not None and self._verify(partition, found):
            self._count_again(mechanism, partition, found)
            self._follow_up(partition, found)
        if draw is not None:
            for asset in (name for name in mechanism.inputs if name != mechanism.limited_stage.name):
                self._pass(asset, charge.month, draw.release.inputs[asset], found)
        for asset in mechanism.public_inputs:
            if asset in charge.inputs:
                shape = None if draw is None else draw.release.inputs.get(asset)
                self._public_input(asset, charge.inputs[asset], shape, found)
        wrong = steering_findings(self.ledger, mechanism, charge, found.parameters)
        found.findings += wrong
        pinned = charge.request.steered_by
        if pinned is not None and not wrong and found.parameters is not None:
            found.recomputed.append(f"that {pinned} was the one to steer it, by the ledger's order")
            self._tell_steering(pinned, found)
        return found

    def _tell_steering(self, release_id: str, found: Followed) -> None:
        """What became of the release that steered this one: withdrawn since, it explains why nothing lies there."""
        steering = {charge.release_id: charge for charge in self.ledger.charges()}.get(release_id)
        if steering is None or steering.state == "published":
            return
        _note(found, f"{release_id}, which steered it, is {steering.state} since")

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
        with self.open_engine() as engine:
            if is_of_this_version(partition):
                try:
                    self._inspect(engine, mechanism, partition, found)
                except OSError:
                    raise  # a store that does not answer is no finding about a release
                except QlogError as error:
                    found.findings.append(f"limits: {label}: {error}")
            else:
                found.notes.append(f"{label} was made by another version of qlog: its limits are not counted again")
            for table, facts in partition.provenance.tables.items():
                again = engine.facts(partition.folder, partition.files(table), digest=True)
                if (again.content_digest, again.rows) != (facts.content_digest, facts.rows):
                    found.findings.append(f"lineage: {label}: {table} does not hold the rows its provenance says")
        found.recomputed.append(f"{label}: a digest of its rows, and how many each user has")

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

    def _public_input(self, asset: str, digest: str, shape: str | None, found: Followed) -> None:
        """The pool or url list, by its content; the very partition that was drawn from, where the draw tells it."""
        there = sorted((self.warehouse.private / asset / PUBLIC_MATERIAL).glob("*/provenance.json"))
        for path in sorted(there, key=lambda path: path.parent.name != shape):
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
                    self._missing_landing(partition.provenance.month, found)
            elif asset == ORIGIN:
                self._origin(partition, batch, shape, found)
            elif asset == RELEASE:
                self._domain(partition, batch, shape, found)
            elif not (self.warehouse.private / asset / PUBLIC_MATERIAL).is_dir():
                # Public material belongs to no month; it is looked at by its content.
                self._pass(asset, batch or partition.provenance.month, shape, found)

    def _missing_landing(self, batch: str, found: Followed) -> None:
        """A landing file that is gone may have been deleted; one that lies there changed was not to be touched."""
        for path, format in landed_files(self.warehouse):
            if batch.startswith(f"{name_part(path)}-{format}-"):
                sentence = f"lineage: the landing file of {batch} lies there with another content than was read"
                if sentence not in found.findings:
                    found.findings.append(sentence)
                return
        _note(found, f"the landing file of {batch} is no longer there")

    def _origin(self, partition: Partition, name: str, digest: str, found: Followed) -> None:
        """What a stage was made from that is no partition."""
        made = partition.provenance
        stage = next((stage for stage in stages() if stage.name == made.asset and stage.origin is not None), None)
        if stage is None or stage.origin is None:
            return
        if stage.origin(self.warehouse, Month(made.month)).get(name) != digest:
            _note(found, f"the {name.replace('_', ' ')} of {made.month} is no longer there as it was read")

    def _domain(self, partition: Partition, release_id: str, digest: str, found: Followed) -> None:
        """The release that a stage was counted over: published before, with this very manifest and these queries."""
        month = partition.provenance.month
        over = {charge.release_id: charge for charge in self.ledger.charges()}.get(release_id)
        if over is None or over.manifest_digest != digest or (over.dataset, over.month) != (found.dataset, month):
            found.findings.append(f"lineage: it was counted over {release_id}, which the ledger did not publish so")
        elif over.published_seq is None or over.published_seq > found.charged_seq:
            found.findings.append(f"lineage: {release_id} was not published when this was counted over it")
        elif over.state != "published":
            _note(found, f"{release_id}, which it was counted over, is {over.state}")
        elif not find_domain(self.warehouse, Month(month), release_id).is_held_by(partition):
            found.findings.append(f"lineage: {partition.provenance.asset} has other queries than {release_id}")

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
        if asset in (LANDING_BATCH, EARLIER_NAME):
            self._tell_withdrawn(partition, found)

    def _tell_withdrawn(self, partition: Partition, found: Followed) -> None:
        """A batch that was withdrawn after a release explains why nobody could make it again; before, none may be."""
        if found.dataset not in self._withdrawals:
            self._withdrawals[found.dataset] = self.ledger.batch_withdrawals(found.dataset)
        for record in self._withdrawals[found.dataset]:
            if record.identity != identity_of(partition.provenance):
                continue
            if record.held_at(found.charged_seq):
                _add(found.findings, f"lineage: it was made with rows of {record.batch}, which {record.words}")
            elif record.in_force:
                _note(found, f"it has rows of {record.batch}, which {record.words}: released before, it stays as it is")

    def _verify(self, partition: Partition, found: Followed) -> bool:
        """Whether a partition's files are those it was written with."""
        facts = partition.provenance
        key = (facts.asset, facts.month, facts.shape)
        entries = self.entries(found.dataset)
        if key not in self._verdicts:
            try:
                partition.verify()
                trouble = find_trouble(partition, entries) if key in entries else None
                self._verdicts[key] = None if trouble is None else f"lineage: {trouble}"
            except WarehouseError as error:
                self._verdicts[key] = f"lineage: {error}"
        verdict = self._verdicts[key]
        if verdict is not None and verdict not in found.findings:
            found.findings.append(verdict)
        if facts.run_id is not None:
            found.run_ids.add(facts.run_id)
        if verdict is None:
            self._tell_basis(partition, key in entries, found)
        return verdict is None

    def _tell_basis(self, partition: Partition, entered: bool, found: Followed) -> None:
        """Say on what a partition stands: the ledger's entry, what it was made from, or its own word."""
        label = f"{partition.provenance.asset} {partition.provenance.month}"
        if entered:
            _add(found.recomputed, f"{label}: checksums of its files, against the ledger's entry")
        else:
            _add(found.believed, f"{label}: its own provenance, because the ledger has no entry of it")
        if self.deep is None or found.parameters is None:
            _add(found.believed, f"{label}: that it follows from what it was made from (--deep computes it again)")
            return
        forgotten = frozenset(month for dataset, month in self.forgotten if dataset == found.dataset)
        outcome = self.deep.compute(partition, found.parameters, forgotten)
        if outcome.differs:
            _add(found.findings, f"deep: {outcome.sentence}")
        else:
            _add(found.recomputed if outcome.same else found.believed, outcome.sentence)


def batch_notes(ledger: Ledger, dataset: str | None) -> list[str]:
    """Every file that was taken out of use, or back into it: an auditor asks why."""
    words = {BATCH_WITHDRAWN: "was withdrawn", BATCH_RESTORED: "was taken into use again"}
    return [
        f"batch {event.facts['batch']}: on {event.at[:10]} it {words[event.kind]} by {event.who}: "
        f"{event.facts['reason']}"
        for event in ledger.events()
        if event.kind in words and dataset in (None, event.dataset)
    ]


def _note(found: Followed, note: str) -> None:
    _add(found.notes, note)


def _add(sentences: list[str], sentence: str) -> None:
    if sentence not in sentences:
        sentences.append(sentence)
