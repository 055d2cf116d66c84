"""One-time tokens: an account gets so many of them for a job, and nobody can tell which of them are spent where.

A token is a random serial and the value of a verifiable oblivious PRF at it, under a key for each purpose and job. The
issuer, which is the randomness server, evaluates blinded serials, so it does not know the tokens that it gave out. Who
checks a token computes the value again, with the same seed, and could make such tokens, too. So there are two seeds:

- Tokens for reports are checked by the collector, which shares their seed with the issuer. It could make some: reports
  of its own, which it could put into its own store as well.
- Tokens for evaluations are checked by the randomness server and by nobody else: their seed is the epoch's own secret,
  which never leaves it and is deleted as the epoch closes. The collector cannot make one; it would test guesses with it
  against the reports that it holds.

An issuer that lies can give out too many or none; it cannot mark a token, because the client checks each proof against
the public key that issuer and collector publish for all.

Counting what an account was given, and which serials are spent, is the servers' work.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import BlindedBatch, make_evaluator

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

Purpose = Literal["evaluate", "report"]
TOKEN_LABEL = b"qlog crowd token 1"
SERIAL_BYTES = 32
OUTPUT_BYTES = 64


@dataclass(frozen=True)
class Token:
    """The right to one request. Whoever holds it can spend it, once."""

    serial: bytes
    output: bytes


def token_evaluator(seed: bytes, purpose: Purpose, job: Job) -> Evaluator:
    """What issues and checks the tokens of a purpose and a job."""
    return make_evaluator(seed, TOKEN_LABEL + purpose.encode() + job.digest)


def tokens_per_account(job: Job) -> dict[Purpose, int]:
    """What each account gets for a job: one request for randomness, and as many reports as every client sends."""
    return {"evaluate": 1, "report": job.artifacts_per_user}


@dataclass(frozen=True)
class Purse:
    """Serials that were sent blinded, until the answer makes tokens of them."""

    serials: tuple[bytes, ...]
    batch: BlindedBatch

    @classmethod
    def blind(cls, tokens: int) -> tuple[Self, list[bytes]]:
        """What to keep and what to send for so many tokens."""
        serials = tuple(secrets.token_bytes(SERIAL_BYTES) for _ in range(tokens))
        batch, blinded = BlindedBatch.blind(serials)
        return cls(serials, batch), blinded

    def finish(self, answer: bytes, public_key: bytes) -> list[Token]:
        """The tokens; MalformedError unless the owner of the public key made them all."""
        outputs: Sequence[bytes] = self.batch.finish(answer, public_key)
        return [Token(serial, output) for serial, output in zip(self.serials, outputs, strict=True)]


def check(evaluator: Evaluator, token: Token) -> bool:
    """Whether a token was issued for the evaluator's purpose and job. Compared in constant time."""
    return hmac.compare_digest(evaluator.evaluate_known_input(token.serial), token.output)
