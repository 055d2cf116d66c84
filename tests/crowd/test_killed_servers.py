"""kill -9 under load: whatever a server answered for is there afterwards, once."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

import httpx
import pytest
from support.crowd_cast import RunningCast, made_reports, open_job, running_cast, sealed_reports, wait_for

from qlog_assets.crowd.envelopes import wrap

KILLS = 20
SENDERS = 4
PER_REQUEST = 5
END_SECONDS = 120.0


class Load:
    """Threads that send bodies to an address, each until it is answered with a 200, and never again after that."""

    def __init__(self, url: str, bodies: Sequence[bytes]) -> None:
        self._url = url
        self._bodies = list(bodies)
        self.all = len(bodies)
        self._lock = threading.Lock()
        self.is_up = threading.Event()
        self.answered = 0
        self._threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(END_SECONDS)
            assert not thread.is_alive()

    def _send(self) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while True:
                with self._lock:
                    if not self._bodies:
                        return
                    body = self._bodies.pop()
                while not self._is_taken(client, body):
                    assert self.is_up.wait(END_SECONDS)
                with self._lock:
                    self.answered += 1

    def _is_taken(self, client: httpx.Client, body: bytes) -> bool:
        try:
            return client.post(self._url, content=body).status_code == 200
        except httpx.HTTPError:  # killed before it answered
            return False


def kill_under_load(cast: RunningCast, name: str, load: Load, kills: int) -> None:
    """Kill a server again and again, each time after some further requests were answered."""
    chance = random.Random(1)
    load.is_up.set()
    load.start()
    for _ in range(kills):
        wanted = min(load.answered + chance.randint(1, 30), load.all)
        wait_for(lambda wanted=wanted: load.answered >= wanted, END_SECONDS)  # type: ignore[misc]
        load.is_up.clear()
        cast.kill(name)
        cast.start(name)
        load.is_up.set()
    load.join()


def stored_serials(folder: Path) -> list[bytes]:
    with sqlite3.connect(folder / "collector.db") as connection:
        return [serial for (serial,) in connection.execute("SELECT serial FROM reports")]


@pytest.mark.faults
def test_no_accepted_report_is_lost_or_counted_twice_over_twenty_kills_of_the_collector(tmp_path: Path) -> None:
    job = open_job()
    with running_cast(tmp_path / "cast", relays=1, hops=1, jobs=[job], start=["collector"]) as cast:
        reports = made_reports(cast.folder("collector"), job, 35 * KILLS * PER_REQUEST)
        sealed = sealed_reports(cast.cast, reports)
        bodies = [b"".join(sealed[at : at + PER_REQUEST]) for at in range(0, len(sealed), PER_REQUEST)]
        kill_under_load(cast, "collector", Load(f"{cast.cast.collector.url}/reports", bodies), KILLS)
        wait_for(lambda: cast.metrics("collector")["reports_waiting"] == 0, END_SECONDS)
        assert cast.metrics("collector")["reports_accepted_total"] == len(reports)
        assert cast.stop("collector") == 128 + 15
        assert sorted(stored_serials(cast.folder("collector"))) == sorted(report.token.serial for report in reports)


@pytest.mark.faults
def test_no_message_is_lost_over_kills_of_a_relay_in_the_middle(tmp_path: Path) -> None:
    job = open_job()
    with running_cast(tmp_path / "cast", jobs=[job]) as cast:
        reports = made_reports(cast.folder("collector"), job, 400)
        first, second, third = cast.cast.relays
        onions = [
            wrap([first, second, third], cast.cast.collector, each) for each in sealed_reports(cast.cast, reports)
        ]
        SystemRandom().shuffle(onions)
        kill_under_load(cast, second.name, Load(f"{first.url}/messages", onions), 5)
        wait_for(lambda: cast.metrics("collector").get("reports_accepted_total") == len(reports), END_SECONDS)
        assert sorted(stored_serials(cast.folder("collector"))) == sorted(report.token.serial for report in reports)
