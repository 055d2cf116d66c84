"""Envelopes, the layers of an onion, and questions that are answered through relays."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd_jobs import any_token, make_job

from qlog_assets.crowd.envelopes import (
    RELAY,
    REPORT,
    REQUEST,
    SEALED_REPORT_BYTES,
    make_request,
    make_response,
    onion_bytes,
    open_sealed,
    read_body,
    read_bytes,
    read_request,
    read_response,
    seal,
    seal_report,
    unwrap,
    wrap,
    write_bytes,
)
from qlog_assets.crowd.messages import MalformedError, make_dummy

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.lists(st.text(max_size=8), max_size=4)


@dataclass(frozen=True)
class Server:
    name: str
    key: bytes
    private: bytes


def make_server(name: str) -> Server:
    private = X25519PrivateKey.generate()
    return Server(name, private.public_key().public_bytes_raw(), private.private_bytes_raw())


RELAYS = [make_server(f"relay-{number}") for number in range(1, 4)]
COLLECTOR = make_server("collector")


def test_each_relay_learns_the_next_party_and_nothing_of_the_report() -> None:
    report = make_dummy(make_job(), any_token()).pack()
    onion = wrap(RELAYS, COLLECTOR, seal_report(COLLECTOR, report))
    path = []
    for left, relay in zip((3, 2, 1), RELAYS, strict=True):
        assert len(onion) == onion_bytes(left)
        following, onion = unwrap(relay.private, onion)
        path.append(following)
        assert report[:64] not in onion
    assert path == ["relay-2", "relay-3", "collector"]
    assert len(onion) == SEALED_REPORT_BYTES == 769
    assert open_sealed(COLLECTOR.private, onion, REPORT) == report


def test_the_same_report_never_looks_the_same_twice() -> None:
    report = make_dummy(make_job(), any_token()).pack()
    first, second = (wrap(RELAYS, COLLECTOR, seal_report(COLLECTOR, report)) for _ in range(2))
    assert not {first[at : at + 16] for at in range(len(first))} & {second[at : at + 16] for at in range(len(second))}


@settings(max_examples=20)
@given(st.binary(max_size=900))
def test_bytes_that_nobody_sealed_do_not_open(data: bytes) -> None:
    for purpose in (REPORT, RELAY, REQUEST):
        with pytest.raises(MalformedError, match="envelope does not open"):
            open_sealed(COLLECTOR.private, data, purpose)


def test_an_envelope_opens_for_its_owner_and_purpose_alone_and_only_whole() -> None:
    sealed = seal(COLLECTOR.key, b"text", REPORT)
    low_order = bytes(32) + sealed[32:]
    for private, data, purpose in [
        (RELAYS[0].private, sealed, REPORT),
        (COLLECTOR.private, sealed, REQUEST),
        (COLLECTOR.private, sealed[:-1], REPORT),
        (COLLECTOR.private, sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:], REPORT),
        (COLLECTOR.private, low_order, REPORT),
    ]:
        with pytest.raises(MalformedError, match="envelope does not open"):
            open_sealed(private, data, purpose)


@pytest.mark.parametrize("key", [bytes(32), b"", bytes(31)], ids=["low order", "empty", "short"])
def test_nothing_is_sealed_for_what_is_no_key(key: bytes) -> None:
    with pytest.raises(MalformedError, match="no key of X25519"):
        seal(key, b"text", REPORT)


@pytest.mark.parametrize("layer", [b"", b"relay-2", bytes(16), b"relay\0x".ljust(16, b"\0"), b"\xff" * 16])
def test_a_layer_without_a_name_is_malformed(layer: bytes) -> None:
    with pytest.raises(MalformedError, match="names no next party"):
        unwrap(RELAYS[0].private, seal(RELAYS[0].key, layer, RELAY))


@pytest.mark.parametrize("name", ["", "a-name-of-17-long"])
def test_a_name_that_has_no_room_is_never_wrapped(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 16 letters"):
        wrap(RELAYS, Server(name, COLLECTOR.key, b""), b"sealed")


@settings(max_examples=20)
@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
def test_a_question_and_its_answer_come_through_relays_unread(body: dict[str, object]) -> None:
    onion, key = make_request(RELAYS, COLLECTOR, body)
    for relay in RELAYS:
        _, onion = unwrap(relay.private, onion)
    asked, answer_key = read_request(COLLECTOR.private, onion)
    assert asked == body and answer_key == key
    answer = make_response(answer_key, body)
    assert len(answer) % 1024 == 28 and read_response(key, answer) == body


def test_short_questions_and_answers_have_one_length() -> None:
    bodies: list[dict[str, object]] = [{}, {"op": "jobs"}, {"op": "evaluate", "blinded": [bytes(32)] * 10}]
    assert len({len(make_request(RELAYS, COLLECTOR, body)[0]) for body in bodies}) == 1
    assert len({len(make_response(bytes(32), body)) for body in bodies}) == 1


def test_an_answer_opens_with_its_own_key_alone_and_only_whole() -> None:
    key = secrets.token_bytes(32)
    answer = make_response(key, {"a": 1})
    wrong = [(secrets.token_bytes(32), answer), (key, answer[:-1]), (key, b""), (key, answer[:5]), (key, answer[:12])]
    for other, data in wrong:
        with pytest.raises(MalformedError, match="response does not open"):
            read_response(other, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "not padded"),
        (b"[]".ljust(1024), "no JSON object"),
        (b"{".ljust(1024), "no JSON"),
        (b"\xff" * 1024, "no JSON"),
        (b"[" * 102_400, "no JSON"),
        (b"1" * 10_240, "no JSON"),
    ],
)
def test_a_body_that_is_no_object_is_malformed(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read_body(data)


def test_a_request_too_short_for_its_key_is_malformed() -> None:
    with pytest.raises(MalformedError, match="too short for its key"):
        read_request(COLLECTOR.private, seal(COLLECTOR.key, b"short", REQUEST))


@given(st.binary(max_size=100))
def test_bytes_in_a_body_come_back(data: bytes) -> None:
    assert read_bytes(write_bytes(data), len(data)) == data


@pytest.mark.parametrize("value", [None, 3, "a", "a===", "é", ["YQ=="], "YQ==\n"])
def test_what_is_no_base64_is_malformed(value: object) -> None:
    with pytest.raises(MalformedError, match="no base64"):
        read_bytes(value)
    with pytest.raises(MalformedError, match="not 32 bytes long"):
        read_bytes("YQ==", 32)
    with pytest.raises(TypeError, match="not set"):
        write_bytes({1})
