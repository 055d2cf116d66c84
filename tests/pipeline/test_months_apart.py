"""No month's tables depend on another month's rows: what a budget per window of months rests on.

One user's rows of March are taken out of a log, those that can be read and those that cannot, and every stage of April
must stay the same, byte for byte in a fixed order of rows. What a run knows of April besides (shapes, checksums of
landing files) is private and never decides what is drawn.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.instances import AOL_HEADER, POLICY, make_home

from qlog_assets.mechanisms.register import releasable

MARCH, APRIL = "2006-03", "2006-04"
USERS = 25
ODD = 7
"""The user whose March is taken out."""
MADE_FROM_THE_LOG = [each for each in releasable() if each.reads_log]


def row(user: int | str, query: str, time: datetime | str, rank: str = "", url: str = "") -> str:
    return f"{user}\t{query}\t{time}\t{rank}\t{url}\n"


def people() -> list[tuple[str, int, str]]:
    """(month, user, row) of people who search on both sides of midnight between the months, in one session."""
    rows = []
    for user in range(1, USERS + 1):
        at = datetime(2006, 3, 31, 23, 50) + timedelta(seconds=user)
        for number, query in enumerate(("weather", "news", "train times", "cake recipe")):
            time = at + timedelta(minutes=5 * number)
            rows.append((f"{time:%Y-%m}", user, row(user, query, time, "1", f"http://{number}.example")))
            rows.append((f"{time:%Y-%m}", user, row(user, query, time, "1", f"http://{number}.example")))
    return rows


def odd_rows() -> list[str]:
    """What else the odd user left behind in March: a query of their own, the same again, and many unreadable rows."""
    at = datetime(2006, 3, 31, 23, 59, 59)
    return [
        *(row(ODD, "only i typed this", at) for _ in range(3)),
        *(row(ODD, "weather", "not a time") for _ in range(400)),
        *(f"{ODD}\ttoo few fields\n" for _ in range(400)),
        row(ODD, 'a quote " that never ends', at),
    ]


def make_month_tables(home: Path, rows: list[str]) -> dict[str, bytes]:
    """Every table of April's stages, by asset and file, after both mechanisms released it."""
    make_home(home, POLICY + '\n[zealous]\nepsilon = 20\ndelta = "0.01"\n')
    log = home.parent / f"{home.name}.txt"
    log.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol", "--json").json["accepted"] > 0
    for mechanism in MADE_FROM_THE_LOG:
        assert qlog(home, "release", mechanism.name, "--month", APRIL, "--json").json["charged"] is True
    found = {}
    for path in sorted((home / "private").glob(f"*/{APRIL}/*/*.parquet")):
        asset, _, _, name = path.parts[-4:]
        found[f"{asset}/{name}"] = canonical_bytes(pq.read_table(path))
    return found


def canonical_bytes(table: pa.Table) -> bytes:
    """A table as bytes, whatever order DuckDB's threads wrote its rows in.

    Whether a column of raw_log is marked as free of nulls follows from a file's bad rows; nothing reads the mark.
    """
    columns = [f"{field.name} {field.type}" for field in table.schema]
    return "\n".join([*columns, *sorted(map(repr, table.to_pylist()))]).encode()


@pytest.mark.slow
def test_taking_one_users_march_away_changes_no_table_of_april(tmp_path: Path) -> None:
    everybody = people()
    with_march = [text for _, _, text in everybody] + odd_rows()
    without = [text for month, user, text in everybody if (month, user) != (MARCH, ODD)]
    assert len(without) < len(with_march)
    there, gone = make_month_tables(tmp_path / "with", with_march), make_month_tables(tmp_path / "without", without)
    stages = {name for mechanism in MADE_FROM_THE_LOG for name in mechanism.inputs}
    assert {key.partition("/")[0] for key in there} >= {"raw_log", "cleaned_log", *stages}
    assert there == gone
