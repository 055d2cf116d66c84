"""The private record of the pages that the door wrote into `released/` itself: which bytes, and what they were made of.

What another version of the software wrote cannot be rendered again. By this record it is told from what somebody else
put there. It lies in the private zone: whoever can write into `released/` alone cannot change it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from qlog_assets.report.catalogue import FACTS_FORM, Catalogue
from qlog_assets.storage.digests import canonical_json, file_checksum, text_digest
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class WrittenPage:
    """One state of a page."""

    page: str
    """The digest of its bytes."""
    facts: str
    """The digest of the catalogue that it was made of."""
    form: int
    """By which form that digest was made."""

    def fits(self, catalogue: Catalogue) -> bool | None:
        """Whether it was made of this catalogue; None where another version made the digest in another way."""
        return self.facts == catalogue.digest if self.form == FACTS_FORM else None


PageRecord = Mapping[str, Sequence[WrittenPage]]
"""By the page's name: the newest state first, and the one that lay there before it."""


def record_path(warehouse: Warehouse) -> Path:
    return warehouse.private / "pages.json"


def read_record(path: Path) -> PageRecord:
    """What was recorded; nothing where there is no record, or none that can be read."""
    try:
        stored = json.loads(path.read_bytes())
        return {
            str(name): [WrittenPage(str(each["page"]), str(each["facts"]), int(each["form"])) for each in states]
            for name, states in stored.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def next_record(known: PageRecord, catalogue: Catalogue, pages: Mapping[str, str], released: Path) -> PageRecord:
    """The record once these pages are written. It keeps what lies there until then, if that is known: a process may die
    between the record and the page."""
    digest = catalogue.digest
    record = {}
    for name, text in pages.items():
        made = WrittenPage(text_digest(text), digest, FACTS_FORM)
        path = released / name
        there = file_checksum(path) if path.is_file() and not path.is_symlink() else made.page
        record[name] = [made, *(each for each in known.get(name, ()) if each.page == there != made.page)]
    return record


def record_text(record: PageRecord) -> str:
    return canonical_json({name: [asdict(each) for each in states] for name, states in record.items()})
