"""The datasheet says how exact counts are: plain ones, those of chosen items, and those with errors of their own."""

from __future__ import annotations

import re
from html import unescape

import pytest
from support.releases import Release

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.report.datasheet import render
from qlog_assets.report.datasheet_numbers import Numbers
from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, Look, Reach, TableNoise

PLAIN = TableNoise(GEOMETRIC, 10.0)
MODERN = TableNoise(
    GAUSSIAN, 48.0, tested=False, reaches=(Reach(1, (Look(29.5, 4.75),)), Reach(200, (Look(417.2, 67.0),)))
)


def page_with(release: Release, **noise: TableNoise) -> str:
    """The words of a page whose tables state this noise, and no other."""
    tables = {
        name: {key: value for key, value in facts.items() if key != "noise"}
        | ({"noise": noise[name].as_json()} if name in noise else {})
        for name, facts in release.manifest["tables"].items()
    }
    manifest, safelog = {**release.manifest, "tables": tables}, mechanism("safelog")
    text = render(manifest, release.tables, safelog.account(manifest), safelog.titles)
    return unescape(re.sub(r"<[^>]+>", "|", text.partition("</style>")[2]))


def row_of(page: str, users: int) -> list[str]:
    """The cells of the first grid's row for so many users."""
    found = re.search(rf"\|\|{users}\|\|([^\n]*?)\|\|\|", page[page.index("Number of users") :])
    assert found is not None
    return found.group(1).split("||")


def test_plain_counts_tell_their_error_and_the_chance_of_a_missing_row(release: Release) -> None:
    page = page_with(release, queries=PLAIN)
    assert "with a standard deviation of 15 users (two-sided geometric)" in page
    assert "the chance that a row is missing follows from the noise alone" in page
    # Thresholds of the example: 100 on the list, 200 outside it; 100 users are even, but for the tie.
    assert row_of(page, 10) == ["142 %", "above 99.9 %", "above 99.9 %"]
    assert row_of(page, 100) == ["15 %", "48 %", "above 99.9 %"]
    assert row_of(page, 500) == ["2.9 %", "below 0.1 %", "below 0.1 %"]
    assert "Standard deviation of the noise in a count: 15 users." in page


def test_chosen_items_tell_bounds_that_public_parameters_give(release: Release) -> None:
    page = page_with(release, clicks=MODERN)
    assert "with a standard deviation of 48 users (discrete Gaussian)" in page
    assert "30 users did it who hold nothing else, or 418 users who hold 200 items each" in page
    assert row_of(page, 20) == ["240 %", "98 %", "above 99.9 %"]
    assert row_of(page, 500) == ["9.6 %", "below 0.1 %", "11 %"]


def test_what_is_the_same_of_several_tables_is_said_once(release: Release) -> None:
    page = page_with(release, queries=MODERN, clicks=MODERN, transitions=PLAIN)
    assert "|Queries and clicked addresses|" in page and page.count("Number of users") == 2
    assert len(re.findall(r"\|±33\|", page)) == 2 and "|±30|" in page


@pytest.mark.parametrize(("scale", "half", "most"), [(4.0, "±3", "±12"), (1.0, "±1", "±3"), (0.3, "±0", "±1")])
def test_widths_of_whole_noise_are_whole_users(release: Release, scale: float, half: str, most: str) -> None:
    page = page_with(release, queries=TableNoise(GEOMETRIC, scale))
    assert f"|{half}|" in page and f"|{most}|" in page
    users = "1 user" if most == "±1" else f"{most[1:]} users"
    assert f"noise moves a count of 100 by no more than {users} (" in page
    assert f"in half of all cases by no more than {half[1:]}." in page


def test_rows_that_differ_point_to_their_column(release: Release) -> None:
    page = page_with(release, queries=TableNoise(GAUSSIAN, 2.5, by_row=True, tested=False))
    assert "the column standard_error has the standard deviation of each. The least is 2.5 users" in page
    assert "Standard error, at least" in page and "|from 2.5|" in page and "|from ±1.7|" in page


def test_only_items_that_can_be_rows_have_a_chance(release: Release) -> None:
    page = page_with(release, transitions=TableNoise(GEOMETRIC, 18.0, among="pairs of released queries"))
    assert "This is said of pairs of released queries: nothing else can be a row." in page


def test_a_page_without_stated_noise_says_so(release: Release) -> None:
    page = page_with(release)
    assert "The draw did not state it." in page and "Number of users" not in page


@pytest.mark.parametrize(
    ("value", "relative", "chance"),
    [(0.0, "0.0 %", "below 0.1 %"), (0.0123, "1.3 %", "1.2 %"), (0.4801, "49 %", "48 %"), (0.9985, "100 %", "99.9 %"),
     (1.0, "100 %", "above 99.9 %")],
)  # fmt: skip
def test_errors_round_up_and_chances_are_never_certain(value: float, relative: str, chance: str) -> None:
    assert (Numbers().relative(value), Numbers().chance(value)) == (relative, chance)
