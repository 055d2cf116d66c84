"""A made-up log of a library: readers who search for what many search for, and for something of their own."""

from __future__ import annotations

from pathlib import Path

READERS = 1200
POPULAR = ("harry potter", "opening hours", "train timetable", "chess openings", "weather", "family tree")
MAP = 'user = "reader"\nquery = "searched"\ntime = "at"\n'


def write_library_log(path: Path, month: str = "2024-05", readers: int = READERS) -> None:
    """Three searches of each reader in a month, as CSV with semicolons."""
    rows = ["reader;searched;at"]
    for reader in range(1, readers + 1):
        own = f"the private shelf of reader {reader}"
        for number, query in enumerate((POPULAR[reader % 6], POPULAR[reader // 6 % 6], own)):
            rows.append(f"{reader};{query};{month}-{1 + reader % 28:02d} 10:{number:02d}:00")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
