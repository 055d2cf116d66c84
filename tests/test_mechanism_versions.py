"""A mechanism's version is pinned to the files that decide the law of its output.

A release is drawn once for each version: a change of the law without a new version would serve old noise for new, and
a new version without a change would ask for a second charge. After a change, `python tests/test_mechanism_versions.py`
prints the pins to put here.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from qlog_assets.mechanisms.mechanism import MechanismEntry
from qlog_assets.mechanisms.register import register

ROOT = Path(__file__).resolve().parent.parent

PINS = {
    "safelog": (1, "7ba5844d34710ac8"),
    "zealous": (1, "8a98f92e66f67169"),
}

# What these say is part of the request itself (parameters), of its price (guarantees), is never published (what only
# `paper` variants draw), or decides nothing (errors).
NOT_THE_LAW = ("errors.py", "parameters.py", "parameters_others.py", "guarantees/", "two_draws.py", "paper_noise.py")
LAW = ("qlog_assets/drawing/", "qlog_assets/mechanisms/", "qlog_assets/privacy/")


def digest(entry: MechanismEntry) -> str:
    """One digest of all files that decide what a mechanism draws."""
    texts = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in sorted(entry.sources)}
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def test_every_mechanism_is_pinned() -> None:
    assert set(PINS) == set(register())


@pytest.mark.parametrize("name", register())
def test_the_version_stands_for_the_sources_as_they_are(name: str) -> None:
    entry = register()[name]
    assert PINS[name] == (entry.version, digest(entry)), (
        f"what decides the law of {name} was changed: raise its version if the law of the output changed, "
        "then update the digest (python tests/test_mechanism_versions.py prints it)"
    )


@pytest.mark.parametrize("name", register())
def test_no_module_or_statement_that_decides_the_law_is_left_out(name: str) -> None:
    """Everything that the drawing module imports from where noise is made, and every statement it names."""
    entry = register()[name]
    modules = set(reached(Path(f"qlog_assets/drawing/{name}.py")))
    unlisted = {str(path) for path in modules if not any(part in str(path) for part in NOT_THE_LAW)}
    statements = {path.stem for path in (ROOT / "sql").glob("*.sql")}
    named = {node.value for node in ast.walk(parsed(Path(f"qlog_assets/drawing/{name}.py"))) if is_text(node)}
    unlisted |= {f"sql/{statement}.sql" for statement in statements & named}
    assert unlisted - set(entry.sources) == set()
    assert [source for source in entry.sources if not (ROOT / source).is_file()] == []


def reached(start: Path) -> Iterator[Path]:
    """The modules of the law that one module imports, directly or not. The register itself is no way to others."""
    seen, waiting = set(), [start]
    while waiting:
        path = waiting.pop()
        if path in seen or path.name == "__init__.py" or not str(path).startswith(LAW) or not (ROOT / path).exists():
            continue
        seen.add(path)
        yield path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = Path(node.module.replace(".", "/"))
                waiting += [module.with_suffix(".py"), *(module / f"{alias.name}.py" for alias in node.names)]


def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


if __name__ == "__main__":
    for entry in register().values():
        print(f'    "{entry.name}": ({entry.version}, "{digest(entry)}"),')
