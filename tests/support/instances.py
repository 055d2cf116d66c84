"""Warehouses to test on: a small log whose releases are not empty, and warehouses prepared once per session."""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from support.cli import qlog

MONTHS = ("2006-03", "2006-04")
POPULAR = ("weather", "train times", "news", "cake recipe")
USERS = 40

# Little noise, so that a log of forty users has something to release; no privacy team would sign this.
POLICY = """\
dataset = "small"
first = "2006-03"
last = "2006-05"

[budget]
epsilon = 100
delta = "0.1"

[pool]
kind = "query_list"
path = "pool.txt"
description = "Queries of the test's own"

[safelog]
variant = "sound"
queries_per_user = 4
clicks_per_user = 3
selection_scale = "0.5"
click_scale = "0.5"
transition_scale = "0.5"
threshold = 10
delta = "1e-3"
"""
POLICY_EPSILON = 4 / 0.5 + 3 / 0.5 + 3 / 0.5
POOL = "weather\ntrain times\nnews\nphone book\nchess\n"
AOL_HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
PRIVATE_QUERY = "the private thoughts of user {}"

Prepared = Callable[[str], Path]


def small_log() -> str:
    """Forty people who search for the same things, one after the other, click, and have something of their own."""
    rows = []
    for month in MONTHS:
        for user in range(1, USERS + 1):
            at = datetime.fromisoformat(f"{month}-05 08:00:00") + timedelta(hours=user)
            for number, query in enumerate((*POPULAR[:3], PRIVATE_QUERY.format(user), POPULAR[3])):
                time = at + timedelta(minutes=number)
                rows.append(f"{user}\t{query}\t{time}\t1\thttp://www.{query.replace(' ', '-')}.example")
            rows.append(f"{user}\t-\t{at}\t\t")
    return AOL_HEADER + "".join(row + "\n" for row in rows)


def make_home(home: Path, policy: str = POLICY) -> Path:
    """A warehouse with the small log's policy and pool."""
    home.mkdir(exist_ok=True)
    (home / "policy.toml").write_text(policy, encoding="utf-8")
    (home / "pool.txt").write_text(POOL, encoding="utf-8")
    return home


def edit_policy(home: Path, *, top: str = "", **sections: str) -> None:
    """Edit the policy file as its owner would: lines at the top, and lines into sections that may be there already.

    What a section says in these lines replaces what it said of the same keys.
    """
    path = home / "policy.toml"
    blocks: dict[str, list[str]] = {"": []}
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    current = ""
    for line in text.splitlines():
        if line.startswith("["):
            current = line.strip("[] ")
            blocks[current] = []
        else:
            blocks[current].append(line)
    for section, lines in {"": top, **sections}.items():
        added = lines.splitlines()
        keys = {line.partition("=")[0].strip() for line in added}
        kept = [line for line in blocks.get(section, []) if line.partition("=")[0].strip() not in keys]
        blocks[section] = kept + added
    parts = ["\n".join([f"[{section}]"] * bool(section) + lines) for section, lines in blocks.items()]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def make_ingested(home: Path) -> None:
    log = make_home(home).parent / f"{home.name}-small.txt"
    log.write_text(small_log(), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol", "--json").json["accepted"] == 2 * USERS * 5


def make_released(home: Path) -> None:
    make_ingested(home)
    assert qlog(home, "release", "safelog", "--month", MONTHS[0], "--json").json["charged"] is True


MAKERS: dict[str, Callable[[Path], None]] = {"ingested": make_ingested, "released": make_released}


def prepared_warehouses(factory: pytest.TempPathFactory) -> Prepared:
    """Makes a warehouse by name on first use; the workers of one session share it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / "prepared"
    folder.mkdir(exist_ok=True)

    def prepared(name: str) -> Path:
        home = folder / name
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / f"{name}.made").exists():
                MAKERS[name](home)
                (folder / f"{name}.made").touch()
        return home

    return prepared


def copy_warehouse(source: Path, target: Path) -> Path:
    """A prepared warehouse to work on. Another worker may be reading its history: what SQLite has beside a database
    only then is not copied."""
    beside = shutil.ignore_patterns("*.db-wal", "*.db-shm", "*.db-journal")
    return Path(shutil.copytree(source, target, symlinks=True, ignore=beside))


def load_definitions(home: Path, patch: pytest.MonkeyPatch) -> dg.Definitions:
    """What Dagster would load for this warehouse, in this process."""
    patch.setenv("QLOG_HOME", str(home))
    patch.delenv("QLOG_POLICY", raising=False)
    module = importlib.import_module("qlog_assets.definitions")
    definitions: dg.Definitions = importlib.reload(module).defs
    return definitions


def contents(home: Path) -> dict[str, bytes]:
    """Every file of the zones that people put things into or take them from."""
    files = (file for zone in ("landing", "released", "public") for file in (home / zone).rglob("*") if file.is_file())
    return {str(file.relative_to(home)): file.read_bytes() for file in files}
