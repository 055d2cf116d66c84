"""Looks at a running command and its scratch directory again and again, and says what fell into which span of time.

Which spans there are is decided elsewhere (`modelling.py`, from Dagster's history); nothing here knows about logs.
Linux only, as `measuring.py`. What lives shorter than the time between two looks is not seen.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.measuring import memory_of_tree, tree

TICKS = os.sysconf("SC_CLK_TCK")
USER_TIME = 11
"""Where utime stands in /proc/PID/stat behind the name of the command; stime, cutime and cstime follow it."""


@dataclass(frozen=True)
class Sample:
    """One look: seconds since 1970, and what was used until then or is held now."""

    at: float
    cpu: float
    memory: float
    scratch: float
    shuffle: float


@dataclass
class Sampler:
    """Given to `measure` as what looks at a command: it returns the tree's kilobytes, and keeps a sample."""

    scratch: Path
    samples: list[Sample] = field(default_factory=list)
    _shuffled: dict[str, int] = field(default_factory=dict)

    def __call__(self, pid: int) -> int:
        at, kilobytes = time.time(), memory_of_tree(pid)
        used = self._look_at_scratch()
        self.samples.append(Sample(at, cpu_of_tree(pid), kilobytes * 1024.0, used, float(sum(self._shuffled.values()))))
        return kilobytes

    def _look_at_scratch(self) -> float:
        """Bytes on the disk below the scratch directory; what Spark writes for other tasks is noted by its name.

        Spark removes such files when nobody can read them any more. Names are never used again in one application, so
        the largest size seen of each adds up to what was written.
        """
        total = 0
        for folder, _, names in os.walk(self.scratch):
            for name in names:
                try:
                    facts = os.lstat(os.path.join(folder, name))
                except OSError:
                    continue  # It was removed between two looks.
                total += facts.st_blocks * 512
                if name.startswith("shuffle_") and name.endswith(".data"):
                    self._shuffled[name] = max(self._shuffled.get(name, 0), facts.st_size)
        return float(total)

    def cpu_between(self, start: float, end: float) -> float:
        """Processor seconds of a span, read off between the looks around its ends."""
        return self._grown("cpu", start, end)

    def shuffled_between(self, start: float, end: float) -> float:
        """Bytes written for other tasks in a span."""
        return self._grown("shuffle", start, end)

    def most_between(self, name: str, start: float, end: float) -> float:
        """The most that was held in a span; in a short one what the nearest look saw."""
        inside = [getattr(sample, name) for sample in self.samples if start <= sample.at <= end]
        if inside:
            return float(max(inside))
        middle = (start + end) / 2
        return float(getattr(min(self.samples, key=lambda sample: abs(sample.at - middle)), name))

    def _grown(self, name: str, start: float, end: float) -> float:
        times = [sample.at for sample in self.samples]
        # Of a child that nobody waited for, its seconds are gone: what was used never becomes less.
        values = np.maximum.accumulate([getattr(sample, name) for sample in self.samples])
        first, last = np.interp([start, end], times, values)
        return float(last - first)


def cpu_of_tree(pid: int) -> float:
    """Processor seconds of a process, its living descendants, and the children that any of them waited for."""
    ticks = 0
    for member in tree(pid):
        try:
            text = Path(f"/proc/{member}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # It ended between two looks.
        # The name stands in brackets and may hold anything, brackets and spaces too.
        ticks += sum(int(word) for word in text.rpartition(")")[2].split()[USER_TIME : USER_TIME + 4])
    return ticks / TICKS
