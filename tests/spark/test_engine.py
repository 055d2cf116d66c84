"""Spark as an engine: what it keeps, numbers and maps, and that its errors quote no value of the log."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_settings import A_FILE

from qlog_assets.errors import QlogError
from qlog_assets.settings import Settings
from qlog_assets.sources.normalise import install_macros, normalise_text, normalise_url
from qlog_assets.storage.engine import MACHINE_ERRORS, Engine, EnginePolicy, open_duckdb
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.synthetic import write_log
from qlog_assets.synthetic.spark_blocks import drawn_by_spark
from qlog_assets.synthetic.writing import draw_in_turn

if TYPE_CHECKING:
    from qlog_assets.storage.spark_engine import SparkEngine

pytestmark = pytest.mark.spark

MASTER = os.environ.get("QLOG_SPARK_MASTER", "local[2]")
"""A process has one: for a server, test_connect runs this file in another."""

HERE = not MASTER.startswith("sc://")
"""Whether Java is a process of ours."""


def as_spark(engine: Engine) -> SparkEngine:
    """The engine by its type, which can be imported where Spark is: all other suites collect this file, too."""
    from qlog_assets.storage.spark_engine import SparkEngine

    assert isinstance(engine, SparkEngine)
    return engine


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    home = tmp_path_factory.mktemp("engine") / "it's a [ware]house"
    return Warehouse(Settings(home=home, memory_limit_mb=1024, threads=2)).make()


@pytest.fixture(scope="module")
def engine(warehouse: Warehouse) -> Iterator[Engine]:
    with Engine.open(warehouse, EnginePolicy(kind="spark", master=MASTER)) as engine:
        yield engine


def test_rows_of_several_files_are_found_again_by_their_numbers_on_both_engines(
    engine: Engine, warehouse: Warehouse
) -> None:
    files = [warehouse.private / f"part {number}.parquet" for number in range(2)]
    for number, path in enumerate(files):
        texts = [f"{number} {place}" for place in range(3)]
        pq.write_table(pa.table({"query": texts, "users": pa.array([1] * 3, pa.int64()), "in_pool": [True] * 3}), path)
    with open_duckdb(warehouse) as duckdb:
        found = []
        for each in (engine, duckdb):
            each.numbered_view("pool_augmented", files)
            counts = each.arrays("safelog/query_counts")
            with each.table("chosen", pa.table({"position": range(6), "file_row": counts["file_row"][::-1]})):
                found.append((counts["file_row"].tolist(), each.arrow("safelog/chosen_queries")["query"].to_pylist()))
    assert found[0] == found[1] and len(set(found[0][0])) == 6
    assert found[0][1] == sorted(found[0][1], reverse=True)


def test_rows_are_added_to_a_table_that_is_kept_and_nothing_unheld_has_a_number(engine: Engine) -> None:
    with engine.table("contributions", pa.table({"user": ["a", "b"], "query": ["x", "y"]})):
        engine.statement_table("contributions/counted_items")
    with engine.table("known_items", pa.table({"query": ["y", "nobody's"], "position": [0, 1]})):
        ids = engine.arrays("contributions/known_items")["item_id"]
    assert np.ma.getmaskarray(np.ma.asarray(ids)).tolist() == [False, True]
    with engine.table("unheld_items", pa.table({"query": ["nobody's"], "item_id": pa.array([2], pa.int64())})):
        engine.add_rows("contributions/add_unheld", "counted_items")
    assert engine.arrays("contributions/item_weights")["weight"].tolist() == [1, 1, 0]
    assert engine.row("contributions/count_counted_items") == {"items": 3}


def test_a_long_answer_comes_in_the_same_parts_from_many_tasks(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a seeded draw is made of. Nothing of it is collected: what comes over is read from files."""
    rows = pa.table({"query": [f"q{number * 7919 % 10_007}" for number in range(10_000)]})
    rows = rows.append_column("user", pa.array([f"u{number % 97}" for number in range(10_000)]))
    said = []
    with Engine.open(warehouse, EnginePolicy(kind="spark", master=MASTER)) as spark, open_duckdb(warehouse) as duckdb:
        as_spark(spark).session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
        for engine in (duckdb, spark):
            monkeypatch.setattr(f"{type(engine).__module__}.ROWS_AT_ONCE", 3_000)
            with engine.table("contributions", rows):
                engine.statement_table("contributions/counted_items")
                parts = weights(engine)
            with engine.table("contributions", rows.slice(0, 0)):
                engine.statement_table("contributions/counted_items")
                none = weights(engine)
            said.append((parts, none))
        assert not list(spark.scratch.glob("*-item_weights"))
    assert said[0] == said[1]
    assert [len(part) for part in said[0][0]] == [3_000, 3_000, 3_000, 1_000] and said[0][1] == [[]]


def weights(engine: Engine) -> list[list[int]]:
    with engine.parts("contributions/item_weights") as parts:
        return [part["weight"].tolist() for part in parts]


def test_an_answer_that_is_not_read_to_its_end_leaves_no_file(engine: Engine) -> None:
    with engine.table("contributions", pa.table({"user": ["a"], "query": ["x"]})):
        engine.statement_table("contributions/counted_items")
    with pytest.raises(MemoryError), engine.parts("contributions/item_weights"):
        raise MemoryError
    assert not list(as_spark(engine).scratch.glob("*-item_weights"))


def test_a_file_that_cannot_be_read_again_is_the_machines_fault(engine: Engine) -> None:
    """A draw that is under way is not spent by it."""
    with engine.table("contributions", pa.table({"user": ["a"], "query": ["x"]})):
        engine.statement_table("contributions/counted_items")
    with (
        pytest.raises(MACHINE_ERRORS, match="what it wrote cannot be read"),
        engine.parts("contributions/item_weights") as parts,
    ):
        for file in as_spark(engine).scratch.glob("*-item_weights/part-*"):
            file.write_bytes(file.read_bytes()[:20])
        list(parts)


def test_many_tasks_number_rows_as_one_does(warehouse: Warehouse) -> None:
    """Ranges that are not put together again, as those of large tables are not: several files, one numbering."""
    texts = [f"{number * 7919 % 200_003} and more" for number in range(100_000)]
    rows = pa.table({"user": [f"u{number % 977}" for number in range(100_000)], "query": texts})
    said = []
    with Engine.open(warehouse, EnginePolicy(kind="spark", master=MASTER)) as spark, open_duckdb(warehouse) as duckdb:
        as_spark(spark).session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
        for engine in (duckdb, spark):
            with engine.table("contributions", rows):
                engine.statement_table("contributions/counted_items")
                held = engine.arrays("contributions/numbered_contributions")
                with engine.table("drawn_items", pa.table({"item_id": range(100_000), "place": range(100_000)})):
                    named = engine.arrow("contributions/named_items").sort_by("place")["query"].to_pylist()
            said.append((sorted(zip(held["user_id"].tolist(), held["item_id"].tolist(), strict=True)), named))
        files = [len(list(folder.glob("part-*"))) for folder in spark.scratch.glob("*-numbered")]
    assert len(files) == 2 and min(files) > 2
    assert said[0] == said[1] and said[0][1] == sorted(texts)


def test_rows_that_were_gathered_are_moved_once_and_say_what_they_said(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = as_spark(engine)

    def moves() -> int:
        """How often Spark moves the rows that one of its statements reads, which groups twice."""
        engine.session.sql(
            "SELECT user, max(n) FROM (SELECT user, query, count(*) AS n FROM rows_of_a_log GROUP BY user, query) "
            "GROUP BY user"
        ).explain()
        return capsys.readouterr().out.count("Exchange hashpartitioning")

    with engine.table("rows_of_a_log", pa.table({"user": ["b", "a", "b"], "query": ["x", "y", "z"]})):
        assert moves() == 2
        engine.gather("rows_of_a_log", "user")
        assert moves() == 1
        assert engine.count("rows_of_a_log") == 3 and list(engine.columns("rows_of_a_log")) == ["user", "query"]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_a_synthetic_log_that_spark_draws_is_the_same_to_the_byte(
    warehouse: Warehouse, tmp_path: Path, world: int
) -> None:
    plain, spark = tmp_path / "plain.txt", tmp_path / "spark.txt"
    by_spark = drawn_by_spark(warehouse, EnginePolicy(kind="spark", master=MASTER))
    facts = [
        write_log(path, 100_000, 5, world_version=world, draw_blocks=who)
        for path, who in ((plain, draw_in_turn), (spark, by_spark))
    ]
    assert plain.read_bytes() == spark.read_bytes()
    assert replace(facts[0], path=spark) == facts[1]


def test_texts_beyond_ascii_are_normalised_by_the_reference(engine: Engine) -> None:
    texts = ["GRÖSSE  x", "ﬁsh", "plain", "東京\u3000天気", "ǰ", "İstanbul\x85", "ΣΊΣΥΦΟΣ", " e\u0301 "]
    urls = ["HTTP://WWW.MÜNCHEN.de/Straße//", " http://Ö.example/A ", "http://plain.example", "ﬁ.example/Ä?B#C"]
    urls += [None, "東京.example\u3000", "HTTP://É.example", "É/É//"]
    with engine.table("raw_beyond_ascii", pa.table({"query": texts, "url": urls})):
        assert mapped(engine, "queries", normalise_text) == {
            text: normalise_text(text) for text in texts if not text.isascii()
        }
        assert mapped(engine, "urls", normalise_url) == {
            url: normalise_url(url) for url in urls if url is not None and not url.isascii()
        }


def mapped(engine: Engine, what: str, function: Callable[[str], str]) -> dict[str, str]:
    """What the engine makes of each text beyond ASCII."""
    table = f"normalised_{what}"
    told = engine.mapped_table(f"log/{what}_beyond_ascii", table, function)
    assert engine.columns(table) == {"raw": "VARCHAR", "normalised": "VARCHAR"}
    rows = as_spark(engine).session.table(table).toArrow().to_pylist()
    assert len(rows) == told
    return {row["raw"]: row["normalised"] for row in rows}


def test_an_error_quotes_no_value_and_names_the_statement(
    engine: Engine, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A sum of texts: Spark's own words have the text in them."""
    rows = pa.table({"query": ["my own secret"], "url": ["u"], "count": ["my own secret"]})
    with (
        engine.table("earlier_rows", rows),
        pytest.raises(QlogError, match=r"^sql/sanitized/known_pairs\.sql failed on spark \(\w+\)") as caught,
    ):
        engine.arrow("sanitized/known_pairs")
    said = capfd.readouterr()
    told = "".join(traceback.format_exception(caught.value)) + said.out + said.err + caplog.text
    assert "my own secret" not in told


def test_no_logger_of_sparks_writes_in_this_process(engine: Engine) -> None:
    """Those that its modules have made by now; one writes also where the one above it is disabled."""
    own = re.compile(r"(pyspark|py4j|\w*QueryContextLogger)(\..*)?")
    made = [each for name, each in logging.root.manager.loggerDict.items() if own.fullmatch(name)]
    writing = [each.name for each in made if isinstance(each, logging.Logger) and not each.disabled]
    assert len(made) > 3 and writing == []


def test_runs_at_the_end_of_a_url_are_removed_as_by_duckdb(engine: Engine, warehouse: Warehouse) -> None:
    """Every text of four signs, some behind a name: slashes and white space before, within and at the end."""
    texts = ["".join(signs) for signs in itertools.product(" /\n\x1fA", repeat=4)]
    texts += [f"HTTP://{text}" for text in texts] + [" " * 50 + "/" * 50, "A" + "/ " * 500, "/" * 500 + "A"]
    none = pa.table({"raw": pa.array([], pa.string()), "normalised": pa.array([], pa.string())})
    rows = pa.table({"user": ["a"] * len(texts), "query": [f"{number}" for number in range(len(texts))], "url": texts})
    rows = rows.append_column("time", pa.array([datetime(2006, 3, 1)] * len(texts), pa.timestamp("us")))
    rows = rows.append_column("rank", pa.array([1] * len(texts), pa.int32()))
    said = []
    with open_duckdb(warehouse) as duckdb:
        for each in (engine, duckdb):
            install_macros(each)
            with (
                each.table("raw_log", rows),
                each.table("raw_beyond_ascii", rows.slice(0, 0)),
                each.table("normalised_queries", none),
                each.table("normalised_urls", none),
            ):
                cleaned = each.arrow("log/cleaned_log")
            said.append(dict(zip(cleaned["query"].to_pylist(), cleaned["url"].to_pylist(), strict=True)))
    assert said[0] == said[1] == {f"{number}": normalise_url(text) or None for number, text in enumerate(texts)}


@pytest.mark.parametrize("words", ["Connection refused", "OutOfMemoryError", "bigger than maxResultSize"])
def test_what_people_typed_does_not_make_a_failed_statement_a_machines_fault(engine: Engine, words: str) -> None:
    """A machine's fault spends no draw: a log's text may not decide that."""
    rows = pa.table({"query": [words], "url": ["u"], "count": [words]})
    with engine.table("earlier_rows", rows), pytest.raises(QlogError, match="failed on spark") as caught:
        engine.arrow("sanitized/known_pairs")
    assert not isinstance(caught.value, MACHINE_ERRORS)


@pytest.mark.skipif(not HERE, reason="a server's limit is not ours to lower")
def test_an_answer_that_does_not_fit_is_want_of_memory_and_no_failed_draw(engine: Engine) -> None:
    """What a machine lacks spends no draw, whatever was drawn before: the door tries it again at no new charge."""
    engine = as_spark(engine)
    limits = engine.session.sparkContext._jsc.sc().conf()
    limit = limits.get("spark.driver.maxResultSize")
    wanted = r"^sql/safelog/contributed_queries\.sql: spark: .*QLOG_MEMORY_MB"
    with engine.table("capped_queries", pa.table({"user": ["a"] * 1000, "query": [str(n) for n in range(1000)]})):
        limits.set("spark.driver.maxResultSize", "1k")
        try:
            with pytest.raises(QlogError, match=wanted) as caught:
                engine.arrow("safelog/contributed_queries")
        finally:
            limits.set("spark.driver.maxResultSize", limit)
    assert isinstance(caught.value, MACHINE_ERRORS)


def test_ranges_in_several_files_have_no_numbers_and_no_order(engine: Engine) -> None:
    """The sum of one item would be taken for that of another."""
    engine = as_spark(engine)
    rows = pa.table({"user": ["a"] * 100, "query": [str(number) for number in range(100)]})
    with engine.table("contributions", rows):
        engine.statement_table("contributions/counted_items")
    engine.session.conf.set(A_FILE, "10")
    try:
        with engine.table("contributions", rows), pytest.raises(QlogError, match="maxRecordsPerFile"):
            engine.statement_table("contributions/counted_items")
        with pytest.raises(QlogError, match="maxRecordsPerFile"):
            weights(engine)
    finally:
        engine.session.conf.set(A_FILE, "0")


def keep(engine: Engine, _: Path) -> None:
    engine.view_as("raw_beyond_ascii", "capped_queries")
    engine.statement_table("log/queries_beyond_ascii")


def number(engine: Engine, _: Path) -> None:
    engine.view_as("contributions", "capped_queries")
    engine.statement_table("contributions/counted_items")


def write(engine: Engine, path: Path) -> None:
    engine.write("safelog/contributed_queries", path, digest=True)


@pytest.mark.parametrize("doing", [keep, number, write])
def test_rows_that_were_written_elsewhere_are_missed(
    engine: Engine, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, doing: Callable[[Engine, Path], None]
) -> None:
    """As by a machine that does not mount the warehouse: Spark says that all was done."""
    engine = as_spark(engine)
    writer = type(engine.session.range(1).write)
    parquet = writer.parquet

    def lose_one(self: Any, path: str) -> None:
        parquet(self, path)
        next(Path(path.removeprefix("file:")).glob("part-*.parquet")).unlink()

    monkeypatch.setattr(writer, "parquet", lose_one)
    with (
        engine.table("capped_queries", pa.table({"user": ["a", "b"], "query": ["ö", "ü"]})),
        pytest.raises(QlogError, match="rows that were written are not there") as caught,
    ):
        doing(engine, warehouse.private / f"{doing.__name__}.parquet")
    assert isinstance(caught.value, MACHINE_ERRORS)


def count_kept(engine: Engine) -> int:
    keep(engine, Path())
    return engine.count("queries_beyond_ascii")


def count_numbered(engine: Engine) -> int:
    number(engine, Path())
    return engine.count("counted_items")


@pytest.mark.parametrize("counted", [count_kept, count_numbered])
def test_what_is_read_is_what_was_counted_after_a_write(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, counted: Callable[[Engine], int]
) -> None:
    """A task that was given up may write its file late: its rows are there already."""
    from qlog_assets.storage import spark_engine

    store = spark_engine.store

    def store_and_come_late(rows: Any, folder: Path) -> dict[Path, int]:
        stored = store(rows, folder)
        for part in stored:
            shutil.copy(part, part.with_name(f"{part.stem}-late.parquet"))
        return stored

    monkeypatch.setattr(spark_engine, "store", store_and_come_late)
    with engine.table("capped_queries", pa.table({"user": ["a", "b"], "query": ["ö", "ü"]})):
        assert counted(engine) == 2
    with engine.table(
        "capped_queries", pa.table({"user": pa.array([], pa.string()), "query": pa.array([], pa.string())})
    ):
        assert counted(engine) == 0


def test_what_spark_wrote_lies_in_folders_that_nobody_else_can_enter(engine: Engine, warehouse: Warehouse) -> None:
    with engine.table("capped_queries", pa.table({"user": ["a"], "query": ["x"]})):
        facts = engine.write("safelog/contributed_queries", warehouse.private / "held.parquet", digest=True)
    assert facts.rows == 1 and all(Path(name).parent == Path("held") for name in facts.files)
    assert (warehouse.private / "held").stat().st_mode & 0o077 == 0
    if HERE:
        assert all((warehouse.private / name).stat().st_mode & 0o077 == 0 for name in facts.files)
    assert {path.name for path in (warehouse.private / "held").iterdir()} == {Path(name).name for name in facts.files}
