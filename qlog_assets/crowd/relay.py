"""A relay: takes its layer off messages, mixes them with others, and sends them on later; passes questions on at once.

A relay learns where a message goes next and nothing of it. The first one of a route meets the sender's address: it is
looked at to limit the rate and never stored. Messages go on in requests of many that go to one party and have one
size, in an order drawn anew, after a random time each. A message leaves the queue when the next party has answered
for it; one that is sent twice because an answer was lost is known again there.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import SystemRandom

import httpx
from starlette.applications import Starlette
from starlette.responses import Response

from qlog_assets.crowd.cast import Cast, Party, PartyFolder, RelaySettings
from qlog_assets.crowd.collector import MOST_REPORTS
from qlog_assets.crowd.envelopes import (
    BODY_STEP,
    ENVELOPE_BYTES,
    LAYER_BYTES,
    RESPONSE_KEY_BYTES,
    SEALED_REPORT_BYTES,
    onion_bytes,
    unwrap,
)
from qlog_assets.crowd.inbox import ClosedError, FullError, Group, Inbox, Item, digest_of
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.serving import Metrics, Refusal, make_application, repeating
from qlog_assets.errors import QlogError

MOST_MESSAGES = 100
"""Per request. Up to here no length is a whole number of messages of two sizes, so a body needs no head to say what it
holds: `layers_of` tells from the length how many layers its messages have."""
LARGEST_QUESTION = 262_144
LARGEST_ANSWER = 1_048_576
SEND_SECONDS = 30.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 600.0
LOOK_SECONDS = 0.5
"""How often a relay looks whether a waiting message is due."""
MOST_PER_ROUND = 5_000
LATE_STEPS = 8
"""Steps of the longest delay: so coarse is the time that is stored of a message, but for a random one."""
DATABASE = "relay.db"


def layers_of(body: bytes, hops: int) -> int:
    """How many layers the messages of a body have."""
    for layers in range(1, hops + 1):
        if len(body) % onion_bytes(layers) == 0 and 0 < len(body) <= MOST_MESSAGES * onion_bytes(layers):
            return layers
    raise MalformedError("body is no whole number of messages")


def check_question(question: bytes, hops: int) -> None:
    """Refuse a question that has not 1 to `hops` layers: one of a thousand would run in circles among the relays."""
    layers, rest = divmod((len(question) - RESPONSE_KEY_BYTES - ENVELOPE_BYTES) % BODY_STEP, LAYER_BYTES)
    if rest or not 1 <= layers <= hops:
        raise MalformedError("question has not the size of one")


def latest(now: float, longest_delay: float) -> float:
    """When a message that came now goes on in any case: within the longest delay, on a grid so coarse that the time,
    which is stored with the message, does not tell when it came."""
    step = max(longest_delay / LATE_STEPS, 1.0)
    return math.ceil(now / step) * step + max(longest_delay - step, 0.0)


class NoAnswerError(Exception):
    """The next party gave no answer that can be passed on; in fixed words."""


@dataclass
class Pause:
    """A party that did not take messages is left alone for a while, each time twice as long."""

    until: float = 0.0
    seconds: float = FIRST_PAUSE_SECONDS / 2


class Relay:
    """The server's state and what it does."""

    def __init__(
        self,
        home: PartyFolder[RelaySettings],
        clock: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._home = home
        self._clock = clock
        self._transport = transport
        self._random = SystemRandom()
        self._metrics = Metrics()
        self._pauses: dict[str, Pause] = {}
        self._stranded = 0

    @property
    def _cast(self) -> Cast:
        return self._home.cast

    def application(self) -> Starlette:
        return make_application(
            self._home.settings,
            self._metrics,
            posts={
                "/messages": (self.accept, MOST_MESSAGES * onion_bytes(self._cast.hops)),
                "/ask": (self.pass_on, LARGEST_QUESTION),
            },
            gets={},
            gauges=self.gauges,
            lifespan=self.lifespan,
        )

    @asynccontextmanager
    async def lifespan(self, application: Starlette) -> AsyncIterator[None]:
        async with self.opened(), repeating(application, self._send_round, LOOK_SECONDS, self._metrics):
            yield

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The queue and the way to the other parties; nothing is sent on by itself."""
        settings = self._home.settings
        async with (
            Inbox(
                self._home.folder / DATABASE,
                largest_backlog=settings.largest_backlog,
                delayed=True,
                clock=self._clock,
            ) as self._inbox,
            httpx.AsyncClient(
                headers={"Accept-Encoding": "identity"},
                verify=self._home.trust(),
                timeout=SEND_SECONDS,
                transport=self._transport,
                trust_env=False,
            ) as self._client,
        ):
            yield

    # Taking messages --------------------------------------------------------------------------------------------------

    async def accept(self, body: bytes) -> Response:
        """Store messages. The answer means that they are on the disk; what is no message is counted and forgotten."""
        size = onion_bytes(layers_of(body, self._cast.hops))
        onions = [body[at : at + size] for at in range(0, len(body), size)]
        items = await asyncio.to_thread(self._take_layers_off, onions)
        try:
            await self._inbox.put(items)
        except FullError:
            raise Refusal(503, "too many messages wait") from None
        except ClosedError:
            raise Refusal(503, "the server is ending") from None
        return Response()

    def _take_layers_off(self, onions: Sequence[bytes]) -> list[Item]:
        settings, now = self._home.settings, self._clock()
        late = latest(now, settings.longest_delay_seconds)
        items = []
        for onion in onions:
            try:
                name, inner = unwrap(self._home.private_key, onion)
                self._check_onward(name, inner)
            except MalformedError as error:
                self._metrics.add("messages_rejected", reason=error.reason)
                continue
            due = now + self._random.uniform(0, settings.delay_seconds)
            items.append(Item(digest_of(onion), inner, name, due, late))
        return items

    def _check_onward(self, name: str, inner: bytes) -> None:
        """Refuse what the next party would refuse: it would take the whole request with it."""
        party = self._find_party(name)
        if party.role == "randomness" or (party.role == "collector") != (len(inner) == SEALED_REPORT_BYTES):
            raise MalformedError("layer names a party that takes no such message")

    def _find_party(self, name: str) -> Party:
        try:
            return self._cast.party(name)
        except QlogError:
            raise MalformedError("layer names a party that is not in the directory") from None

    # Sending them on --------------------------------------------------------------------------------------------------

    async def _send_round(self) -> bool:
        return await self.send_due() > 0

    async def send_due(self) -> int:
        """Send on what is due and mixed; returns how many messages the next parties took."""
        now = self._clock()
        batch = self._home.settings.batch
        known = {party.name for party in self._cast.parties}
        groups = self._inbox.due_groups(now)
        # They are kept: a party that went from the directory may come back.
        self._stranded = sum(group.messages for group in groups if group.onward not in known)
        ready = [
            group
            for group in groups
            if group.onward in known
            and (group.messages >= batch or group.late <= now)
            and self._pause_of(group.onward).until <= now
        ]
        # All of them to the end, whatever one does: the next round must not send beside this one.
        sent = await asyncio.gather(*(self._send_group(group, now) for group in ready), return_exceptions=True)
        for each in sent:
            if isinstance(each, BaseException):
                raise each
        return sum(each for each in sent if isinstance(each, int))

    async def _send_group(self, group: Group, now: float) -> int:
        taken = self._inbox.take(group, now, MOST_PER_ROUND)
        self._random.shuffle(taken)
        party = self._cast.party(group.onward)
        path, most = ("/reports", MOST_REPORTS) if party.role == "collector" else ("/messages", MOST_MESSAGES)
        sent = 0
        for at in range(0, len(taken), most):
            part = taken[at : at + most]
            if not await self._send(party, path, b"".join(message for _, message in part)):
                self._put_off(party.name)
                break
            await self._inbox.done([digest for digest, _ in part])
            self._pauses.pop(party.name, None)
            self._metrics.add("messages_sent", len(part))
            sent += len(part)
        return sent

    async def _send(self, party: Party, path: str, body: bytes) -> bool:
        try:
            status, _ = await self._ask(party.url + path, body)
        except NoAnswerError as error:
            self._metrics.add("sendings_failed", reason=str(error))
            return False
        if status != 200:
            self._metrics.add("sendings_failed", reason=str(status))
        return status == 200

    async def _ask(self, url: str, body: bytes) -> tuple[int, bytes]:
        """What a party answers, up to a size and a time: it may be anybody's server."""
        answered = bytearray()
        try:
            async with asyncio.timeout(SEND_SECONDS), self._client.stream("POST", url, content=body) as answer:
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise NoAnswerError("the answer is compressed")  # a few bytes could become a million
                async for part in answer.aiter_bytes():
                    answered += part
                    if len(answered) > LARGEST_ANSWER:
                        raise NoAnswerError("the answer is too large")
                return answer.status_code, bytes(answered)
        except (httpx.HTTPError, TimeoutError):
            raise NoAnswerError("the next party does not answer") from None

    def _pause_of(self, name: str) -> Pause:
        return self._pauses.get(name, Pause())

    def _put_off(self, name: str) -> None:
        seconds = min(2 * self._pause_of(name).seconds, LONGEST_PAUSE_SECONDS)
        # Not all relays at the same time, when a party that was down comes back.
        self._pauses[name] = Pause(self._clock() + seconds * self._random.uniform(0.5, 1), seconds)

    # Questions --------------------------------------------------------------------------------------------------------

    async def pass_on(self, body: bytes) -> Response:
        """Take the layer off a question, ask the next party, and return what it answers."""
        check_question(body, self._cast.hops)
        name, inner = await asyncio.to_thread(unwrap, self._home.private_key, body)
        try:
            status, answer = await self._ask(self._find_party(name).url + "/ask", inner)
        except NoAnswerError as error:
            raise Refusal(502, str(error)) from None
        self._metrics.add("questions_passed_on")
        return Response(answer, status)

    def gauges(self) -> dict[str, float]:
        return {
            "messages_stored_total": self._inbox.stored,
            "messages_repeated_total": self._inbox.repeated,
            "messages_waiting": self._inbox.backlog(),
            "messages_for_unknown_parties": self._stranded,
        }
