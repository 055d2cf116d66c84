"""The report: what a client sends for one artifact, in bytes of one fixed layout, and what is refused in its place.

Every report has the same size, whatever it holds, and a dummy cannot be told from an artifact that nobody else sent.
The ciphertext is AES-SIV, so equal artifacts have equal ciphertexts; it opens with the secret that k shares give.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from qlog_assets.crowd.field import ELEMENT_BYTES, PRIME
from qlog_assets.crowd.jobs import ARTIFACT_BYTES, Job
from qlog_assets.crowd.keys import TAG_BYTES, KeyMaterial, artifact_key, random_place
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.tokens import OUTPUT_BYTES, SERIAL_BYTES, Token

VERSION = 1
DIGEST_BYTES = 32
LENGTH_BYTES = 2
PLAINTEXT_BYTES = LENGTH_BYTES + ARTIFACT_BYTES
SIV_BYTES = 16
CIPHERTEXT_BYTES = SIV_BYTES + PLAINTEXT_BYTES
PARTS = (DIGEST_BYTES, TAG_BYTES, CIPHERTEXT_BYTES, ELEMENT_BYTES, ELEMENT_BYTES, SERIAL_BYTES, OUTPUT_BYTES)
"""Behind the byte of the version: job, tag, ciphertext, x, y, and the token's serial and output."""
REPORT_BYTES = 1 + sum(PARTS)


@dataclass(frozen=True)
class Report:
    """One artifact as it travels."""

    job: bytes
    """The job's digest."""
    tag: bytes
    ciphertext: bytes
    x: int
    y: int
    token: Token

    def pack(self) -> bytes:
        """The report's bytes."""
        x, y = (value.to_bytes(ELEMENT_BYTES, "big") for value in (self.x, self.y))
        parts = (self.job, self.tag, self.ciphertext, x, y, self.token.serial, self.token.output)
        if tuple(len(part) for part in parts) != PARTS:
            raise ValueError("a part of the report has not its length")
        return bytes([VERSION]) + b"".join(parts)

    @staticmethod
    def unpack(data: bytes) -> Report:
        """The report in these bytes; MalformedError says what is wrong with them."""
        if len(data) != REPORT_BYTES:
            raise MalformedError(f"report is not {REPORT_BYTES} bytes long")
        if data[0] != VERSION:
            raise MalformedError("report is of an unknown version")
        parts, start = [], 1
        for length in PARTS:
            parts.append(data[start : start + length])
            start += length
        x, y = int.from_bytes(parts[3], "big"), int.from_bytes(parts[4], "big")
        if x == 0:  # the value at 0 is the secret itself
            raise MalformedError("x is 0")
        if x >= PRIME:
            raise MalformedError("x is not below p")
        if y >= PRIME:
            raise MalformedError("y is not below p")
        return Report(parts[0], parts[1], parts[2], x, y, Token(parts[5], parts[6]))


def make_report(job: Job, artifact: bytes, material: KeyMaterial, place: int, token: Token) -> Report:
    """The report of an artifact, with the share that lies at a place."""
    if not 0 < place < PRIME:
        raise ValueError("a share's place is from 1 to p - 1")
    if len(artifact) > ARTIFACT_BYTES:
        raise ValueError(f"an artifact has at most {ARTIFACT_BYTES} bytes")
    plaintext = (len(artifact).to_bytes(LENGTH_BYTES, "big") + artifact).ljust(PLAINTEXT_BYTES, b"\0")
    key = artifact_key(material.polynomial.at(0), job)
    ciphertext = AESSIV(key).encrypt(plaintext, [job.digest, material.tag])
    return Report(job.digest, material.tag, ciphertext, place, material.polynomial.at(place), token)


def make_dummy(job: Job, token: Token) -> Report:
    """A report of nothing, for a client whose log holds fewer artifacts than all clients send."""
    return Report(
        job.digest,
        secrets.token_bytes(TAG_BYTES),
        secrets.token_bytes(CIPHERTEXT_BYTES),
        random_place(),
        secrets.randbelow(PRIME),
        token,
    )


def open_ciphertext(secret: int, job: Job, tag: bytes, ciphertext: bytes) -> bytes:
    """The encoded artifact; MalformedError unless holders of this secret encrypted it for this job and tag."""
    if len(ciphertext) != CIPHERTEXT_BYTES:
        raise MalformedError(f"ciphertext is not {CIPHERTEXT_BYTES} bytes long")
    try:
        plaintext = AESSIV(artifact_key(secret, job)).decrypt(ciphertext, [job.digest, tag])
    except InvalidTag:
        raise MalformedError("ciphertext does not authenticate") from None
    length = int.from_bytes(plaintext[:LENGTH_BYTES], "big")
    artifact, padding = plaintext[LENGTH_BYTES : LENGTH_BYTES + length], plaintext[LENGTH_BYTES + length :]
    if length > ARTIFACT_BYTES or padding.strip(b"\0"):
        raise MalformedError("padding of the artifact is not as it is made")
    return artifact
