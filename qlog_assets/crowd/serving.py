"""How the servers of CrowdLogging serve: limits on size and rate, counts, TLS, one line when ready, an end that loses
nothing.

What is behind an address sees the body of a request and nothing else of it: who sent it is looked at here, to limit the
rate, and forgotten. No access log is kept, because it would hold addresses.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sqlite3
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from qlog_assets.crowd.cast import PARTY_FILE, PartyFolder, PartySettings, is_this_machine
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.errors import QlogError
from qlog_assets.processes import on_signals

LOG = logging.getLogger(__name__)
REQUEST_SECONDS = 10
"""How long requests in flight may take after the end was asked for."""
IDLE_SECONDS = 60
"""How long a connection may be kept open without a request."""
HEAD_SECONDS = 30.0
"""How long a connection may take to say what it asks for."""
TICKS_PER_LOOK = 20
"""uvicorn's ticks of a tenth of a second between two looks for such connections."""
BODY_SECONDS = 30.0
"""How long the body of a request may take to come."""
BURST_SECONDS = 5
MOST_PEERS = 10_000
"""Peers whose rate is known at once; of more, those that asked longest ago start afresh."""
MOST_CONNECTIONS = 2_000
RETRY_SECONDS = 5
PREFIX = "qlog_crowd_"


class Refusal(Exception):  # noqa: N818  it is an answer, not a failure
    """A request that is answered with a status and a few fixed words, and counted under them."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def response(self) -> Response:
        later = {"Retry-After": str(RETRY_SECONDS)} if self.status in (429, 503) else None
        return PlainTextResponse(self.reason + "\n", self.status, later)


class Metrics:
    """Counts since the server started, as Prometheus reads them. Nothing but counts, and labels of fixed words."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1, reason: str | None = None) -> None:
        self._counts[f"{name}_total" if reason is None else f'{name}_total{{reason="{reason}"}}'] += number

    def text(self, gauges: Mapping[str, float]) -> str:
        lines = [f"{PREFIX}{name} {number}" for name, number in sorted({**self._counts, **gauges}.items())]
        return "\n".join(lines) + "\n"


class RateLimit:
    """So many requests per second and peer, over time. Addresses are kept in memory alone."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second * BURST_SECONDS)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer: str) -> None:
        """Count a request; raises Refusal if it is one too many."""
        now = self._clock()
        left, since = self._left.pop(peer, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        self._left[peer] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > MOST_PEERS:
            self._left.popitem(last=False)
        if left < 1:
            raise Refusal(429, "too many requests")


Handler = Callable[[bytes], Awaitable[Response]]


class Guarded:
    """One address that takes a body: what is too often or too large is refused before it is read."""

    def __init__(self, handle: Handler, largest: int, rate: RateLimit, metrics: Metrics) -> None:
        self._handle = handle
        self._largest = largest
        self._rate = rate
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._metrics.add("requests")
        try:
            self._rate.take(peer_of(scope))
            response = await self._handle(await read_body(scope, receive, self._largest))
        except Refusal as refusal:
            response = self._refuse(refusal)
        except MalformedError as error:
            response = self._refuse(Refusal(400, error.reason))
        await response(scope, receive, send)

    def _refuse(self, refusal: Refusal) -> Response:
        self._metrics.add("refused", reason=refusal.reason)
        return refusal.response()


def peer_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def read_body(scope: Scope, receive: Receive, largest: int) -> bytes:
    """The body of a request, up to a size and a time. One that says it is larger is not read at all."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > largest:
            raise Refusal(413, "body too large")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await receive_body(receive, largest)
    except TimeoutError:
        raise Refusal(408, "body took too long") from None


async def receive_body(receive: Receive, largest: int) -> bytes:
    parts, length = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Refusal(400, "body cut off")
        part = event.get("body", b"")
        parts.append(part)
        length += len(part)
        if length > largest:
            raise Refusal(413, "body too large")
        if not event.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object that a body holds."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "body is no JSON") from None
    if not isinstance(found, dict):
        raise Refusal(400, "body is no JSON object")
    return found


def make_application(
    settings: PartySettings,
    metrics: Metrics,
    posts: Mapping[str, tuple[Handler, int]],
    gets: Mapping[str, Callable[[Request], Awaitable[Response]]],
    gauges: Callable[[], Mapping[str, float]],
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]],
) -> Starlette:
    """A server: what takes bodies, each with the largest one, what only tells, and what runs beside them."""

    async def health(request: Request) -> Response:
        return JSONResponse({"name": settings.name, "role": settings.role})

    async def show_metrics(request: Request) -> Response:
        if peer_of(request.scope) not in settings.metrics_peers:
            return Refusal(403, "not for this peer").response()
        return PlainTextResponse(metrics.text(gauges()))

    rate = RateLimit(settings.requests_per_second)
    routes: list[BaseRoute] = [
        Route(path, Guarded(handle, largest, rate, metrics), methods=["POST"])
        for path, (handle, largest) in posts.items()
    ]
    routes += [Route(path, limited(tell, rate)) for path, tell in gets.items()]
    routes += [Route("/health", health), Route("/metrics", show_metrics)]
    return Starlette(routes=routes, lifespan=lifespan)


@asynccontextmanager
async def repeating(
    application: Starlette, work: Callable[[], Awaitable[bool]], pause_seconds: float, metrics: Metrics
) -> AsyncIterator[None]:
    """Beside a server: work in rounds, with a pause after each that says there is no more to do just now.

    A round that the disk or a file fails is counted, and the next one goes on. Anything else is an error of ours that
    would come again: it ends the server, because one that goes on without its rounds looks well and is not.
    """

    async def repeat() -> None:
        while True:
            try:
                is_more = await work()
            except (QlogError, OSError, sqlite3.Error) as error:
                metrics.add("rounds_failed", reason=type(error).__name__)
                is_more = False
            if not is_more:
                await asyncio.sleep(pause_seconds)

    def end(ended: asyncio.Task[None]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            LOG.error("the server ends: its work beside the answers failed (%s)", type(error).__name__)
            application.state.end()

    task = asyncio.create_task(repeat())
    task.add_done_callback(end)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def limited(
    tell: Callable[[Request], Awaitable[Response]], rate: RateLimit
) -> Callable[[Request], Awaitable[Response]]:
    """A page that anybody may ask for, but not too often."""

    async def answer(request: Request) -> Response:
        try:
            rate.take(peer_of(request.scope))
            return await tell(request)
        except Refusal as refusal:
            return refusal.response()

    return answer


# The process ----------------------------------------------------------------------------------------------------------


class Server(uvicorn.Server):
    """uvicorn, which says when it is ready and which signal ended it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._asking: dict[Any, tuple[object, float]] = {}
        self.ended_by = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_LOOK == 0:
            self._close_slow(time.monotonic())
        return await super().on_tick(counter)

    def _close_slow(self, now: float) -> None:
        """Close connections that take too long to say what they ask for: uvicorn has no limit of its own for that."""
        connections: set[Any] = set(self.server_state.connections)
        asking = {each: each.cycle for each in connections if is_asking(each)}
        before = self._asking
        # By the request before it: a connection that is between two others at each look is not slow.
        self._asking = {
            each: before[each] if each in before and before[each][0] is earlier else (earlier, now)
            for each, earlier in asking.items()
        }
        for each, (_, since) in self._asking.items():
            if now - since >= HEAD_SECONDS:
                each.transport.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end once; a second signal does not wait for requests in flight."""

        def ask(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True
            self.ended_by = self.ended_by or number

        with on_signals(ask):
            yield


def is_asking(connection: Any) -> bool:
    """Whether a connection of uvicorn's has no request that is answered, and is not idle after one either: that it
    limits by itself."""
    is_answered = connection.cycle is None or connection.cycle.response_complete
    return is_answered and connection.timeout_keep_alive_task is None


def serve(application: Starlette, home: PartyFolder[Any], tell: Callable[[str], None]) -> int:
    """Serve until a signal; returns the exit code, which names the signal as a shell does."""
    settings, tls = home.settings, home.tls_files()
    home.trust()  # told in one line now, and not as the server starts
    with listening(settings.host, settings.port) as listener:
        address, port = listener.getsockname()[:2]
        if tls is None and not is_this_machine(address):
            reason = "it would serve a network without TLS: name tls_certificate and tls_key"
            raise QlogError(f'{home.folder / PARTY_FILE}: {reason}, or host = "127.0.0.1" behind a proxy that has them')
        config = uvicorn.Config(
            application,
            access_log=False,
            log_level="warning",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="on",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=REQUEST_SECONDS,
            ssl_certfile=tls and tls[0],
            ssl_keyfile=tls and tls[1],
        )
        scheme = "https" if tls else "http"
        server = Server(config, lambda: tell(f"{settings.name}: ready at {scheme}://{settings.host}:{port}"))
        application.state.end = lambda: setattr(server, "should_exit", True)
        server.run(sockets=[listener])
    return 128 + server.ended_by if server.ended_by else 1


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """The socket, held from the start: a second server of the same party is told at once."""
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            reason = f"({error.strerror}): choose another port in party.toml"
            raise QlogError(f"cannot serve on {host}:{port} {reason}") from None
        yield listener
