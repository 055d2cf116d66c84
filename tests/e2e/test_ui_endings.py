"""How `qlog ui` ends: by every signal, from the background as from a terminal, with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.server import environment_of, free_port, printed_address

pytestmark = pytest.mark.slow
QLOG = Path(sys.executable).with_name("qlog")
GONE_SECONDS = 60
"""Far above what it takes: a test on a busy machine waits, and does not fail."""


def processes_of(session: int) -> dict[int, str]:
    """The living processes of a session, with their commands. All that `qlog ui` starts stays in it."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, sid = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # ended while we looked
            continue
        if int(sid) == session and state != "Z":
            found[int(folder.name)] = command
    return found


def gone(session: int) -> dict[int, str]:
    """What is left of a session after it had time to end."""
    until = time.monotonic() + GONE_SECONDS
    while (left := processes_of(session)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


@contextmanager
def shell(home: Path, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that is not interactive, in a session of its own; what is left of it in the end is killed."""
    home.mkdir(exist_ok=True)
    with (home.parent / "ui.log").open("wb") as out:
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", str(QLOG), str(free_port()), str(home.parent / "pid")],
            env=environment_of(home),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for left in processes_of(process.pid):
            os.kill(left, signal.SIGKILL)
        process.wait()


# A shell without job control starts a background command with SIGINT ignored.
BACKGROUND = '"$1" ui --port "$2" & echo $! > "$3.new"; mv "$3.new" "$3"; wait $!'


def server_pid(home: Path, process: subprocess.Popen[bytes]) -> int:
    path = home.parent / "pid"
    while not path.exists() and process.poll() is None:
        time.sleep(0.05)
    return int(path.read_text())


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=str,
)
def test_in_the_background_it_ends_on_a_signal_and_leaves_nothing_running(
    home: Path, number: signal.Signals, code: int
) -> None:
    with shell(home, BACKGROUND) as process:
        printed_address(process, home.parent / "ui.log")
        running = " ".join(processes_of(process.pid).values())
        assert "code-server" in running and "dagster._daemon" in running
        os.kill(server_pid(home, process), number)
        assert gone(process.pid) == {}
        assert process.wait(GONE_SECONDS) == code
    assert "Traceback" not in (home.parent / "ui.log").read_text(encoding="utf-8", errors="replace")


def test_it_ends_on_a_signal_while_it_starts(home: Path) -> None:
    """Long before a page is served, children are started."""
    with shell(home, BACKGROUND) as process:
        until = time.monotonic() + GONE_SECONDS
        while "dagster._daemon" not in str(processes_of(process.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(server_pid(home, process), signal.SIGTERM)
        assert gone(process.pid) == {}
        assert process.wait(GONE_SECONDS) == 143
    said = (home.parent / "ui.log").read_text(encoding="utf-8", errors="replace")
    assert "?token=" not in said and "Traceback" not in said


def test_control_c_ends_it_in_the_foreground(home: Path) -> None:
    with shell(home, 'exec "$1" ui --port "$2"') as process:
        printed_address(process, home.parent / "ui.log")
        os.killpg(process.pid, signal.SIGINT)  # what a terminal sends, to the whole foreground group
        assert process.wait(GONE_SECONDS) == 130
        assert gone(process.pid) == {}


def test_what_it_started_ends_with_it_when_it_is_killed(home: Path) -> None:
    with shell(home, BACKGROUND) as process:
        printed_address(process, home.parent / "ui.log")
        os.kill(server_pid(home, process), signal.SIGKILL)
        assert gone(process.pid) == {}


def test_it_ends_and_says_so_when_the_daemon_is_gone(home: Path) -> None:
    """Half a server would queue runs that nobody launches."""
    with shell(home, BACKGROUND) as process:
        printed_address(process, home.parent / "ui.log")
        (daemon,) = (pid for pid, command in processes_of(process.pid).items() if "dagster._daemon" in command)
        os.kill(daemon, signal.SIGKILL)
        assert process.wait(GONE_SECONDS) == 2
        assert gone(process.pid) == {}
    assert "Dagster's daemon ended by itself" in (home.parent / "ui.log").read_text(encoding="utf-8", errors="replace")
