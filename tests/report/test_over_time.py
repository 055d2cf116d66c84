"""What a datasheet says of time: somebody who reads no formula learns what is protected for how long."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import MARCH, charges, door_at, release
from support.instances import POLICY, make_home, small_log
from support.warehouses import build_chain

from qlog_assets.ledger import Ledger
from qlog_assets.policy import Policy
from qlog_assets.report.manifest import load_manifest

WINDOW = "\n[unit]\nwindow_months = 12\n"


def page(home: Path) -> tuple[dict[str, object], str]:
    """The manifest of the newest release, and its datasheet as text."""
    folder = home / "released" / "safelog" / MARCH / charges(home)[-1].release_id
    return load_manifest(folder / "manifest.json"), unescape((folder / "datasheet.html").read_text(encoding="utf-8"))


@pytest.fixture
def windowed(ingested: Path) -> Path:
    (ingested / "policy.toml").write_text(POLICY + WINDOW, encoding="utf-8")
    build_chain(ingested)
    return ingested


def test_a_budget_per_window_is_told_for_a_month_a_year_and_for_ever(windowed: Path) -> None:
    release(windowed)
    manifest, text = page(windowed)
    assert manifest["budget"] == {
        "epsilon": "100", "delta": "0.1", "accountant": "basic", "window_months": 12, "earlier": [], "past": [],
    }  # fmt: skip
    assert "What is protected over time" in text
    assert "Whatever one user searched in any 12 consecutive months shares one budget." in text
    assert "unless its keeper raises the budget or shortens the window for months to come" in text
    assert "a factor of e^100, but for a probability of at most 0.1" in text
    assert "Nothing bounds the loss of somebody who goes on searching for ever" in text
    for length in ("one month", "three months", "one year", "three years"):
        assert f">{length}<" in text
    assert "ε = 300, δ = 0.3" in text, "three years are three budgets"
    assert "ε = 60, δ = 0.003" in text, "a quarter at this month's cost"
    assert "ε = 100, δ = 0.012" in text, "a year at this cost would pass the budget, so the budget is the most"
    assert "would pass the budget of any window of months that it is in." in text


def test_a_budget_for_ever_says_what_it_always_said(ingested: Path) -> None:
    build_chain(ingested)
    release(ingested)
    manifest, text = page(ingested)
    assert "budget" not in manifest
    assert "over time" not in text
    assert "refuses a release that would pass the budget." in text


@pytest.mark.slow
def test_a_changed_unit_is_named_with_the_old_one_and_the_month_it_changed(ingested: Path) -> None:
    build_chain(ingested)
    release(ingested)
    old = page(ingested)
    answer = qlog(
        ingested, "ledger", "set-unit", "--window-months", "12", "--from", "2006-04", "--reason", "for years", "--json"
    ).json
    assert answer["window_months"] == 12 and answer["earlier"] == [{"window_months": None, "before": "2006-04"}]
    refused = qlog(ingested, "release", "safelog", "--month", "2006-04")
    assert "for ever (unit.window_months)" in refused.refusal and "set-unit" in refused.refusal
    (ingested / "policy.toml").write_text(POLICY + WINDOW, encoding="utf-8")
    assert qlog(ingested, "release", "safelog", "--month", "2006-04", "--json").json["charged"] is True
    folder = ingested / "released" / "safelog" / "2006-04" / charges(ingested)[-1].release_id
    text = unescape((folder / "datasheet.html").read_text(encoding="utf-8"))
    assert "What one user searched in the months before 2006-04 goes on sharing one such budget" in text
    assert "the terms were ε = 100, δ = 0.1, for ever." in text
    # What was published before says what it said.
    assert page_of(ingested, charges(ingested)[0].release_id) == old[1]
    assert qlog(ingested, "audit", "--json").json["ok"] is True


def page_of(home: Path, release_id: str) -> str:
    return unescape((home / "released" / "safelog" / MARCH / release_id / "datasheet.html").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_an_account_shows_its_windows_and_the_next_month_that_fits(tmp_path: Path) -> None:
    home = make_home(tmp_path / "warehouse", POLICY.replace("epsilon = 100", "epsilon = 30") + WINDOW)
    log = tmp_path / "log.txt"
    log.write_text(small_log(), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol").code == 0
    assert qlog(home, "release", "safelog", "--month", MARCH, "--json").json["left"]["epsilon"] == 10
    shown = qlog(home, "ledger", "--json").json
    assert shown["unit"] == {"window_months": 12, "earlier": []}
    assert {"first": "2005-04", "last": "2006-03", "epsilon": 20.0, "delta": 0.001} in shown["windows"]
    assert shown["next_month"]["safelog"] == "2007-03"
    refusal = qlog(home, "release", "safelog", "--month", "2006-04").refusal
    assert "in any 12 consecutive months: the next month that fits is 2007-03" in refusal
    assert "any 12 consecutive months" in qlog(home, "ledger").success
    assert Ledger.open(home / "ledger.db").verify_chain() == []


def test_the_policy_knows_a_window_or_none(tmp_path: Path) -> None:
    for text, window in (("12", 12), ('"none"', None)):
        file = tmp_path / "policy.toml"
        file.write_text(f"[unit]\nwindow_months = {text}\n", encoding="utf-8")
        assert Policy.load(file).unit.window_months == window


def test_a_window_is_stored_with_the_draw_so_that_a_release_made_again_is_the_same(windowed: Path) -> None:
    door = door_at(windowed)
    door.draw("safelog", MARCH)
    door.ledger.set_unit("small", 24, "a stricter board")
    (windowed / "policy.toml").write_text(POLICY + WINDOW.replace("12", "24"), encoding="utf-8")
    door_at(windowed).publish("safelog", MARCH)
    assert page(windowed)[0]["budget"]["window_months"] == 12  # type: ignore[index]
