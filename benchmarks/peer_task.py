"""The peer task on our side: the bare script, and the same through Dagster, checks, ledger, door and publication.

Both start from one cleaned log and keep the same ten queries per user. Usage, from the root of the checkout:
python -m benchmarks.peer_task prepare ROWS USERS | bare | warm (QLOG_HOME names the warehouse)
"""

from __future__ import annotations

import json
import os
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.measuring import own_cpu
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

MONTH = "2006-03"
OUR_LOG, PEERS_LOG = "peer-log.parquet", "log-of-the-peers.parquet"
QUERIES_PER_USER, SCALE, DELTA = 10, Fraction(100, 23), Fraction(1, 10**6)
"""ε = 10 / (100/23) = 2.3."""
POLICY = """\
dataset = "peers"
[pool]
kind = "query_list"
path = "pool.txt"
description = "A pool of one query: the peers know no public list"
[safelog]
variant = "sound"
queries_per_user = 10
selection_scale = "100/23"
delta = "1e-6"
threshold = 1
click_scale = "none"
transition_scale = "none"
"""
COLUMNS = 'user = "user"\nquery = "query"\ntime = "time"\n'


def prepare(rows: int, users: int) -> None:
    """Write the log as the peers take it and as we do, ingest ours and clean it: where both of our runs start."""
    import duckdb

    from benchmarks.peer_log import peer_log
    from qlog_assets.api.operations import ingest_files
    from qlog_assets.ledger import Book, Ledger
    from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
    from qlog_assets.pipeline.stage import Work
    from qlog_assets.storage.engine import Engine

    warehouse = _warehouse().make()
    home = warehouse.home
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    (home / "pool.txt").write_text("a public query\n", encoding="utf-8")
    (home / "columns.toml").write_text(COLUMNS, encoding="utf-8")
    log = peer_log(rows, users)
    with duckdb.connect() as connection:
        connection.register("log", log)
        # Numbers for users, because that is what is fastest for the peers; half a second between rows, one after
        # another, because a month has a time for five million of them.
        connection.execute(f"COPY (SELECT user::BIGINT AS user_id, query FROM log) TO '{home / PEERS_LOG}'")
        connection.execute(
            f"""COPY (SELECT "user", query,
                             TIMESTAMP '{MONTH}-01' + to_milliseconds(500 * (row_number() OVER ())) AS "time"
                      FROM log) TO '{home / OUR_LOG}'"""
        )
    policy = Policy.load(warehouse.settings.policy_file)
    ingest_files(warehouse, policy, [home / OUR_LOG], "table", home / "columns.toml", lambda step: None)
    with Engine.open(warehouse) as engine:
        book = Book(Ledger.open(warehouse.ledger_url), policy.dataset)
        CLEANED_LOG.make_current_month(Work(warehouse, engine, Month(MONTH), book=book))


def bare() -> dict[str, Any]:
    """Count, add exact noise, keep what passes, write a Parquet file: nothing else."""
    import duckdb
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from qlog_assets.privacy.histogram import stability_histogram
    from qlog_assets.privacy.randomness import SecureRandom
    from qlog_assets.storage.engine import database_limits

    warehouse = _warehouse()
    cleaned = [str(path) for path in warehouse.current("cleaned_log", MONTH).files("log")]
    statement = (Path(__file__).resolve().parent / "bare.sql").read_text(encoding="utf-8")
    started, cpu = time.perf_counter(), own_cpu()
    connection = duckdb.connect(":memory:", config=database_limits(warehouse.settings, warehouse.spill))
    counts = connection.sql(
        statement, params={"cleaned_log": cleaned, "queries_per_user": QUERIES_PER_USER}
    ).to_arrow_table()
    users = counts["users"].to_numpy().astype(np.int64)
    released = stability_histogram(SecureRandom(), users, QUERIES_PER_USER, SCALE, DELTA)
    rows = pa.table({"query": counts["query"].take(pa.array(released.indices)), "users": released.users})
    pq.write_table(rows, warehouse.home / "bare.parquet")
    return {
        "wall": time.perf_counter() - started,
        "cpu": own_cpu() - cpu,
        "counted": counts.num_rows,
        "rows": {"queries": rows.num_rows},
    }


def warm() -> dict[str, Any]:
    """The release job from the cleaned log on, in a process that made a small release before."""
    from benchmarks.ours import FIRST, warm_up

    warm_up(last=FIRST)
    warehouse = _warehouse()
    started, cpu = time.perf_counter(), own_cpu()
    release_from_cleaned(warehouse)
    took = {"wall": time.perf_counter() - started, "cpu": own_cpu() - cpu}
    return {**took, "rows": rows_of(warehouse)}


def rows_of(warehouse: Warehouse) -> dict[str, int]:
    """What was released."""
    from qlog_assets.api.operations import describe_release

    policy = Policy.load(warehouse.settings.policy_file)
    rows: dict[str, int] = describe_release(warehouse, policy, "safelog", Month(MONTH), set())["rows"]
    return rows


def release_from_cleaned(warehouse: Warehouse) -> None:
    """Materialize what comes after the cleaned log, as "materialize" on those assets in the UI would.

    Clicks and transitions are switched off in the task, so nobody asks for their tables.
    """
    import dagster as dg

    from qlog_assets.api.runs import dagster_instance
    from qlog_assets.definitions import defs
    from qlog_assets.mechanisms.register import mechanism

    safelog = mechanism("safelog")
    chosen = [*safelog.inputs, safelog.draw_asset, safelog.released_assets["queries"]]
    policy = Policy.load(warehouse.settings.policy_file)
    config = {"resources": {"policy": {"config": {"settings": all_settings(policy)}}}, "loggers": {"events": {}}}
    with dagster_instance(warehouse) as instance:
        job = defs.resolve_job_def("safelog_release")
        job.execute_in_process(
            instance=instance,
            partition_key=MONTH,
            run_config=config,
            asset_selection=[dg.AssetKey(name) for name in chosen],
        )


def all_settings(policy: Policy) -> dict[str, str]:
    """The task's parameters as the launchpad is given them: the resource's own defaults are those of the warm-up.

    Only those that the policy says: the others are of another variant, and saying them would be refused.
    """
    section = policy.section("safelog")
    chosen = {key: value for key, value in section.as_public().items() if key in section.said}
    return {f"safelog.{key}": "none" if value is None else str(value) for key, value in chosen.items()}


def _warehouse() -> Warehouse:
    return Warehouse(Settings.from_environment())


def main() -> None:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    command, *arguments = sys.argv[1:]
    if command == "prepare":
        prepare(int(arguments[0]), int(arguments[1]))
    else:
        print(json.dumps({"bare": bare, "warm": warm}[command]()))


if __name__ == "__main__":
    main()
