"""The pages of the repository tell the truth: links lead somewhere, commands parse, and accounts are what is priced."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from support.cli import qlog
from support.commands import fenced_commands, parse
from support.walked_pages import pattern_of, steps

from qlog_assets.mechanisms.register import names
from qlog_assets.settings import CHECKOUT

PAGES = sorted(
    {*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), CHECKOUT / "benchmarks" / "README.md"},
)
PICTURES = sorted((CHECKOUT / "docs").glob("**/*.png"))
MOST_BYTES = 200_000
"""Of a picture: a page is read on slow lines, and a repository keeps every version."""


def name_of(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


@cache
def anchors(page: Path) -> frozenset[str]:
    """What GitHub calls a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return frozenset(re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_to_files_of_the_repository_and_to_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.is_file() and path.is_relative_to(CHECKOUT), target
        assert not heading or heading in anchors(path), target


@pytest.mark.parametrize("page", [page for page in PAGES if fenced_commands(page)], ids=name_of)
def test_every_command_in_a_pages_code_parses(page: Path) -> None:
    for command in fenced_commands(page):
        if "…" not in command and "--version" not in command and not re.search(r"\b[A-Z]{4,}\b", command):
            parse(command)


@pytest.mark.parametrize("mechanism", names())
def test_a_mechanisms_page_says_what_it_repairs_when_to_use_it_and_shows_a_picture(mechanism: str) -> None:
    text = (CHECKOUT / "docs" / "mechanisms" / f"{mechanism}.md").read_text(encoding="utf-8")
    for heading in (r"## When to use it", r"## What the papers? do", r"## Its account"):
        assert re.search(rf"^{heading}", text, re.MULTILINE), heading
    assert f"](../pictures/mechanisms/{mechanism}.png)" in text


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", names())
def test_the_account_on_a_mechanisms_page_is_what_its_defaults_cost(mechanism: str, home: Path) -> None:
    (step,) = steps(CHECKOUT / "docs" / "mechanisms" / f"{mechanism}.md")
    assert step.command == f"qlog guarantee {mechanism}"
    said = qlog(home, *step.words[1:]).success
    for line in step.shown:
        assert pattern_of(line).search(said), (line, said)


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_pictures_are_small_and_shown_on_a_page(picture: Path) -> None:
    assert picture.stat().st_size < MOST_BYTES
    assert any(picture.name in page.read_text(encoding="utf-8") for page in PAGES), "no page shows it"
