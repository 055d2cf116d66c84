"""Public pages in a browser: light and dark, wide and on a phone, nothing fetched, nothing said to the console, and no
rule of WCAG AA broken that axe-core knows. Pages register themselves with `support.inspection.public_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.datasheets import example_datasheet, requests_of
from support.inspection import PAGES, Inspection, inspect_page, open_browser, public_page
from support.releases import write_release

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.privacy.guarantee import WORDS
from qlog_assets.report.datasheet import DATASHEET_NAME, write_datasheet

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@public_page("datasheet")
def write_example(folder: Path) -> Path:
    """Safelog with every table, whose rows hold markup."""
    made, safelog = write_release(folder), mechanism("safelog")
    write_datasheet(made.manifest, made.tables, folder, safelog.account(made.manifest), safelog.titles)
    return folder / DATASHEET_NAME


@public_page("steered datasheet")
def write_steered(folder: Path) -> Path:
    """The modern variant: two curves in each picture."""
    case = next(
        each for each in requests_of(WORDS - 1) if (each["mechanism"], each["variant"]) == ("safelog", "modern")
    )
    path = folder / DATASHEET_NAME
    path.write_text(example_datasheet(case, WORDS, "0.5.0").page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.mark.parametrize("name", PAGES)
def test_a_public_page_is_quiet_whole_and_accessible(browser: Browser, tmp_path: Path, name: str) -> None:
    path = PAGES[name](tmp_path)
    assert inspect_page(browser, path.as_uri(), tmp_path.as_uri(), name.replace(" ", "-")) == Inspection()


def test_a_page_that_breaks_the_rules_is_noticed(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        '<!doctype html><html lang="en"><title>x</title><main><h1 style="color: #ccc; background: #fff">pale</h1>'
        '<div style="width: 3000px">wide</div><img src="http://127.0.0.1:9/no.png"></main>',
        encoding="utf-8",
    )
    found = inspect_page(browser, path.as_uri(), tmp_path.as_uri())
    assert any("color-contrast" in each for each in found.violations)
    assert any("image-alt" in each for each in found.violations)
    assert len(found.overflowing) == 4 and set(found.strangers) == {"http://127.0.0.1:9/no.png"} and found.console


def test_dark_and_light_differ_and_pictures_follow(browser: Browser, tmp_path: Path) -> None:
    path = write_example(tmp_path)
    seen = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(path.as_uri())
        seen.append(
            page.evaluate(
                "[getComputedStyle(document.body).backgroundColor, "
                "getComputedStyle(document.querySelector('.plot .heading')).fill, "
                "getComputedStyle(document.querySelector('.plot .curve-1')).stroke]"
            )
        )
        page.close()
    assert all(light != dark for light, dark in zip(*seen, strict=True))


def test_on_a_phone_tables_scroll_inside_themselves_and_on_paper_not_at_all(browser: Browser, tmp_path: Path) -> None:
    path = write_example(tmp_path)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    assert page.evaluate("[...document.querySelectorAll('.wide')].some(each => each.scrollWidth > each.clientWidth)")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == "visible"
    page.close()
