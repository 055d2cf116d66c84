"""The register finds the folders, and a folder is a world of its own: adding a mechanism edits no list."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from qlog_assets.mechanisms.names import folder_names
from qlog_assets.mechanisms.register import cases, mechanism, mechanisms, names, releasable, simulated
from qlog_assets.settings import CHECKOUT

MECHANISMS = CHECKOUT / "qlog_assets" / "mechanisms"


def test_every_folder_is_a_mechanism_and_every_mechanism_a_folder() -> None:
    folders = {path.name for path in MECHANISMS.iterdir() if (path / "__init__.py").is_file()}
    assert set(names()) == folders == {each.name for each in mechanisms()}


def test_what_a_folder_holds_tells_what_can_be_done_with_it() -> None:
    """The command line lists names by these files, without importing anything."""
    assert set(folder_names("stages.py")) == {each.name for each in releasable()}
    assert set(folder_names("draw.py")) == {each.name for each in simulated()}
    assert set(folder_names("attacks.py")) == {case.mechanism for case in cases().values()} - {"noise"}


@pytest.mark.parametrize("name", names())
def test_a_mechanism_imports_no_other_mechanism(name: str) -> None:
    others = tuple(f"qlog_assets.mechanisms.{other}" for other in names() if other != name)
    for path in (MECHANISMS / name).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith(others), path


@pytest.mark.parametrize("name", names())
def test_every_mechanism_has_a_page_a_summary_and_a_title(name: str) -> None:
    page = CHECKOUT / "docs" / "mechanisms" / f"{name}.md"
    assert page.is_file() and len(page.read_text(encoding="utf-8")) > 500
    assert mechanism(name).title and mechanism(name).summary.endswith(".")


@pytest.mark.parametrize("name", [each.name for each in releasable()])
def test_a_mechanism_that_can_be_released_has_a_suite_per_table_and_for_its_limits(name: str) -> None:
    suites = CHECKOUT / "expectations" / name
    wanted = {f"released_{layout.name}.json" for layout in mechanism(name).tables}
    assert wanted | {f"{mechanism(name).limited_stage.name}.json"} == {path.name for path in suites.glob("*.json")}
    assert list((CHECKOUT / "sql" / name).glob("*.sql"))


def test_every_statement_is_named_somewhere_and_every_named_one_exists() -> None:
    """A statement that nothing runs is dead; one that is misspelt fails only when a user runs it."""
    texts: set[str] = set()
    for folder in ("qlog_assets", "benchmarks"):
        for path in (CHECKOUT / folder).rglob("*.py"):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            texts |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    # What Spark runs in place of a statement has that one's name.
    statements = {name.removesuffix(".spark") for name in shipped("sql", "*.sql")}
    suites = shipped("expectations", "*.json")
    assert statements - texts == set()
    folders = tuple({name.partition("/")[0] + "/" for name in statements})
    mentioned = {text for text in texts if text.startswith(folders) and Path(text).suffix == "" and " " not in text}
    assert mentioned - statements - suites == set()


def shipped(kind: str, pattern: str) -> set[str]:
    """The files of a kind by folder and name."""
    return {str(path.relative_to(CHECKOUT / kind).with_suffix("")) for path in (CHECKOUT / kind).rglob(pattern)}
