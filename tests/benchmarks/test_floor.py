"""The floor does the same job as the pipeline: the same queries, pairs and transitions with the same user counts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.stages import Stages

from benchmarks.floor import TABLES, run_floor, stages
from benchmarks.skewed import SHAPES, write_skewed_log
from qlog_assets.mechanisms.safelog.stages import inspect_capped_log
from qlog_assets.months import Month, months_between
from qlog_assets.pipeline.batches import ingest_batch
from qlog_assets.pipeline.landing import batch_of, land
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.policy import Policy
from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.synthetic import write_log

ROWS = 10_000
MONTHS = months_between(Month("2006-03"), Month("2006-05"))
POLICY = Policy()
ITEMS = {
    "query_counts": ("queries", "query"),
    "pair_counts": ("clicks", "query, url"),
    "transition_counts": ("transitions", "query, next_query"),
}


def capped_months(warehouse: Warehouse, engine: Engine, log: Path) -> dict[Month, Partition]:
    """The pipeline from a log to what every user contributes, month by month."""
    (landed,) = land(warehouse, [log], "aol")
    ingest_batch(warehouse, engine, batch_of(landed, "aol"), POLICY.admission)
    chain = Stages(warehouse, engine)
    capped = {}
    for month in MONTHS:
        cleaned, _ = chain.clean(month, assemble_raw_log(warehouse, month)[0])
        capped[month], _ = chain.cap(month, cleaned, POLICY.section("safelog"))
    return capped


def floor_of(log: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    seconds = run_floor(
        connection,
        log,
        queries_per_user=POLICY.section("safelog").queries_per_user,
        clicks_per_user=POLICY.section("safelog").clicks_per_user,
        transitions_per_user=POLICY.section("safelog").transitions_per_user,
        session_gap_minutes=SESSION_GAP_MINUTES,
    )
    assert set(seconds) == set(stages()) and len(seconds) == 1 + len(TABLES)
    return connection


@pytest.mark.parametrize("shape", ["synthetic", *SHAPES])
def test_the_floor_counts_what_the_pipeline_counts(shape: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    if shape == "synthetic":
        write_log(log, ROWS, 1, MONTHS[0], MONTHS[-1])
    else:
        assert write_skewed_log(log, shape, ROWS if shape != "long_queries" else 1_000) == len(lines(log))
    warehouse = Warehouse(Settings(home=tmp_path / "home", memory_limit_mb=512)).make()
    with Engine.open(warehouse) as engine:
        capped = capped_months(warehouse, engine, log)
        floor = floor_of(log)
        for month, partition in capped.items():
            assert inspect_capped_log(engine, partition).passed
            for table, (name, columns) in ITEMS.items():
                engine.view("held", partition.files(name))
                ours = engine.connection.execute(f"SELECT {columns}, count(*) FROM held GROUP BY ALL").fetchall()
                counted = floor.execute(
                    f"SELECT {columns}, users FROM {table} WHERE month = $start", {"start": month.start}
                ).fetchall()
                assert sorted(ours) == sorted(counted)


def lines(log: Path) -> list[str]:
    """The rows of a log, without its header."""
    return log.read_text(encoding="ascii").splitlines()[1:]


def test_skewed_logs_are_what_their_names_say(tmp_path: Path) -> None:
    logs = {}
    for name in SHAPES:
        write_skewed_log(tmp_path / name, name, 1_000, seed=2)
        logs[name] = [line.split("\t") for line in lines(tmp_path / name)]
    users = [row[0] for row in logs["one_user"]]
    assert users.count(users[0]) == 500
    assert 400 < sum(row[1] == "google" for row in logs["one_query"]) < 600
    assert {len(row[1]) for row in logs["long_queries"]} == {4_000}
    assert len({row[0] for row in logs["many_users"]}) == 1_000


def test_the_same_seed_gives_the_same_skewed_log(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_skewed_log(tmp_path / name, "one_query", 1_000, seed=3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
