"""Parts of a month: whole users on one side or the other, every row once, and every mechanism drawn from a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from qlog_assets.mechanisms.register import simulated
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.parts import PARTS, Part, hold_out
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.spread import MONTH, make_twin
from qlog_assets.studies.study import StudyWork

ROWS = 4_000


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyWork]:
    warehouse, policy = make_twin(tmp_path_factory.mktemp("parts"), Policy(), ROWS, 1)
    reads = {"raw_log": warehouse.current("raw_log", MONTH).provenance.shape}
    with Engine.open(warehouse) as engine:
        yield StudyWork(warehouse, engine, policy, None, MONTH, reads=reads)


def raw_rows(part: Part) -> pa.Table:
    return pq.read_table(part.warehouse.current("raw_log", part.month).files("log"))


@pytest.mark.parametrize("by", ["user", "record"])
def test_every_row_is_tested_once_and_otherwise_drawn_from(work: StudyWork, by: Literal["user", "record"]) -> None:
    whole = pq.read_table(work.warehouse.current("raw_log", MONTH).files("log"))
    tested = []
    for part in range(PARTS):
        with hold_out(work, part, by) as fold:
            tested.append(raw_rows(fold.tested))
            assert raw_rows(fold.trained).num_rows + tested[-1].num_rows == whole.num_rows
            both = set(raw_rows(fold.trained)["user"].to_pylist()) & set(tested[-1]["user"].to_pylist())
            # The leaky split is there to be seen as such: nearly everybody is in both.
            assert bool(both) == (by == "record")
    order = [(name, "ascending") for name in whole.column_names]
    assert pa.concat_tables(tested).sort_by(order).equals(whole.sort_by(order))


def test_nothing_is_left_of_a_part(work: StudyWork) -> None:
    with hold_out(work, 0) as fold:
        home = fold.trained.warehouse.home
        assert fold.trained.cleaned.rows("log") > 0
        assert home.is_relative_to(work.warehouse.studies)
    assert not home.exists()
    assert list(work.warehouse.studies.iterdir()) == []


def test_a_part_is_never_in_the_store_of_the_whole(work: StudyWork, tmp_path: Path) -> None:
    settings = work.warehouse.settings.model_copy(update={"partitions": f"file://{tmp_path}"})
    with hold_out(replace(work, warehouse=Warehouse(settings)), 0) as fold:
        assert fold.trained.cleaned.rows("log") > 0
    assert list(tmp_path.iterdir()) == [], "nobody would delete it there"


DRAWN = [(each.name, name) for each in simulated() for name, variant in each.variants.items() if variant.draw]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "variant"), DRAWN)
def test_every_mechanism_is_drawn_from_a_part_and_read_as_a_search_log(
    work: StudyWork, mechanism: str, variant: str
) -> None:
    with hold_out(work, 0) as fold:
        drawn = fold.trained.draw(mechanism, variant, 1)
        log = SearchLog.of_tables(drawn.tables)
        original = SearchLog.of_log(work.engine, fold.trained.cleaned)
    texts = set(original.queries["query"].to_pylist())
    pool = {"safelog"}  # and so names queries that nobody typed
    assert mechanism in pool or set(log.queries["query"].to_pylist()) <= texts


def table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def rows(found: pa.Table) -> dict[tuple[str, ...], float]:
    keys = [name for name in found.column_names if name != "count"]
    return {tuple(row[key] for key in keys): row["count"] for row in found.to_pylist()}


def test_tables_are_known_by_their_columns() -> None:
    log = SearchLog.of_tables(
        {
            "words": table(keyword=["a"], users=[9]),
            "hosts": table(query=["a"], host=["h"], users=[9]),
            "some queries": table(query=["a", "b"], users=[5, -2], standard_error=[1.0, 1.0]),
            "some clicks": table(query=["a", "c"], url=["u", "v"], events=[3.5, 4.0]),
            "some steps": table(query=["b"], next_query=["d"], printed=[7]),
        }
    )
    assert rows(log.queries) == {("a",): 5, ("b",): 0, ("c",): 4, ("d",): 7}
    assert rows(log.clicks) == {("a", "u"): 3.5, ("c", "v"): 4}
    assert rows(log.transitions) == {("b", "d"): 7}


def test_sequences_are_steps_and_made_up_users_are_counted() -> None:
    sessions = SearchLog.of_tables(
        {"sessions": table(queries=[["a", "b"], ["a", "b", "c"], ["a", "a"]], users=[8, 5, 9])}
    )
    assert rows(sessions.transitions) == {("a", "b"): 8}
    assert rows(sessions.queries) == {("a",): 9, ("b",): 8, ("c",): 5}
    made_up = SearchLog.of_tables(
        {"log": table(user=[1, 1, 2], query=["a", "a", "a"], url=["u", "v", "u"], count=[2, 1, 3], month=["m"] * 3)}
    )
    assert rows(made_up.queries) == {("a",): 2}
    assert rows(made_up.clicks) == {("a", "u"): 5, ("a", "v"): 1}


def test_whole_sessions_have_their_neighbours_as_steps_and_histories_have_none() -> None:
    sessions = SearchLog.of_tables(
        {"sessions": table(session=[["a", "b", "c"], ["b", "c", "b"], ["c"]], printed=[8, 5, 3])}
    )
    assert rows(sessions.transitions) == {("a", "b"): 8, ("b", "c"): 8, ("c", "b"): 5}
    assert rows(sessions.queries) == {("a",): 8, ("b",): 8, ("c",): 8}
    histories = SearchLog.of_tables({"histories": table(history=[["a", "b"], ["b"]], printed=[8, 5])})
    assert rows(histories.queries) == {("a",): 8, ("b",): 13}
    nothing = pa.table({"session": pa.array([], pa.list_(pa.string())), "printed": pa.array([], pa.int64())})
    assert SearchLog.of_tables({"sessions": nothing}).transitions.num_rows == histories.transitions.num_rows == 0


def test_a_log_without_anything_has_three_empty_tables() -> None:
    log = SearchLog.of_tables({})
    assert [each.num_rows for each in (log.queries, log.clicks, log.transitions)] == [0, 0, 0]


def test_the_log_itself_counts_users_or_events(work: StudyWork) -> None:
    with hold_out(work, 0) as fold:
        users, events = (SearchLog.of_log(work.engine, fold.tested.cleaned, count) for count in ("users", "events"))
    assert users.clicks.num_rows == events.clicks.num_rows > 0
    joined = users.clicks.join(events.clicks, ["query", "url"], right_suffix="_events")
    assert pc.all(pc.greater_equal(joined["count_events"], joined["count"])).as_py()
    assert set(users.clicks["query"].to_pylist()) <= set(users.queries["query"].to_pylist())
