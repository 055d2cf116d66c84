"""README and citation file of a release: what they say is so, their snippets run, and they are part of the release."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest
import yaml
from support.door import APRIL, MARCH, release, warehouse_at
from support.instances import edit_policy
from support.snippets import snippets_of
from support.warehouses import build_chain

from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.release_files import render_citation, render_readme
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


@pytest.fixture
def folder(drawn: Path) -> Path:
    path = release(drawn).path
    assert path is not None
    return path


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_pandas_and_duckdb_snippets_read_the_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = load_manifest(folder / "manifest.json")["tables"]["queries"]["rows"]
    found = snippets_of(folder / "README.md")
    monkeypatch.chdir(folder)
    (by_pandas,) = (code for code in found["python"] if "pandas" in code)
    frame = run(by_pandas)["queries"]
    assert isinstance(frame, pandas.DataFrame) and len(frame) == rows > 0 and set(frame["month"]) == {str(MARCH)}
    (by_duckdb, _) = (code for code in found["python"] if "duckdb" in code)
    relation = run(by_duckdb)["queries"]
    assert isinstance(relation, duckdb.DuckDBPyRelation) and relation.fetchall() == list(
        frame.itertuples(index=False, name=None)
    )


def test_the_snippet_for_all_months_reads_each_once(folder: Path, drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_chain(drawn, APRIL)
    april = release(drawn, APRIL)
    assert april.rows is not None
    (_, together) = (code for code in snippets_of(folder / "README.md")["python"] if "duckdb" in code)
    monkeypatch.chdir(folder.parents[2])
    rows = load_manifest(folder / "manifest.json")["tables"]["queries"]["rows"]
    assert sorted(run(together)["months"].fetchall()) == [(str(MARCH), rows), (str(APRIL), april.rows["queries"])]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not on this machine")
def test_the_r_snippet_reads_the_table(folder: Path) -> None:
    (code,) = snippets_of(folder / "README.md")["r"]
    rows = load_manifest(folder / "manifest.json")["tables"]["queries"]["rows"]
    command = ["Rscript", "-e", f"{code}\ncat(nrow(queries), unique(queries$month))"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{rows} {MARCH}"


def test_the_citation_says_who_published_what_and_when(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    edit_policy(home, about='publisher = "Library: the \\"Große\\" #1"\nlicence = "CC-BY-4.0"')
    receipt = release(home)
    assert receipt.path is not None
    manifest = load_manifest(receipt.path / "manifest.json")
    cited = yaml.safe_load((receipt.path / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["authors"] == [{"name": 'Library: the "Große" #1'}] and cited["license"] == "CC-BY-4.0"
    assert (cited["version"], cited["type"]) == (manifest["release_id"], "dataset")
    assert str(cited["date-released"]) == manifest["drawn_on"] and "March 2006" in cited["title"]
    assert audit_warehouse(warehouse_at(home)).ok


def test_a_licence_without_a_known_name_stands_in_the_abstract(folder: Path) -> None:
    manifest = load_manifest(folder / "manifest.json")
    manifest["about"]["licence"] = "ask us: first"
    cited = yaml.safe_load(render_citation(manifest))
    assert "license" not in cited and cited["abstract"].endswith("Licence: ask us: first")


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
    assert re.search(r"ε = 20, δ = 0\.001", text)
