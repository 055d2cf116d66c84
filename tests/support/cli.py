"""Runs `qlog` as a person would: another process with its own environment, standard output and exit code.

The processes are forked from a server that has imported Dagster and Great Expectations once: what would be six seconds
of imports per command is a tenth of one. Nothing is replaced or skipped: the entry point of the installed command runs.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from qlog_assets.mechanisms.names import folder_names

PRELOADED = (
    "great_expectations",
    # What Dagster imports when it first opens an instance and runs something.
    "alembic.command",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.workspace.context",
    "dagster._daemon.controller",
    "dotenv.main",
    "fsspec.implementations.local",
    "mako.template",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "rich.traceback",
    "structlog",
    "tabulate",
    "upath.core",
    "watchdog.observers",
    "qlog_assets.cli.app",
    "qlog_assets.cli.demo",
    "qlog_assets.orchestration.audit_assets",
    "qlog_assets.orchestration.jobs",
    "qlog_assets.orchestration.log_assets",
    "qlog_assets.orchestration.mechanism_assets",
    "qlog_assets.orchestration.public_assets",
    "qlog_assets.orchestration.study_assets",
    *(f"qlog_assets.mechanisms.{name}.mechanism" for name in folder_names()),
    "qlog_assets.studies.zealous.study",
    "qlog_assets.api.operations",
    "qlog_assets.verify.audit",
    "qlog_assets.verify.retention",
    "qlog_assets.synthetic",
)
"""Everything but the definitions, which read the policy of the warehouse that a command is about."""
COST = " costs ε = "
"""In the line by which a release says what it costs before it charges."""
LONGEST_SECONDS = 300


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer of a command that succeeded."""
        return json.loads(self.success)

    @property
    def success(self) -> str:
        """What a command that succeeded said."""
        assert self.code == 0, self.err
        return self.out

    @property
    def refusal(self) -> str:
        """The one line of a command that refused, after what a release said of its cost if it failed later."""
        assert (self.code, self.out) == (2, ""), (self.code, self.out, self.err)
        (line,) = self.complaints
        assert line.startswith("qlog: "), self.err
        return line.removeprefix("qlog: ").strip()

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error, but for what a release says of its cost before it charges."""
        return [line for line in self.err.splitlines() if line.startswith("qlog: ") or COST not in line]


@cache
def context() -> ForkServerContext:
    # Asked at import: it must not find out by sending something.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(list(PRELOADED))
    return server


class Running:
    """A command that was started and not waited for."""

    def __init__(
        self,
        home: Path,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: int | None = None,
    ) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("QLOG_", "DAGSTER_"))}
        self.arguments = arguments
        self._scratch = tempfile.TemporaryDirectory()
        self._out, self._err = Path(self._scratch.name) / "out", Path(self._scratch.name) / "err"
        self.process = context().Process(
            target=_run_main,
            args=(
                [str(argument) for argument in arguments],
                {**kept, "QLOG_HOME": str(home), **(environment or {})},
                str(cwd or home.parent),
                str(self._out),
                str(self._err),
                user,
            ),
        )
        self.process.start()

    def end(self) -> Answer:
        """Wait for its end, and see what it left behind."""
        self.process.join(LONGEST_SECONDS)
        if self.process.exitcode is None:
            os.killpg(self.process.pid, signal.SIGUSR1)
            time.sleep(1)
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
            raise AssertionError(f"qlog {self.arguments} took more than {LONGEST_SECONDS} s\n{self._err.read_text()}")
        said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (self._out, self._err)]
        self._scratch.cleanup()
        return Answer(self.process.exitcode, *said)


def qlog(
    home: Path,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> Answer:
    """Run a command on a warehouse, as another user if one is given."""
    return Running(home, *arguments, environment=environment, cwd=cwd, user=user).end()


def _run_main(
    arguments: list[str], environment: dict[str, str], cwd: str, out: str, err: str, user: int | None
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.setpgid(0, 0)
    for number, path in ((1, out), (2, err)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    # A command that hangs is asked what it is doing before it is killed, with everything it started.
    faulthandler.register(signal.SIGUSR1)
    sys.argv = ["qlog", *arguments]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    from qlog_assets.cli.app import main

    main()
