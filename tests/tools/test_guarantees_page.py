"""The generated page of guarantees: current, complete, and honest about what is not proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from qlog_assets.mechanisms.register import mechanisms
from tools import guarantees_page
from tools.pages import main


def run(*arguments: str) -> int:
    return main(guarantees_page.PAGE, guarantees_page.page, "make docs", arguments)


def test_the_page_in_the_repository_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--check") == 0, "run make docs"
    assert capsys.readouterr().err == ""


def test_a_stale_page_fails_the_check_and_writing_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantees_page, "PAGE", tmp_path / "guarantees.md")
    assert run("--check") == 1
    (tmp_path / "guarantees.md").write_text("# Something else\n", encoding="utf-8")
    assert run("--check") == 1
    assert "out of date" in capsys.readouterr().err
    assert run() == 0
    assert run("--check") == 0
    assert run("--force") == 2


def test_every_mechanism_variant_and_parameter_is_on_the_page() -> None:
    page = guarantees_page.page()
    for mechanism in mechanisms():
        for variant in mechanism.variants:
            assert f"### {mechanism.name}, {variant}\n" in page
        for field in mechanism.parameters.model_fields:
            assert f"| `{field}` |" in page


def test_every_parameter_says_what_it_means() -> None:
    for mechanism in mechanisms():
        for name, field in mechanism.parameters.model_fields.items():
            assert field.description, f"{mechanism.name}.{name}"


def test_what_is_not_proven_is_called_none() -> None:
    row = next(line for line in guarantees_page.page().splitlines() if line.startswith("| safelog | paper |"))
    publishable, claimed, proven = row.split(" | ")[2:5]
    assert (publishable, proven) == ("no", "none")
    assert claimed.endswith(", 0)")


def test_tables_have_as_many_cells_as_heads() -> None:
    width = 0
    for line in guarantees_page.page().splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = line.replace("\\|", "").count("|")
        assert width in (0, cells), line
        width = cells
