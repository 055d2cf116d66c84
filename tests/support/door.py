"""The door as tests use it: opened in this process, or in a child that is forked from a preloaded parent and may die.

The children come from `support.cli`'s server, which has imported Great Expectations and Dagster once. Nothing is
replaced in them but the hook that the door offers for faults.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.cli import context
from support.instances import MONTHS

from qlog_assets.door import door as door_module
from qlog_assets.door.door import Door
from qlog_assets.door.ledgers import named_witness
from qlog_assets.door.receipt import Receipt
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.report.public_zone import latest_release
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

MARCH, APRIL = Month(MONTHS[0]), Month(MONTHS[1])
LONGEST_SECONDS = 120
REFUSED = 2
"""A child's exit code for a QlogError, as the command line's."""


def warehouse_at(home: Path) -> Warehouse:
    return Warehouse(Settings(home=home, memory_limit_mb=512, threads=2)).make()


def door_at(home: Path, settings: Mapping[str, str] | None = None, **ledger_options: Any) -> Door:
    """The door of a warehouse, with the policy in it and what a run's `settings` change."""
    warehouse = warehouse_at(home)
    policy = Policy.load(home / "policy.toml").with_run_changes(settings or {})
    witness = named_witness(warehouse, policy)
    return Door(warehouse, policy, Ledger.open(warehouse.ledger_url, witness=witness, **ledger_options))


def release(
    home: Path, month: Month = MARCH, settings: Mapping[str, str] | None = None, again: str | None = None
) -> Receipt:
    """Draw and publish, as the two assets do. The answer says whether the draw was charged."""
    door = door_at(home, settings)
    charged = door.draw("safelog", month, again=again).charged
    published = door.publish("safelog", month)
    return Receipt(published.charge, charged, published.guarantee, published.path, published.rows)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def charges(home: Path) -> list[Charge]:
    return Ledger.open(warehouse_at(home).ledger_url).charges()


def public_files(home: Path) -> dict[str, bytes]:
    """Everything under `released/`, links as what they point at."""
    files = {}
    for path in sorted((home / "released").rglob("*")):
        if path.is_symlink():
            files[str(path.relative_to(home))] = os.readlink(path).encode()
        elif path.is_file():
            files[str(path.relative_to(home))] = path.read_bytes()
    return files


def latest_folder(home: Path, mechanism: str, month: str = MARCH) -> Path:
    """The directory of a month's newest release."""
    folder = latest_release(Warehouse(Settings(home=home)), mechanism, month)
    assert folder is not None, f"{mechanism} {month} has no release"
    return folder


def leftovers(home: Path) -> list[Path]:
    """What is half-made anywhere in a warehouse."""
    return [path for path in home.rglob(".*") if "dagster" not in path.parts]


# Children -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (negative: killed by that signal), and what it said."""

    code: int
    answer: Any

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Child:
    """A function that runs in a process of its own."""

    def __init__(self, task: Callable[..., Any], *arguments: Any) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.answer = Path(self.folder.name) / "answer.json"
        self.process = context().Process(target=_run, args=(str(self.answer), task, arguments))
        self.process.start()

    def end(self) -> Ended:
        self.process.join(LONGEST_SECONDS)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise AssertionError(f"a child took more than {LONGEST_SECONDS} s")
        text = self.answer.read_text(encoding="utf-8") if self.answer.exists() else "null"
        self.folder.cleanup()
        return Ended(self.process.exitcode, json.loads(text))


def in_child(task: Callable[..., Any], *arguments: Any) -> Ended:
    return Child(task, *arguments).end()


def _run(answer: str, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        said, code = task(*arguments), 0
    except QlogError as error:
        said, code = str(error), REFUSED
    except Exception:  # noqa: BLE001 - the parent's assertion shows it
        said, code = traceback.format_exc(), 1
    Path(answer).write_text(json.dumps(said), encoding="utf-8")
    os._exit(code)


def released_id(home: Path, settings: Mapping[str, str] | None = None, again: str | None = None) -> str:
    """A child's task: release March, and say which release that is."""
    return release(home, settings=settings, again=again).charge.release_id


def die_at(point: str) -> None:
    """Make the door of this process die where it reaches a named point, as from `kill -9`."""

    def kill(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    door_module.on_point = kill


def die_releasing(home: Path, point: str) -> str:
    """A child's task: release March and die on the way."""
    die_at(point)
    return released_id(home)


# Dagster ------------------------------------------------------------------------------------------------------------


def materialize(home: Path, *assets: str, month: Month | None = MARCH, config: Path | None = None) -> Ended:
    """`dagster asset materialize` in a process of its own; the answer is what it printed."""
    partition = [] if month is None else ["--partition", str(month)]
    partition += [] if config is None else ["--config", str(config)]
    select = ["--select", ",".join(assets)]
    command = ["dagster", "asset", "materialize", *select, *partition, "-m", "qlog_assets.definitions"]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        process = context().Process(target=_run_dagster, args=(command, home, str(output)))
        process.start()
        process.join(LONGEST_SECONDS)
        assert process.exitcode is not None, f"{' '.join(command)} took more than {LONGEST_SECONDS} s"
        return Ended(process.exitcode, output.read_text(encoding="utf-8"))


def _run_dagster(command: list[str], home: Path, output: str) -> None:
    warehouse = warehouse_at(home)
    os.environ |= {"QLOG_HOME": str(home), "DAGSTER_HOME": str(warehouse.dagster)}
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv = command
    from dagster._cli import main

    main()
