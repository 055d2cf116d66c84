"""A list of releases to look at: three months, two mechanisms, one withdrawal, one skip, and texts that hold markup."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from support.releases import write_release

from qlog_assets.ledger import Charge
from qlog_assets.ledger.records import Request
from qlog_assets.ledger.windows import Span
from qlog_assets.months import Month
from qlog_assets.report.catalogue import Catalogue, ListedRelease, ListedSkip
from qlog_assets.report.public_pages import render_pages

PUBLIC_TEXT = "One file was read twice <b>and</b> a corrected release follows."


def charge_of(month: str, mechanism: str, state: str, number: int) -> Charge:
    request = Request("demo", month, mechanism, "sound", 1, {"threshold": 10}, {})
    release_id = f"{mechanism}-{month}-{number:012x}"
    return Charge(
        release_id,
        "f" * 64,
        request,
        1,
        Fraction(2),
        Fraction(1, 10**6),
        None,
        None,
        Span(Month(month), Month(month)),
        state,  # type: ignore[arg-type]
        number,
        f"2006-12-{number:02} 10:00:00",
        "operator",
        None,
        None,
        drawn_seq=number,
        public_text=PUBLIC_TEXT if state == "withdrawn" else None,
    )


def example_catalogue(folder: Path) -> Catalogue:
    """Releases whose files lie below a folder, and what else there is to say."""
    manifest = write_release(folder).manifest
    releases = []
    for number, (month, mechanism) in enumerate(
        [("2006-05", "safelog"), ("2006-05", "zealous"), ("2006-04", "safelog"), ("2006-03", "safelog")], start=1
    ):
        state = "withdrawn" if month == "2006-04" else "published"
        charge = charge_of(month, mechanism, state, number)
        own = {**manifest, "month": month, "release_id": charge.release_id, "documents": [{"path": "datasheet.html"}]}
        path = f"{mechanism}/{month}/{charge.release_id}"
        releases.append(ListedRelease(charge, path, None if state == "withdrawn" else own, newest=number != 2))
    listed = tuple(replace(release) for release in releases)
    return Catalogue("demo", listed, (ListedSkip("2006-02", ("safelog", "zealous"), "Nothing was recorded."),))


def write_example_index(folder: Path) -> Path:
    """The index of the example, in a folder of its own."""
    catalogue = example_catalogue(folder)
    for name, text in render_pages(catalogue, folder).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "index.html"
