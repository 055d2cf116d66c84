"""What assets are given: the policy as a run may change it, the warehouse, the engine, the partitions. No logic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import dagster as dg
from dagster_duckdb import DuckDBResource
from duckdb import DuckDBPyConnection
from pydantic import PrivateAttr

from qlog_assets.door.ledgers import open_ledger
from qlog_assets.ledger import Ledger, MissingLedgerError
from qlog_assets.mechanisms.register import simulated
from qlog_assets.months import Month
from qlog_assets.policy import Policy, qualify_names
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import DuckDBEngine, Engine, open_database
from qlog_assets.storage.stored import drop_copies
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.ui.asked import author
from qlog_assets.version import VERSION

BATCHES = dg.DynamicPartitionsDefinition(name="ingest_batches")
"""One partition per landing file, named for the file and its content."""


def month_partitions(policy: Policy) -> dg.MonthlyPartitionsDefinition:
    """The policy's months, both ends included; Dagster's own end is exclusive."""
    end = None if policy.last is None else policy.last.next()
    return dg.MonthlyPartitionsDefinition(start_date=policy.first, end_date=end, fmt="%Y-%m")


def section_schema(section: type[Parameters]) -> dg.Shape:
    """A mechanism's section as the launchpad takes it: every key may be left out, and none is prefilled.

    Whole numbers and words have Dagster's types. For exact decimals, and for keys that `none` switches off, it has
    none: a launchpad turns text such as `1E-6` into a number when a month is picked. The section itself checks them.
    The types that also take `{env: NAME}` are not used: nobody reads the machine's environment by way of a run.
    """
    fields = {}
    for key, field in section.model_fields.items():
        plain = dg.Int if field.annotation is int else dg.String if field.annotation is str else dg.Any
        fields[key] = dg.Field(plain, is_required=False, description=field.description)
    return dg.Shape(fields, description=(section.__doc__ or "").partition("\n")[0])


def policy_schema() -> dict[str, dg.Field]:
    """What a run may say of the policy. Nothing is prefilled: what is not said is read from the file, at run time."""
    sections = {each.name: each.policy_section for each in simulated()}
    schema = {
        name: dg.Field(section_schema(section), is_required=False, description=f"Other values than [{name}] has")
        for name, section in sections.items()
    }
    schema["settings"] = dg.Field(
        dg.Map(str, dg.Any, key_label_name="key"),
        is_required=False,
        description="The same by full name, such as safelog.threshold, as the command line's --set. Simulations and "
        "studies may set other keys too, such as pool.kind, but no files; what charges may not",
    )
    return schema


@dataclass(frozen=True)
class RunPolicy:
    """The policy file as it is when it is asked for, with what this run changes of it."""

    said: Mapping[str, Any]
    """What the run's configuration says, as `policy_schema` has it."""

    @property
    def changes(self) -> dict[str, Any]:
        """The run's changes by full name."""
        sections = {name: values for name, values in self.said.items() if name != "settings"}
        named = {f"{name}.{key}": value for name, values in sections.items() for key, value in values.items()}
        return named | qualify_names(self.said.get("settings", {}))

    def chosen(self) -> Policy:
        """For everything that a release is made of: the file's policy, with other parameters of mechanisms at most."""
        return policy_in_file().with_run_changes(self.changes)

    def for_study(self) -> Policy:
        """For what is private and never charged: anything but files may be changed."""
        return policy_in_file().with_settings(self.changes)


def policy_in_file() -> Policy:
    return Policy.load(Settings.from_environment().policy_file)


PolicyResource: TypeAlias = dg.ResourceParam[RunPolicy]
"""How a function asks for the policy."""


def policy_resource() -> dg.ResourceDefinition:
    """The resource `policy`, with a field per mechanism that can be drawn."""

    @dg.resource(config_schema=policy_schema(), description="The policy file; a run may change parameters for itself.")
    def policy(context: dg.InitResourceContext) -> RunPolicy:
        return RunPolicy(context.resource_config or {})

    return policy


class WarehouseResource(dg.ConfigurableResource[Warehouse]):
    """The warehouse that QLOG_HOME names, its engine and its ledger.

    The steps that one process runs share a DuckDB: opening one and giving its memory back takes a tenth of a second.
    """

    # In memory: the log is never written into a database file. No field, because no run may say anything else; the
    # warehouse's limits on memory, threads and spilling are set on what it opens.
    _duckdb: DuckDBResource = PrivateAttr(default_factory=lambda: DuckDBResource(database=":memory:"))
    _closing: ExitStack = PrivateAttr(default_factory=ExitStack)
    _database: DuckDBPyConnection | None = PrivateAttr(default=None)

    def open(self) -> Warehouse:
        return Warehouse(Settings.from_environment()).make()

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The engine that the policy file chose. What it names or keeps is its own and gone with it."""
        chosen = policy_in_file().engine
        with self.duckdb() if chosen.kind == "duckdb" else Engine.open(self.open(), chosen) as engine:
            yield engine

    @contextmanager
    def duckdb(self) -> Iterator[DuckDBEngine]:
        """An engine on the shared DuckDB, for what DuckDB reads whatever counts: landing files, lists and studies."""
        if self._database is None:
            fresh = self._closing.enter_context(self._duckdb.get_connection())
            self._database = self._closing.enter_context(open_database(self.open(), fresh))
        try:
            with closing(self._database.cursor()) as connection, DuckDBEngine.lent(connection) as engine:
                yield engine
        except Exception:
            # After an error of its own a DuckDB refuses everything: steps that go on all the same get another.
            self._close_database()
            raise

    def _close_database(self) -> None:
        self._database = None
        self._closing.close()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        self._close_database()
        # The process may be a server, or have other months to come.
        drop_copies()

    def read_ledger(self) -> Ledger | None:
        """The ledger for questions only, if there is one: looking never makes it."""
        try:
            return Ledger.read(self.open().ledger_url)
        except MissingLedgerError:
            return None

    def ledger(self, run: dg.DagsterRun | None = None) -> Ledger:
        """The ledger, written in the name of whoever asked for this run."""
        warehouse = self.open()
        policy = Policy.load(warehouse.settings.policy_file)
        if run is None:
            return open_ledger(warehouse, policy, code_version=VERSION)
        who = author(run.tags, run.run_id, warehouse.private)
        return open_ledger(warehouse, policy, who=who, run_id=run.run_id, code_version=VERSION)


def month_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> Month:
    return Month(context.partition_key)
