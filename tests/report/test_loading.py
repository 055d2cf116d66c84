"""The snippets that a release prints for its readers read its tables."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from support.releases import ROWS, Release

from qlog_assets.report.loading import loading_snippets


def test_every_table_is_read_in_every_language(release: Release) -> None:
    snippets = loading_snippets(release.manifest)
    assert list(snippets) == ["pandas", "DuckDB", "Polars", "R"]
    for snippet in snippets.values():
        assert snippet.endswith("\n") and all(f"{name}.parquet" in snippet for name in ROWS)


@pytest.mark.parametrize(("language", "module"), [("pandas", "pandas"), ("Polars", "polars")])
def test_the_snippets_in_python_read_what_was_released(
    release: Release, monkeypatch: pytest.MonkeyPatch, language: str, module: str
) -> None:
    pytest.importorskip(module)
    monkeypatch.chdir(release.directory)
    variables: dict[str, Any] = {}
    exec(loading_snippets(release.manifest)[language], variables)
    assert {name: len(variables[name]) for name in ROWS} == {name: len(rows) for name, rows in ROWS.items()}


def test_the_snippet_for_duckdb_reads_what_was_released(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(release.directory)
    with duckdb.connect() as connection:
        connection.execute(loading_snippets(release.manifest)["DuckDB"])
        rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in ROWS}
    assert rows == {name: (len(content),) for name, content in ROWS.items()}
