"""What an object store costs beside a disk: moto's server on this machine, a log of a million rows as one Parquet file.

Run by `make bench-storage`. Each way is taken in turns, and the middle of five is printed. A server in Python on the
same two cores is slower than any real one; the figures say what the code adds, not what a network does.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.dataset as ds

from qlog_assets.months import Month
from qlog_assets.settings import CHECKOUT
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.stores import open_store
from qlog_assets.synthetic import write_log

ROWS = 1_000_000
TURNS = 5
MARCH = Month("2006-03")
COUNTS = "SELECT count(*) FROM (SELECT Query, count(DISTINCT AnonID) FROM {table} GROUP BY Query)"
"""As much as a counting statement reads: two columns."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        moto = CHECKOUT / ".cache" / "moto" / "bin" / "moto_server"
        log = (Path(folder) / "moto.txt").open("wb")
        server = subprocess.Popen([moto, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
        try:
            os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}
            os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
            make_bucket(port)
            measure(Path(folder))
        finally:
            server.terminate()
            server.wait()


def make_bucket(port: int) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/logs", method="PUT")
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(request, timeout=10).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def measure(folder: Path) -> None:
    text, file = folder / "log.txt", folder / "log.parquet"
    write_log(text, ROWS, 7, MARCH, MARCH)
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    rows = f"FROM read_csv('{text}', delim = '\t', all_varchar = true)"
    connection.execute(f"COPY ({rows}) TO '{file}' (COMPRESSION zstd)")
    store = open_store("s3://logs/bench")
    megabytes = file.stat().st_size / 1e6
    fetched = folder / "fetched.parquet"

    def fetch() -> None:
        store.get("log.parquet", fetched)
        assert file_checksum(fetched) == checksum

    def count(table: str) -> None:
        connection.execute(COUNTS.format(table=table)).fetchall()

    def fetch_and_count() -> None:
        fetch()
        count(f"read_parquet('{fetched}')")

    def hash_and_count() -> None:
        assert file_checksum(file) == checksum
        count(f"read_parquet('{file}')")

    def count_there() -> None:
        connection.register("remote", ds.dataset(f"{store.root}/log.parquet", filesystem=store.files))
        count("remote")

    checksum = file_checksum(file)
    ways: dict[str, Callable[[], object]] = {
        "write to the disk": lambda: shutil.copyfile(file, folder / "copy.parquet"),
        "write to the store": lambda: store.put(file, "log.parquet"),
        "fetch from the store and hash": fetch,
        "on the disk: hash and count": hash_and_count,
        "in the store: fetch, hash and count": fetch_and_count,
        "in the store: count there through Arrow, nothing hashed": count_there,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, way in ways.items():
            start = time.monotonic()
            way()
            taken[name].append(time.monotonic() - start)
    print(f"{ROWS:,} rows, {megabytes:.1f} MB; seconds, the middle of {TURNS} (all)")
    for name, seconds in taken.items():
        print(f"{name:56} {statistics.median(seconds):6.2f}  ({', '.join(f'{each:.2f}' for each in sorted(seconds))})")


if __name__ == "__main__":
    main()
