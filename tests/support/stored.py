"""Small partitions whose tables lie in a store that is a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.door import MARCH

from qlog_assets.settings import Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, describe
from qlog_assets.storage.stores import MARKERS
from qlog_assets.storage.warehouse import Warehouse


def storing(home: Path, store: Path) -> Warehouse:
    return Warehouse(Settings(home=home, partitions=f"file://{store}", memory_limit_mb=512, threads=2)).make()


def provenance(month: str = MARCH, **changes: Any) -> Provenance:
    facts: dict[str, Any] = {"code_version": "1", "parameters": {"limit": 4}, "upstream": {"raw_log": "abc"}}
    return describe("capped_log", month, **{**facts, **changes})


def writer(text: str = "rows") -> Any:
    def write(directory: Path) -> dict[str, TableFacts]:
        tables = {}
        for table in ("queries", "clicks"):
            path = directory / table / "part.parquet"
            path.parent.mkdir()
            path.write_text(f"{text} of {table}", encoding="utf-8")
            tables[table] = TableFacts(1, {f"{table}/part.parquet": file_checksum(path)}, "digest")
        return tables

    return write


def written(warehouse: Warehouse, text: str = "rows", **options: Any) -> Partition:
    return warehouse.write_partition(provenance(), writer(text), **options)[0]


def objects(store: Path) -> list[str]:
    """The files of tables in a store that is a directory."""
    found = (path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.startswith(f"{MARKERS}/"))


def text_of(partition: Partition, table: str = "queries") -> str:
    return "".join(path.read_text(encoding="utf-8") for path in partition.files(table))
