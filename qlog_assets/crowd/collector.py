"""The collector: stores sealed reports before it answers for them, and tells clients which jobs there are.

It never learns who sent a report: relays bring them, shuffled. Opening them is the work of a process beside this one
(`opening`), so that a flood of reports to open does not keep others from being accepted.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from qlog_assets.crowd.cast import CollectorSettings, PartyFolder
from qlog_assets.crowd.envelopes import SEALED_REPORT_BYTES, make_response, read_bytes, read_request, write_bytes
from qlog_assets.crowd.inbox import ClosedError, FullError, Inbox, Item, digest_of
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.kept_jobs import KeptJobs
from qlog_assets.crowd.keys import POINT_BYTES, public_key_of
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.opening import DATABASE, open_collector
from qlog_assets.crowd.serving import Metrics, Refusal, make_application
from qlog_assets.crowd.tokens import Purpose, token_evaluator

MOST_REPORTS = 1_000
LARGEST_QUESTION = 65_536
LEARN_SECONDS = 5.0
"""How long the randomness server may take to state a key, and how long it is not asked again after it did not."""


class Collector:
    """The server's state and what it answers."""

    def __init__(self, home: PartyFolder[CollectorSettings], clock: Callable[[], float] = time.time) -> None:
        self._home = home
        self._clock = clock
        self._seed = home.token_seed()
        self._metrics = Metrics()
        self._database = open_collector(home.folder)
        self._jobs = KeptJobs(self._database, home.jobs)
        self._more = asyncio.Event()
        self._asked_at = -LEARN_SECONDS

    def application(self) -> Starlette:
        return make_application(
            self._home.settings,
            self._metrics,
            posts={
                "/reports": (self.accept, MOST_REPORTS * SEALED_REPORT_BYTES),
                "/ask": (self.answer, LARGEST_QUESTION),
            },
            gets={"/jobs": self.tell_jobs},
            gauges=self.gauges,
            lifespan=self.lifespan,
        )

    @asynccontextmanager
    async def lifespan(self, application: Starlette) -> AsyncIterator[None]:
        settings = self._home.settings
        async with (
            Inbox(
                self._home.folder / DATABASE,
                largest_backlog=settings.largest_backlog,
                remember_days=settings.remember_days,
                clock=self._clock,
            ) as self._inbox,
            httpx.AsyncClient(verify=self._home.trust(), timeout=LEARN_SECONDS, trust_env=False) as self._client,
            self._opener(application),
        ):
            yield
        self._database.close()

    @asynccontextmanager
    async def _opener(self, application: Starlette) -> AsyncIterator[None]:
        """The process that opens reports. It hears on its standard input that there are more, and its end is ours."""
        # A session of its own: control-C in a terminal is for the server, which then lets it finish its batch.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "qlog_assets.crowd.opening", str(self._home.folder)),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._more.set()  # for what an earlier server left
        tasks = [asyncio.create_task(self._wake(process)), asyncio.create_task(self._watch(process, application))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    async def _wake(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        with suppress(ConnectionError):  # it ended; `_watch` sees to that
            while True:
                await self._more.wait()
                self._more.clear()
                process.stdin.write(b"\n")
                await process.stdin.drain()

    async def _watch(self, process: asyncio.subprocess.Process, application: Starlette) -> None:
        """End with the opener: a collector that accepts and never opens looks well and is not."""
        await process.wait()
        application.state.end()

    async def accept(self, body: bytes) -> Response:
        """Store sealed reports. The answer means that they are on the disk."""
        if not body or len(body) % SEALED_REPORT_BYTES:
            raise Refusal(400, "body is no whole number of reports")
        reports = [body[at : at + SEALED_REPORT_BYTES] for at in range(0, len(body), SEALED_REPORT_BYTES)]
        try:
            await self._inbox.put([Item(digest_of(report), report) for report in reports])
        except FullError:
            raise Refusal(503, "too many reports wait") from None
        except ClosedError:
            raise Refusal(503, "the server is ending") from None
        self._more.set()
        return Response()

    # What it tells ----------------------------------------------------------------------------------------------------

    async def answer(self, body: bytes) -> Response:
        """A question that came through relays."""
        asked, response_key = read_request(self._home.private_key, body)
        if asked.get("op") != "jobs":
            raise MalformedError("unknown question")
        return Response(make_response(response_key, await self.jobs()))

    async def tell_jobs(self, request: Request) -> Response:
        return JSONResponse(await self.jobs())

    async def jobs(self) -> dict[str, Any]:
        """The jobs that are not over, and the keys by which clients check what the randomness server tells them."""
        sealed = {epoch for (epoch,) in self._database.execute("SELECT epoch FROM sealed")}
        jobs = [job for job in self._jobs.shown() if job.epoch not in sealed]
        epochs, evaluations = await self._learnt_keys(jobs)
        return {
            "jobs": [job.as_toml() for job in jobs],
            "token_keys": {
                job.digest.hex(): {purpose: write_bytes(key) for purpose, key in self._token_keys(job, evaluations)}
                for job in jobs
            },
            "epoch_keys": {epoch: write_bytes(key) for epoch, key in epochs.items()},
        }

    def _token_keys(self, job: Job, evaluations: dict[bytes, bytes]) -> Iterator[tuple[Purpose, bytes]]:
        """The public keys of a job's tokens: computed where this server has the seed, otherwise as it learnt them."""
        yield "report", public_key_of(token_evaluator(self._seed, "report", job))
        if job.digest in evaluations:
            yield "evaluate", evaluations[job.digest]

    async def _learnt_keys(self, jobs: Sequence[Job]) -> tuple[dict[str, bytes], dict[bytes, bytes]]:
        """The public keys of these jobs' epochs and of their tokens for evaluations, as the randomness server first
        stated them: one that changes later splits the clients."""
        known_epochs, known_jobs = self._known_keys()
        missing = {job.epoch for job in jobs if job.epoch not in known_epochs or job.digest not in known_jobs}
        if missing and self._clock() - self._asked_at >= LEARN_SECONDS:
            for epoch in sorted(missing):
                await self._learn_keys(epoch)
            known_epochs, known_jobs = self._known_keys()
            if not all(job.epoch in known_epochs and job.digest in known_jobs for job in jobs):
                self._asked_at = self._clock()
        return (
            {job.epoch: known_epochs[job.epoch] for job in jobs if job.epoch in known_epochs},
            {job.digest: known_jobs[job.digest] for job in jobs if job.digest in known_jobs},
        )

    def _known_keys(self) -> tuple[dict[str, bytes], dict[bytes, bytes]]:
        epochs = self._database.execute("SELECT epoch, public_key FROM epoch_keys").fetchall()
        return dict(epochs), dict(self._database.execute("SELECT job, public_key FROM evaluation_keys").fetchall())

    async def _learn_keys(self, epoch: str) -> None:
        try:
            answer = await self._client.get(f"{self._home.cast.randomness.url}/epochs/{epoch}")
            stated = answer.raise_for_status().json()
            key = read_bytes(stated["public_key"], POINT_BYTES)
            tokens = {bytes.fromhex(job): read_bytes(each, POINT_BYTES) for job, each in stated["token_keys"].items()}
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError, MalformedError):
            self._metrics.add("keys_not_learnt")
            return
        self._database.execute("INSERT OR IGNORE INTO epoch_keys VALUES (?, ?)", (epoch, key))
        self._database.executemany("INSERT OR IGNORE INTO evaluation_keys VALUES (?, ?)", tokens.items())

    def gauges(self) -> dict[str, float]:
        accepted = self._database.execute("SELECT coalesce(sum(reports), 0) FROM accepted").fetchone()[0]
        rejected = self._database.execute("SELECT reason, sum(reports) FROM rejected GROUP BY reason").fetchall()
        return {
            "reports_stored_total": self._inbox.stored,
            "reports_repeated_total": self._inbox.repeated,
            "reports_waiting": self._inbox.backlog(),
            "job_files_left_out": self._jobs.left_out(),
            "reports_accepted_total": accepted,
            **{f'reports_rejected_total{{reason="{reason}"}}': reports for reason, reports in rejected},
        }
