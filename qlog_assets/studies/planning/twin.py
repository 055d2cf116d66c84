"""The synthetic twin of a log: as many rows, everybody in it made up. Written to a scratch folder, read, and gone."""

from __future__ import annotations

from pathlib import Path

import duckdb

from qlog_assets.months import Month
from qlog_assets.sources.pool_files import read_default
from qlog_assets.storage.engine import DuckDBEngine
from qlog_assets.storage.scratch import system_scratch
from qlog_assets.studies.planning.population import Population, read_twin
from qlog_assets.synthetic import write_log

MONTH = Month("2006-03")


def population_of_twin(rows: int, seed: int) -> Population:
    """The users of a twin of so many rows, which its owner may say in public. Nothing here opens a warehouse."""
    with system_scratch() as folder:
        return read_twin(open_twin(folder / "twin.txt", rows, seed), set(read_default()))


def open_twin(path: Path, rows: int, seed: int) -> DuckDBEngine:
    """An engine over one month of the synthetic log, as the statements read a cleaned log."""
    write_log(path, rows, seed, MONTH, MONTH)
    # What it spills lies beside the twin: DuckDB's own choice is the working directory.
    engine = DuckDBEngine(duckdb.connect(config={"temp_directory": str(path.parent / "spill")}))
    escaped = str(path).replace("'", "''")
    engine.connection.execute(
        'CREATE TEMP TABLE cleaned_log AS SELECT AnonID AS "user", lower(trim(Query)) AS query, QueryTime AS "time", '
        f"ItemRank AS rank, nullif(ClickURL, '') AS url FROM read_csv('{escaped}', delim = '\\t', quote = '', types = "
        "{'AnonID': 'VARCHAR', 'QueryTime': 'TIMESTAMP', 'Query': 'VARCHAR', 'ItemRank': 'INTEGER', "
        "'ClickURL': 'VARCHAR'}) WHERE lower(trim(Query)) NOT IN ('', '-')"
    )
    return engine
