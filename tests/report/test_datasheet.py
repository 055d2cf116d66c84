"""The datasheet: complete, self-contained, the same bytes every time, and safe with whatever texts it shows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.pages import Page
from support.releases import ROWS, Release, write_release

from qlog_assets.mechanisms.register import guarantee, mechanism, names
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.months import month_name
from qlog_assets.report.account import Account, general_account, survival
from qlog_assets.report.datasheet import reading_order
from qlog_assets.report.datasheet import render as render_page
from qlog_assets.report.datasheet import write_datasheet as write_page
from qlog_assets.report.datasheet_numbers import numbers_of
from qlog_assets.report.manifest import load_manifest, verify_files, write_manifest
from qlog_assets.report.plots import distribution
from qlog_assets.report.tables import Column, PublishedFile, TableLayout, in_public_order


def told(manifest: dict[str, Any]) -> tuple[Account, dict[str, str]]:
    """What the door gives the page: the mechanism's account and the titles of its tables."""
    name = manifest["mechanism"]
    if name not in names():
        return general_account(manifest), {}
    titles = mechanism(name).titles
    in_order = {table: manifest["tables"][table] for table in reading_order(manifest, titles)}
    return mechanism(name).account({**manifest, "tables": in_order}), titles


def render(manifest: dict[str, Any], tables: dict[str, pa.Table]) -> str:
    return render_page(manifest, tables, *told(manifest))


def write_datasheet(manifest: dict[str, Any], tables: dict[str, pa.Table], directory: Path) -> PublishedFile:
    return write_page(manifest, tables, directory, *told(manifest))


def read(made: Release) -> Page:
    return Page(render(made.manifest, made.tables))


def test_the_page_is_whole_and_loads_nothing(release: Release) -> None:
    page = read(release)
    page.assert_loads_nothing()
    text = render(release.manifest, release.tables)
    assert "default-src 'none'".replace("'", "&#x27;") in text
    assert "url(" not in text.lower() and "@import" not in text


def test_texts_of_the_release_are_shown_and_never_run(release: Release) -> None:
    text = render(release.manifest, release.tables)
    assert text.lower().count("<script") == 1 == text.lower().count("</script")
    page = read(release)
    for row in ROWS["queries"]:
        assert row[0] in page.text


def test_invisible_and_turning_characters_are_shown_as_such(make_release: Callable[..., Release]) -> None:
    made = make_release(rows={"queries": [("a\u202eb\u200bc\x07d", 500)]})
    page = read(made)
    assert "a\ufffdb\ufffdc\ufffdd" in page.text
    assert not re.search("[\u202e\u200b\x07]", page.text)


def test_the_same_release_gives_the_same_bytes_and_verifies(release: Release, tmp_path: Path) -> None:
    first = write_datasheet(release.manifest, release.tables, release.directory)
    assert write_datasheet(release.manifest, release.tables, release.directory) == first
    write_manifest(release.manifest, release.directory, [first])
    assert verify_files(load_manifest(release.directory / "manifest.json"), release.directory) == []


def test_it_can_be_made_again_from_the_written_manifest(release: Release) -> None:
    """The written manifest lists the datasheet itself, which the page does not speak of: no circle, same bytes."""
    first = write_datasheet(release.manifest, release.tables, release.directory)
    manifest = load_manifest(write_manifest(release.manifest, release.directory, [first]))
    assert write_datasheet(manifest, release.tables, release.directory) == first


def test_it_says_what_a_reader_must_know(release: Release) -> None:
    page, manifest = read(release).text, release.manifest
    for wanted in (
        "March 2006",
        manifest["release_id"],
        manifest["guarantee"]["sentence"],
        "one in 1,000,000",
        "two accounts",
        "Months add up",
        "Near the threshold, counts are too high on average",
        "first 10 different queries, 10 different clicked addresses and 9 different steps",
        "drop one leading apostrophe",
        f"qlog audit {manifest['release_id']}",
        "wordsegment: 258,437 entries",
    ):
        assert wanted in page, wanted
    for table in manifest["tables"].values():
        for column in table["columns"]:
            assert column["description"] in page
        for file in table["files"].values():
            assert file["sha256"] in page


def test_the_owners_words_are_told_as_theirs(make_release: Callable[..., Release]) -> None:
    about = {
        "publisher": "Example & Sons",
        "population": "Readers of <b>our</b> wiki",
        "contact": None,
        "licence": "CC0",
    }
    page = read(make_release(about=about)).text
    assert "Example & Sons" in page
    assert "Readers of <b>our</b> wiki" in page


def test_an_empty_release_is_a_page_too(make_release: Callable[..., Release]) -> None:
    page = read(make_release(rows={"queries": [], "clicks": [], "transitions": []})).text
    assert page.count("nothing reached its threshold") == 3


def test_a_pure_release_promises_without_exception(make_release: Callable[..., Release]) -> None:
    made = make_release({"delta": 0, "click_scale": None, "transition_scale": None}, {"queries": ROWS["queries"][:1]})
    page = read(made).text
    assert "without exception" in page
    assert "a query outside the list was never printed" in page
    assert "clicked" not in page
    assert "one in" not in page


def test_another_draw_of_the_month_says_so(make_release: Callable[..., Release]) -> None:
    assert "draw number 2" in read(make_release(draw_number=2)).text


def test_a_mechanism_without_its_own_account_still_has_a_page(release: Release) -> None:
    page = Page(render({**release.manifest, "mechanism": "other"}, release.tables)).text
    assert "limited before anything was counted" in page


def test_suppressed_rows_are_counted(release: Release) -> None:
    tables = {**release.manifest["tables"]}
    tables["clicks"] = {**tables["clicks"], "suppressed_rows": 2}
    assert "2 rows were left out" in Page(render({**release.manifest, "tables": tables}, release.tables)).text


@pytest.mark.parametrize(("scale", "at_least"), [(1.0, 3), (10.0, 100), (10.0, 0), (2.5, -4), (18.0, 215)])
def test_survival_is_the_sum_of_the_tail(scale: float, at_least: int) -> None:
    decay = math.exp(-1 / scale)
    tail = sum((1 - decay) / (1 + decay) * decay ** abs(value) for value in range(at_least, at_least + 2000))
    assert survival(scale, at_least) == pytest.approx(tail, rel=1e-9)


def test_expected_inventions_follow_from_public_facts(make_release: Callable[..., Release]) -> None:
    made = make_release({"min_users": 5})
    expected = told(made.manifest)[0].expected_inventions
    # 4 released queries make 12 ordered pairs; no url list, no invented clicks; the printed threshold has the shift in.
    assert expected["clicks"] == 0
    parameters = made.manifest["parameters"]
    assert expected["transitions"] == pytest.approx(12 * survival(float(parameters["transition_scale"]), 250))
    assert expected["queries"] == pytest.approx(258_437 * survival(float(parameters["selection_scale"]), 100 - 4))


@pytest.mark.parametrize("values", [[100], [100] * 50, [100, 150, 199], [100, 10**7], [5, 100, 400], []])
def test_every_row_is_in_the_picture(values: list[int]) -> None:
    picture = distribution(np.array(values, dtype=np.int64), 100, title="t", unit="users")
    bars = [int(number.replace(",", "")) for number in re.findall(r'class="value"[^>]*>([0-9,]+)<', picture)]
    assert sum(bars) == len(values)
    assert len(bars) <= 8


@pytest.mark.parametrize("words", [1, 2])
def test_numbers_read_as_people_write_them(words: int) -> None:
    numbers = numbers_of(words)
    assert [numbers.plain(value) for value in (0, 1.0, 2.5, 1e-6, 5e-7, 24.0, 1.4777e-5)] == [
        "0", "1", "2.5", "0.000001", "0.0000005", "24", "0.000014777",
    ]  # fmt: skip
    assert numbers.odds({"delta": 1e-6}) == "one in 1,000,000"
    assert month_name("2006-12") == "December 2006"


def test_what_bounds_a_loss_is_rounded_up_and_what_it_is_one_in_down() -> None:
    first, second = numbers_of(1), numbers_of(2)
    loss = {"epsilon": 2.30258512, "epsilon_exact": "2.30258512", "delta": 1.0049e-6, "delta_exact": None}
    assert [each.loss(loss, "epsilon") for each in (first, second)] == ["2.30259", "2.30259"]
    assert second.plain(1.00000049) == "1.00001" and first.plain(1.00000049) == "1"
    assert [each.odds(loss) for each in (first, second)] == ["one in 995,124", "one in 995,123"]
    assert [each.belief({"epsilon": 0.1}) for each in (first, second)] == ["52 %", "52.5 %"]
    assert [each.belief({"epsilon": 2}) for each in (first, second)] == ["88 %", "88.1 %"]
    assert [each.belief({"epsilon": 30}) for each in (first, second)] == ["99.999 %", "100 %"]
    assert second.doubled_delta({"epsilon": 1000, "delta": 1e-9}) == "1"
    assert [each.within(1.01) for each in (first, second)] == ["1.0", "1.1"]
    assert [each.invented(0.44) for each in (first, second)] == ["0.4", "0.5"]
    # Exact where a double is not: twelve times one tenth is 1.2, not a little more.
    assert second.loss({"epsilon": 0.1, "epsilon_exact": "0.1"}, "epsilon", 12) == "1.2"


def zealous_page(directory: Path, variant: str) -> str:
    """The page of a ZEALOUS release of queries alone."""
    chosen = ZealousParameters(kinds=("queries",))
    facts = {"guarantee": guarantee("zealous", variant, chosen), "pools": []}
    release = write_release(directory, rows={"queries": [("weather", 940)]}, **facts)
    return render({**release.manifest, "parameters": chosen.as_released()}, release.tables)


def test_zealous_says_how_items_were_chosen_and_which_counts_were_tested(tmp_path: Path) -> None:
    sound, modern = (zealous_page(tmp_path, variant) for variant in ("sound", "modern"))
    assert "at most 10 different items of each kind (queries)" in sound and "reached a threshold" in sound
    assert "Near the threshold" in sound and "it means a noisy count below the threshold" in sound
    assert "given weights" in modern and "Near the threshold" not in modern


MADE_UP = TableLayout(
    "made_up_log",
    (
        Column("user", "integer", "A made-up user."),
        Column("queries", "texts", "What the made-up user searched for, in order."),
    ),
    count=None,
    title="A made-up log",
)


def test_a_table_of_lists_without_counts_has_no_threshold_and_no_picture(release: Release) -> None:
    rows = pa.table({"user": [1, 2], "queries": [["weather", "größe"], ["<b>"]]}, schema=MADE_UP.schema)
    columns = [{"name": each.name, "type": each.type, "description": each.description} for each in MADE_UP.columns]
    facts = {**release.manifest["tables"]["queries"], "columns": columns, "threshold": None, "rows": 2}
    manifest = {**release.manifest, "mechanism": "other", "tables": {"made_up_log": facts}}
    account = Account(steps=("It was made up.",), holds="each row a user who never lived.")
    page = Page(
        render_page(manifest, {"made_up_log": in_public_order(rows, MADE_UP)}, account, {"made_up_log": "Made up"})
    )
    assert "weather → größe" in page.text and "<b>" in page.text
    assert "each row a user who never lived." in page.text
    assert "No threshold" in page.text and "Least printed count" not in page.text
    assert "Rows by noisy count" not in page.text
