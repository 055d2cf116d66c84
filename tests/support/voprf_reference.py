"""RFC 9497's ristretto255-SHA512, mode VOPRF, from its text and on libsodium's group: what `voprf` is held against."""

from __future__ import annotations

import hashlib

import rbcl

CONTEXT = b"OPRFV1-" + bytes([1]) + b"-ristretto255-SHA512"


def expand_message(message: bytes, domain: bytes) -> bytes:
    """expand_message_xmd of RFC 9380 with SHA-512, to 64 bytes: one block."""
    domain += bytes([len(domain)])
    first = hashlib.sha512(bytes(128) + message + (64).to_bytes(2, "big") + b"\0" + domain).digest()
    return hashlib.sha512(first + b"\1" + domain).digest()


def hash_to_group(message: bytes) -> bytes:
    return bytes(rbcl.crypto_core_ristretto255_from_hash(expand_message(message, b"HashToGroup-" + CONTEXT)))


def derive_key(seed: bytes, info: bytes) -> bytes:
    """The secret scalar of DeriveKeyPair. The first counter does: the next would follow a scalar of 0."""
    message = seed + len(info).to_bytes(2, "big") + info + b"\0"
    return bytes(rbcl.crypto_core_ristretto255_scalar_reduce(expand_message(message, b"DeriveKeyPair" + CONTEXT)))


def public_key(scalar: bytes) -> bytes:
    return bytes(rbcl.crypto_scalarmult_ristretto255_base(scalar))


def evaluate(scalar: bytes, message: bytes) -> bytes:
    """The function's value at a message that is known."""
    point = bytes(rbcl.crypto_scalarmult_ristretto255(scalar, hash_to_group(message)))
    parts = (message, point)
    return hashlib.sha512(b"".join(len(part).to_bytes(2, "big") + part for part in parts) + b"Finalize").digest()
