"""Every statement of `sql/` says the same on DuckDB and on Spark: one test body, both engines, the same tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from support.small_tables import GIVEN, PARAMETERS, base_tables

from qlog_assets.settings import CHECKOUT, Settings
from qlog_assets.sources.normalise import install_macros
from qlog_assets.storage.dialects import REFUSED, UntranslatableError
from qlog_assets.storage.engine import DuckDBEngine, Engine, EnginePolicy, open_duckdb
from qlog_assets.storage.statements import statement, table_of
from qlog_assets.storage.warehouse import Warehouse

pytestmark = pytest.mark.spark

MASTER = os.environ.get("QLOG_SPARK_MASTER", "local[2]")
"""A process has one: for a cluster, test_release runs this file in another."""
SQL = CHECKOUT / "sql"
STATEMENTS = sorted(
    name
    for path in SQL.rglob("*.sql")
    if not (name := str(path.relative_to(SQL).with_suffix(""))).endswith(".spark") and "/normalise_" not in name
)
MADE_BY = {table_of(name): name for name in STATEMENTS if table_of(name) not in GIVEN}
"""Which statement makes a table that others read."""
AS_VIEWS = {"following_queries"}
"""Tables with a column that no file holds: pauses."""


@cache
def parsed(name: str) -> exp.Expression:
    return sqlglot.parse_one(statement(name), read="duckdb")


def tables_read(name: str) -> set[str]:
    tree = parsed(name)
    return {table.name for table in tree.find_all(exp.Table)} - {cte.alias for cte in tree.find_all(exp.CTE)} - {""}


def parameters_of(name: str) -> dict[str, Any]:
    return {place.name: PARAMETERS[place.name] for place in parsed(name).find_all(exp.Placeholder)}


class Both:
    """Both engines with the same tables. What a statement reads is made by DuckDB, once, and given to both."""

    def __init__(self, duckdb: DuckDBEngine, spark: Engine, keeping: ExitStack) -> None:
        self.duckdb, self.spark, self.keeping = duckdb, spark, keeping
        self.given: set[str] = set()
        self.base = base_tables()
        for engine in (duckdb, spark):
            install_macros(engine)

    def give(self, table: str) -> None:
        if table in self.given:
            return
        self.given.add(table)
        if table in self.base:
            for engine in (self.duckdb, self.spark):
                self.keeping.enter_context(engine.table(table, self.base[table]))
            return
        name = MADE_BY[table]
        for needed in tables_read(name):
            self.give(needed)
        if table in AS_VIEWS:
            self.duckdb.statement_view(name)
            self.spark.statement_view(name)
            return
        self.duckdb.statement_table(name, **parameters_of(name))
        if table == "counted_subsequences":
            # In order, so that DuckDB's own numbers of rows are those that Spark counts.
            self.duckdb.statement_table("sessions/ordered_subsequences", table)
        if table == "pool_augmented":
            self.duckdb.connection.execute(
                "CREATE OR REPLACE TEMP TABLE pool_augmented AS SELECT *, row_number() OVER () - 1 AS file_row_number "
                "FROM (SELECT * FROM pool_augmented ORDER BY query)"
            )
        rows = self.duckdb.connection.sql(f"SELECT * FROM {table}").to_arrow_table()
        self.keeping.enter_context(self.spark.table(table, rows))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    home = tmp_path_factory.mktemp("both") / "it's a [ware]house"
    warehouse = Warehouse(Settings(home=home, memory_limit_mb=1024, threads=2)).make()
    with (
        open_duckdb(warehouse) as duckdb,
        Engine.open(warehouse, EnginePolicy(kind="spark", master=MASTER)) as spark,
        ExitStack() as keeping,
    ):
        yield Both(duckdb, spark, keeping)


def content(rows: pa.Table, *, ordered: bool) -> list[tuple[Any, ...]]:
    """What an answer says; in its own order only where the statement says one."""
    found = [tuple(plain(value) for value in row.values()) for row in rows.to_pylist()]
    return found if ordered else sorted(found, key=repr)


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == int(value) else value


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_says_the_same_on_both_engines(both: Both, name: str) -> None:
    for table in tables_read(name):
        both.give(table)
    parameters = parameters_of(name)
    if name in REFUSED:
        with pytest.raises(UntranslatableError, match=REFUSED[name]):
            both.spark.arrow(name, **parameters)
        return
    ordered = parsed(name).args.get("order") is not None and name not in WITH_TIES
    if table_of(name) in AS_VIEWS:
        return  # read by those that read it
    expected, found = both.duckdb.arrow(name, **parameters), both.spark.arrow(name, **parameters)
    assert found.column_names == expected.column_names
    assert content(found, ordered=ordered) == content(expected, ordered=ordered)
    assert expected.num_rows > 0 or name in WITHOUT_ROWS


WITH_TIES = {"studies/twin_rows"}
"""Statements whose order leaves rows side by side that differ."""
WITHOUT_ROWS = {"contributions/item_columns"}
"""Statements that answer without a row, here or always."""


def test_what_is_written_has_the_same_types_and_the_same_digest(both: Both, tmp_path: Path) -> None:
    for name in ("log/first_clicks", "safelog/pool_augmented", "sessions/kept_sessions", "contributions/chosen_items"):
        for table in tables_read(name):
            both.give(table)
        given = parameters_of(name)
        facts = {}
        for label, engine in (("duckdb", both.duckdb), ("spark", both.spark)):
            folder = tmp_path / label / table_of(name)
            folder.mkdir(parents=True)
            facts[label] = engine.write(name, folder / "rows.parquet", digest=True, **given)
            both.duckdb.view(f"read_{label}", [folder / file for file in facts[label].files])
            assert all((folder / file).is_file() for file in facts[label].files)
        assert facts["spark"].content_digest == facts["duckdb"].content_digest
        assert facts["spark"].rows == facts["duckdb"].rows > 0
        assert both.duckdb.columns("read_spark") == both.duckdb.columns("read_duckdb")
