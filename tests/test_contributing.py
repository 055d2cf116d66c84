"""CONTRIBUTING.md tells the truth: what it says to open is there, and its commands are make targets."""

from __future__ import annotations

import re

import pytest

from qlog_assets.settings import CHECKOUT

TEXT = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def rows() -> list[tuple[str, str]]:
    """What to change and what to open, from the table of that name."""
    heading = next(line for line in TEXT.splitlines() if re.match(r"\| *to change", line, re.IGNORECASE))
    table = TEXT.split(heading)[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table if line.startswith("| ")]
    return [(row[0], row[1]) for row in cells]


def test_a_newcomer_finds_at_least_twenty_things() -> None:
    assert len(rows()) >= 20


@pytest.mark.parametrize(("change", "places"), rows(), ids=[change for change, _ in rows()])
def test_what_is_to_be_opened_is_there(change: str, places: str) -> None:
    named = [re.sub(r"<[a-z]+>", "*", path) for path in re.findall(r"`([^`]+)`", places)]
    assert named, change
    for path in named:
        assert list(CHECKOUT.glob(path.rstrip("/"))), path


def test_every_make_target_it_names_is_one() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z-]+)`?", TEXT)) - {"it"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
