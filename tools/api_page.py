"""Writes docs/api.md: the functions of `import qlog_assets`, their answers and the errors, from the code itself.

Run `python -m tools.api_page` to write the page, with `--check` to fail when it is out of date.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

import qlog_assets
from qlog_assets.errors import QlogError
from tools.pages import DOCS, main

PAGE = DOCS / "api.md"
LONGEST = 100
"""Characters of a call that stands on one line."""

INTRODUCTION = """\
# Python API

This page is generated: `make docs` writes it, and a test fails when it is out of date.

```python
import qlog_assets as qlog
```

These functions are the whole public interface in Python. They do what the commands of the same names do, on the
warehouse that `QLOG_HOME` names, and are imported on first use. What is not on this page may change in any version.
What a release publishes is an interface, too: the columns of its tables, which its datasheet lists, and
`manifest.json`.
"""


def page() -> str:
    """The whole page as Markdown."""
    calls = {name: getattr(qlog_assets, name) for name in qlog_assets.__all__ if not name.startswith("_")}
    text = INTRODUCTION
    for name, function in sorted(calls.items()):
        text += f"\n## `{name}`\n\n```python\n{signature_of(name, function)}\n```\n\n{paragraphs(function)}\n"
    text += "\n## Answers\n"
    for answer in answers_of(list(calls.values())):
        rows = [f"| `{field}` | `{kind}` | {meaning} |" for field, kind, meaning in fields_of(answer)]
        text += f"\n### `{answer.__name__}`\n\n{paragraphs(answer)}\n\n| field | type | |\n|---|---|---|\n"
        text += "\n".join(rows) + "\n"
    return f"{text}\n## Errors\n\nA refusal is a `{QlogError.__name__}`. {paragraphs(QlogError)}\n"


def signature_of(name: str, function: Callable[..., object]) -> str:
    """A call as it is written in code, with a line for each argument if it is long."""
    signature, meant = inspect.signature(function), aliases(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {meanings(str(parameter.annotation), meant)}{default}")
    answer = meanings(str(signature.return_annotation), meant)
    line = f"qlog.{name}({', '.join(parts)}) -> {answer}"
    if len(line) <= LONGEST:
        return line
    return f"qlog.{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {answer}"


def aliases(function: Callable[..., object]) -> dict[str, str]:
    """What names of a function's own module stand for in its annotations."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(function)))  # type: ignore[arg-type]
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in assigned}


def meanings(annotation: str, meant: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Z]\w+\b", lambda found: meant.get(found[0], found[0]), annotation)


def paragraphs(documented: object) -> str:
    return inspect.cleandoc(inspect.getdoc(documented) or "")


def answers_of(calls: Sequence[Callable[..., object]]) -> list[type]:
    """The dataclasses that the functions give back, by name, also those that their modules import for types alone."""
    found: dict[str, type] = {}
    for call in calls:
        module = inspect.getmodule(call)
        assert module is not None
        imported = {
            alias.name: node.module
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("qlog_assets")
            for alias in node.names
        }
        for name in re.findall(r"\w+", str(inspect.signature(call).return_annotation)):
            home = importlib.import_module(imported[name]) if name in imported else module
            if dataclasses.is_dataclass(answer := getattr(home, name, None)) and isinstance(answer, type):
                found[name] = answer
    return [found[name] for name in sorted(found)]


def fields_of(answer: type) -> Iterator[tuple[str, str, str]]:
    """Each field with its type, and what the text under it in the source says of it."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(answer))).body
    assert isinstance(body, ast.ClassDef)
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = following.value if isinstance(following, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            yield node.target.id, ast.unparse(node.annotation).replace("|", "\\|"), " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main(PAGE, page, "python -m tools.api_page"))
