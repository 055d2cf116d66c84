"""Every suite is a plain suite of Great Expectations, whole by itself: nothing of ours is needed to read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from qlog_assets.checks.released import released_frames
from qlog_assets.checks.suites import load_library, read_suite, run_suite
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable
from qlog_assets.report.tables import TableLayout, in_public_order
from qlog_assets.settings import CHECKOUT

EXPECTATIONS = CHECKOUT / "expectations"
FILES = sorted(EXPECTATIONS.rglob("*.json"))
RELEASED = [(each, layout) for each in releasable() for layout in each.tables]
LIMITS = {"threshold": 10, "threshold_outside_pool": 10}
GOOD: dict[str, Any] = {"text": "weather", "texts": ["weather", "news"], "integer": 12}
MONTHLY = {"month": "2006-03"}
"""What a column holds that is of no use with any text."""


def name_of(value: Any) -> str:
    return str(value.relative_to(EXPECTATIONS)) if isinstance(value, Path) else str(value.name)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_library_alone_loads_every_suite_whole(path: Path) -> None:
    """It drops what it does not know without a word, so everything in the file is looked for in what it loaded."""
    written = json.loads(path.read_text(encoding="utf-8"))
    library = load_library()
    context = library.get_context(mode="ephemeral")
    loaded = context.suites.add(library.ExpectationSuite(**written))
    assert loaded.name == path.stem
    assert len(loaded.expectations) == len(written["expectations"]) > 0
    for expectation, entry in zip(loaded.expectations, written["expectations"], strict=True):
        assert expectation.configuration.type == entry["type"]
        # By JSON and back: where the file has a list of pairs, the library keeps tuples.
        kept = json.loads(json.dumps(expectation.configuration.kwargs))
        assert {key: kept.get(key) for key in entry["kwargs"]} == entry["kwargs"], entry["type"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_expectation_about_columns_names_them(path: Path) -> None:
    suite = read_suite(str(path.relative_to(EXPECTATIONS).with_suffix("")))
    for entry in suite["expectations"]:
        kind, kwargs = entry["type"], entry["kwargs"]
        if not kind.startswith("expect_table_"):
            single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
            named = [*single, *kwargs.get("column_list", ())]
            assert named and all(isinstance(column, str) and column for column in named), kind


def test_every_released_table_has_a_suite_and_every_folder_an_owner() -> None:
    found = {str(path.relative_to(EXPECTATIONS).with_suffix("")) for path in FILES}
    assert {f"{each.name}/released_{layout.name}" for each, layout in RELEASED} <= found
    # `released` has what holds of every mechanism's released tables.
    assert {name.partition("/")[0] for name in found} == {"log", "released", *(each.name for each in releasable())}


@pytest.mark.parametrize(("mechanism", "layout"), RELEASED, ids=name_of)
def test_a_released_tables_suite_names_the_columns_of_its_layout_and_no_other(
    mechanism: Mechanism, layout: TableLayout
) -> None:
    entries = read_suite(f"{mechanism.name}/released_{layout.name}")["expectations"]
    (columns,) = [
        entry["kwargs"]["column_list"]
        for entry in entries
        if entry["type"] == "expect_table_columns_to_match_ordered_list"
    ]
    assert columns == layout.schema.names
    of_the_table = [entry["kwargs"] for entry in entries if entry.get("meta", {}).get("table", "table") == "table"]
    named = {kwargs["column"] for kwargs in of_the_table if "column" in kwargs}
    assert named == set(layout.schema.names)


def passed(mechanism: Mechanism, layout: TableLayout, rows: list[tuple]) -> bool:
    columns = list(zip(*rows, strict=True))
    table = in_public_order(pa.table(dict(zip(layout.schema.names, columns, strict=True)), layout.schema), layout)
    name = f"{mechanism.name}/released_{layout.name}"
    return run_suite(name, released_frames(table, layout, None), parameters=LIMITS).passed


@pytest.mark.parametrize(("mechanism", "layout"), RELEASED, ids=name_of)
def test_released_tables_are_held_to_threshold_personal_data_and_empty_texts(
    mechanism: Mechanism, layout: TableLayout
) -> None:
    good = {column.name: MONTHLY.get(column.name, GOOD[column.type]) for column in layout.columns}
    assert passed(mechanism, layout, [tuple(good.values())])
    # A table without counts of users has no threshold.
    assert layout.count is None or not passed(mechanism, layout, [tuple((good | {layout.count: 9}).values())])
    for name in layout.text_columns:
        for wrong in ("bob@example.com", ""):
            value = [wrong, "news"] if name in layout.list_columns else wrong
            assert not passed(mechanism, layout, [tuple((good | {name: value}).values())]), name
