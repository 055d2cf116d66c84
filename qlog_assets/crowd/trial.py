"""A crowd of made-up people on one machine: each has a log and a client of its own, and a week passes in seconds.

For the demo and for tests of the whole cast. The clients are the real ones; only their clock is told what time it is,
so that messages which are planned over days are sent in the order of their times without anybody waiting for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.crowd.cast import CAST_FILE, Cast, RandomnessSettings, open_folder
from qlog_assets.crowd.client_state import ClientState
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.local_log import LocalLog
from qlog_assets.crowd.running import RunningCast, wait_for
from qlog_assets.errors import QlogError
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import make_private

if TYPE_CHECKING:
    from qlog_assets.crowd.client import Client

LOG_FILE = "searches.txt"
FORMAT = "aol"
MOMENTS = 100
"""In how many steps the clients' week passes: each so short that no message is late and gets another time."""
WORKERS = 2
DRAIN_SECONDS = 120.0
ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class Person:
    """A made-up person: a folder with their log and their client's state."""

    folder: Path

    @property
    def log(self) -> LocalLog:
        return LocalLog(self.folder / LOG_FILE, "file", FORMAT)


def split_log(log: Path, directory: Path) -> list[Person]:
    """Give every user of a log in AOL's format, which is sorted by user, a folder with their own rows."""
    people = []
    with log.open(encoding="utf-8") as lines:
        header = next(lines)
        for number, (_, rows) in enumerate(groupby(lines, key=lambda line: line.partition("\t")[0])):
            person = Person(directory / f"person-{number:04}")
            make_private(person.folder)
            write_private(person.folder / LOG_FILE, header + "".join(rows))
            people.append(person)
    return people


def enrol(running: RunningCast, people: Iterable[Person]) -> None:
    """Give everybody an account at the issuer, and a client that knows the cast."""
    from qlog_assets.crowd.issuing import Accounts

    by_name = {person.folder.name: person for person in people}
    accounts = Accounts(open_folder(running.folder("randomness"), RandomnessSettings).folder)
    for name, secret in accounts.add(list(by_name)).items():
        ClientState.create(by_name[name].folder, name, secret)
        write_private(by_name[name].folder / CAST_FILE, running.cast.as_json())


def enter_jobs(people: Sequence[Person], jobs: Sequence[Job]) -> None:
    """Everybody's client mines its log, takes tokens, asks for randomness and plans its messages."""
    _in_processes(_enter, people, jobs)


def send_messages(people: Sequence[Person], jobs: Sequence[Job]) -> None:
    """A week passes, and every client sends its messages when they are due."""
    _in_processes(_send, people, jobs)


def _in_processes(
    work: Callable[[Sequence[Person], Sequence[Job]], None], people: Sequence[Person], jobs: Sequence[Job]
) -> None:
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for finished in [pool.submit(work, people[number::WORKERS], jobs) for number in range(WORKERS)]:
            finished.result()


@dataclass
class _Clock:
    """What time it is for the clients of a process."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def _clients(people: Sequence[Person], clock: _Clock) -> Iterator[list[Client]]:
    import httpx

    from qlog_assets.crowd.client import Client
    from qlog_assets.crowd.client_servers import Servers
    from qlog_assets.crowd.client_settings import ClientSettings

    with ExitStack() as stack:
        # One connection pool for all: to the servers they come from one address anyway.
        http = stack.enter_context(httpx.Client(timeout=ANSWER_SECONDS, trust_env=False, verify=False))
        yield [
            Client(
                stack.enter_context(ClientState.open(person.folder)),
                Servers(Cast.read(person.folder / CAST_FILE), http),
                ClientSettings.read(person.folder),
                clock=clock,
            )
            for person in people
        ]


def _enter(people: Sequence[Person], jobs: Sequence[Job]) -> None:
    with _clients(people, _Clock(max(job.opens for job in jobs))) as clients:
        for person, client in zip(people, clients, strict=True):
            offers = client.poll()
            for job in jobs:
                client.take_part(client.preview(job, person.log), offers)


def _send(people: Sequence[Person], jobs: Sequence[Job]) -> None:
    opens, closes = max(job.opens for job in jobs), min(job.closes for job in jobs)
    clock = _Clock(opens)
    with _clients(people, clock) as clients:
        for moment in range(1, MOMENTS + 1):
            clock.now = opens + (closes - opens) * moment / MOMENTS - timedelta(seconds=1)
            for client in clients:
                if client.seconds_to_next() == 0:
                    client.send_due()
        for client in clients:
            if client.seconds_to_next() is not None:
                raise QlogError("a client could not send all of its messages: is a relay down?")


def wait_until_drained(running: RunningCast, reports: int) -> None:
    """Wait until the collector has opened so many reports."""
    wait_for(
        lambda: running.metrics("collector").get("reports_accepted_total", 0) >= reports,
        DRAIN_SECONDS,
        f"the collector has opened {reports:,} reports",
    )
