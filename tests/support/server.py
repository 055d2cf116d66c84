"""`qlog ui` as a person starts it: a process with a port, questions to it over HTTP, and its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
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
    __typename
    ... on ExecutionStepFailureEvent { error { message cause { message } } }
    ... on ObservationEvent { description }
} } } } }
"""


@dataclass(frozen=True)
class Server:
    """A running UI, and a client that opened the address it printed."""

    address: str
    opened: str
    """What it printed to be opened, with the token in it."""
    log: Path
    process: subprocess.Popen[bytes]
    cookie: str

    def request(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        """Ask anything, logged in or not as the headers say; returns the status and the text."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = urllib.request.Request(f"{self.address}{path}", body, named)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode("utf-8", "replace")

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """A question to GraphQL, as our own page sends it."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        status, text = self.request(
            "/graphql", body, Content_Type="application/json", Origin=self.address, Cookie=self.cookie
        )
        assert status == 200, (status, text)
        said = json.loads(text)
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
        """A run's last status, and what its steps complained of or observed."""
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
def qlog_ui(home: Path, *options: str, login: Callable[[str], str] | None = None) -> Iterator[Server]:
    """The UI on a warehouse, from the installed command, for the time of a block.

    `login` gets a cookie from the address that was printed; without one, the token that is in it does.
    """
    port, log = free_port(), home.parent / "ui.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("qlog")), "ui", "--port", str(port), *options],
            env=environment_of(home),
            cwd=home,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        opened = printed_address(process, log)
        cookie = (login or cookie_from)(opened)
        yield Server(f"http://127.0.0.1:{port}", opened, log, process, cookie)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            # What did not end by itself; the group is this process's own.
            end_group(process.pid)


def environment_of(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QLOG_", "DAGSTER_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "QLOG_HOME": str(home)}


def end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def printed_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """What the command said to open, once it did."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"^(http://\S+) shows ", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"the UI did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


def cookie_from(opened: str, form: dict[str, str] | None = None) -> str:
    """The cookie that a browser gets for opening an address, or for sending a form to its login page."""
    at = urllib.parse.urlsplit(opened)
    asked = urllib.request.Request(opened)
    if form is not None:
        origin = f"{at.scheme}://{at.netloc}"
        asked = urllib.request.Request(f"{origin}/login", urllib.parse.urlencode(form).encode(), {"Origin": origin})
    try:
        urllib.request.build_opener(NoRedirect).open(asked, timeout=60)
    except urllib.error.HTTPError as redirect:
        assert redirect.code == 303, redirect.code
        return str(redirect.headers["Set-Cookie"]).partition(";")[0]
    raise AssertionError("nobody was let in")
