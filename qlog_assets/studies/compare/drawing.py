"""Draws a system in a process of its own, so that its seconds and its memory are those of the draw and nothing else.

The largest memory of a process never falls again: in one process, whoever draws after a large draw would look as large.
What goes to the process comes from this program, by a pipe; what it draws lies in a private folder until it is read.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.processes import end_with_parent
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.compare.systems import System
from qlog_assets.studies.parts import Part

KILOBYTES_PER_MEGABYTE = 1024
"""Memory is counted in kilobytes."""


@dataclass(frozen=True)
class Asked:
    """What the other process is asked to draw, and where to put it."""

    settings: Settings
    released: Path
    policy: Policy
    month: Month
    mechanism: str
    variant: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Draw:
    """What was drawn, what is promised of it, and what it took."""

    tables: dict[str, pa.Table]
    claimed: dict[str, float] | None
    proven: dict[str, float] | None
    seconds: float | None
    megabytes: float | None
    note: str = ""
    """Why nothing could be drawn, where that is so."""


class UndrawableError(QlogError):
    """The mechanism itself refuses to draw: an answer that is kept. All else fails the step, to be tried again."""


def draw_apart(system: System, part: Part, seed: int) -> Draw:
    """A seeded draw of a system from a part of a month: from its cleaned log, which is made before the clock runs.

    A system that cannot be drawn, such as one of clicks from a log without urls, releases nothing and says why.
    """
    _ = part.cleaned
    with temporary_directory(part.warehouse.studies) as folder:
        asked = Asked(
            part.warehouse.settings,
            part.warehouse.released,
            system.policy,
            part.month,
            system.mechanism.name,
            system.variant,
            seed,
            folder,
        )
        try:
            facts = ask(asked)
        except UndrawableError as error:
            return Draw({}, None, None, None, None, str(error))
        tables = {path.stem: pq.read_table(path) for path in sorted(folder.glob("*.parquet"))}
    return Draw(tables, **facts)


def ask(asked: Asked) -> dict[str, Any]:
    """Have a draw made, and hear what it took."""
    # -P: nothing is imported from the directory that the command happens to be called in.
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a library's words may quote a value of the log
        process_group=0,
        preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGKILL),  # noqa: PLW1509
    )
    try:
        answer, _ = process.communicate(pickle.dumps(asked))
    finally:
        process.kill()
        process.wait()
    if not answer:
        raise QlogError(
            f"{asked.mechanism} {asked.variant}: the process that draws ended before it was done, perhaps for want of "
            "memory"
        )
    told: dict[str, Any] = pickle.loads(answer)
    if "refused" in told:
        raise UndrawableError(told["refused"])
    if "failed" in told:
        raise QlogError(f"{asked.mechanism} {asked.variant} could not be drawn ({told['failed']})")
    return told


def answer_request(asked: Asked) -> dict[str, Any]:
    """The other process: draw, write the tables, and say what it took."""
    warehouse = Warehouse(asked.settings)
    warehouse.released = asked.released
    with Engine.open(warehouse) as engine:
        part = Part(warehouse, engine, asked.policy, asked.month)
        started = time.monotonic()
        drawn = part.draw(asked.mechanism, asked.variant, asked.seed)
        seconds = time.monotonic() - started
    for name, table in drawn.tables.items():
        pq.write_table(table, asked.folder / f"{name}.parquet")
    promised = drawn.guarantee
    return {
        "claimed": None if promised.claimed is None else promised.claimed.as_json(),
        "proven": None if promised.proven is None else promised.proven.as_json(),
        "seconds": seconds,
        "megabytes": largest_memory() / KILOBYTES_PER_MEGABYTE,
    }


def largest_memory() -> int:
    """The most memory that this process had, in kilobytes.

    Where the kernel tells it, of this program alone: what `getrusage` tells begins with the memory of the process that
    forked this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    asked: Asked = pickle.load(sys.stdin.buffer)
    try:
        told = answer_request(asked)
    except QlogError as error:
        told = {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - for the asker; its words may quote a value, its name does not
        told = {"failed": type(error).__name__}
    answers.write(pickle.dumps(told))
    answers.close()


if __name__ == "__main__":
    main()
