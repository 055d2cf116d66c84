"""Runs a command and says what it cost: wall time, processor time, peak memory, children included. Linux only.

What is worth measuring is decided elsewhere (`suite.py`); nothing here knows about logs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.2
"""Between two looks at memory. What lives shorter than that is not seen."""


class BenchmarkError(RuntimeError):
    """A measured command that failed, with what it said last."""


@dataclass
class Cost:
    """What something took. `peak_mb` is the largest sum over the process and its children seen at one moment."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_mb: float | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    """The JSON object that the command printed last."""

    def as_json(self) -> dict[str, Any]:
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}


def measure(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    look: Callable[[int], int] | None = None,
) -> Cost:
    """Run a command to its end; raise if it fails. `look` sees its process id at every look, and returns the kilobytes
    that the process and its children hold."""
    held = look or memory_of_tree
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    # Bytecode that is not written would be compiled again in every cold start, and that would be what is measured.
    environment = {**os.environ, **(env or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    peak = 0
    while True:
        peak = max(peak, held(process.pid))
        try:
            output, errors = process.communicate(timeout=SAMPLE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-5:]
        raise BenchmarkError(f"{Path(command[0]).name} … ended with {process.returncode}: {' / '.join(last)}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, peak / 1024, last_object(output.decode("utf-8")))


def memory_of_tree(pid: int) -> int:
    """Kilobytes of a process and its descendants. Pages that forked processes share are counted once (PSS)."""
    seen: list[Held] = []
    for member in tree(pid):
        held = held_by(member)
        if held is not None and not any(held.is_same_memory(other) for other in seen):
            seen.append(held)
    return sum(held.proportional for held in seen)


@dataclass(frozen=True)
class Held:
    """What the kernel says of a process's memory: where it lies, and kilobytes with and without a share for others."""

    range: str
    resident: int
    proportional: int

    def is_same_memory(self, other: Held) -> bool:
        """Whether two processes are one memory, counted in full for both: a child that is about to start a program has
        its parent's until then. Java does that often, and whoever looks just then would see it twice. Forked processes
        that live on lie at the same addresses, too, and have half a share of each page or pages of their own."""
        alike = abs(self.resident - other.resident) <= other.resident / 100
        return self.range == other.range and alike and self.proportional > 0.75 * self.resident


def held_by(pid: int) -> Held | None:
    """Nothing if the process ended between two looks."""
    try:
        first, *lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return Held(first.split()[0], found.get("Rss", 0), found.get("Pss", 0))


def tree(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            children = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in children:
            yield from tree(int(child))


def last_object(output: str) -> dict[str, Any]:
    """The JSON object at the end of what a command printed, on one line or many; nothing if there is none."""
    start = output.rfind("\n{")
    text = output[start + 1 :] if start >= 0 else output
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


@contextmanager
def timed(into: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of a block to `into[name]`."""
    started = time.perf_counter()
    try:
        yield
    finally:
        into[name] = into.get(name, 0.0) + time.perf_counter() - started


def own_cpu() -> float:
    """Processor seconds of this process and of the children it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def forget_peak() -> None:
    """Let the peak of this process begin again at what it holds now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mb() -> float:
    """The most memory this process held since it started or `forget_peak`, in millions of bytes.

    Not by getrusage: its maximum is never reset, and a child process is given its parent's to start with.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise BenchmarkError("this system does not tell a process's peak memory")
