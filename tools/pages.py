"""A generated page as a program: writes it, or with `--check` says whether it is out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main(page: Path, write: Callable[[], str], command: str, arguments: Sequence[str] | None = None) -> int:
    """0 if the page was written or is current, 1 if it is out of date, 2 on a wrong argument."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given not in ([], ["--check"]):
        print(f"usage: {command} [--check]", file=sys.stderr)
        return 2
    text = write()
    if not given:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"docs/{page.name} is out of date: run {command}", file=sys.stderr)
    return 1
