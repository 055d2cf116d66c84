"""Suites that extend another expect the same of their own columns: a new name weakens no check."""

from __future__ import annotations

import pyarrow as pa
import pytest

from qlog_assets.checks.released import released_frames
from qlog_assets.checks.suites import read_suite, run_suite
from qlog_assets.mechanisms.safelog.tables import QUERIES
from qlog_assets.mechanisms.zealous.tables import ALL_CLICKS, KEYWORDS, PAIRS
from qlog_assets.report.tables import TableLayout, in_public_order

LIMITS = {"threshold": 10, "threshold_outside_pool": 10}


def passed(layout: TableLayout, rows: list[tuple]) -> bool:
    columns = list(zip(*rows, strict=True))
    table = in_public_order(pa.table(dict(zip(layout.schema.names, columns, strict=True)), layout.schema), layout)
    return run_suite(f"released_{layout.name}", released_frames(table, layout, None), parameters=LIMITS).passed


@pytest.mark.parametrize(("name", "base"), [("keywords", "queries"), ("pairs", "transitions")])
def test_an_extending_suite_has_every_expectation_of_its_base(name: str, base: str) -> None:
    kinds = [[entry["type"] for entry in read_suite(f"released_{suite}")["expectations"]] for suite in (name, base)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("layout", [KEYWORDS, QUERIES, PAIRS, ALL_CLICKS], ids=lambda layout: layout.name)
def test_released_tables_are_held_to_threshold_personal_data_and_empty_texts(layout: TableLayout) -> None:
    texts = ("weather", "news")[: len(layout.keys)]
    assert passed(layout, [(*texts, 12)])
    assert not passed(layout, [(*texts, 9)])
    for place in range(len(texts)):
        for wrong in ("bob@example.com", ""):
            assert not passed(layout, [(*texts[:place], wrong, *texts[place + 1 :], 12)])
