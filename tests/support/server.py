"""`qlog ui` as a person starts it: a process with a port, questions to it over HTTP, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 120
RUN_SECONDS = 240
FINISHED = ("SUCCESS", "FAILURE", "CANCELED")

LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
} }
"""
STATUS = """
query Status($run: ID!) { runOrError(runId: $run) { ... on Run { status eventConnection { events {
    __typename ... on ExecutionStepFailureEvent { error { message cause { message } } }
} } } } }
"""


@dataclass(frozen=True)
class Server:
    """A running UI."""

    address: str
    log: Path

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.address}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)
        assert "errors" not in said, said["errors"]
        data: dict[str, Any] = said["data"]
        return data

    def launch(self, job: str, partition: str, config: dict[str, Any] | None = None) -> str:
        """Start a run as the launchpad does; returns its id."""
        selector = {
            "repositoryLocationName": "qlog_assets.definitions",
            "repositoryName": "__repository__",
            "pipelineName": job,
        }
        tags = [{"key": "dagster/partition", "value": partition}]
        params = {"selector": selector, "runConfigData": config or {}, "executionMetadata": {"tags": tags}}
        answer = self.ask(LAUNCH, params=params)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def wait(self, run: str) -> tuple[str, str]:
        """A run's last status, and what its steps complained of."""
        until = time.monotonic() + RUN_SECONDS
        while time.monotonic() < until:
            found = self.ask(STATUS, run=run)["runOrError"]
            if found["status"] in FINISHED:
                return found["status"], str(found["eventConnection"]["events"])
            time.sleep(0.5)
        raise AssertionError(f"run {run} is still {found['status']} after {RUN_SECONDS} s")


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@contextmanager
def qlog_ui(home: Path) -> Iterator[Server]:
    """The UI on a warehouse, from the installed command, for the time of a block."""
    port, log = free_port(), home.parent / "ui.log"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QLOG_", "DAGSTER_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("qlog")), "ui", "--port", str(port)],
            env={**kept, "QLOG_HOME": str(home)},
            cwd=home,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Server(wait_for(f"http://127.0.0.1:{port}", process, log), log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            # What did not end by itself; the group is this process's own.
            end_group(process.pid)


def end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/server_info", timeout=5):
                return address
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the UI did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
