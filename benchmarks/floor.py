"""The floor: runs `floor.sql` on a landing file in one bare DuckDB with our memory limit, and times its stages.

Usage, from the root of the checkout: python -m benchmarks.floor LANDING_FILE SPILL_DIRECTORY
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import duckdb

from benchmarks.measuring import timed

ROOT = Path(__file__).resolve().parent
SQL = ROOT.parent / "sql"
STAGE = re.compile(r"^-- stage: (.+)$", re.MULTILINE)
TABLES = ("query_counts", "pair_counts", "transition_counts")


def stages() -> dict[str, str]:
    """The statements of floor.sql by the names of their stages."""
    _, *parts = STAGE.split((ROOT / "floor.sql").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run_floor(
    connection: duckdb.DuckDBPyConnection,
    landing_file: Path,
    *,
    queries_per_user: int,
    clicks_per_user: int,
    transitions_per_user: int,
    session_gap_minutes: int,
) -> dict[str, float]:
    """Run every stage; the tables stay in the connection."""
    for name in ("normalise_ascii", "normalise_url_ascii"):
        connection.execute((SQL / "log" / f"{name}.sql").read_text(encoding="utf-8"))
    variables = {
        "landing_file": str(landing_file),
        "queries_per_user": queries_per_user,
        "clicks_per_user": clicks_per_user,
        "transitions_per_user": transitions_per_user,
        "session_gap_minutes": session_gap_minutes,
    }
    for name, value in variables.items():
        connection.execute(f"SET VARIABLE {name} = $value", {"value": value})
    seconds: dict[str, float] = {}
    for name, statement in stages().items():
        with timed(seconds, name):
            connection.execute(statement)
    return seconds


def main() -> None:
    from qlog_assets.policy import Policy
    from qlog_assets.privacy.limits import SESSION_GAP_MINUTES
    from qlog_assets.settings import Settings
    from qlog_assets.storage.engine import database_limits

    settings, chosen = Settings.from_environment(), Policy().section("safelog")
    connection = duckdb.connect(":memory:", config=database_limits(settings, Path(sys.argv[2])))
    connection.execute("SET enable_progress_bar = false")
    seconds = run_floor(
        connection,
        Path(sys.argv[1]),
        queries_per_user=chosen.queries_per_user,
        clicks_per_user=chosen.clicks_per_user,
        transitions_per_user=chosen.transitions_per_user,
        session_gap_minutes=SESSION_GAP_MINUTES,
    )
    counted = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in TABLES}
    print(json.dumps({"stages": seconds, "rows": counted}))


if __name__ == "__main__":
    main()
