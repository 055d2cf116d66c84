"""A reader of the datasheet alone can answer what matters, whichever mechanism made the release."""

from __future__ import annotations

import functools
import re
from html import unescape
from typing import Any

import pytest
from support.datasheets import Example, example_datasheet, name_of, requests_of
from support.pages import Page

from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.privacy.guarantee import WORDS
from qlog_assets.report.citation import citation_bibtex, citation_text
from qlog_assets.report.datasheet_numbers import numbers_of
from qlog_assets.report.loading import loading_snippets
from qlog_assets.report.table_noise import GAUSSIAN, GEOMETRIC, TableNoise

BEHIND_A_LOG = {
    "stability": TableNoise(GEOMETRIC, 10.0, tested_from=120.0),
    "weighted_gaussian": TableNoise(GAUSSIAN, 12.0, tested=False),
}
"""What sanitized logs state of the numbers that they were dealt from; the third words stated nothing."""
CASES = requests_of(WORDS - 1)
every_request = pytest.mark.parametrize("place", range(len(CASES)), ids=[name_of(case) for case in CASES])
HOSTILE = "</script><script>alert(1)</script><!-- & 'x'"


@functools.cache
def example(place: int) -> Example:
    """The release of a request in today's words, by an owner who means no good."""
    case = CASES[place]
    stated = dict(case["noise"])
    if case["mechanism"] == "sanitized":
        stated["log"] = BEHIND_A_LOG[case["parameters"]["method"]].as_json()
    about = {"publisher": HOSTILE, "licence": "CC BY 4.0"}
    return example_datasheet({**case, "noise": stated}, WORDS, "0.5.0", about=about)


def answers(page: str) -> dict[str, str]:
    """Questions and answers of the first section."""
    section = page.partition('<section id="glance">')[2].partition("</section>")[0]
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", section)
    return {
        question: re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer))).strip() for question, answer in pairs
    }


def test_every_mechanism_that_can_be_released_is_asked() -> None:
    asked = {(case["mechanism"], case["variant"]) for case in CASES}
    known = {
        (each.name, variant)
        for each in releasable()
        for variant in each.variants
        if each.guarantee(variant, each.parameters()).publishable
    }
    assert asked == known


@every_request
def test_the_first_section_answers_what_a_reader_asks(place: int) -> None:
    made = example(place)
    found, numbers, guarantee = answers(made.page), numbers_of(WORDS), made.manifest["guarantee"]
    losses = f"ε = {numbers.loss(guarantee, 'epsilon')}, δ = {numbers.loss(guarantee, 'delta')}"
    assert found["Privacy loss"].startswith(losses)
    assert found["Who is protected"] == "Each user: all records of one user, present or absent."
    assert found["Month"] == "March 2006 (2006-03)"
    assert found["Rows"].count("3 of ") == len(made.manifest["tables"])
    change = found["What one person can change"]
    assert re.match(r"What one user did is in the counts of at most [0-9]", change)
    assert "adds at most one to each" in change and f"at most {numbers.belief(guarantee)} sure" in change
    off = found["How far off a count of 100 may be"]
    assert re.search(r"In 19 of 20 cases noise moves .*100.* by no more than [0-9.,]+ users \([0-9.,]+ %\)", off)
    assert found["How to load it"].startswith("Parquet and CSV; lines for pandas, DuckDB, Polars and R")
    assert found["How to cite it"].startswith(citation_text(made.manifest))


@every_request
def test_the_page_has_the_lines_that_load_and_cite_it(place: int) -> None:
    made = example(place)
    page = Page(made.page)
    page.assert_loads_nothing()
    listings = [unescape(text) for text in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", made.page, re.DOTALL)]
    assert citation_bibtex(made.manifest) in listings
    assert {lines.split()[0] for lines in listings} == {
        "import",
        "CREATE",
        "library(arrow)",
        f"@misc{{{made.manifest['release_id']},",
    }
    assert sorted(line for text in listings for line in text.splitlines() if "parquet" in line) == sorted(
        line for text in loading_snippets(made.manifest).values() for line in text.splitlines() if "parquet" in line
    )


@every_request
def test_every_table_states_its_noise_in_words_numbers_and_pictures(place: int) -> None:
    made = example(place)
    errors = made.page.partition('<section id="errors">')[2].partition("</section>")[0]
    articles = errors.split("<article>")[1:]
    headings = " ".join(re.findall(r"<h3>(.*?)</h3>", errors)).lower()
    assert all(title.lower() in headings for title in titles(made.manifest))
    for article in articles:
        assert 'aria-label="Error as a share of the count.' in article
        has_chances = "Missing, if " in article or "Chance that it is missing</th>" in article
        assert ('aria-label="Chance that it is missing.' in article) == has_chances


def titles(manifest: dict[str, Any]) -> list[str]:
    known = mechanism(manifest["mechanism"]).titles
    return [known[name] for name in manifest["tables"]]


def test_thresholds_that_nobody_set_are_told_as_they_came_out() -> None:
    place = next(place for place, case in enumerate(CASES) if case["parameters"].get("click_threshold", "") is None)
    particulars = example(place).page.partition("<h2>Particulars</h2>")[2]
    assert ">click_threshold</td><td>20 (derived)</td>" in particulars and ">off<" not in particulars
    assert "<dt>Clicked addresses</dt><dd>20 users</dd>" in particulars
    assert re.search("<dt>Queries</dt><dd>[0-9]+ users, on a public list; [0-9]+ users, on none</dd>", particulars)


@every_request
def test_machines_read_the_same_in_the_block_of_data(place: int) -> None:
    made = example(place)
    (data,) = Page(made.page).data
    assert (data["@context"], data["@type"]) == ("https://schema.org/", "Dataset")
    assert data["name"] == "Search statistics of demo, March 2006" and len(data["description"]) >= 50
    assert data["identifier"] == made.manifest["release_id"]
    assert data["temporalCoverage"] == "2006-03-01/2006-03-31"
    assert data["license"] == "https://creativecommons.org/licenses/by/4.0/"
    assert data["creator"] == {"@type": "Organization", "name": HOSTILE}
    technique = data["measurementTechnique"]
    assert made.manifest["mechanism"] in technique and "ε = " in technique and "δ = " in technique
    files = [file for table in made.manifest["tables"].values() for file in table["files"].values()]
    assert [each["contentUrl"] for each in data["distribution"]] == [file["path"] for file in files]
    assert {each["encodingFormat"] for each in data["distribution"]} == {"application/vnd.apache.parquet", "text/csv"}
    columns = {
        f"{name}.{column['name']}" for name, table in made.manifest["tables"].items() for column in table["columns"]
    }
    assert {each["name"] for each in data["variableMeasured"]} == columns


def test_a_licence_that_is_not_stated_is_not_claimed() -> None:
    (data,) = Page(example_datasheet(CASES[0], WORDS, "0.5.0").page).data
    assert "license" not in data


def test_the_same_release_is_the_same_page() -> None:
    first, second = (example_datasheet(CASES[0], WORDS, "0.5.0").page for _ in range(2))
    assert first == second
