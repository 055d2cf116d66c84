"""kill -9 of a client before and after each of its requests: the next process finishes it, nothing arrives twice."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from support.crowd_cast import open_job, running_cast, wait_for
from support.crowd_people import Person

from qlog_assets.crowd.client import Client
from qlog_assets.crowd.jobs import Job
from qlog_assets.errors import QlogError

pytestmark = pytest.mark.faults

JOB = open_job(artifacts_per_user=2)
LATE = JOB.closes - timedelta(seconds=1)
REQUESTS = ("jobs", "keys", "jobs again", "tokens", "evaluation", "first message", "second message")
POINTS = list(itertools.product(range(len(REQUESTS)), ("before", "after")))
LOST = (REQUESTS.index("tokens"), "after")
"""The one point without a way back: the tokens are issued, and their blinding died with the process."""


class Killing(httpx.BaseTransport):
    """Real HTTP, up to a request."""

    def __init__(self, point: tuple[int, str]) -> None:
        self.number, self.when = point
        self.real = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.number == 0 and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        response = self.real.handle_request(request)
        if self.number == 0:
            response.read()
            os.kill(os.getpid(), signal.SIGKILL)
        self.number -= 1
        return response


def work(person: Person, point: tuple[int, str] | None = None) -> None:
    """What `qlog crowd client run` and then `send` do, up to a point."""
    with person.client(transport=Killing(point) if point else None) as client:
        finish(client, person, JOB)
    left = (point[0] - REQUESTS.index("first message"), point[1]) if point else None
    with person.client(LATE, transport=Killing(left) if left else None) as client:
        client.send_due()


def finish(client: Client, person: Person, job: Job) -> None:
    if client.standing(job) == "open":
        client.take_part(client.preview(job, person.log), client.poll())
    for participation in client.state.unfinished():
        client.resume(participation, client.poll())


def test_a_client_that_is_killed_anywhere_sends_every_message_once(tmp_path: Path) -> None:
    forked = multiprocessing.get_context("fork")
    with running_cast(tmp_path / "cast", jobs=[JOB]) as cast:
        arrived = 0
        for number, point in enumerate(POINTS):
            person = Person(cast, tmp_path, f"person-{number}", ["tea", "pot"])
            child = forked.Process(target=work, args=(person, point))
            child.start()
            child.join(60)
            assert child.exitcode == -signal.SIGKILL, point
            if point == LOST:
                with pytest.raises(QlogError, match="given out before"):
                    work(person)
            else:
                work(person)
                arrived += JOB.artifacts_per_user
            with person.client(LATE) as client:
                assert client.standing(JOB) == ("lost" if point == LOST else "took part"), point
                assert client.seconds_to_next() is None
            wait_for(lambda expected=arrived: cast.metrics("collector")["reports_accepted_total"] == expected)
        assert not [name for name in cast.metrics("collector") if name.startswith("reports_rejected")]
