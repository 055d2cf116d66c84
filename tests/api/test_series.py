"""`qlog series` and `qlog_assets.series`: a query over months, from public files that somebody downloaded."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from support.cli import qlog
from support.public_files import lay_release, lay_tombstone

import qlog_assets
from qlog_assets.api.series import ask_for
from qlog_assets.api.series_plot import draw_series, write_plot
from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.register import guarantee, mechanism
from qlog_assets.report.table_noise import GEOMETRIC, TableNoise

CLICKS = [("weather", "http://weather.example", 402)]


@pytest.fixture
def months(tmp_path: Path) -> Path:
    """March and May with the query, June without it, April and July without a release, August withdrawn."""
    folder = tmp_path / "released"
    lay_release(folder, "2006-03", {"queries": [("weather", 940)], "clicks": CLICKS})
    lay_release(folder, "2006-05", {"queries": [("weather", 310), ("news", 300)]})
    lay_release(folder, "2006-06", {"queries": [("news", 205)], "transitions": [("weather", "news", 260)]})
    lay_tombstone(folder, "2006-08", "made from the wrong file")
    return folder


def test_every_month_is_a_count_with_its_error_or_says_why_it_is_none(months: Path) -> None:
    points = qlog_assets.series(" Weather ", home=months)
    assert [(point.month, point.state, point.users) for point in points] == [
        ("2006-03", "printed", 940),
        ("2006-04", "no release", None),
        ("2006-05", "printed", 310),
        ("2006-06", "not printed", None),
        ("2006-07", "no release", None),
        ("2006-08", "withdrawn", None),
    ]
    first, missing, withdrawn = points[0], points[3], points[5]
    # Two-sided geometric noise of scale 10: 19 of 20 stay within 10·ln 20.
    assert first.standard_error == 14.2
    assert (first.low, first.high) == pytest.approx((940 - 10 * math.log(20), 940 + 10 * math.log(20)), abs=0.05)
    assert missing.fewer_than_about == 200, "whether the query is on the public list is not known here"
    assert withdrawn.note == "was withdrawn on 2026-11-17: made from the wrong file"
    assert {(point.mechanism, point.variant) for point in points if point.users} == {("safelog", "sound")}
    assert first.release_id == "safelog-2006-03-000000000001" and first.table == "queries"


def test_a_pair_is_found_with_its_address_or_its_next_query(months: Path) -> None:
    clicked = qlog_assets.series("weather", url="HTTP://Weather.example/", home=months)
    assert [(point.state, point.users) for point in clicked[:3]] == [
        ("printed", 402),
        ("no release", None),
        ("no such table", None),
    ]
    followed = qlog_assets.series("weather", next_query="News", mechanism="safelog", home=months)
    assert [point.users for point in followed if point.state == "printed"] == [260]


def test_the_command_tells_gaps_as_gaps_and_draws_bars(months: Path) -> None:
    said = qlog(months, "series", "weather").success
    lines = {line.split()[0]: line for line in said.splitlines() if line.startswith("2006-")}
    assert "940" in lines["2006-03"] and "±14.2" in lines["2006-03"] and "910 to 970" in lines["2006-03"]
    # 24 cells stand for 970, the highest end of an error bar.
    assert (lines["2006-03"].count("█"), lines["2006-05"].count("█")) == (23, 7)
    assert "fewer than about 200" in lines["2006-06"] and "no release" in lines["2006-04"]
    assert "withdrawn" in lines["2006-08"] and "made from the wrong file" in said
    assert not any(line.split()[3:4] == ["0"] for line in lines.values()), "nothing is told as zero"
    told = qlog(months, "series", "weather", "--json").json
    assert told["query"] == "weather" and told["mixed"] == [] and told["plot"] is None
    assert [point["users"] for point in told["points"]] == [940, None, 310, None, None, None]


def test_ranges_are_said_of_noises_where_a_threshold_chose_the_rows(months: Path) -> None:
    said = qlog(months, "series", "weather")
    assert "19 of 20 is said of noises, not of rows" in said.success
    told = qlog(months, "series", "weather", "--json").json
    assert len(told["caveats"]) == 1 and [point["passed"] for point in told["points"][:2]] == [True, False]
    assert qlog(months, "series", "unheard of", "--json").json["caveats"] == [], "nothing is printed of it"
    (path,) = months.glob("safelog/2006-03/*/manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["tables"]["clicks"]["noise"]["tested"] = False
    path.write_text(json.dumps(manifest), encoding="utf-8")
    (clicked, *_) = qlog_assets.series("weather", url="http://weather.example", home=months)
    assert clicked.low is not None and not clicked.passed, "chosen first, and counted afterwards with fresh noise"


@pytest.mark.parametrize(("threshold", "share", "lifted"), [(45, "39 %", "30"), (100, "89 %", "8"), (200, "95 %", "2")])
def test_what_the_page_says_of_counts_near_a_threshold_is_what_the_law_gives(
    threshold: int, share: str, lifted: str
) -> None:
    """Exactly: noise of scale 10, and of counts twice as high a quarter as many, printed within 10 of the threshold."""
    noise = TableNoise(GEOMETRIC, 10.0)
    lifts, counts = np.arange(-600, 601), np.arange(1, 20_000)
    chances = np.exp(-np.abs(lifts) / 10)
    noisy = counts[:, None] + lifts[None, :]
    weights = np.where((noisy >= threshold) & (noisy < threshold + 10), chances / counts[:, None] ** 2.0, 0)
    weights /= weights.sum()
    within = weights[:, np.abs(lifts) <= noise.within(0.95)].sum()
    assert (f"{within:.0%}".replace("%", " %"), f"{(weights * lifts).sum():.0f}") == (share, lifted)
    page = (Path(__file__).resolve().parents[2] / "docs" / "reading.md").read_text(encoding="utf-8")
    assert f"| {threshold} | {share} | {lifted} |" in page


def test_months_that_were_not_made_alike_are_said_to_be_and_are_not_joined_in_the_picture(months: Path) -> None:
    chosen = mechanism("safelog").parameters()
    lay_release(months, "2006-04", {"queries": [("weather", 500)]}, guarantee=guarantee("safelog", "modern", chosen))
    told = qlog(months, "series", "weather", "--json").json
    (sentence,) = told["mixed"]
    assert "the months of safelog were not all made alike" in sentence and "modern" in sentence and "sound" in sentence
    assert {point["variant"] for point in told["points"]} == {"sound", "modern", None}
    assert joined_months(months) == 0


def test_months_that_follow_one_another_and_were_made_alike_are_joined(months: Path) -> None:
    assert joined_months(months) == 0, "a month without a release is a gap"
    lay_release(months, "2006-04", {"queries": [("weather", 500)]})
    assert joined_months(months) == 2


def joined_months(home: Path) -> int:
    """How many lines between two months the picture has; they alone are drawn so faintly."""
    drawn = draw_series(ask_for("weather", None, None), qlog_assets.series("weather", home=home), "svg")
    return drawn.count(b"stroke-opacity: 0.6")


def test_the_picture_is_a_png_or_svg_file_and_nothing_half_written(months: Path, tmp_path: Path) -> None:
    png, svg = tmp_path / "weather.png", tmp_path / "weather.svg"
    assert qlog(months, "series", "weather", "--plot", png, "--json").json["plot"] == str(png)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "plot: " in qlog(months, "series", "price $x$ \x1b[31m", "--plot", svg).success
    assert "<svg" in svg.read_text(encoding="utf-8") and "\x1b" not in svg.read_text(encoding="utf-8")
    assert "ends in .png or .svg" in qlog(months, "series", "weather", "--plot", tmp_path / "weather.pdf").refusal
    assert "directory is not there" in qlog(months, "series", "weather", "--plot", tmp_path / "no" / "w.png").refusal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["released", "weather.png", "weather.svg"]


def test_a_picture_takes_the_place_of_nothing(months: Path, tmp_path: Path) -> None:
    taken, link, held = tmp_path / "taken.png", tmp_path / "link.png", tmp_path / "held.svg"
    taken.mkdir()
    link.symlink_to(tmp_path / "elsewhere.png")
    held.write_text("somebody's")
    for path in (taken, link, held):
        assert (
            "is there already: name another file, or remove it"
            in qlog(months, "series", "weather", "--plot", path).refusal
        )
    assert held.read_text() == "somebody's" and not (tmp_path / "elsewhere.png").exists()
    asked, points = ask_for("weather", None, None), qlog_assets.series("weather", home=months)
    with pytest.raises(QlogError, match="is there already"):
        write_plot(held, asked, points)
    assert held.read_text() == "somebody's", "also if it came after the first look"
    closed = tmp_path / "closed"
    with pytest.raises(QlogError, match="cannot be written"):
        write_plot(closed / "weather.png", asked, points)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held.svg", "link.png", "released", "taken.png"]


def test_no_picture_is_written_among_releases_or_into_the_warehouse(tmp_path: Path) -> None:
    home, downloads = tmp_path / "warehouse", tmp_path / "downloads"
    lay_release(home / "released", "2006-03", {"queries": [("weather", 940)]})
    lay_release(downloads, "2006-03", {"queries": [("weather", 940)]})
    (home / "private").mkdir()
    (tmp_path / "door").symlink_to(home / "private")
    before = sorted(path for path in tmp_path.rglob("*"))
    for words in (
        ("--plot", home / "released" / "w.png"),
        ("--plot", home / "private" / "w.svg"),
        ("--plot", tmp_path / "door" / "w.svg"),
        ("--plot", home / "w.png", "--home", downloads),
        ("--plot", downloads / "safelog" / "2006-03" / "w.png", "--home", downloads),
        ("--plot", downloads / "safelog" / ".." / "w.png", "--home", downloads),
    ):
        assert (
            "holds releases or what is private: name a place outside it"
            in qlog(home, "series", "weather", *words).refusal
        )
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_what_cannot_be_followed_is_said_in_one_line(months: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    asked = {
        ("weather", "--mechanism", "zealous"): "there is no release of 'zealous': there are releases of safelog",
        ("weather", "--url", "a.example", "--next", "news"): "not with both",
        ("  ",): "what is looked for is empty",
        (os.fsdecode(b"\xff"),): "is not text",
        ("weather", "--home", tmp_path / "empty"): "holds no release",
        ("weather", "--home", tmp_path / "nowhere"): "is no directory",
    }
    for words, refusal in asked.items():
        assert refusal in qlog(months, "series", *words).refusal
    only = tmp_path / "only"
    lay_release(only, "2006-03", {"queries": [("weather", 940)]})
    with pytest.raises(QlogError, match="no release has a table of counts by query and url"):
        qlog_assets.series("weather", url="a.example", home=only)
