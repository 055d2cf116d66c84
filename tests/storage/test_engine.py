"""The engine: statements from `sql/` with typed parameters, files with quotes in their names, limits that hold."""

from __future__ import annotations

import hashlib
import traceback
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.errors import QlogError
from qlog_assets.settings import CHECKOUT, Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.statements import statement, statement_version
from qlog_assets.storage.warehouse import Warehouse

SQL = CHECKOUT / "sql"
STATEMENTS = sorted(str(path.relative_to(SQL).with_suffix("")) for path in SQL.rglob("*.sql"))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(Settings(home=tmp_path / "it's a warehouse", memory_limit_mb=256, threads=1)).make()


@pytest.fixture
def engine(warehouse: Warehouse) -> Iterator[Engine]:
    with Engine.open(warehouse) as engine:
        yield engine


def counted(engine: Engine, folder: Path, rows: int = 3) -> Path:
    path = folder / "o'clock.parquet"
    table = pa.table({"users": pa.array(range(rows), pa.int64()), "in_pool": [True] * rows, "query": ["q"] * rows})
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_one_statement_that_says_what_it_is_for(name: str) -> None:
    text = statement(name)
    assert text.startswith("-- ")
    assert len(duckdb.connect().extract_statements(text)) == 1


def test_statements_read_files_whatever_their_names(engine: Engine, warehouse: Warehouse) -> None:
    path = counted(engine, warehouse.private)
    engine.numbered_view("pool_augmented", [path])
    assert engine.arrays("safelog/query_counts")["users"].tolist() == [0, 1, 2]
    engine.view("pool", [path, path])
    assert engine.connection.execute("SELECT count(*) FROM pool").fetchall() == [(6,)]


def test_a_long_answer_comes_in_parts_in_the_order_of_its_statement(
    engine: Engine, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", 4)
    engine.numbered_view("pool_augmented", [counted(engine, warehouse.private, 10)])
    with engine.parts("safelog/query_counts") as answer:
        parts = list(answer)
    assert [len(part["users"]) for part in parts] == [4, 4, 2]
    whole = engine.arrays("safelog/query_counts")
    assert all(np.concatenate([part[name] for part in parts]).tolist() == whole[name].tolist() for name in whole)


def test_an_answer_that_breaks_off_in_the_middle_quotes_no_value(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow tells what DuckDB said, and that may have the value in it."""
    monkeypatch.setattr(
        "qlog_assets.storage.engine.statement",
        lambda name: "SELECT if(range = 400_000, ('her secret ' || range)::BIGINT, 1) AS users FROM range(500_000)",
    )
    with (
        pytest.raises(OSError, match=r"sql/safelog/query_counts\.sql could not be read") as told,
        engine.parts("safelog/query_counts") as parts,
    ):
        list(parts)
    assert "secret" not in "".join(traceback.format_exception(told.value))


def test_parameters_are_values_and_never_text_of_the_statement(engine: Engine, warehouse: Warehouse) -> None:
    row = pa.table({"user": ["u"], "query": ["q"], "time": pa.array([0], pa.timestamp("us"))})
    pq.write_table(row, path := warehouse.private / "cleaned_log.parquet")
    engine.view("cleaned_log", [path])
    hostile = "3); DROP VIEW cleaned_log; --"
    with pytest.raises(duckdb.Error):
        engine.run("safelog/capped_queries", queries_per_user=hostile).fetchall()
    assert engine.run("safelog/capped_queries", queries_per_user=1).fetchall() == [("u", "q", datetime(1970, 1, 1))]


def test_what_is_written_has_its_rows_and_checksums_told(engine: Engine, warehouse: Warehouse) -> None:
    engine.numbered_view("pool_augmented", [counted(engine, warehouse.private, 5)])
    target = warehouse.private / "it's written.parquet"
    facts = engine.write("safelog/query_counts", target)
    assert facts.rows == 5 and facts.files == {target.name: file_checksum(target)} and facts.content_digest is None
    assert pq.read_schema(target).field("users").type == pa.int64()


def test_a_content_digest_is_what_the_ledger_has_recorded_since_the_first_version(
    engine: Engine, warehouse: Warehouse
) -> None:
    """A month whose digest changes is another request, at another charge: whoever changes this must mean it."""
    rows = [("1", "news"), ("1", "naïve|2:3"), ("22", ""), ("22", "news"), ("22", "news")]
    pq.write_table(
        pa.table(
            {
                "user": [user for user, _ in rows],
                "query": [query for _, query in rows],
                "time": pa.array(range(len(rows)), pa.timestamp("us")),
            }
        ),
        path := warehouse.private / "capped.parquet",
    )
    spelled = ["|".join(f"{len(text.encode())}:{text}" for text in row) for row in rows]
    numbers = [int.from_bytes(hashlib.md5(text.encode()).digest(), "little") for text in spelled]
    low, high = sum(number & (2**64 - 1) for number in numbers), sum(number >> 64 for number in numbers)
    facts = engine.facts(warehouse.private, [path], digest=True)
    assert facts.content_digest == f"{len(rows)}-{low}-{high}"


def test_an_error_that_leaves_an_engine_quotes_no_value(warehouse: Warehouse) -> None:
    log = pa.table({"query": ["my own " + "secret"]})
    with (
        pytest.raises(QlogError, match=r"sql/safelog/capped_queries\.sql failed \(CatalogException\)"),
        Engine.open(warehouse) as own,
    ):
        own.run("safelog/capped_queries", queries_per_user=1)
    with (
        pytest.raises(QlogError, match="ConversionException") as caught,
        Engine.open(warehouse) as engine,
        engine.table("log", log),
    ):
        engine.connection.execute("SELECT query::INTEGER FROM log").fetchall()
    assert "my own secret" not in "".join(traceback.format_exception(caught.value))


def test_the_limits_of_the_settings_are_the_databases(engine: Engine, warehouse: Warehouse) -> None:
    def setting(name: str) -> str:
        return str(engine.connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0])

    assert setting("threads") == "1" and setting("memory_limit").startswith("244")
    assert Path(setting("temp_directory")).is_relative_to(warehouse.spill)
    assert setting("autoinstall_known_extensions").lower() == "false"


def test_nothing_is_ever_fetched_from_elsewhere(engine: Engine) -> None:
    with pytest.raises(duckdb.Error):
        engine.connection.execute("SELECT * FROM read_parquet('http://localhost:9/none.parquet')")


def test_an_answer_comes_without_a_word_on_standard_error(engine: Engine, warehouse: Warehouse) -> None:
    """A warning would be a second line where a command promises one."""
    engine.numbered_view("pool_augmented", [counted(engine, warehouse.private)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.arrow("safelog/query_counts").num_rows == 3
        assert engine.frame("safelog/query_counts").shape == (3, 3)
        with engine.table("chosen", pa.table({"position": [0], "file_row": [1]})):
            assert engine.arrow("safelog/chosen_queries").num_rows == 1


def test_a_statements_change_is_a_new_code_version() -> None:
    assert statement_version("safelog/capped_queries") != statement_version("log/first_clicks")
    assert statement_version("safelog/capped_queries", "log/first_clicks") != statement_version(
        "log/first_clicks", "safelog/capped_queries"
    )
    assert len(statement_version("safelog/capped_queries")) == 10
