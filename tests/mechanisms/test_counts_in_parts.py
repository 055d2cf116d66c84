"""Draws from counts take them in parts, which need not fit into memory together; parts change nothing."""

from __future__ import annotations

import re
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import parse_one

from qlog_assets.mechanisms.contributions import count_items, draw_counted, view_items
from qlog_assets.policy import Policy
from qlog_assets.privacy.histogram import Released
from qlog_assets.settings import CHECKOUT
from qlog_assets.storage.engine import DuckDBEngine, Engine
from qlog_assets.storage.statements import statement
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import prepare_draws
from qlog_assets.studies.spread import MONTH, make_twin

CHOSEN = {
    "safelog": {"variant": "sound"},
    "zealous": {"variant": "sound", "items_per_user": 10},
    "sanitized": {"method": "stability"},
    "sessions": {"variant": "sound"},
}
"""What makes a mechanism draw from counts."""
NOISE = 19
"""Times the scale of a table: so much that each prints something of a small log."""


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Policy]:
    return make_twin(tmp_path_factory.mktemp("parts"), Policy.model_validate(CHOSEN), 20_000, 1)


@pytest.mark.parametrize("mechanism", CHOSEN)
def test_the_same_is_printed_whatever_parts_counts_come_in(
    twin: tuple[Warehouse, Policy], mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one noise for all, which lets many counts pass, so that what is printed follows from the counts alone."""
    warehouse, policy = twin
    asked: list[int] = []

    def one_noise(source: object, scale: Fraction, size: int) -> np.ndarray:
        asked.append(size)
        return np.full(size, int(scale * NOISE))

    monkeypatch.setattr("qlog_assets.privacy.histogram.discrete_laplace", one_noise)
    drawn, noised = [], []
    with Engine.open(warehouse) as engine:
        prepared = prepare_draws(mechanism, warehouse, engine, policy, MONTH, "sound")
        for rows in (1 << 22, 1_999, 1_201):
            monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", rows)
            asked.clear()
            drawn.append(prepared.draw(1).tables)
            noised.append((len(asked), sum(asked)))
    assert any(table.num_rows > 1 for table in drawn[0].values())
    for other in drawn[1:]:
        assert all(other[name].equals(table) for name, table in drawn[0].items())
    # Every count has noise once, in however many parts.
    assert noised[0][0] < noised[1][0] < noised[2][0]
    assert noised[0][1] == noised[1][1] == noised[2][1]


def test_want_of_memory_in_a_later_part_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It spares the charge. An answer that stays open would have DuckDB say something else when a table is let go."""
    monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", 2)
    drawn = 0

    def draw(counts: np.ndarray) -> Released:
        nonlocal drawn
        drawn += 1
        if drawn == 2:
            raise MemoryError
        return Released(np.arange(len(counts)), counts)

    with duckdb.connect(":memory:") as connection:
        engine = DuckDBEngine(connection)
        rows = pa.table({"user": ["u"] * 6, "query": list("abcdef")})
        with pytest.raises(MemoryError), engine.table("typed", rows):
            view_items(engine, "typed")
            count_items(engine)
            with engine.table("another", rows):
                draw_counted(engine, draw)
    assert drawn == 2


def test_what_is_taken_in_parts_is_sorted() -> None:
    """So that all of it is there before the first part: no value of the log can end a draw that is under way."""
    written = (path.read_text(encoding="utf-8") for path in (CHECKOUT / "qlog_assets").rglob("*.py"))
    taken = [call for text in written for call in re.findall(r"engine\.parts\(\s*(\S+?)[,)]", text)]
    assert len(set(taken)) > 2
    # The name of each stands where it is taken, or nobody could look at its statement here.
    assert all(re.fullmatch(r'"[a-z_]+/[a-z_]+"', name) for name in taken)
    assert all(parse_one(statement(name.strip('"')), read="duckdb").args.get("order") for name in taken)
