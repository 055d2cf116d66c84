"""kill -9, SIGINT and SIGTERM at commands: whatever was running, the same command afterwards finishes the work once.

Moments are chosen by what appears in the warehouse, and by delays from a seed: nobody named these points.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import DagsterRunStatus
from support.cli import LONGEST_SECONDS, Answer, Running, qlog
from support.door import APRIL, MARCH, charges, leftovers, public_files
from support.instances import make_home, small_log
from support.ledgers import held_lock

from qlog_assets.storage.dagster_home import open_existing

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults

RELEASE = ("release", "safelog", "--month", MARCH, "--json")
BOTH = ("release", "safelog", "--month", MARCH, "--month", APRIL, "--json")


def wait_for(condition: Callable[[], object], command: Running) -> None:
    """Wait until something is so, or the command has ended. It must not be so before: then nothing is waited for."""
    assert not condition(), "this was there before the command began"
    until = time.monotonic() + LONGEST_SECONDS
    while not condition() and command.process.is_alive() and time.monotonic() < until:
        time.sleep(0.002)


def has(home: Path, pattern: str) -> Callable[[], bool]:
    """Whether a file of that name is there."""
    return lambda: any(home.glob(pattern))


def killed(command: Running) -> Answer:
    """How a command ended that was sent kill -9: by it, unless it was done that very moment."""
    command.process.kill()
    return command.end()


def assert_green(home: Path, months: int) -> None:
    """Each month is charged once and public in full, nothing is half-made, nothing for an auditor to find."""
    known = charges(home)
    assert [charge.state for charge in known] == ["published"] * months and len({c.month for c in known}) == months
    assert leftovers(home) == [] and qlog(home, "audit").code == 0


SEEN = {
    "the first scratch directory": "private/*/.qlog-tmp-*",
    "the cleaned log": "private/cleaned_log/*/current",
    "the limited log": "private/capped_log/*/current",
    "the stored draw": "private/draws/[!.]*",
    "the release": "released/safelog/*/safelog-*",
}


@pytest.mark.parametrize("seen", SEEN)
def test_a_release_killed_at_a_step_is_finished_by_the_next_at_one_charge(ingested: Path, seen: str) -> None:
    command = Running(ingested, *RELEASE)
    wait_for(has(ingested, SEEN[seen]), command)
    ended = killed(command)
    assert ended.code == -signal.SIGKILL or seen == "the release", ended
    public, before = public_files(ingested), charges(ingested)
    assert qlog(ingested, *RELEASE).json["charged"] is (before == [])
    assert public.items() <= public_files(ingested).items()
    assert_green(ingested, 1)


def children_of(pid: int) -> list[int]:
    return [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]


def is_running(pid: int) -> bool:
    """Whether a process is there, and no zombie that nobody asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("seen", ["private/cleaned_log/*/current", "private/capped_log/*/current"])
def test_the_months_of_a_killed_release_end_with_it_and_the_next_finishes_them(ingested: Path, seen: str) -> None:
    command = Running(ingested, *BOTH)
    wait_for(has(ingested, seen), command)
    children = children_of(command.process.pid)
    assert len(children) == min(2, os.cpu_count() or 1)
    killed(command)
    until = time.monotonic() + 10
    while any(is_running(child) for child in children) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(is_running(child) for child in children)
    qlog(ingested, *BOTH).success  # noqa: B018 - asserts
    assert_green(ingested, 2)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A warehouse with a policy, and a log beside it."""
    log = tmp_path / "small.txt"
    log.write_text(small_log(), encoding="utf-8")
    yield make_home(tmp_path / "warehouse"), log


@pytest.mark.parametrize(
    "seen", ["landing/aol/*", "private/landing_batch/*/.qlog-tmp-*", "private/landing_batch/*/current"]
)
def test_an_ingest_killed_at_a_step_reads_every_row_once_afterwards(fresh: tuple[Path, Path], seen: str) -> None:
    home, log = fresh
    command = Running(home, "ingest", log, "--format", "aol")
    wait_for(has(home, seen), command)
    killed(command)
    qlog(home, "ingest", log, "--format", "aol").success  # noqa: B018 - asserts
    assert leftovers(home) == [] and len(list((home / "landing" / "aol").iterdir())) == 1
    assert qlog(home, "release", "safelog", "--month", MARCH, "--json").json["charged"] is True
    assert_green(home, 1)


SHARES = [round(random.Random(12 + number).uniform(0.05, 0.95), 2) for number in range(4)]
FIRST_GUESS_SECONDS = 4.0


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["forget", "withdraw", "simulate"])
def test_other_commands_killed_at_any_moment_can_be_run_again(
    another: Callable[[str], Path], kind: str, share: float
) -> None:
    """A command that was done before it could be killed is tried again on another copy, at half the time."""
    seconds = FIRST_GUESS_SECONDS * share
    while True:
        home = another("released")
        (charge,) = charges(home)
        words = {
            "forget": ("forget", "--before", "2006-05", "--landing"),
            "withdraw": ("withdraw", charge.release_id, "--reason", "wrong month"),
            "simulate": ("simulate", "safelog", "--month", APRIL),
        }[kind]
        command = Running(home, *words)
        command.process.join(seconds)
        if command.process.is_alive() and killed(command).code == -signal.SIGKILL:
            break
        seconds /= 2
    assert qlog(home, *words).code == 0
    (after,) = charges(home)
    assert (after.release_id, after.epsilon) == (charge.release_id, charge.epsilon)
    assert after.state == ("withdrawn" if kind == "withdraw" else "published")
    assert leftovers(home) == [] and qlog(home, "audit").code == 0


# Signals --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("words", [RELEASE, BOTH], ids=["one month", "two months"])
def test_a_signal_in_the_middle_of_a_step_is_one_line_and_leaves_nothing_half_written(
    ingested: Path, number: signal.Signals, code: int, words: tuple[str, ...]
) -> None:
    command = Running(ingested, *words)
    wait_for(has(ingested, "private/cleaned_log/*/current"), command)
    os.kill(command.process.pid, number)
    answer = command.end()
    assert (answer.code, answer.out) == (code, ""), answer.err
    (line,) = answer.complaints
    assert line.startswith(f"qlog: stopped by {number.name}: ")
    assert leftovers(ingested) == []
    assert public_files(ingested) == {}
    with open_existing(ingested / "dagster") as instance:
        finished = {DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED}
        assert {run.status for run in instance.get_runs()} <= finished
    qlog(ingested, *words).success  # noqa: B018 - asserts
    assert_green(ingested, words.count("--month"))


def test_a_second_signal_ends_a_command_that_cannot_hear_the_first(released: Path) -> None:
    """Another process holds the ledger: the command waits inside SQLite, where no Python runs."""
    words = ("ledger", "set-budget", "--epsilon", "200", "--delta", "0.1", "--reason", "more")
    with held_lock(str(released / "ledger.db")):
        command = Running(released, *words)
        command.process.join(3)
        os.kill(command.process.pid, signal.SIGTERM)
        command.process.join(0.8)
        if command.process.is_alive():
            os.kill(command.process.pid, signal.SIGTERM)
        assert command.end().code == 143
    assert len(charges(released)) == 1
