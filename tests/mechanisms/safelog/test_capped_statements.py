"""The statements that limit users answer what the plain window statements beside them answer, row for row.

The plain forms (`*.spark.sql`) rank all that a user did. The others rank only users over the limit, in less time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.mechanisms.safelog.parameters import SafelogPolicy
from qlog_assets.mechanisms.safelog.stages import CAPPED_TABLES, write_capped_log
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import view_searches
from qlog_assets.pipeline.stage import Work
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import TableFacts, describe
from qlog_assets.storage.statements import statement
from qlog_assets.storage.warehouse import Warehouse

START = datetime(2006, 3, 1)
QUERIES = ["news", "News", "naïve", "nai", "\U0001f600", "￿", "a" * 13, "a" * 14, "maps", "weather " * 500]
"""Bytes decide ties: capitals before small letters, texts that DuckDB stores inside a row and behind it, and two whose
order by bytes is not that by UTF-16."""


def write_log(path: Path, seed: int, rows: int = 4_000) -> Path:
    """A log with few users and few seconds: most rows tie with another one, in time, rank or both."""
    dice = random.Random(seed)
    users = [f"user-{number}" for number in range(40)]
    drawn = [
        {
            "user": users[min(int(dice.expovariate(0.15)), 39)],
            "query": f"{dice.choice(QUERIES)} {dice.randrange(12)}" if dice.random() < 0.8 else dice.choice(QUERIES),
            "time": START + timedelta(seconds=60 * dice.randrange(400)),
            "rank": dice.choice([None, 1, 2, 3]),
            "url": dice.choice([None, *(f"http://{letter}.example" for letter in "abcdé")]),
        }
        for _ in range(rows)
    ]
    schema = pa.schema(
        {"user": pa.string(), "query": pa.string(), "time": pa.timestamp("us"), "rank": pa.int32(), "url": pa.string()}
    )
    pq.write_table(pa.Table.from_pylist(drawn, schema), path)
    return path


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("capped")
    with Engine.open(Warehouse(Settings(home=folder))) as opened:
        opened.view("cleaned_log", [write_log(folder / "cleaned.parquet", seed=20)])
        view_searches(opened)
        yield opened


LIMITS = {"queries": "queries_per_user", "clicks": "clicks_per_user", "transitions": "transitions_per_user"}


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("table", CAPPED_TABLES)
def test_users_keep_the_same_rows_as_by_a_window_over_all_of_them(engine: Engine, table: str, limit: int) -> None:
    given: dict[str, Any] = {LIMITS[table]: limit}
    if table == "transitions":
        given["session_gap_minutes"] = 30
    name = CAPPED_TABLES[table]
    kept = sorted(engine.run(name, **given).fetchall())
    assert kept == sorted(engine.connection.execute(statement(f"{name}.spark"), given).fetchall())
    held = [sum(row[0] == user for row in kept) for user in {row[0] for row in kept}]
    # Both kinds of user are there, those that are ranked and those that keep everything; or the limit is none.
    assert max(held) == limit > min(held) or limit in (1, 1000)


def test_more_is_never_set_aside_for_a_user_than_the_user_has(tmp_path: Path) -> None:
    """Room for `limit` rows of everybody would be gigabytes: a month of many users would end for want of memory."""
    connection = duckdb.connect(config={"memory_limit": "250MB", "temp_directory": str(tmp_path), "threads": 1})
    connection.execute(
        """CREATE TABLE cleaned_log AS SELECT (row % 50000)::VARCHAR AS "user", 'q' || row AS query,
                  TIMESTAMP '2006-03-01' + to_seconds(row) AS "time" FROM range(150000) AS rows (row)"""
    )
    given = {"queries_per_user": 10_000}
    kept = connection.execute(f"SELECT count(*) FROM ({statement('safelog/capped_queries')})", given).fetchone()
    assert kept == (150_000,)


def test_a_limit_of_one_query_leaves_nobody_a_transition(tmp_path: Path) -> None:
    warehouse = Warehouse(Settings(home=tmp_path))

    def write(directory: Path) -> dict[str, TableFacts]:
        return {"log": engine.facts(directory, [write_log(directory / "log.parquet", seed=21, rows=200)])}

    with Engine.open(warehouse) as engine:
        provenance = describe("cleaned_log", "2006-03", code_version="1", parameters={}, upstream={})
        cleaned, _ = warehouse.write_partition(provenance, write)
        work = Work(warehouse, engine, Month("2006-03"), SafelogPolicy(queries_per_user=1))
        facts = write_capped_log(work, {"cleaned_log": cleaned}, tmp_path)
    assert facts["transitions"].rows == 0 < facts["queries"].rows
