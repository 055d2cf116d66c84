"""Many draws of one log: each is the draw of a plain engine, and nothing is counted twice but what noise decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.mechanisms.register import simulated
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import DuckDBEngine, Engine
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.repeated_draws import RepeatingEngine
from qlog_assets.studies.simulation import prepare_draws
from qlog_assets.studies.spread import MONTH, make_twin

ROWS = 2_000
DRAWN = [(each.name, name) for each in simulated() for name, variant in each.variants.items() if variant.in_study.draw]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Policy]:
    return make_twin(tmp_path_factory.mktemp("repeated"), Policy(), ROWS, 1)


@pytest.fixture
def engine(twin: tuple[Warehouse, Policy]) -> Iterator[RepeatingEngine]:
    with RepeatingEngine.open(twin[0]) as opened:
        yield opened


@pytest.mark.study
@pytest.mark.parametrize(("mechanism", "variant"), DRAWN)
def test_a_repeated_draw_is_the_draw_of_a_plain_engine(
    twin: tuple[Warehouse, Policy], engine: RepeatingEngine, mechanism: str, variant: str
) -> None:
    warehouse, policy = twin
    repeated = prepare_draws(mechanism, warehouse, engine, policy, MONTH, variant)
    with Engine.open(warehouse) as other:
        alone = prepare_draws(mechanism, warehouse, other, policy, MONTH, variant)
        for seed in (1, 2, 1):
            engine.start_draw()
            drawn, expected = repeated.draw(seed).tables, alone.draw(seed).tables
            assert drawn.keys() == expected.keys()
            assert all(drawn[name].equals(expected[name]) for name in expected), seed


def test_what_no_noise_decides_is_counted_by_the_first_draw_alone(
    twin: tuple[Warehouse, Policy], engine: RepeatingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    keep_table = DuckDBEngine.statement_table

    def keep(self: DuckDBEngine, name: str, table: str | None = None, **parameters: object) -> None:
        made.append(name)
        keep_table(self, name, table, **parameters)

    prepared = prepare_draws("crowd", twin[0], engine, twin[1], MONTH, "sound")
    monkeypatch.setattr(DuckDBEngine, "statement_table", keep)
    prepared.draw(1)
    assert "crowd/artifact_counts" in made
    made.clear()
    engine.start_draw()
    prepared.draw(2)
    assert made == []


def test_a_table_is_made_again_where_what_it_reads_has_changed(engine: RepeatingEngine) -> None:
    """By rows, by a view over them, and back to rows that were there before."""
    for users in ([3, 1], [5, 5], [3, 1]):
        with engine.table("sent_rows", pa.table({"artifact_id": [7, 8], "users": users, "instances": users})):
            engine.view_as("artifact_counts", "sent_rows")
            counts = engine.arrays("crowd/counts_in_order")
            assert sorted(counts["users"]) == sorted(users)


def test_whoever_changes_an_answer_changes_no_other_draws(engine: RepeatingEngine) -> None:
    with engine.table("artifact_counts", pa.table({"artifact_id": [7, 8], "users": [3, None], "instances": [4, 5]})):
        first = engine.arrays("crowd/counts_in_order")
        first["users"][0], first["instances"][0] = np.ma.masked, 9
        again = engine.arrays("crowd/counts_in_order")
    assert again["users"].tolist() == [3, None]
    assert again["instances"].tolist() == [4, 5]


def test_files_that_came_under_the_name_of_others_are_read(engine: RepeatingEngine, tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    for users in (3, 4):
        pq.write_table(pa.table({"artifact_id": [7], "users": [users], "instances": [users]}), path)
        engine.view("artifact_counts", [path])
        assert engine.arrays("crowd/counts_in_order")["users"].tolist() == [users]


def test_texts_are_mapped_more_than_once(engine: RepeatingEngine) -> None:
    for text in ("Öl", "Ünder"):
        with engine.table("raw_beyond_ascii", pa.table({"query": [text]})):
            assert engine.mapped_table("log/queries_beyond_ascii", "mapped", str.lower) == 1


def test_what_the_last_draw_did_not_use_is_dropped(engine: RepeatingEngine) -> None:
    def keep(limit: int) -> None:
        with engine.table("sendable_artifacts", rows):
            engine.statement_table("crowd/recent_artifacts", "sent", artifacts_per_user=limit)

    def tables() -> int:
        return int(engine.connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0])

    rows = pa.table({"user": ["a"], "artifact_id": [1], "place": [1]})
    engine.start_draw()
    keep(1)
    keep(2)
    assert tables() == 2
    engine.start_draw()
    keep(2)
    engine.start_draw()
    assert tables() == 1


def test_what_is_kept_under_two_names_is_kept_no_more_than_twice(engine: RepeatingEngine) -> None:
    rows = pa.table({"user": ["a"], "artifact_id": [1], "place": [1]})
    for _ in range(4):
        engine.start_draw()
        with engine.table("sendable_artifacts", rows):
            for limit in (1, 2):
                for name in ("sent", "kept"):
                    engine.statement_table("crowd/recent_artifacts", name, artifacts_per_user=limit)
    assert engine.connection.execute("SELECT count(*) <= 4 FROM duckdb_tables()").fetchall() == [(True,)]
