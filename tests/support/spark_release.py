"""Whole releases up to the noise, and seeded draws behind it, on one engine: run as a process of its own where a
cluster is the engine, because a process has one Spark application."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batch_of, ingest_batch
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.digests import digest_of
from qlog_assets.storage.engine import Engine, open_duckdb
from qlog_assets.storage.partition import Provenance
from qlog_assets.storage.spark_session import open_spark
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import draw_simulated
from qlog_assets.synthetic import write_log
from qlog_assets.verify.recompute import digest_all

MARCH = Month("2006-03")
DRAWN = {
    "safelog": ("sound", "modern"),
    "zealous": ("sound", "modern"),
    "sanitized": ("sound",),
    "sessions": ("sound", "modern"),
}
"""Mechanisms and variants that are drawn. Both of Safelog: one needs counts, the other who holds what."""
POLICY = Policy(first=MARCH, last=MARCH)


def warehouse_at(home: Path) -> Warehouse:
    return Warehouse(Settings(home=home, memory_limit_mb=1024, threads=2)).make()


def ingest(home: Path, rows: int) -> None:
    """A synthetic month, read by DuckDB."""
    warehouse = warehouse_at(home)
    path = warehouse.landing / "aol" / "log.txt"
    path.parent.mkdir()
    write_log(path, rows, 7, MARCH, MARCH)
    with open_duckdb(warehouse) as engine:
        ingest_batch(warehouse, engine, batch_of(path, "aol"), POLICY.admission)
    assemble_raw_log(warehouse, MARCH)


def release(home: Path, engine: Engine, names: Sequence[str]) -> dict[str, Any]:
    """The digest of every table before the noise, and of every table drawn with a seed."""
    warehouse = warehouse_at(home)
    drawn: dict[str, str] = {}
    for name in names:
        for variant in DRAWN[name]:
            if variant in mechanism(name).variants:
                found = draw_simulated(name, warehouse, engine, POLICY, MARCH, variant, 3)
                drawn |= {f"{name} {variant} {table}": said(rows) for table, rows in found.tables.items()}
    return {"made": made(warehouse), "drawn": drawn}


def said(rows: pa.Table) -> str:
    return f"{rows.num_rows} {digest_of([list(rows.column_names), rows.to_pylist()])}"


def made(warehouse: Warehouse) -> dict[str, str]:
    """What every private table of the month says, by DuckDB: names and types of columns, and all rows."""
    found = {}
    with open_duckdb(warehouse) as engine:
        for path in sorted(warehouse.private.glob(f"*/{MARCH}/*/provenance.json")):
            provenance = Provenance.read(path)
            for table, facts in provenance.tables.items():
                whole = digest_all(engine, [path.parent / name for name in facts.files])
                found[f"{provenance.asset} {provenance.shape} {table}"] = f"{facts.rows} {facts.content_digest} {whole}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("master")
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    with open_spark(warehouse_at(given.home), given.master) as engine:
        found = release(given.home, engine, given.names)
        print(json.dumps(found | {"host": engine.session.conf.get("spark.driver.host")}))


if __name__ == "__main__":
    main()
