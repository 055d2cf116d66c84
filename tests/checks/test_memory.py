"""Partitions looked at through their suites: once for the same files, again for anything that is not the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import MARCH, warehouse_at
from support.tampering import vouch_for

from qlog_assets.mechanisms.safelog.stages import inspect_capped_log
from qlog_assets.storage.engine import DuckDBEngine, Engine

pytest_plugins = ("support.warehouse_fixtures",)


def test_a_partition_is_counted_once_until_it_changes(chained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, frame = [], DuckDBEngine.frame
    counting = lambda self, name, **given: counted.append(name) or frame(self, name, **given)  # noqa: E731
    monkeypatch.setattr(DuckDBEngine, "frame", counting)
    with Engine.open(warehouse_at(chained)) as engine:

        def passed() -> bool:
            return inspect_capped_log(engine, warehouse_at(chained).current("capped_log", MARCH)).passed

        assert passed() and passed()
        assert counted == ["safelog/check_capped_log"]
        path = warehouse_at(chained).current("capped_log", MARCH).files("queries")[0]
        rows = pq.read_table(path)
        pq.write_table(rows, path)
        assert passed() and len(counted) == 2, "a file that was written again"
        pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), path)
        assert not passed() and len(counted) == 3, "a row twice, and nothing vouches for it"
        vouch_for(chained, warehouse_at(chained).current("capped_log", MARCH))
        assert not passed() and len(counted) == 4, "and somebody does"
