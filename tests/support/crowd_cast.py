"""CrowdLogging's servers for tests: a whole cast as child processes, one server in a thread, and reports to send."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette

from qlog_assets.crowd import running
from qlog_assets.crowd.cast import Cast, CollectorSettings, Role, open_folder
from qlog_assets.crowd.envelopes import seal_report
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.messages import Report, make_dummy
from qlog_assets.crowd.running import END_SECONDS, RunningCast, free_ports, read_metrics
from qlog_assets.crowd.tokens import SERIAL_BYTES, Purpose, Token, token_evaluator

__all__ = [
    "QUICK",
    "RunningCast",
    "free_ports",
    "made_reports",
    "made_tokens",
    "open_job",
    "read_metrics",
    "running_cast",
    "sealed_reports",
    "serving",
    "wait_for",
]
OPEN: Mapping[str, Any] = {"requests_per_second": 1e5, "metrics_peers": ["127.0.0.1"]}
QUICK: Mapping[Role, Mapping[str, Any]] = {
    "relay": {"batch": 1, "delay_seconds": 0.0, "longest_delay_seconds": 0.0, **OPEN},
    "collector": {"drain_seconds": 0.0, **OPEN},
    "randomness": OPEN,
}
"""Settings under which nothing waits: no mixing, no limit that a test would meet by its speed."""


def open_job(**changes: Any) -> Job:
    """A job that is open now, unless told otherwise."""
    now = datetime.now(UTC).replace(microsecond=0)
    values: dict[str, Any] = {
        "application": "queries",
        "epoch": "2006-03",
        "artifacts_per_user": 3,
        "share_threshold": 2,
        "policy": "sound",
        "opens": now - timedelta(days=1),
        "closes": now + timedelta(days=1),
    }
    return Job(**{**values, **changes})


# A whole cast ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running_cast(
    directory: Path, *, settings: Mapping[Role, Mapping[str, Any]] = QUICK, **further: Any
) -> Iterator[RunningCast]:
    """A cast under which nothing waits, with a warehouse of its own."""
    with running.running_cast(directory, directory.parent / "warehouse", settings=settings, **further) as cast:
        yield cast


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look until something is so; an error if it is not so in time."""
    running.wait_for(condition, seconds, "what the test waits for")


# One server in a thread -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(application: Starlette, port: int = 0) -> Iterator[httpx.Client]:
    """A server in a thread of this process, over real HTTP; yields a client that knows its address."""
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", access_log=False, lifespan="on"))
    application.state.end = lambda: setattr(server, "should_exit", True)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_for(lambda: server.started or not thread.is_alive())
        assert server.started
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(END_SECONDS)
            assert not thread.is_alive()


# Reports --------------------------------------------------------------------------------------------------------------


def made_tokens(seed: bytes, purpose: Purpose, job: Job, number: int) -> list[Token]:
    """Tokens as the issuer's key makes them, without the blinding."""
    evaluator = token_evaluator(seed, purpose, job)
    serials = [secrets.token_bytes(SERIAL_BYTES) for _ in range(number)]
    return [Token(serial, evaluator.evaluate_known_input(serial)) for serial in serials]


def made_reports(collector: Path, job: Job, number: int) -> list[Report]:
    """Reports that a collector accepts: dummies, each with a token of its own."""
    home = open_folder(collector, CollectorSettings)
    return [make_dummy(job, token) for token in made_tokens(home.token_seed(), "report", job, number)]


def sealed_reports(cast: Cast, reports: Sequence[Report]) -> list[bytes]:
    return [seal_report(cast.collector, report.pack()) for report in reports]
