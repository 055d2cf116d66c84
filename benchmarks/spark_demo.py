"""One month of a synthetic log, released by Spark and by DuckDB with the same command; what each took, and whether both
counted the same. Run by `make spark-demo` in the environment that has Spark.

The two releases differ: noise is drawn anew for each. What is compared are the private tables before the noise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(".cache/spark-demo")
MONTH = "2006-03"
POLICY = """\
dataset = "demo"
first = "2006-03"
last = "2006-03"

[engine]
kind = "{kind}"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="A month released by Spark and by DuckDB.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--master", help="local[N], spark://HOST:PORT or sc://HOST:PORT; this machine if not given")
    parser.add_argument("--mechanism", default="safelog")
    given = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    tables = {}
    for kind in ("duckdb", "spark"):
        home = (FOLDER / kind).resolve()
        home.mkdir(parents=True)
        text = POLICY.format(kind=kind)
        if kind == "spark" and given.master:
            text += f'master = "{given.master}"\n'
        (home / "policy.toml").write_text(text, encoding="utf-8")
        qlog(home, "synth", str(given.rows), "--first", MONTH, "--last", MONTH)
        started, used = time.monotonic(), processor_seconds()
        answer = qlog(home, "release", given.mechanism, "--month", MONTH)
        wall, used = time.monotonic() - started, processor_seconds() - used
        tables[kind] = content(home)
        released = ", ".join(f"{rows:,} {name}" for name, rows in answer["rows"].items())
        print(f"{kind}: released in {wall:.1f} s, of a processor {used:.1f} s: {released}", flush=True)
    same = tables["duckdb"] == tables["spark"]
    print(
        f"{len(tables['duckdb'])} private tables of {given.rows:,} rows: {'the same' if same else 'DIFFERENT'} on both"
    )
    print(f"{(FOLDER / 'spark').resolve()} is Spark's warehouse: QLOG_HOME=... qlog audit verifies it, by DuckDB")
    return 0 if same else 1


def qlog(home: Path, *words: str) -> dict[str, dict[str, int]]:
    """What a command of `qlog` answers. One that fails has said why."""
    done = subprocess.run(
        [sys.executable, "-m", "qlog_assets.cli", *words, "--json"],
        env=os.environ | {"QLOG_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    return dict(json.loads(done.stdout))


def processor_seconds() -> float:
    """What all processes took that were started and have ended, of one core: the same on a machine that is shared."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def content(home: Path) -> dict[str, str]:
    """What the private tables of the month say, whatever the order of rows and files."""
    found = {}
    for path in sorted((home / "private").glob(f"*/{MONTH}/*/provenance.json")):
        provenance = json.loads(path.read_text(encoding="utf-8"))
        for table, facts in provenance["tables"].items():
            found[f"{provenance['asset']} {table}"] = f"{facts['rows']} {facts['content_digest']}"
    return found


if __name__ == "__main__":
    sys.exit(main())
