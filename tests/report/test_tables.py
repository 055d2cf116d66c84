"""Released files: the same bytes for the same rows, the rows back from both, and nothing a spreadsheet would run."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qlog_assets.mechanisms.safelog.tables import CLICKS, QUERIES, TRANSITIONS
from qlog_assets.report.tables import (
    FORMULA_STARTS,
    Column,
    TableError,
    TableLayout,
    describe_file,
    in_public_order,
    rows_out_of_order,
    write_table,
)

# Lone surrogates are not text and cannot be in Arrow's strings.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tables = st.lists(st.tuples(texts, texts, st.integers(-(2**62), 2**62)), max_size=30, unique_by=lambda row: row[:2])
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def clicks(rows: list[tuple[str, str, int]]) -> pa.Table:
    return in_public_order(
        pa.Table.from_pylist([dict(zip(CLICKS.schema.names, row, strict=True)) for row in rows], CLICKS.schema), CLICKS
    )


def read_csv(path: Path) -> list[tuple[Any, ...]]:
    """The CSV file as its note tells readers to read it."""
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
    return [(*(cell.removeprefix("'") for cell in line[:-1]), int(line[-1])) for line in lines[1:]]


@given(rows=tables)
@quick
def test_both_files_give_the_rows_back(rows: list[tuple[str, str, int]], tmp_path: Path) -> None:
    table = clicks(rows)
    write_table(table, CLICKS, tmp_path)
    wanted = [tuple(row.values()) for row in table.to_pylist()]
    assert read_csv(tmp_path / "clicks.csv") == wanted
    assert [tuple(row.values()) for row in pq.read_table(tmp_path / "clicks.parquet").to_pylist()] == wanted


@given(rows=tables)
@quick
def test_public_order_is_by_count_then_bytes(rows: list[tuple[str, str, int]]) -> None:
    table = clicks(rows)
    wanted = sorted(rows, key=lambda row: (-row[2], row[0].encode(), row[1].encode()))
    assert [tuple(row.values()) for row in table.to_pylist()] == wanted
    assert rows_out_of_order(table, CLICKS) == 0
    backwards = table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
    assert rows_out_of_order(backwards, CLICKS) == max(table.num_rows - 1, 0)


def test_how_a_table_was_put_together_does_not_show_in_the_bytes(tmp_path: Path) -> None:
    rows = [(f"query {number}", f"u{number}", 1000 - number) for number in range(500)]
    table = clicks(rows)
    pieces = pa.concat_tables([table.slice(start, 7) for start in range(0, 500, 7)])
    described = table.to_pandas()
    variants = [table, pieces, pa.Table.from_pandas(described), table.cast(CLICKS.schema.with_metadata({"run": "17"}))]
    written = []
    for number, variant in enumerate(variants):
        (tmp_path / str(number)).mkdir()
        written.append(write_table(variant, CLICKS, tmp_path / str(number)))
    assert all(files == written[0] for files in written)
    assert set(pq.read_schema(tmp_path / "2" / "clicks.parquet").metadata or {}) == set()


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_no_cell_starts_as_a_formula(start: str, tmp_path: Path) -> None:
    text = f"{start}cmd|' /C calc'!A0"
    write_table(clicks([(text, "plain", 5)]), CLICKS, tmp_path)
    content = (tmp_path / "clicks.csv").read_bytes().decode()
    assert content.endswith(f'"\'{text}","plain",5\n')
    assert read_csv(tmp_path / "clicks.csv") == [(text, "plain", 5)]


def test_texts_with_separators_stay_one_cell_for_other_readers(tmp_path: Path) -> None:
    text = 'a,b;c "d"\n=e'
    write_table(in_public_order(pa.table({"query": [text, "größe"], "users": [7, 6]}), QUERIES), QUERIES, tmp_path)
    rows = duckdb.sql(f"SELECT * FROM read_csv('{tmp_path / 'queries.csv'}', quote = '\"', escape = '\"')").fetchall()
    assert rows == [(text, 7), ("größe", 6)]


def test_types_are_exactly_text_and_whole_numbers(tmp_path: Path) -> None:
    table = pa.table({"query": pa.array(["a"], pa.large_string()), "users": pa.array([3], pa.int32())})
    write_table(table, QUERIES, tmp_path)
    assert pq.read_schema(tmp_path / "queries.parquet").types == [pa.string(), pa.int64()]


def test_an_empty_table_is_written(tmp_path: Path) -> None:
    files = write_table(TRANSITIONS.schema.empty_table(), TRANSITIONS, tmp_path)
    assert (tmp_path / "transitions.csv").read_text() == '"query","next_query","users"\n'
    assert pq.read_table(tmp_path / "transitions.parquet").num_rows == 0
    assert files["csv"] == describe_file(tmp_path / "transitions.csv")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query": ["a"], "users": [1], "user": ["u1"]}, "columns"),
        ({"users": [1], "query": ["a"]}, "columns"),
        ({"query": ["secret", None], "users": [2, 1]}, "nulls"),
        ({"query": ["b", "a"], "users": [1, 1]}, "order"),
        ({"query": ["a", "b"], "users": [1, 2]}, "order"),
        ({"query": ["secret", "secret"], "users": [1, 1]}, "order"),
    ],
)
def test_a_table_that_is_not_its_layout_is_not_written(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message) as raised:
        write_table(pa.table(columns), QUERIES, tmp_path)
    assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_counts_may_hold_a_row_twice_and_a_table_of_counts_may_not(tmp_path: Path) -> None:
    columns = (Column("person", "integer", "Made up."), Column("query", "text", "Searched for."))
    made_up = TableLayout("made_up", columns, count=None)
    rows = pa.table({"person": [1, 1, 2], "query": ["a", "a", "b"]}, schema=made_up.schema)
    write_table(in_public_order(rows, made_up), made_up, tmp_path)
    assert pq.read_table(tmp_path / "made_up.parquet").equals(rows)
    counted = TableLayout("counted", columns, count="person")
    with pytest.raises(TableError, match="not in public order"):
        write_table(in_public_order(rows.select(["person", "query"]), counted), counted, tmp_path)
    with pytest.raises(TableError, match="not in public order"):
        write_table(rows.take(pa.array([2, 0, 1])), made_up, tmp_path)
