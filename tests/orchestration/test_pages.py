"""What Dagster's pages say: in words that need no glossary, with pictures of public numbers, and what to do next."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import dagster as dg
import mistune
import numpy as np
import pyarrow as pa
import pytest
from support.instances import load_definitions, make_home
from support.public_files import lay_release

from qlog_assets.checks.suites import CheckResult
from qlog_assets.orchestration import words
from qlog_assets.orchestration.metadata import as_plain_text, picture, rows_as_markdown, table_metadata, to_check_result
from qlog_assets.report.charts import picture_counts, picture_errors
from qlog_assets.report.markdown import table as markdown_table
from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, TableNoise
from qlog_assets.report.tables import add_month

OUR_OWN_WORDS = ("door", "shape", "partition", "seeded", "materialization", "receipt", "pinned", "this very")
"""What means something else, or nothing, to somebody who opens the page for the first time."""


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    with pytest.MonkeyPatch.context() as patch:
        return load_definitions(make_home(tmp_path_factory.mktemp("pages") / "warehouse"), patch)


def described(definitions: dg.Definitions) -> dict[str, str | None]:
    """The description of everything that has a page of its own."""
    graph, repository = definitions.resolve_asset_graph(), definitions.get_repository_def()
    jobs = [job for job in definitions.resolve_all_job_defs() if not job.name.startswith("__")]
    return {
        **{spec.key.to_user_string(): spec.description for spec in definitions.resolve_all_asset_specs()},
        **{
            f"{key.asset_key.to_user_string()}:{key.name}": graph.get_check_spec(key).description
            for key in graph.asset_check_keys
        },
        **{f"job {job.name}": job.description for job in jobs},
        **{f"schedule {each.name}": each.description for each in repository.schedule_defs},
        **{f"sensor {each.name}": each.description for each in repository.sensor_defs},
    }


def test_everything_with_a_page_is_described_in_whole_sentences_without_our_own_words(
    definitions: dg.Definitions,
) -> None:
    found = described(definitions)
    assert len(found) > 80
    for name, text in found.items():
        assert text and len(text) > 40 and text.rstrip()[-1] in ".…?", name
        assert "\n" not in text and "  " not in text, name
        assert not [word for word in OUR_OWN_WORDS if word in text.lower().split()], name


def test_who_opens_a_page_learns_what_is_private_what_is_public_and_what_costs_something(
    definitions: dg.Definitions,
) -> None:
    found = described(definitions)
    assert str(found["released_queries"]).startswith("Public: the table queries of the month's release by Safelog")
    for name in ("raw_log", "cleaned_log", "capped_log", "zealous_items"):
        assert words.PRIVATE in str(found[name])
    for name in ("simulated_safelog", "study_zealous", "job zealous_study", "job safelog_simulation"):
        assert words.UNCHARGED in str(found[name])
    for name in ("schedule safelog_monthly", "sensor landing_files"):
        assert "Off until somebody switches it on." in str(found[name])


def test_a_released_table_lists_its_columns_with_what_they_hold(definitions: dg.Definitions) -> None:
    specs = {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}
    schema: Any = specs["released_clicks"].metadata["dagster/column_schema"]
    assert [column.name for column in schema.columns] == ["query", "url", "users"]
    assert all(column.description for column in schema.columns)


@pytest.mark.parametrize("severity", list(dg.AssetCheckSeverity))
def test_a_failed_check_says_what_next_and_one_that_passed_does_not(severity: dg.AssetCheckSeverity) -> None:
    failed = to_check_result(CheckResult(False, "log/x", 3, (), "too many rows"), "count again", severity)
    assert failed.description == "too many rows. What next: count again" and failed.severity is severity
    passed = to_check_result(CheckResult(True, "log/x", 3, (), "held"), "count again", severity)
    assert passed.description == "held"


def test_a_table_that_could_not_be_made_right_again_tells_whom_to_tell() -> None:
    line = words.stage_next("capped_log")
    assert line.startswith("nothing was published or charged; materialize capped_log") and "report" in line


def picture_in(value: Any) -> ElementTree.Element:
    """The picture inside a value of Markdown, which is all that it holds."""
    head, _, data = str(value.value).partition("(data:image/svg+xml;base64,")
    assert head.startswith("![") and head.endswith("]") and data.endswith(")")
    return ElementTree.fromstring(base64.b64decode(data[:-1]))


def test_a_release_shows_its_counts_and_first_rows_from_its_public_files(tmp_path: Path) -> None:
    rows = {"queries": [("weather", 940), ("![x](http://a.example/x.png) | <b>", 300)]}
    facts = table_metadata(lay_release(tmp_path, "2006-03", rows), "queries")
    assert facts["dagster/row_count"] == 2
    assert [column.name for column in facts["dagster/column_schema"].columns] == ["query", "users"]
    for name, title in (("counts", "Rows by noisy count"), ("expected error by count", "Standard error as a share")):
        assert title in "".join(picture_in(facts[name]).itertext())
    # A page is of one month: the column of it, which newer tables have, would say the same ten times.
    preview = str(facts["preview"].value).splitlines()
    assert preview[0] == "| query | users |" and preview[2] == "| weather | 940 |"
    shown = preview[3].replace("\u200b", "")
    assert shown == r"| \!\[x\](http://a.example/x.png) \| \<b\> | 300 |", "a text loads and breaks nothing"


def test_a_release_of_a_version_that_did_not_state_its_noise_has_no_picture_of_it(tmp_path: Path) -> None:
    folder = lay_release(tmp_path, "2006-03", {"queries": [("weather", 940)]})
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["tables"]["queries"]["noise"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    facts = table_metadata(folder, "queries")
    assert "counts" in facts and "expected error by count" not in facts


def test_the_first_rows_are_shown_alike_with_and_without_a_column_of_the_month() -> None:
    rows = pa.table({"query": ["weather"], "users": [3]})
    assert rows_as_markdown(rows) == rows_as_markdown(add_month(rows, "2006-03"))


def test_texts_in_a_preview_stay_texts_whatever_was_typed() -> None:
    table = pa.table({"queries": [["a`b", "c\x1b[31m"]], "users": [3]})
    assert "\x1b" not in rows_as_markdown(table) and r"\`" in rows_as_markdown(table)


@pytest.mark.parametrize(
    "typed",
    [
        "http://a.example/x",
        "see HTTPS://a.example",
        "www.a.example",
        "ftp://a.example",
        "somebody@a.example",
        "mailto:x",
        "`www.a.example` and ``more``",
        "![x](http://a.example/x.png)",
        "<http://a.example>|www.b.example\\",
        "`",
        "\\`www.a.example",
    ],
)
def test_no_text_becomes_a_link_also_where_bare_addresses_do(typed: str) -> None:
    """By a renderer with the tables and the bare links of GitHub's dialect, which Dagster's pages have."""
    shown = mistune.create_markdown(plugins=["table", "url"])(
        markdown_table(["query", "users"], [[as_plain_text(typed), "3"]])
    )
    assert "<a " not in shown and "<img" not in shown
    # What this renderer does not link, and others do.
    assert not re.search(r"://|\bwww\.|\w@|mailto:", shown)
    (cell,) = re.findall(r"<tbody>\s*<tr>\s*<td>(.*?)</td>\s*<td>3</td>", shown)
    assert html.unescape(cell).replace("\u200b", "") == typed


def shapes(svg: str, kind: str) -> list[str]:
    return [str(each.get("points")) for each in ElementTree.fromstring(svg).iter() if each.tag.endswith(kind)]


def test_the_picture_of_errors_falls_with_the_count_and_is_a_band_where_rows_differ() -> None:
    counts, errors = np.array([1000, 100, 100, 20]), np.array([30.0, 12.0, 25.0, 20.0])
    plain = picture_errors(TableNoise(GEOMETRIC, 10), counts, None)
    (line,) = shapes(plain, "polyline")
    heights = [int(point.split(",")[1]) for point in line.split()]
    assert heights == sorted(heights) and heights[0] < heights[-1], "in a picture, down is more"
    assert not shapes(plain, "polygon")
    assert len(shapes(picture_errors(TableNoise(GAUSSIAN, 12, by_row=True), counts, errors), "polygon")) == 1
    nothing = picture_errors(TableNoise(GAUSSIAN, 12, by_row=True), counts[:0], errors[:0])
    assert "too few rows" in "".join(ElementTree.fromstring(nothing).itertext())


def test_pictures_are_small_enough_for_dagster_to_show_them_in_their_place() -> None:
    """It hides Markdown of 1,000 signs and more behind a button."""
    rng = np.random.default_rng(5)
    for largest in (3, 10**3, 10**7):
        counts = np.unique(rng.integers(1, largest, 2000, endpoint=True))
        errors = rng.uniform(1, 900, len(counts))
        for noise in (TableNoise(GEOMETRIC, 10), TableNoise(GAUSSIAN, 3000), TableNoise(GAUSSIAN, 12, by_row=True)):
            assert len(picture("Standard error by count", picture_errors(noise, counts, errors)).value or "") < 1000
        for least in (1, 250, 10**6):
            assert len(picture("Rows by noisy count", picture_counts(counts, least)).value or "") < 1000


def test_every_row_is_in_the_picture_of_counts() -> None:
    """Also those below the least count, which a table that was chosen first may have, and the very largest."""
    drawn = picture_counts(np.array([1, 60, 60, 10**9]), 50)
    assert "tallest bar: 3 rows" in drawn
