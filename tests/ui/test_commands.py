"""`qlog ui` and `qlog ui-password`: what they refuse before anything is served, and who is warned of a missing lock."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import qlog
from support.server import end_group, environment_of, free_port

from qlog_assets.ui.unlocked import UNLOCKED, is_code_server

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--host", "0.0.0.0"], "--allowed-host"),
        (["--host", "::"], "--allowed-host"),
        (["--allowed-host", "*"], "give one name"),
        (["--allowed-host", "https://qlog.example/"], "give one name"),
        (["--passwords", "nothing"], "cannot be read"),
        (["--host", "256.0.0.1"], "cannot serve on 256.0.0.1"),
    ],
)
def test_what_cannot_be_served_safely_is_refused_in_one_line(home: Path, options: list[str], complaint: str) -> None:
    assert complaint in qlog(home, "ui", "--port", free_port(), *options).refusal
    assert not (home / "private").exists(), "nothing was made"


def test_a_port_that_is_taken_is_one_line(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another --port" in qlog(home, "ui", "--port", taken.getsockname()[1]).refusal


def test_no_option_switches_the_lock_off(home: Path) -> None:
    """The options of `qlog ui`, all of them: a new one that opens the lock would have to be added here."""
    words = qlog(home, "ui", "--help").success.split()
    assert {word for word in words if word.startswith("--")} == {
        *("--host", "--port", "--passwords", "--allowed-host", "--help")
    }


def test_a_password_is_read_from_a_pipe_and_never_shown(home: Path, tmp_path: Path) -> None:
    users = tmp_path / "users"
    command = [str(BIN / "qlog"), "ui-password", "alice", "--passwords", str(users)]
    done = subprocess.run(command, input=b"correct horse\n", env=environment_of(home), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and b"correct" not in done.stdout
    assert users.read_text().startswith("alice:scrypt$") and users.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_plain_dagster_dev_works_and_its_log_says_once_that_it_has_no_lock(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "dev.log"
    environment = environment_of(home) | {"DAGSTER_HOME": str(home)}
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(ROOT / "workspace.yaml"), "--port", str(free_port())]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until = time.monotonic() + 120
        while "Serving dagster-webserver" not in (said := log.read_text(encoding="utf-8", errors="replace")):
            assert process.poll() is None and time.monotonic() < until, said[-2000:]
            time.sleep(0.2)
        assert said.count(UNLOCKED) == 1
        assert "Error loading" not in said
    finally:
        os.killpg(process.pid, signal.SIGINT)
        # How Dagster's own command ends is not ours: on a busy machine it did not, three minutes after a signal.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        end_group(process.pid)


@pytest.mark.parametrize(
    ("arguments", "serves"),
    [
        (["dagster", "api", "grpc", "--socket", "x"], True),
        (["dagster", "job", "execute", "-m", "qlog_assets.definitions"], False),
        (["qlog", "release", "safelog"], False),
        (["qlog"], False),
    ],
)
def test_only_the_process_that_serves_definitions_is_warned(arguments: list[str], serves: bool) -> None:
    assert is_code_server(arguments) is serves
