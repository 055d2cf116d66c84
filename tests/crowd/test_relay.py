"""A relay: what it answered for reaches the next party, mixed and later, whatever that party does meanwhile."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support.crowd_cast import QUICK, free_ports, read_metrics, serving, wait_for

from qlog_assets.crowd.cast import MOST_HOPS, Cast, Party, RelaySettings, make_cast, open_folder
from qlog_assets.crowd.envelopes import SEALED_REPORT_BYTES, make_request, onion_bytes, wrap
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.relay import (
    LARGEST_ANSWER,
    LONGEST_PAUSE_SECONDS,
    MOST_MESSAGES,
    Relay,
    check_question,
    latest,
    layers_of,
)
from qlog_assets.crowd.serving import Refusal

HOUR = 3600.0


class Recorder:
    """The next party, as far as a relay meets it: says what it is told to, and keeps what it got."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.status = 200

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        if self.status == 200:
            self.bodies.append(body)
        return Response(b"answered: " + body[:4], self.status)

    def messages(self) -> list[bytes]:
        size = SEALED_REPORT_BYTES
        return [body[at : at + size] for body in self.bodies for at in range(0, len(body), size)]

    @contextmanager
    def running(self, port: int) -> Iterator[None]:
        paths = ("/reports", "/messages", "/ask")
        with serving(Starlette(routes=[Route(path, self.answer, methods=["POST"]) for path in paths]), port):
            yield


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


class Scene:
    """A relay of a cast of one relay, before a collector that is a recorder, with a clock that is set by hand."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        ports = free_ports(3)
        self.cast = make_cast(folder, 1, 1, ports=ports, settings={**QUICK, "relay": {**QUICK["relay"], **settings}})
        self.home = open_folder(folder / "relay-1", RelaySettings)
        self.collector_port = ports[1]
        self.recorder = Recorder()
        self.clock = Clock()

    def onions(self, number: int) -> tuple[list[bytes], list[bytes]]:
        """Sealed messages, and the onions that hold them."""
        sealed = [os.urandom(SEALED_REPORT_BYTES) for _ in range(number)]
        return sealed, [wrap(self.cast.relays, self.cast.collector, each) for each in sealed]

    def run(self, use: Callable[[Relay], Coroutine[Any, Any, Any]]) -> Any:
        """One life of the relay's process."""

        async def live() -> Any:
            relay = Relay(self.home, self.clock)
            async with relay.opened():
                return await use(relay)

        return asyncio.run(live())

    def accept(self, onions: list[bytes]) -> None:
        async def use(relay: Relay) -> None:
            for at in range(0, len(onions), MOST_MESSAGES):
                await relay.accept(b"".join(onions[at : at + MOST_MESSAGES]))

        self.run(use)

    def send_due(self) -> int:
        return int(self.run(lambda relay: relay.send_due()))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "cast")


def test_every_message_reaches_the_next_party_once_and_in_another_order(scene: Scene) -> None:
    sealed, onions = scene.onions(60)
    scene.accept(onions)
    with scene.recorder.running(scene.collector_port):
        assert scene.send_due() == 60
        assert scene.send_due() == 0
    got = scene.recorder.messages()
    assert sorted(got) == sorted(sealed) and got != sealed
    assert len(scene.recorder.bodies) == 1


def test_a_relay_that_is_restarted_has_what_it_answered_for(scene: Scene) -> None:
    sealed, onions = scene.onions(5)
    scene.accept(onions[:3])
    scene.accept(onions[3:])
    with scene.recorder.running(scene.collector_port):
        scene.send_due()
    assert sorted(scene.recorder.messages()) == sorted(sealed)


def test_what_a_relay_before_it_duplicates_goes_on_once_also_later(scene: Scene) -> None:
    sealed, onions = scene.onions(4)
    with scene.recorder.running(scene.collector_port):
        scene.accept(onions + onions)
        scene.send_due()
        scene.accept(onions)
        scene.send_due()
    assert sorted(scene.recorder.messages()) == sorted(sealed)


def test_a_message_that_is_sent_again_years_later_does_not_go_on_again(scene: Scene) -> None:
    """Who records a message and sends it again among others of their own would see where it goes."""
    sealed, onions = scene.onions(2)
    with scene.recorder.running(scene.collector_port):
        for _ in range(3):
            scene.accept(onions)
            scene.send_due()
            scene.clock.now += 400 * 24 * HOUR
    assert sorted(scene.recorder.messages()) == sorted(sealed)


def test_messages_for_a_party_that_left_the_directory_are_kept_and_counted_and_hold_up_no_others(
    tmp_path: Path,
) -> None:
    ports = free_ports(5)
    cast = make_cast(tmp_path / "cast", 3, 2, ports=ports, settings=QUICK)
    folder = tmp_path / "cast" / "relay-1"
    by_name = {party.name: party for party in cast.parties}

    def onion(other: str) -> bytes:
        return wrap([by_name["relay-1"], by_name[other]], cast.collector, os.urandom(SEALED_REPORT_BYTES))

    async def store(body: bytes) -> None:
        relay = Relay(open_folder(folder, RelaySettings))
        async with relay.opened():
            await relay.accept(body)

    asyncio.run(store(onion("relay-2")))
    left = Cast(hops=2, parties=tuple(party for party in cast.parties if party.name != "relay-2"))
    (folder / "cast.json").write_text(left.as_json())
    recorder = Recorder()
    application = Relay(open_folder(folder, RelaySettings)).application()
    with recorder.running(ports[2]), serving(application) as client:
        assert client.post("/messages", content=onion("relay-3")).status_code == 200
        wait_for(lambda: len(recorder.bodies) == 1)
        wait_for(lambda: read_metrics(client.get("/metrics").text)["messages_waiting"] == 1)
        assert read_metrics(client.get("/metrics").text)["messages_for_unknown_parties"] == 1


@given(st.floats(1e9, 2e9), st.floats(0, 10 * 24 * HOUR))
def test_the_latest_time_is_within_the_longest_delay_and_tells_no_time_of_arrival(now: float, delay: float) -> None:
    late, step = latest(now, delay), max(delay / 8, 1.0)
    assert now + delay - step - 1e-3 <= late <= now + max(delay, step) + 1e-3
    assert abs(late / step - round(late / step)) < 1e-3 or delay < 8


def test_messages_that_came_at_different_times_are_stored_with_the_same_latest_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "cast", batch=100, delay_seconds=600.0, longest_delay_seconds=6 * HOUR)
    for onion in scene.onions(20)[1]:
        scene.accept([onion])
        scene.clock.now += 60
    with sqlite3.connect(scene.home.folder / "relay.db") as connection:
        (times,) = connection.execute("SELECT count(DISTINCT late) FROM waiting").fetchone()
    assert times <= 2


class Endless(httpx.AsyncByteStream):
    """An answer that goes on for as long as somebody reads it, up to a hundred times what may be."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.read < 100 * LARGEST_ANSWER:
            self.read += 65_536
            yield bytes(65_536)


def test_an_answer_without_end_is_cut_off(scene: Scene) -> None:
    question, _ = make_request(scene.cast.relays, scene.cast.collector, {"op": "jobs"})
    _, onions = scene.onions(1)
    answers: list[Endless] = []

    def answer(request: httpx.Request) -> httpx.Response:
        answers.append(Endless())
        return httpx.Response(200, stream=answers[-1])

    async def use() -> None:
        relay = Relay(scene.home, transport=httpx.MockTransport(answer))
        async with relay.opened():
            with pytest.raises(Refusal, match="the answer is too large"):
                await relay.pass_on(question)
            await relay.accept(onions[0])
            assert await relay.send_due() == 0

    asyncio.run(use())
    assert [each.read for each in answers] == [LARGEST_ANSWER + 65_536] * 2


def test_messages_wait_for_a_batch_and_a_lone_one_no_longer_than_the_longest_delay(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "cast", batch=10, delay_seconds=HOUR, longest_delay_seconds=3 * HOUR)
    _, onions = scene.onions(12)
    with scene.recorder.running(scene.collector_port):
        scene.accept(onions[:9])
        scene.clock.now += HOUR
        assert scene.send_due() == 0, "nine are no batch of ten"
        scene.accept(onions[9:11])
        assert scene.send_due() == 0, "the late ones wait a time of their own first"
        scene.clock.now += HOUR
        assert scene.send_due() == 11
        scene.accept(onions[11:])
        scene.clock.now += 2 * HOUR
        assert scene.send_due() == 0
        scene.clock.now += HOUR
        assert scene.send_due() == 1


def test_a_next_party_that_fails_loses_nothing_and_is_left_alone_for_longer_each_time(scene: Scene) -> None:
    sealed, onions = scene.onions(3)

    async def use(relay: Relay) -> list[float]:
        await relay.accept(b"".join(onions))
        pauses = []
        for _ in range(14):
            assert await relay.send_due() == 0
            pause = relay._pauses["collector"]
            assert await relay.send_due() == 0 and relay._pauses["collector"] is pause, "not asked during the pause"
            pauses.append(pause.seconds)
            scene.clock.now = pause.until
        return pauses

    scene.recorder.status = 503
    with scene.recorder.running(scene.collector_port):
        pauses = scene.run(use)
        assert pauses == sorted(pauses) and pauses[0] == 1 and pauses[-1] == LONGEST_PAUSE_SECONDS
        scene.recorder.status = 200
        assert scene.send_due() == 3
    assert sorted(scene.recorder.messages()) == sorted(sealed)


def test_a_next_party_that_is_not_there_loses_nothing(scene: Scene) -> None:
    sealed, onions = scene.onions(2)
    scene.accept(onions)
    assert scene.send_due() == 0
    with scene.recorder.running(scene.collector_port):
        assert scene.send_due() == 2
    assert sorted(scene.recorder.messages()) == sorted(sealed)


def test_what_is_no_message_is_counted_and_does_not_hold_up_the_others(scene: Scene) -> None:
    sealed, (good,) = scene.onions(1)
    stranger = Party(name="stranger", role="relay", url="https://192.0.2.1", key=scene.cast.collector.key)
    filler = os.urandom(SEALED_REPORT_BYTES)
    bad = [
        os.urandom(onion_bytes(1)),
        wrap(scene.cast.relays, stranger, filler),
        wrap(scene.cast.relays, scene.cast.randomness, filler),
        wrap(scene.cast.relays, scene.cast.relays[0], filler),  # a relay takes no bare report
    ]

    async def use(relay: Relay) -> str:
        assert (await relay.accept(b"".join([*bad, good]))).status_code == 200
        assert await relay.send_due() == 1
        return relay._metrics.text({})

    with scene.recorder.running(scene.collector_port):
        counts = read_metrics(scene.run(use))
    assert scene.recorder.messages() == sealed
    rejected = {name: number for name, number in counts.items() if name.startswith("messages_rejected")}
    assert rejected == {
        'messages_rejected_total{reason="envelope does not open"}': 1,
        'messages_rejected_total{reason="layer names a party that is not in the directory"}': 1,
        'messages_rejected_total{reason="layer names a party that takes no such message"}': 2,
    }


@given(st.integers(1, MOST_HOPS), st.integers(1, MOST_MESSAGES))
def test_a_bodys_length_tells_how_many_layers_its_messages_have(layers: int, messages: int) -> None:
    assert layers_of(bytes(onion_bytes(layers) * messages), MOST_HOPS) == layers


@given(st.integers(0, 200_000))
def test_a_length_is_taken_if_and_only_if_it_is_a_whole_number_of_messages(length: int) -> None:
    fitting = [
        layers
        for layers in range(1, 4)
        if length % onion_bytes(layers) == 0 and 1 <= length // onion_bytes(layers) <= MOST_MESSAGES
    ]
    if fitting:
        assert [layers_of(bytes(length), 3)] == fitting
    else:
        with pytest.raises(MalformedError):
            layers_of(bytes(length), 3)


@given(st.integers(1, 3), st.integers(0, 3000))
def test_a_question_has_as_many_layers_as_the_cast_has_hops_at_most(layers: int, length: int) -> None:
    party = Party(name="p", role="relay", url="https://192.0.2.1", key=bytes([9] + [0] * 31))
    question, _ = make_request([party] * layers, party, {"filler": "x" * length})
    check_question(question, 3)
    for wrong in (question[:-1], make_request([party] * (layers + 3), party, {})[0], make_request([], party, {})[0]):
        with pytest.raises(MalformedError):
            check_question(wrong, 3)


def test_over_http_messages_go_on_by_themselves_and_questions_bring_their_answer(scene: Scene) -> None:
    sealed, onions = scene.onions(3)
    question, _ = make_request(scene.cast.relays, scene.cast.collector, {"op": "jobs"})
    with scene.recorder.running(scene.collector_port), serving(Relay(scene.home).application()) as client:
        assert client.post("/messages", content=b"".join(onions)).status_code == 200
        wait_for(lambda: len(scene.recorder.messages()) == 3)
        assert sorted(scene.recorder.messages()) == sorted(sealed)
        assert client.post("/ask", content=question).content.startswith(b"answered: ")
        scene.recorder.status = 410
        assert client.post("/ask", content=question).status_code == 410
        for wrong in (b"", onions[0][:-1], bytes(SEALED_REPORT_BYTES)):
            assert client.post("/messages", content=wrong).status_code == 400
        assert client.post("/messages", content=bytes(200_000)).status_code == 413
        assert client.post("/ask", content=question[:-1]).status_code == 400
        assert read_metrics(client.get("/metrics").text)["messages_sent_total"] == 3
    with serving(Relay(scene.home).application()) as client:
        assert client.post("/ask", content=question).status_code == 502
