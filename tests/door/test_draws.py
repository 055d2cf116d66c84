"""Stored draws: written once, never replaced, and every change of them shows."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.door import warehouse_at
from support.releases import as_table
from support.tampering import edit_json, flip

from qlog_assets.door.draws import DrawError, DrawnRelease, discard_draw, load_draw, store_draw
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.report.table_noise import Look, Reach, TableNoise
from qlog_assets.storage.warehouse import Warehouse

FINGERPRINT = "f" * 64


@pytest.fixture
def warehouse(home: Path) -> Warehouse:
    return warehouse_at(home)


def release(**changes: Any) -> DrawnRelease:
    facts: dict[str, Any] = {
        "fingerprint": FINGERPRINT, "dataset": "small", "month": "2006-03", "mechanism": "safelog", "variant": "sound",
        "mechanism_version": 1, "draw_number": 1, "parameters": {"threshold": 10, "selection_scale": "0.5"},
        "inputs": {"capped_log": "abc"}, "salt": "ab" * 16, "software": {"numpy": "1"}, "about": {"publisher": None},
        "public_material": ({"kind": "query_list", "rows": 3},),
    }  # fmt: skip
    return DrawnRelease(**{**facts, **changes})


def drawn(*rows: tuple[str, int]) -> Drawn:
    table = as_table("queries", list(rows or (("weather", 40), ("größe, \n ='x'", 12))))
    return Drawn({"queries": DrawnTable(table, 10, 12)}, pa.array(["weather"]))


def test_a_draw_comes_back_as_it_was_stored(warehouse: Warehouse) -> None:
    store_draw(warehouse, release(), drawn())
    draw = load_draw(warehouse, FINGERPRINT)
    assert draw.release == release()
    back = draw.read()
    assert back.tables["queries"].rows.equals(drawn().tables["queries"].rows)
    assert (back.tables["queries"].threshold, back.tables["queries"].threshold_outside_pool) == (10, 12)
    assert back.public_texts.to_pylist() == ["weather"]


def test_what_a_draw_says_of_its_noise_comes_back_and_an_earlier_draw_says_nothing(warehouse: Warehouse) -> None:
    noise = TableNoise("discrete Gaussian", 48.2, tested=False, reaches=(Reach(1, (Look(29.5, 4.75),)),))
    table = DrawnTable(as_table("queries", [("weather", 40)]), 1, noise=noise)
    store_draw(warehouse, release(), Drawn({"queries": table}))
    assert load_draw(warehouse, FINGERPRINT).read().tables["queries"].noise == noise
    path = warehouse.draws / FINGERPRINT / "draw.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({name: facts[name] for name in facts if name != "noise"}), encoding="utf-8")
    assert load_draw(warehouse, FINGERPRINT).read().tables["queries"].noise is None


def test_an_empty_table_comes_back_as_an_empty_table(warehouse: Warehouse) -> None:
    empty = Drawn({"queries": DrawnTable(as_table("queries", []), 10)}, pa.array([], pa.string()))
    store_draw(warehouse, release(), empty)
    assert load_draw(warehouse, FINGERPRINT).read().tables["queries"].rows.num_rows == 0


def test_a_second_draw_of_the_same_fingerprint_is_dropped_unseen(warehouse: Warehouse) -> None:
    store_draw(warehouse, release(), drawn())
    first = load_draw(warehouse, FINGERPRINT)
    store_draw(warehouse, release(salt="cd" * 16), drawn(("weather", 41)))
    assert load_draw(warehouse, FINGERPRINT) == first
    assert [path.name for path in warehouse.draws.iterdir()] == [FINGERPRINT]


def test_the_digest_covers_every_file_and_every_fact(warehouse: Warehouse) -> None:
    store_draw(warehouse, release(), drawn())
    folder = warehouse.draws / FINGERPRINT
    digests = {load_draw(warehouse, FINGERPRINT).digest}
    flip(folder / "queries.parquet")
    digests.add(load_draw(warehouse, FINGERPRINT).digest)
    flip(folder / "public_texts.parquet")
    digests.add(load_draw(warehouse, FINGERPRINT).digest)
    edit_json(folder / "draw.json", "thresholds", "queries", "threshold", value=1)
    digests.add(load_draw(warehouse, FINGERPRINT).digest)
    (folder / "more").touch()
    digests.add(load_draw(warehouse, FINGERPRINT).digest)
    assert len(digests) == 5


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"release": {}, "thresholds": {}}', "null"])
def test_a_draw_that_cannot_be_read_is_an_error_without_a_value_in_it(warehouse: Warehouse, text: str) -> None:
    store_draw(warehouse, release(), drawn())
    (warehouse.draws / FINGERPRINT / "draw.json").write_text(text, encoding="utf-8")
    with pytest.raises(DrawError, match="the stored draw cannot be read") as error:
        load_draw(warehouse, FINGERPRINT)
    assert FINGERPRINT not in str(error.value)


def test_a_discarded_draw_is_gone_whole_and_discarding_twice_is_fine(warehouse: Warehouse) -> None:
    store_draw(warehouse, release(), drawn())
    discard_draw(warehouse, FINGERPRINT)
    discard_draw(warehouse, FINGERPRINT)
    assert list(warehouse.draws.iterdir()) == []


def test_a_draw_is_readable_by_its_owner_alone(warehouse: Warehouse) -> None:
    store_draw(warehouse, release(), drawn())
    folder = warehouse.draws / FINGERPRINT
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
