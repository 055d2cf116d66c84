"""The generated page of guarantees: current, complete, and honest about what is not proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from qlog_assets.mechanisms.guarantees import mechanisms, parameter_model, variants
from qlog_assets.report import guarantees_page


def test_the_page_in_the_repository_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarantees_page.main(["--check"]) == 0, "run python -m qlog_assets.report.guarantees_page"
    assert capsys.readouterr().err == ""


def test_a_stale_page_fails_the_check_and_writing_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantees_page, "PAGE", tmp_path / "guarantees.md")
    assert guarantees_page.main(["--check"]) == 1
    (tmp_path / "guarantees.md").write_text("# Something else\n", encoding="utf-8")
    assert guarantees_page.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert guarantees_page.main([]) == 0
    assert guarantees_page.main(["--check"]) == 0
    assert guarantees_page.main(["--force"]) == 2


def test_every_mechanism_variant_and_parameter_is_on_the_page() -> None:
    page = guarantees_page.page()
    for mechanism in mechanisms():
        for variant in variants(mechanism):
            assert f"### {mechanism}, {variant}\n" in page
        for field in parameter_model(mechanism).model_fields:
            assert f"| `{field}` |" in page


def test_every_parameter_says_what_it_means() -> None:
    for mechanism in mechanisms():
        for name, field in parameter_model(mechanism).model_fields.items():
            assert field.description, f"{mechanism}.{name}"


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
