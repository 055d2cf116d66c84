"""What assets are given: the policy as the launchpad shows it, the warehouse, the engine, the partitions. No logic."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from typing import Any, Union, get_args, get_origin

import dagster as dg
from dagster_duckdb import DuckDBResource
from duckdb import DuckDBPyConnection
from pydantic import Field, PrivateAttr, create_model

from qlog_assets.ledger import Ledger
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters, decimal_text
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine, open_database
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.ui.asked import author
from qlog_assets.version import VERSION

BATCHES = dg.DynamicPartitionsDefinition(name="ingest_batches")
"""One partition per landing file, named for the file and its content."""


def month_partitions(policy: Policy) -> dg.MonthlyPartitionsDefinition:
    """The policy's months, both ends included; Dagster's own end is exclusive."""
    end = None if policy.last is None else policy.last.next()
    return dg.MonthlyPartitionsDefinition(start_date=policy.first, end_date=end, fmt="%Y-%m")


def launchpad_model(name: str, section: Parameters) -> type[dg.Config]:
    """A section of the policy as Dagster can show it: whole numbers stay numbers, exact decimals are text."""
    fields: dict[str, Any] = {}
    for key, field in type(section).model_fields.items():
        kinds = get_args(field.annotation) if get_origin(field.annotation) in (Union, types.UnionType) else ()
        plain = int if field.annotation is int or int in kinds else str
        annotation = plain | None if type(None) in kinds else plain
        fields[key] = (annotation, Field(default=as_text(getattr(section, key)), description=field.description))
    return create_model(name, __base__=dg.Config, **fields)


def as_text(value: Any) -> Any:
    """Exact numbers and lists as a person types them; whole numbers, texts and nothing as they are."""
    if isinstance(value, Fraction):
        return decimal_text(value)
    return ",".join(value) if isinstance(value, tuple) else value


class PolicyResource(dg.ConfigurableResource["PolicyResource"]):
    """The policy as the launchpad shows it: the policy file's parameters, which a run may change.

    A field per mechanism that can be drawn comes from the register, by `showing`.
    """

    settings: dict[str, str] = Field(
        default={},
        description="Other settings of the policy, such as pool.kind or url_list, as the command line's --set",
    )

    @classmethod
    def showing(cls, policy: Policy) -> PolicyResource:
        """The resource with the policy file's values as its defaults.

        They are the defaults of a model made for them, not values given to this one: Dagster would drop all of them
        as soon as a run sets a single key.
        """
        models = {
            name: launchpad_model(f"{name.capitalize()}Config", section) for name, section in policy.mechanisms.items()
        }
        fields: dict[str, Any] = {name: (model, model()) for name, model in models.items()}
        return create_model(cls.__name__, __base__=cls, **fields)()

    def chosen(self) -> Policy:
        """The policy file as it is now, with what this run changed.

        A launchpad sends back everything it showed. What it showed is the policy of the time when the definitions were
        loaded, so only values that differ from that are changes; the others are read from the file.
        """
        policy = Policy.load(Settings.from_environment().policy_file)
        launched = {}
        for name, section in policy.mechanisms.items():
            given = getattr(self, name, None)
            fields = {} if given is None else type(given).model_fields
            changes = {key: value for key, field in fields.items() if (value := getattr(given, key)) != field.default}
            launched[name] = section.with_changes(**changes)
        return policy.with_changes(mechanisms=launched).with_settings(self.settings)


class WarehouseResource(dg.ConfigurableResource[Warehouse]):
    """The warehouse that QLOG_HOME names, its engine and its ledger.

    The steps that one process runs share a DuckDB: opening one and giving its memory back takes a tenth of a second.
    """

    duckdb: DuckDBResource
    """What opens the database; the warehouse's limits on memory, threads and spilling are set on it."""

    _closing: ExitStack = PrivateAttr(default_factory=ExitStack)
    _database: DuckDBPyConnection | None = PrivateAttr(default=None)

    def open(self) -> Warehouse:
        return Warehouse(Settings.from_environment()).make()

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """An engine on the shared DuckDB. What it names or keeps is its own and gone with it."""
        if self._database is None:
            fresh = self._closing.enter_context(self.duckdb.get_connection())
            self._database = self._closing.enter_context(open_database(self.open(), fresh))
        try:
            with closing(self._database.cursor()) as connection, Engine.lent(connection) as engine:
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

    def ledger(self, run: dg.DagsterRun) -> Ledger:
        """The ledger, written in the name of whoever asked for this run."""
        warehouse = self.open()
        who = author(run.tags, run.run_id, warehouse.private)
        return Ledger.open(warehouse.ledger_url, who=who, run_id=run.run_id, code_version=VERSION)


def month_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> Month:
    return Month(context.partition_key)
