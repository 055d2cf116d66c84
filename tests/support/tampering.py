"""Hands that change what lies in a warehouse: a file alone, or a file together with everything that vouches for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support.door import MARCH, warehouse_at

from qlog_assets.ledger import Book, Ledger
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, Provenance


def flip(path: Path) -> None:
    """Change one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit_json(path: Path, *keys: str, value: object) -> None:
    """Change one value of a JSON file, by the keys that lead to it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    place = document
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def capped_partition(home: Path) -> Partition:
    return warehouse_at(home).current("capped_log", MARCH)


def break_the_cap(home: Path, *, vouched: bool, entered: bool = False) -> None:
    """Give one user many more queries than the limit; with fitting checksums, digests and seal if `vouched`."""
    partition = capped_partition(home)
    (path,) = partition.files("queries")
    rows = pq.read_table(path)
    user = rows["user"][0].as_py()
    queries = [f"one more {number}" for number in range(50)]
    more = pa.table({"user": [user] * 50, "query": queries, "time": [rows["time"][0]] * 50}, schema=rows.schema)
    pq.write_table(pa.concat_tables([rows, more]), path)
    if vouched:
        vouch_for(home, partition, entered=entered)


def vouch_for(home: Path, partition: Partition, *, entered: bool = False) -> None:
    """Make a partition's provenance say what its files are now, as somebody would who knows how it is made.

    With `entered` the ledger says so, too: as if code that is wrong, or of another version, had written it so.
    """
    with Engine.open(warehouse_at(home)) as engine:
        tables = {
            name: engine.facts(partition.path, partition.files(name), digest=facts.content_digest is not None)
            for name, facts in partition.provenance.tables.items()
        }
    changed = replace(partition.provenance, tables=tables)
    changed.write(partition.path / "provenance.json")
    if entered:
        enter(home, changed)


def enter(home: Path, provenance: Provenance) -> None:
    """Let the ledger say that a partition was written like this."""
    policy = Policy.load(home / "policy.toml")
    Book(Ledger.open(warehouse_at(home).ledger_url), policy.dataset).enter(provenance)
