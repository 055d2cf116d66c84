"""Envelopes: what is sealed for one party, the layers around it that relays take off, and questions with an answer.

HPKE (RFC 9180) in base mode with X25519, HKDF-SHA256 and AES-128-GCM; each envelope adds 48 bytes. A layer for a relay
holds the next party's name and the inner bytes, so a relay learns where a message goes next and nothing of it. A
question carries a key of its own, under which the answer comes back through the same relays.

Who is asked what is not known here, and nothing is sent here.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.messages import REPORT_BYTES

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
LABEL = b"qlog crowd envelope 1 "
RESPONSE_LABEL = b"qlog crowd response 1"
ENVELOPE_BYTES = 48
"""What an envelope adds: the sender's ephemeral key (32) and the authentication tag (16)."""
NAME_BYTES = 16
LAYER_BYTES = ENVELOPE_BYTES + NAME_BYTES
SEALED_REPORT_BYTES = REPORT_BYTES + ENVELOPE_BYTES
REPORT, RELAY, REQUEST = b"report", b"relay", b"request"
"""Purposes. What was sealed for one never opens for another."""
KEYS_HELD = 16
"""Private keys that stay loaded: a process is one party, and only trials and tests are several."""
RESPONSE_KEY_BYTES = 32
NONCE_BYTES = 12
BODY_STEP = 1024
"""Bodies are padded to multiples of it, so that a length tells as good as nothing of what is asked and answered."""


class Addressee(Protocol):
    """Whoever an envelope is for: a party of the directory."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> bytes: ...


def seal(public_key: bytes, plaintext: bytes, purpose: bytes) -> bytes:
    """An envelope that only the key's owner opens. Nobody can tell who made it."""
    try:
        return SUITE.encrypt(plaintext, X25519PublicKey.from_public_bytes(public_key), LABEL + purpose)
    except ValueError:
        raise MalformedError("public key is no key of X25519") from None


def open_sealed(private_key: bytes, sealed: bytes, purpose: bytes) -> bytes:
    """What an envelope holds."""
    key = load_key(private_key)
    try:
        return SUITE.decrypt(sealed, key, LABEL + purpose)
    except (InvalidTag, ValueError):  # a ValueError is said of an ephemeral key that no sender can have made
        raise MalformedError("envelope does not open") from None


@lru_cache(maxsize=KEYS_HELD)
def load_key(private_key: bytes) -> X25519PrivateKey:
    """A party's key, loaded once: a party opens every envelope with the same one, and loading takes half as long."""
    return X25519PrivateKey.from_private_bytes(private_key)


def onion_bytes(hops: int) -> int:
    """The size of a report's onion that has still so many relays before it."""
    return SEALED_REPORT_BYTES + LAYER_BYTES * hops


def seal_report(collector: Addressee, report: bytes) -> bytes:
    """A report for the collector alone."""
    return seal(collector.key, report, REPORT)


def wrap(route: Sequence[Addressee], destination: Addressee, sealed: bytes) -> bytes:
    """Sealed bytes in one layer per relay; the first relay of the route takes off the outermost."""
    following = destination
    for relay in reversed(route):
        sealed = seal(relay.key, write_name(following.name) + sealed, RELAY)
        following = relay
    return sealed


def unwrap(private_key: bytes, data: bytes) -> tuple[str, bytes]:
    """A relay's layer taken off: the name of the next party, and what to send there."""
    plaintext = open_sealed(private_key, data, RELAY)
    name = plaintext[:NAME_BYTES].rstrip(b"\0")
    if len(plaintext) < NAME_BYTES or not name or not name.isascii() or b"\0" in name:
        raise MalformedError("layer names no next party")
    return name.decode("ascii"), plaintext[NAME_BYTES:]


def write_name(name: str) -> bytes:
    data = name.encode("ascii")
    if not 0 < len(data) <= NAME_BYTES:
        raise ValueError(f"a party's name has 1 to {NAME_BYTES} letters")
    return data.ljust(NAME_BYTES, b"\0")


def make_request(route: Sequence[Addressee], destination: Addressee, body: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """A question in its layers, and the key under which its answer will come. Bytes in the body become base64."""
    response_key = secrets.token_bytes(RESPONSE_KEY_BYTES)
    return wrap(route, destination, seal(destination.key, response_key + write_body(body), REQUEST)), response_key


def read_request(private_key: bytes, data: bytes) -> tuple[dict[str, Any], bytes]:
    """The question, and the key to answer under."""
    plaintext = open_sealed(private_key, data, REQUEST)
    if len(plaintext) < RESPONSE_KEY_BYTES:
        raise MalformedError("request is too short for its key")
    return read_body(plaintext[RESPONSE_KEY_BYTES:]), plaintext[:RESPONSE_KEY_BYTES]


def make_response(response_key: bytes, body: Mapping[str, Any]) -> bytes:
    """An answer that only the asker opens."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(response_key).encrypt(nonce, write_body(body), RESPONSE_LABEL)


def read_response(response_key: bytes, data: bytes) -> dict[str, Any]:
    """The answer."""
    nonce, sealed = data[:NONCE_BYTES], data[NONCE_BYTES:]
    try:
        return read_body(AESGCM(response_key).decrypt(nonce, sealed, RESPONSE_LABEL))
    except (InvalidTag, ValueError):  # a ValueError is said of a nonce that is too short
        raise MalformedError("response does not open") from None


def write_body(body: Mapping[str, Any]) -> bytes:
    data = json.dumps(body, default=write_bytes, separators=(",", ":")).encode("utf-8")
    return data.ljust(-len(data) % BODY_STEP + len(data), b" ")


def read_body(data: bytes) -> dict[str, Any]:
    if len(data) % BODY_STEP:
        raise MalformedError(f"body is not padded to a multiple of {BODY_STEP} bytes")
    try:
        body = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise MalformedError("body is no JSON") from None
    if not isinstance(body, dict):
        raise MalformedError("body is no JSON object")
    return body


def write_bytes(value: object) -> str:
    """Bytes as a body holds them."""
    if not isinstance(value, bytes):
        raise TypeError(f"a body holds JSON and bytes, not {type(value).__name__}")
    return base64.b64encode(value).decode("ascii")


def read_bytes(value: object, length: int | None = None) -> bytes:
    """The bytes that a body holds as base64."""
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except ValueError:
        data = None
    if data is None:
        raise MalformedError("a field of the body is no base64")
    if length is not None and len(data) != length:
        raise MalformedError(f"a field of the body is not {length} bytes long")
    return data
