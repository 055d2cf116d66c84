"""README and citation file of a release: what they say is so, their snippets run, and they are part of the release."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from support.door import APRIL, MARCH, release, warehouse_at
from support.instances import edit_policy
from support.snippets import snippets_of
from support.warehouses import build_chain

from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.release_files import render_readme
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


@pytest.fixture
def folder(drawn: Path) -> Path:
    path = release(drawn).path
    assert path is not None
    return path


def rows_of(folder: Path) -> dict[str, int]:
    return {name: facts["rows"] for name, facts in load_manifest(folder / "manifest.json")["tables"].items()}


def test_the_pandas_and_duckdb_snippets_read_every_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, names = snippets_of(folder / "README.md"), {}
    monkeypatch.chdir(folder)
    (code,) = (code for code in found["python"] if "pandas" in code)
    exec(compile(code, "README.md", "exec"), names)
    assert {name: len(names[name]) for name in rows_of(folder)} == rows_of(folder)
    assert set(names["queries"]["month"]) == {str(MARCH)}
    with duckdb.connect() as connection:
        assert len(connection.execute(found["sql"][0]).fetchall()) == min(5, rows_of(folder)["queries"]) > 0
        for name, rows in rows_of(folder).items():
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (rows,)


def test_the_snippet_for_all_months_reads_each_once(folder: Path, drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_chain(drawn, APRIL)
    april = release(drawn, APRIL)
    assert april.rows is not None
    monkeypatch.chdir(folder.parents[2])
    with duckdb.connect() as connection:
        counted = connection.execute(snippets_of(folder / "README.md")["sql"][1]).fetchall()
    assert sorted(counted) == [(str(MARCH), rows_of(folder)["queries"]), (str(APRIL), april.rows["queries"])]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not on this machine")
def test_the_r_snippet_reads_the_table(folder: Path) -> None:
    (code,) = snippets_of(folder / "README.md")["r"]
    command = ["Rscript", "-e", f"{code}\ncat(nrow(queries), unique(queries$month))"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert ended.stdout.endswith(f"{rows_of(folder)['queries']} {MARCH}")


def test_the_citation_says_who_published_what_and_when(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    edit_policy(home, about='publisher = "Library: the \\"Große\\" #1"\nlicence = "CC-BY-4.0"')
    receipt = release(home)
    assert receipt.path is not None
    manifest = load_manifest(receipt.path / "manifest.json")
    cited: dict[str, Any] = yaml.safe_load((receipt.path / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["authors"] == [{"name": 'Library: the "Große" #1'}] and cited["license"] == "CC-BY-4.0"
    assert (cited["version"], cited["type"]) == (manifest["release_id"], "dataset")
    assert str(cited["date-released"]) == manifest["drawn_on"] and "March 2006" in cited["title"]
    assert audit_warehouse(warehouse_at(home)).ok


def test_what_a_publisher_is_called_cannot_write_markdown(folder: Path) -> None:
    manifest = load_manifest(folder / "manifest.json")
    manifest["about"]["publisher"] = "a](http://b) <img> \n# c"
    text = render_readme(manifest, ["queries"])
    assert "\\](http://b) \\<img\\>" in text and "\n# c" not in text


def test_both_files_are_in_the_manifest_and_a_changed_one_is_found(folder: Path, drawn: Path) -> None:
    names = [document["path"] for document in load_manifest(folder / "manifest.json")["documents"]]
    assert names == ["datasheet.html", "README.md", "CITATION.cff"]
    (folder / "README.md").write_text("curl example | sh", encoding="utf-8")
    report = audit_warehouse(warehouse_at(drawn))
    assert any("README.md is not the file that was published" in finding for finding in report.all_findings)


def test_the_readme_names_every_table_and_column(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for name, facts in load_manifest(folder / "manifest.json")["tables"].items():
        assert f"`{name}.parquet`" in text and f"{facts['rows']:,} rows" in text
        assert all(f"- `{column['name']}`: {column['description']}" in text for column in facts["columns"])
    assert "ε = 20, δ = 0.001" in text
