"""How the command line talks: tables and progress for people, JSON for scripts."""

from __future__ import annotations

import contextlib
import getpass
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from qlog_assets.errors import QlogError

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON")]

# Tables take the width they need, and a narrow terminal wraps their lines: a path that is cut cannot be copied.
# No markup: a file may be called [b].
console = Console(highlight=False, soft_wrap=True, width=10_000, markup=False)


def stderr_line(text: str) -> None:
    """One line for a person, whatever the width of the terminal and whatever a file is called."""
    if sys.stderr is not None:  # None where the caller closed it
        with contextlib.suppress(OSError):  # full, or nobody reads it: the exit code tells
            print(printable(" ".join(text.split())), file=sys.stderr)


def printable(text: str) -> str:
    """Text that a terminal shows as it is: bytes of a file name that are no text, and control characters, escaped."""
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("utf-8", "surrogateescape").decode("ascii", "backslashreplace")
        if "\udc80" <= sign <= "\udcff"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def printable_json(line: str) -> str:
    """A line of JSON with what a terminal may obey as JSON's own escapes: it means the same."""
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line)


def bold(text: str, after: str = "") -> Text:
    """Text to print, the first part of it bold."""
    return Text.assemble((text, "bold"), after)


def say_now(text: str) -> None:
    """A line that somebody waits for, while the command goes on."""
    print(text, flush=True)


def ask_password(name: str) -> str:
    """A new password, typed twice; or a line of standard input, where nobody can type."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != first:
        raise QlogError("the two passwords differ: nothing was written")
    return first


def somebody_answers() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def progress(as_json: bool, *, at_once: bool = True) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error that names what is being done; silent for scripts and where nobody looks.

    Not at once: from the first step on, because a question may come before it.
    """
    watcher = Console(stderr=True)
    if as_json or not watcher.is_terminal:
        yield lambda step: None
        return
    with watcher.status("starting") as status:
        if not at_once:
            status.stop()

        def tell(step: str) -> None:
            status.update(step)
            status.start()

        yield tell


@contextmanager
def progress_bar(as_json: bool) -> Iterator[tuple[Callable[[str], None], Callable[[int, int, str], None]]]:
    """A bar on standard error for work in parts: what hears steps by name, and what hears how far the work is."""
    watcher = Console(stderr=True)
    if as_json or not watcher.is_terminal:
        yield lambda step: None, lambda done, of, step: None
        return
    with Progress(console=watcher, transient=True) as bars:
        bar = bars.add_task("starting", total=None)
        yield (
            lambda step: bars.update(bar, description=step),
            lambda done, of, step: bars.update(bar, description=step, completed=done, total=of),
        )


def show(facts: dict[str, Any], as_json: bool, lines: Callable[[dict[str, Any]], None]) -> None:
    """Print an answer as JSON, or in words."""
    if as_json:
        # A terminal that knows no UTF-8 gets JSON's own escapes; so do bytes of a file name that are no text.
        plain = not (sys.stdout.encoding if sys.stdout else "utf-8").lower().startswith("utf")
        text = json.dumps(facts, ensure_ascii=plain, indent=1, sort_keys=True)
        print("\n".join(printable_json(line) for line in text.split("\n")))
    else:
        lines(facts)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A plain table; columns of numbers are aligned right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    # Cells may be released texts, which hold whatever many people typed.
    printed = [[printable(str(cell)) for cell in row] for row in rows]
    for number, column in enumerate(columns):
        cells = [row[number] for row in printed]
        numeric = bool(cells) and all(
            cell.replace(",", "").replace(".", "").replace("-", "").isdigit() for cell in cells
        )
        table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in printed:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
