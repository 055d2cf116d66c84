"""The copy: runs `copy.sql` on a landing file in one bare DuckDB with our memory limit, and removes what it wrote.

Usage, from the root of the checkout: python -m benchmarks.copying LANDING_FILE SPILL_DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from qlog_assets.settings import Settings
from qlog_assets.storage.engine import PARQUET, database_limits

STATEMENT = Path(__file__).resolve().parent / "copy.sql"


def copy_log(connection: duckdb.DuckDBPyConnection, landing_file: Path, target: Path) -> int:
    """Copy a landing file; returns the rows written."""
    connection.execute("SET VARIABLE landing_file = $file", {"file": str(landing_file)})
    escaped = str(target).replace("'", "''")
    text = STATEMENT.read_text(encoding="utf-8")
    return int(connection.execute(f"COPY ({text}) TO '{escaped}' ({PARQUET})").fetchall()[0][0])


def main() -> None:
    spill = Path(sys.argv[2])
    connection = duckdb.connect(":memory:", config=database_limits(Settings.from_environment(), spill))
    connection.execute("SET enable_progress_bar = false")
    target = spill / "copy.parquet"
    rows = copy_log(connection, Path(sys.argv[1]), target)
    print(json.dumps({"rows": rows, "bytes": target.stat().st_size}))
    target.unlink()


if __name__ == "__main__":
    main()
