"""The files that lie in `released/` itself, beside the mechanisms' folders: which there are, and whether they are true.

Each is a function of the catalogue. What another version of the software wrote cannot be compared byte by byte: it is
known by the record that was made when it was written, and is written anew by the next publication.
"""

from __future__ import annotations

from pathlib import Path

from qlog_assets.report.catalogue import Catalogue
from qlog_assets.report.datapackage import render_datapackage
from qlog_assets.report.index_page import render_index
from qlog_assets.report.page_record import PageRecord
from qlog_assets.report.public_zone import DATAPACKAGE_NAME, INDEX_NAME
from qlog_assets.storage.digests import bytes_digest


def render_pages(catalogue: Catalogue, released: Path) -> dict[str, str]:
    """The text of each file, by its name."""
    return {INDEX_NAME: render_index(catalogue), DATAPACKAGE_NAME: render_datapackage(catalogue, released)}


def compare_pages(catalogue: Catalogue, released: Path, record: PageRecord | None) -> tuple[list[str], list[str]]:
    """Findings and notes: which files do not say what ledger and manifests do, and which are not there yet.

    While a release is not there as it was published nothing is compared: that is what has to be mended first. Without a
    record, because the private zone is not here, a file that this version would not write may be another version's.
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
        found = path.read_bytes()
        if found == text.encode():
            continue
        if record is None:
            notes.append(
                f"released/{name} is not what this version of qlog writes, and private/, where it is recorded what "
                "was written, is not here: whether another version wrote it or somebody changed it cannot be told"
            )
            continue
        fits = [each.fits(catalogue) for each in record.get(name, ()) if each.page == bytes_digest(found)]
        if not fits:
            findings.append(
                f"released/{name} does not say what the ledger and the manifests say: {name_remedy(catalogue)}"
            )
        elif True in fits:
            notes.append(f"released/{name} was written by another version of qlog: the next publication writes it anew")
        elif None in fits:
            notes.append(
                f"released/{name} was written by another version of qlog, and this one cannot tell whether it lists "
                "all that is public: the next publication writes it anew"
            )
        else:
            findings.append(
                f"released/{name} is behind the ledger: whoever changed that last was interrupted, or an old copy was "
                f"put back: {name_remedy(catalogue)}"
            )
    return findings, notes


def name_remedy(catalogue: Catalogue) -> str:
    """What has the pages written anew, of what there is: a withdrawn release is not served, nor is a skipped month."""
    withdrawn = sorted((each.charge for each in catalogue.releases if each.withdrawn), key=lambda charge: charge.lost)
    ways = [
        *(["any release"] if catalogue.live else []),
        *([f"qlog withdraw {withdrawn[0].release_id}"] if withdrawn else []),
        *([f"qlog skip {each.mechanisms[0]} --month {each.month}" for each in catalogue.skips[:1]]),
    ]
    if not ways:
        return "remove it: nothing is public of this data set"
    return f"run {' or '.join(ways)} again: nothing is charged, and this is written anew"
