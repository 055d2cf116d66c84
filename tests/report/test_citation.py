"""A release is cited the same way everywhere, and what its owner says of it breaks no format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from support.releases import Release

from qlog_assets.report.citation import citation_bibtex, citation_cff, citation_text, licence_name

HOSTILE = 'A {B & "C": 50 % #1_x\\\n- y: ~^$\u202e \U0001f600'


def about(**said: str | None) -> dict[str, str | None]:
    return {"publisher": None, "population": None, "contact": None, "licence": None, **said}


def test_a_citation_names_publisher_year_release_and_promise(make_release: Callable[..., Release]) -> None:
    manifest = make_release(about=about(publisher="Example Search Ltd.")).manifest
    assert citation_text(manifest) == (
        "Example Search Ltd (2026). Search statistics of demo, March 2006 [Data set]. Release "
        "safelog-2006-03-0123456789. Differentially private: ε = 2, δ = 0.000001 per user."
    )


def test_a_release_whose_publisher_is_not_stated_can_be_cited(release: Release) -> None:
    for text in (citation_text(release.manifest), citation_bibtex(release.manifest), citation_cff(release.manifest)):
        assert "The publisher of demo" in text and release.manifest["release_id"] in text


def test_a_bibtex_entry_closes_what_it_opens_whatever_the_owner_wrote(make_release: Callable[..., Release]) -> None:
    entry = citation_bibtex(make_release(about=about(publisher=HOSTILE)).manifest)
    assert entry.startswith("@misc{safelog-2006-03-0123456789,\n") and entry.endswith("}\n")
    assert entry.count("{") == entry.count("}")  # BibTeX counts those after a backslash, too
    assert r"50 \% \#1\_x" in entry and "$\\varepsilon = 2$" in entry and "\u202e" not in entry
    assert [line.split(" = ")[0].strip() for line in entry.splitlines()[1:-1]] == [
        "author", "title", "year", "howpublished", "note",
    ]  # fmt: skip


@pytest.mark.parametrize("publisher", [None, "Example", HOSTILE])
def test_the_citation_file_is_yaml_of_the_fields_its_format_has(
    make_release: Callable[..., Release], publisher: str | None
) -> None:
    manifest = make_release(about=about(publisher=publisher, licence="CC BY 4.0")).manifest
    found: dict[str, Any] = yaml.safe_load(citation_cff(manifest))
    assert list(found) == [
        "cff-version", "message", "type", "title", "authors", "version", "date-released",
        "abstract", "keywords", "license",
    ]  # fmt: skip
    assert found["type"] == "dataset" and found["date-released"] == "2026-11-16" and found["license"] == "CC-BY-4.0"
    assert found["version"] == manifest["release_id"] and manifest["guarantee"]["sentence"] in found["abstract"]
    assert len(found["authors"]) == 1 and list(found["authors"][0]) == ["name"]


@pytest.mark.parametrize(
    ("stated", "known"),
    [
        ("cc-by-4.0", "CC-BY-4.0"),
        ("CC0", "CC0-1.0"),
        ("ODbL 1.0", "ODbL-1.0"),
        ("ask us first", None),
        (None, None),
    ],
)
def test_a_licence_has_a_name_for_machines_only_if_it_is_one(
    make_release: Callable[..., Release], stated: str | None, known: str | None
) -> None:
    manifest = make_release(about=about(licence=stated)).manifest
    assert licence_name(manifest) == known
    assert ("\nlicense: " in citation_cff(manifest)) == (known is not None)
    assert stated is None or f"Licence: {stated}" in yaml.safe_load(citation_cff(manifest))["abstract"]
