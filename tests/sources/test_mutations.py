"""A thousand damaged files: each ends in rows that add up or in one line of refusal, and in nothing else.

The seed is fixed, so a file that fails here fails again. What is damaged are files as people have them: AOL's, a quoted
CSV, a table with a column map, gzip, zstd, JSON lines, an access log, SogouQ, Parquet of texts and of numbers.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.instances import make_home

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.sources.readers import MAPS, LogSource, MonthRange, read_batch

pytestmark = pytest.mark.faults

SPRING = MonthRange(Month("2006-03"), Month("2006-05"))
FILES = 1000
THROUGH_THE_COMMAND_LINE = 20
SECRET = "jane doe 4111"
FOUND = 'user = "user"\nquery = "query"\ntime = "time"\n'
PATHS = 'user = "_source.user"\nquery = "_source.q[0]"\ntime = "at"\nrank = "_source.rank"\n'
REQUESTS = 'user = "auth_user"\nquery_parameter = "q"\npath = "/search"\n'
SOGOU = (
    "user = 2\nquery = 3\ntime = 1\nrank = 4\nheader = false\nfield_count = 4\ndate = 2006-03-05\n"
    'time_format = "%H:%M:%S"\nrank_and_order = true\nquery_in_brackets = true\nencoding = "gb18030"\n'
)
CSV = 'user = "user"\nquery = "query"\ntime = "time"\nrank = "rank"\nurl = "url"\ndelimiter = ","\n'
POSITIONS = 'user = 2\nquery = 1\ntime = 3\nheader = false\nfield_count = 3\ntime_format = "epoch_seconds"\n'
NAMED = 'user = "user"\nquery = "query"\ntime = "time"\n'
HOSTILE = (
    b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b'"', b'""', b"\r", b"\n", b"\r\n", b"\t", b",",
    b"nan", b"7.0", b"-0", b"1e309", b"9" * 400, "\u2028\u00a0\u0301".encode(), b"PAR1", b"\x1f\x8b\x08", b"BZh9",
    b"\x28\xb5\x2f\xfd", b"{", b"}", b"[", b"\\u0000", b"%00", b"%ff", b"\\", b";", b"|",
)  # fmt: skip


def aol() -> bytes:
    rows = [f"{n}\t{SECRET} {n}\t2006-03-0{1 + n % 9} 10:00:{n:02d}\t{n % 7}\thttp://a.example/{n}" for n in range(40)]
    return ("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n" + "\n".join(rows) + "\n").encode()


def quoted() -> bytes:
    rows = [f'"{n}.0","{SECRET}, ""{n}""","2006-04-0{1 + n % 9}T10:00:00+02:00",{n % 3},' for n in range(40)]
    return ("user,query,time,rank,url\n" + "\r\n".join(rows)).encode()


def positions() -> bytes:
    return "".join(f"{SECRET} caf\u00e9\t{n}\t{1141209000 + n}.5\n" for n in range(40)).encode()


def nested() -> bytes:
    rows = [
        {"_source": {"user": n, "q": [f"{SECRET} {n}"], "rank": n}, "at": f"2006-03-{1 + n % 28:02d}T10:00:00Z"}
        for n in range(40)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def requests() -> bytes:
    return "".join(
        f'192.0.2.{n} - u{n} [0{1 + n % 9}/Mar/2006:10:00:{n:02d} +0100] "GET /search?q=jane+doe+4111+{n} HTTP/1.1" '
        f'{(200, 304, 404)[n % 3]} {n} "-" "Mozilla/5.0"\n'
        for n in range(40)
    ).encode()


def sogou() -> bytes:
    return "".join(f"10:00:{n:02d}\t{n}\t[{SECRET} \u5929\u6c14]\t{n} {n}\n" for n in range(40)).encode("gb18030")


def parquet(users: pa.Array, times: pa.Array) -> bytes:
    stream = BytesIO()
    table = pa.table({"user": users, "query": [f"{SECRET} {n}" for n in range(40)], "time": times})
    pq.write_table(table, stream, row_group_size=15, write_page_checksum=False)
    return stream.getvalue()


TIMES = pa.array([datetime(2006, 3, 1 + n % 28) for n in range(40)])
KINDS: dict[str, tuple[str, str | None, bytes]] = {
    "aol": ("aol", None, aol()),
    "aol in gzip": ("aol", None, gzip.compress(aol(), mtime=0)),
    "quoted": ("table", CSV, quoted()),
    "quoted in gzip": ("table", CSV, gzip.compress(quoted(), mtime=0)),
    "positions": ("table", POSITIONS, positions()),
    "latin-1": ("table", POSITIONS + 'encoding = "latin-1"\n', positions()),
    "gb18030": ("table", POSITIONS + 'encoding = "gb18030"\n', positions()),
    "delimiter found": ("table", FOUND, quoted()),
    "aol in zstd": ("aol", None, pa.compress(aol(), "zstd", asbytes=True)),
    "json": ("json", PATHS, nested()),
    "json in gzip": ("json", PATHS, gzip.compress(nested(), mtime=0)),
    "access": ("access", REQUESTS, requests()),
    "sogou": ("table", SOGOU, sogou()),
    "excite": ("excite", None, "".join(f"{n:04X}\t9709160019{n:02d}\t{SECRET}\n" for n in range(40)).encode()),
    "parquet of texts": ("table", NAMED, parquet(pa.array([f"u{n}" for n in range(40)]), TIMES)),
    "parquet of floats": (
        "table",
        NAMED + 'time_format = "epoch_seconds"\n',
        parquet(pa.array([float(n) for n in range(40)]), pa.array([1141209000 + n for n in range(40)])),
    ),
}


def flip(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 3, 20))):
        content[chance.randrange(len(content))] = chance.randrange(256)


def insert(content: bytearray, chance: random.Random) -> None:
    place = chance.choice((0, chance.randrange(len(content) + 1), len(content)))
    content[place:place] = chance.choice(HOSTILE) * chance.choice((1, 1, 5))


def cut_short(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def cut_out(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    del content[start : start + chance.randrange(1, 60)]


def repeat(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    piece = content[start : start + chance.randrange(1, 200)]
    place = chance.randrange(len(content))
    content[place:place] = piece * chance.choice((1, 2, 50))


def overwrite(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    content[start : start + chance.randrange(1, 30)] = bytes([chance.choice((0, 0xFF, 0x0A, 0x22))]) * 20


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip, insert, cut_short, cut_out, repeat, overwrite,
)  # fmt: skip


def mutated(number: int) -> tuple[str, str | None, bytes]:
    """The file of a number: always the same one."""
    chance = random.Random(number)
    format, columns, whole = KINDS[list(KINDS)[number % len(KINDS)]]
    content = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if content:
            chance.choice(MUTATIONS)(content, chance)
    return format, columns, bytes(content)


@pytest.mark.parametrize("first", range(0, FILES, 250))
def test_a_damaged_file_is_read_in_rows_that_add_up_or_refused_in_one_line(tmp_path: Path, first: int) -> None:
    outcomes = {"read": 0, "refused": 0}
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as connection:
        for number in range(first, first + 250):
            format, columns, content = mutated(number)
            (tmp_path / "columns.toml").write_text(columns or "", encoding="utf-8")
            path, out = tmp_path / "log.txt", tmp_path / f"out{number}"
            path.write_bytes(content)
            chosen = MAPS[format].load(tmp_path / "columns.toml") if columns else None
            try:
                facts = read_batch(connection, LogSource(path, format, chosen), SPRING, out)
            except QlogError as refusal:
                said = str(refusal)
                assert "\n" not in said and len(said) < 300 and said.isprintable(), number
                assert "jane" not in said and "4111" not in said, number
                outcomes["refused"] += 1
                continue
            outcomes["read"] += 1
            assert facts.accepted + sum(facts.rejected.values()) == facts.read > 0, number
            written = connection.execute(
                f"SELECT count(*), count(DISTINCT line) FROM read_parquet('{out}/rejected/*.parquet')"
            ).fetchone()
            assert written == (sum(facts.rejected.values()),) * 2, number
            accepted = 0
            for folder in (out / "accepted").glob("*"):
                rows = connection.execute(f"SELECT count(*) FROM read_parquet('{folder}/*.parquet')").fetchone()
                accepted += rows[0] if rows else 0
            assert accepted == facts.accepted, number
            # What a reading needed is gone: the next one starts from nothing.
            assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,), number
    assert outcomes["read"] > 50 and outcomes["refused"] > 10


@pytest.mark.parametrize("number", range(0, FILES, FILES // THROUGH_THE_COMMAND_LINE))
def test_the_command_line_ends_a_damaged_file_in_an_answer_or_in_one_line(tmp_path: Path, number: int) -> None:
    # Each step of 50 would meet the same kind of file: go on by one kind each time.
    format, columns, content = mutated(number + number // (FILES // THROUGH_THE_COMMAND_LINE) % len(KINDS))
    home, log = make_home(tmp_path / "home"), tmp_path / "damaged.log"
    log.write_bytes(content)
    (tmp_path / "columns.toml").write_text(columns or "", encoding="utf-8")
    mapped = ("--columns", tmp_path / "columns.toml") if columns else ()
    answer = qlog(home, "ingest", log, "--format", format, *mapped, "--json")
    if answer.code == 0:
        facts = answer.json
        assert facts["accepted"] + sum(facts["rejected"].values()) == facts["read"] > 0
        return
    assert "jane" not in answer.refusal and "4111" not in answer.refusal
    assert list((home / "private").glob("landing_batch/*/current")) == []
    assert list((home / "private").glob("landing_batch/*/*/*.parquet")) == []
