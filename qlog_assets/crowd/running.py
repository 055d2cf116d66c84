"""A whole cast on one machine: servers as child processes, for trials and tests. In earnest each party runs its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from qlog_assets.crowd.cast import Cast, Role, make_cast
from qlog_assets.crowd.health import is_up
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.errors import QlogError
from qlog_assets.processes import end_with_parent

START_SECONDS = 90.0
END_SECONDS = 60.0
LOOK_SECONDS = 0.02
COMMANDS: Mapping[Role, str] = {"relay": "relay", "collector": "collect", "randomness": "oprf"}


@dataclass
class RunningCast:
    """Servers in processes of their own, with the folders they work in."""

    directory: Path
    cast: Cast
    home: Path
    """QLOG_HOME of the processes."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def folder(self, name: str) -> Path:
        return self.directory / name

    def log(self, name: str) -> Path:
        """What a server printed, over all its lives."""
        return self.directory / f"{name}.log"

    def start(self, *names: str) -> None:
        """Start servers, and wait until each of them answers."""
        for name in names:
            command = COMMANDS[self.cast.party(name).role]
            with self.log(name).open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, "-m", "qlog_assets.cli", "crowd", command, str(self.folder(name))],
                    env={**os.environ, "QLOG_HOME": str(self.home)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=partial(end_with_parent, os.getpid()),  # noqa: PLW1509  nothing runs beside that locks
                )
        for name in names:
            self._wait_until_up(name)

    def _wait_until_up(self, name: str) -> None:
        import httpx

        party, process = self.cast.party(name), self.processes[name]
        with httpx.Client(timeout=5, verify=False, trust_env=False) as client:  # as in `health`
            wait_for(lambda: process.poll() is not None or is_up(client, party), START_SECONDS, f"{name} is up")
        if process.poll() is not None:
            raise QlogError(f"{name} ended as it started: {self.log(name)} says why")

    def stop(self, name: str, by: int = signal.SIGTERM) -> int:
        """End a server by a signal; returns how it ended, as `subprocess` tells it."""
        process = self.processes.pop(name)
        process.send_signal(by)
        return process.wait(END_SECONDS)

    def kill(self, name: str) -> None:
        """kill -9 of the server's process; what it started is left to find out by itself."""
        self.stop(name, signal.SIGKILL)

    def metrics(self, name: str) -> dict[str, float]:
        """The counts that a server states, without their common prefix."""
        import httpx

        return read_metrics(httpx.get(f"{self.cast.party(name).url}/metrics", trust_env=False).text)

    def end(self) -> None:
        """End all servers; one that does not end in time is killed."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def running_cast(
    directory: Path,
    home: Path,
    *,
    relays: int = 3,
    hops: int = 3,
    jobs: Sequence[Job] = (),
    settings: Mapping[Role, Mapping[str, Any]] | None = None,
    start: Sequence[str] | None = None,
) -> Iterator[RunningCast]:
    """A cast of relays, a collector and a randomness server for the time of a block; all are started unless told
    otherwise."""
    told: dict[Role, dict[str, Any]] = {
        role: {"metrics_peers": ["127.0.0.1"], **(settings or {}).get(role, {})} for role in COMMANDS
    }
    cast = make_cast(directory, relays, hops, ports=free_ports(relays + 2), settings=told)
    write_jobs(jobs, [directory / name / "jobs" for name in ("collector", "randomness")])
    home.mkdir(parents=True, exist_ok=True)
    running = RunningCast(directory, cast, home)
    try:
        running.start(*(start if start is not None else [party.name for party in cast.parties]))
        yield running
    finally:
        running.end()


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    with ExitStack() as stack:
        trials = [stack.enter_context(socket.socket()) for _ in range(number)]
        for trial in trials:
            trial.bind(("127.0.0.1", 0))
        return [trial.getsockname()[1] for trial in trials]


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Look until something is so; an error if it is not so in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise QlogError(f"not so after {seconds:g} s: {what}")
        time.sleep(LOOK_SECONDS)


def read_metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {name.removeprefix("qlog_crowd_"): float(number) for name, _, number in lines}
