"""How many reports a collector of CrowdLogging takes, durably, and how many it opens, with the senders beside it.

The collector is the command `qlog crowd collect` in its own processes; the senders are processes of this program, on
the same cores. Reports are real ones, each sealed and with a token of its own, and are prepared before the clock runs.
An answer counts when it is a 200, which means that the reports are on the disk. Run from the root of the checkout:
`.venv/bin/python -m benchmarks.crowd_load [--singles 20000] [--batched 60000] [--folder DIR]`, or `make bench-crowd`.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast as typed_as

import httpx

from qlog_assets.crowd.cast import Cast, CollectorSettings, make_cast, open_folder
from qlog_assets.crowd.envelopes import seal_report
from qlog_assets.crowd.health import is_up
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.messages import make_dummy
from qlog_assets.crowd.tokens import SERIAL_BYTES, Token, token_evaluator

CONNECTIONS = 128
BATCH_CONNECTIONS = 8
BATCH = 500
START_SECONDS, SEND_SECONDS, OPEN_SECONDS = 60.0, 300.0, 600.0


def make_job() -> Job:
    now = datetime.now(UTC).replace(microsecond=0)
    return Job(
        application="queries",
        epoch="2006-03",
        artifacts_per_user=10,
        share_threshold=5,
        policy="sound",
        opens=now - timedelta(days=1),
        closes=now + timedelta(days=1),
    )


# Reports --------------------------------------------------------------------------------------------------------------


def make_reports(task: tuple[Path, Job, int]) -> list[bytes]:
    """Sealed reports with tokens that the collector accepts."""
    collector, job, number = task
    home = open_folder(collector, CollectorSettings)
    evaluator = token_evaluator(home.token_seed(), "report", job)
    made = []
    for _ in range(number):
        serial = secrets.token_bytes(SERIAL_BYTES)
        report = make_dummy(job, Token(serial, evaluator.evaluate_known_input(serial)))
        made.append(seal_report(home.cast.collector, report.pack()))
    return made


def prepare(collector: Path, job: Job, number: int) -> list[bytes]:
    cores = os.cpu_count() or 1
    with multiprocessing.Pool(cores) as pool:
        parts = pool.map(make_reports, [(collector, job, 1 + number // (8 * cores))] * (8 * cores))
    return [report for part in parts for report in part][:number]


# Senders --------------------------------------------------------------------------------------------------------------


class Sender(asyncio.Protocol):
    """One connection: a request, its answer, the next request. Bodies are taken from a list that all share."""

    def __init__(self, bodies: list[bytes], finished: asyncio.Future[None], counts: dict[str, int]) -> None:
        self._bodies = bodies
        self._finished = finished
        self._counts = counts
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = typed_as(asyncio.Transport, transport)  # uvloop's are of a class of its own
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        if not self._bodies:
            self._transport.close()
            self._finished.set_result(None)
            return
        body = self._bodies.pop()
        head = f"POST /reports HTTP/1.1\r\nHost: collector\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        self._counts["taken" if data.startswith(b"HTTP/1.1 200") else "refused"] += 1
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._finished.done():
            self._finished.set_exception(ConnectionError("the collector closed a connection"))


async def send_all(port: int, bodies: list[bytes], connections: int) -> dict[str, int]:
    loop = asyncio.get_running_loop()
    counts = {"taken": 0, "refused": 0}
    finished = [loop.create_future() for _ in range(connections)]
    for each in finished:
        await loop.create_connection(lambda each=each: Sender(bodies, each, counts), "127.0.0.1", port)
    await asyncio.gather(*finished)
    return counts


def send(port: int, bodies: list[bytes], connections: int, answers: multiprocessing.Queue[dict[str, int]]) -> None:
    import uvloop

    answers.put(uvloop.run(send_all(port, bodies, connections)))


def measure_sending(port: int, bodies: list[bytes], senders: int, connections: int) -> float:
    """Seconds until every body was answered with a 200."""
    answers: multiprocessing.Queue[dict[str, int]] = multiprocessing.Queue()
    parts = [bodies[number::senders] for number in range(senders)]
    processes = [multiprocessing.Process(target=send, args=(port, part, connections, answers)) for part in parts]
    started = time.perf_counter()
    for process in processes:
        process.start()
    counts = [answers.get(timeout=SEND_SECONDS) for _ in processes]
    seconds = time.perf_counter() - started
    for process in processes:
        process.join()
    if sum(count["taken"] for count in counts) != len(bodies):
        raise SystemExit(f"{sum(count['refused'] for count in counts)} requests were refused")
    return seconds


# The collector --------------------------------------------------------------------------------------------------------


def start_collector(cast: Cast, folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-m", "qlog_assets.cli", "crowd", "collect", str(folder)])
    until = time.monotonic() + START_SECONDS
    with httpx.Client(trust_env=False) as client:
        while not is_up(client, cast.collector):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the collector did not start")
            time.sleep(0.1)
    return process


def metric(cast: Cast, name: str) -> float:
    text = httpx.get(f"{cast.collector.url}/metrics", trust_env=False).text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines())
    return float(found.get(f"qlog_crowd_{name}", 0))


def wait_until_opened(cast: Cast) -> tuple[float, float]:
    """How many reports were opened while nothing else went on, and in which time."""
    started, before = time.perf_counter(), metric(cast, "reports_waiting")
    until = time.monotonic() + OPEN_SECONDS
    while waiting := metric(cast, "reports_waiting"):
        if time.monotonic() > until:
            raise SystemExit(f"{waiting:,.0f} reports are still not opened")
        time.sleep(0.2)
    return before, time.perf_counter() - started


def cpu_seconds(process: int) -> float:
    """What a process used so far, without its children. On a busy machine it says more than the time that passed."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def opener_of(collector: subprocess.Popen[bytes]) -> int:
    """The one child of the collector."""
    return int(Path(f"/proc/{collector.pid}/task/{collector.pid}/children").read_text(encoding="utf-8"))


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def tell(what: str, number: int, unit: str, seconds: float, cpu: float) -> None:
    rate = f"{number / seconds:,.0f} {unit} per second ({seconds:.1f} s)"
    print(f"{what}: {rate}, {number / cpu:,.0f} per CPU second of that process", flush=True)


def run(directory: Path, singles: int, batched: int, senders: int) -> None:
    job, port = make_job(), free_port()
    told = {"requests_per_second": 1e6, "largest_backlog": 10_000_000, "metrics_peers": ["127.0.0.1"]}
    settings = {"collector": told}
    ports = [free_port(), port, free_port()]
    cast = make_cast(directory / "cast", relays=1, hops=1, ports=ports, settings=settings)  # type: ignore[arg-type]
    folder = directory / "cast" / "collector"
    write_jobs([job], [folder / "jobs"])
    reports = prepare(folder, job, singles + batched)
    print(f"{len(reports):,} reports prepared; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    collector = start_collector(cast, folder)
    try:
        before = cpu_seconds(collector.pid)
        seconds = measure_sending(port, reports[:singles], senders, CONNECTIONS // senders)
        tell("single reports", singles, "durable requests", seconds, cpu_seconds(collector.pid) - before)
        print(f"opened meanwhile: {metric(cast, 'reports_accepted_total'):,.0f}", flush=True)
        wait_until_opened(cast)
        rest = reports[singles:]
        bodies = [b"".join(rest[at : at + BATCH]) for at in range(0, len(rest), BATCH)]
        before = cpu_seconds(collector.pid)
        seconds = measure_sending(port, bodies, senders, BATCH_CONNECTIONS)
        tell(f"batches of {BATCH}", len(rest), "durable reports", seconds, cpu_seconds(collector.pid) - before)
        opener = opener_of(collector)
        before = cpu_seconds(opener)
        opened, seconds = wait_until_opened(cast)
        tell("opened and checked, nothing beside", int(opened), "reports", seconds, cpu_seconds(opener) - before)
        accepted = metric(cast, "reports_accepted_total")
        if accepted != len(reports):
            raise SystemExit(f"{accepted:,.0f} reports were accepted of {len(reports):,}")
    finally:
        collector.send_signal(signal.SIGTERM)
        collector.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--singles", type=int, default=20_000, help="requests of one report each")
    parser.add_argument("--batched", type=int, default=60_000, help="reports in batches")
    parser.add_argument("--senders", type=int, default=1, help="processes that send")
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured; default: the checkout's")
    asked = parser.parse_args()
    base = asked.folder or Path(".cache")
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, prefix="crowd-load-") as scratch:
        run(Path(scratch), asked.singles, asked.batched, asked.senders)


if __name__ == "__main__":
    main()
