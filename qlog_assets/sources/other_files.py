"""Files that people give as logs and that hold no lines of text: what they are, and what to do with them.

Asked only where no row of a file can be used. `BZh` may also be what the first person typed, and one person's row may
not cost the others theirs.
"""

from __future__ import annotations

import codecs
import zipfile
from pathlib import Path

from qlog_assets.sources.compressed import GZIP_MAGIC, ZSTD_MAGIC

DAMAGED = "is damaged or cut short: fetch it again and ingest the whole file"
ZIP_MAGIC = b"PK\x03\x04"
COMPRESSED = "is compressed with {}: decompress it, or compress it with gzip or zstd"
SPREADSHEET = "is a spreadsheet and not text: save it there as CSV UTF-8, and ingest that with --format table"
UTF_16 = "is UTF-16: save it as UTF-8 (in Excel: CSV UTF-8)"
OTHER_MAGIC = {
    b"BZh": COMPRESSED.format("bzip2"),
    b"\xfd7zXZ\x00": COMPRESSED.format("xz"),
    ZSTD_MAGIC: DAMAGED,
    GZIP_MAGIC: DAMAGED,
    b"PAR1": "is not a readable Parquet file, or not given as one: fetch it again, or use the format table",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": SPREADSHEET,
    codecs.BOM_UTF16_LE: UTF_16,
    codecs.BOM_UTF16_BE: UTF_16,
    b"SQLite format 3\0": "is a database and not text: write the table out as CSV, and ingest that",
}
"""How files begin that are no lines of text, and what is said of them."""
SHEET_MEMBERS = ("xl/", "content.xml")
"""What Excel's and LibreOffice's files hold, which are zip files."""
SHEET_SUFFIXES = frozenset({".xlsx", ".xlsm", ".xls", ".ods"})
"""What a workbook is called, also one that is damaged."""
HEAD_BYTES = 1 << 12


def say_other_kind(path: Path) -> str | None:
    """What a file is that begins like one without lines of text, and what to do; None if it begins like no such."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    is_called_so = path.suffix.lower() in SHEET_SUFFIXES
    if head.startswith(ZIP_MAGIC):
        return SPREADSHEET if is_called_so or _holds_sheets(path) else COMPRESSED.format("zip")
    said = next((said for start, said in OTHER_MAGIC.items() if head.startswith(start)), None)
    # Text is often called so, too: it is read as what it is.
    return SPREADSHEET if said is None and is_called_so and b"\0" in head else said


def _holds_sheets(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith(SHEET_MEMBERS) for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return False
