"""Asks the command line's own parser whether it takes a command, without running anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup

from qlog_assets.cli.app import app


@cache
def root() -> Any:
    return typer.main.get_command(app)


def all_commands(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below `qlog` that a help names, groups included, by its words."""
    shown = {name: each for name, each in (command or root()).commands.items() if not each.hidden}
    for name, each in shown.items():
        yield f"{path}{name}", each
        if isinstance(each, TyperGroup):
            yield from all_commands(each, f"{path}{name} ")


def parse(line: str) -> str:
    """The words of the command that a line names; raises what the parser would complain of."""
    name, *words = shlex.split(line)
    assert name == "qlog", line
    command, parent, path = root(), None, []
    while True:
        with command.make_context(name, list(words), parent=parent) as context:
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            if not isinstance(command, TyperGroup) or not rest:
                assert not rest and (path or not words), line
                return " ".join(path).strip()
            name, command, words = command.resolve_command(context, rest)
            path.append(name)
            parent = context


def fenced_commands(page: Path) -> list[str]:
    """The `qlog` commands in a page's code blocks, without what a shell does before or after them."""
    blocks = re.findall(r"^```(?:\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    # The program's name stands first, after settings of the environment, or behind its directory; a user has it, too.
    program = re.compile(r"(?:^(?:[A-Z_]+=\S+\s+)*|/s?bin/)(qlog\s[^|>#]*)")
    return [found[1].strip() for line in lines if (found := program.search(line))]


def inline_commands(page: Path) -> list[str]:
    """The `qlog` commands in a page's sentences."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`(qlog [^`]+)`", text)
