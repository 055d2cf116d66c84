"""The files that lie in `released/` itself, beside the mechanisms' folders: which there are, and whether they are true.

Each is a function of the catalogue. What another version of the software wrote cannot be compared byte by byte: it is
written anew by the next publication.
"""

from __future__ import annotations

from pathlib import Path

from qlog_assets.report.catalogue import Catalogue
from qlog_assets.report.datapackage import render_datapackage
from qlog_assets.report.index_page import GENERATOR, render_index
from qlog_assets.report.public_zone import DATAPACKAGE_NAME, INDEX_NAME

MEND = "run any release again: it is served at no charge, and this is written anew"


def render_pages(catalogue: Catalogue, released: Path) -> dict[str, str]:
    """The text of each file, by its name."""
    return {INDEX_NAME: render_index(catalogue), DATAPACKAGE_NAME: render_datapackage(catalogue, released)}


def compare_pages(catalogue: Catalogue, released: Path) -> tuple[list[str], list[str]]:
    """Findings and notes: which files do not say what ledger and manifests do, and which are not there yet.

    While a release is not there as it was published nothing is compared: that is what has to be mended first.
    """
    findings: list[str] = []
    notes: list[str] = []
    if not catalogue.is_whole:
        return findings, notes
    for name, text in render_pages(catalogue, released).items():
        path = released / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            continue  # nothing that the ledger knows, which is said of everything under released/
        if not path.exists():
            if catalogue.releases:
                notes.append(f"released/{name} is not there: the next publication writes it")
            continue
        found = path.read_text(encoding="utf-8", errors="replace")
        if found == text:
            continue
        if GENERATOR not in found:
            notes.append(f"released/{name} was written by another version of qlog: the next publication writes it anew")
        else:
            findings.append(f"released/{name} does not say what the ledger and the manifests say: {MEND}")
    return findings, notes
