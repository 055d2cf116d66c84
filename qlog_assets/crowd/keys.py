"""From an artifact to its tag, its key and its shares, and the oblivious function that stands between them.

All clients that hold the same artifact must come to the same tag, polynomial and key, and nobody else may. The paper
takes a hash of the artifact; whoever can guess an artifact can then compute it too. Here it is a verifiable oblivious
pseudorandom function (RFC 9497, ristretto255-SHA512, mode VOPRF): the randomness server holds the epoch's key and sees
blinded inputs alone, the client checks a proof that this key was used, and once the key is deleted nobody can test a
guess any more. `hashed` is the paper's way, for the attack and the study.

The package `voprf` is an extra, so it is imported where it is used.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from qlog_assets.crowd.field import ELEMENT_BYTES, PRIME
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.shares import Polynomial
from qlog_assets.months import Month

if TYPE_CHECKING:
    from voprf.ristretto import Client, Evaluator, PublicKey

ARTIFACT_LABEL = b"qlog crowd artifact 1"
TAG_LABEL = b"qlog crowd tag 1"
COEFFICIENT_LABEL = b"qlog crowd coefficient 1"
KEY_LABEL = b"qlog crowd key 1"
PLACE_LABEL = b"qlog crowd place 1"
EPOCH_LABEL = b"qlog crowd epoch 1"
TAG_BYTES = 32
RANDOM_BYTES = 64
"""The output of the pseudorandom function."""
SEED_BYTES = 32
POINT_BYTES = 32
"""A serialised point of ristretto255: a blinded input, or a public key."""
ANSWER_BYTES = 96
"""What answers one blinded input: a proof and a point. Each input has a proof of its own, although one could cover
them all: where a common proof is wrong, `voprf` 0.2.0 panics instead of raising an error."""


@dataclass(frozen=True)
class KeyMaterial:
    """What all holders of an artifact derive alike."""

    tag: bytes
    """Equal for equal artifacts of a job, and made of polynomial and artifact: no other of either has it (`tag_of`)."""
    polynomial: Polynomial
    """Of k coefficients. The first is the secret that the artifact's key is made of."""


def prf_input(job: Job, artifact: bytes) -> bytes:
    """What the pseudorandom function is asked about. It holds the job, so the same artifact has another tag in each."""
    return ARTIFACT_LABEL + job.digest + artifact


def hashed(job: Job, artifact: bytes) -> bytes:
    """The paper's way, variant `hash_key`: anybody can compute it from a guess. For the attack and the study alone."""
    return hashlib.sha512(prf_input(job, artifact)).digest()


def derive(random: bytes, job: Job, artifact: bytes) -> KeyMaterial:
    """Tag and polynomial of an artifact from the function's output."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"{RANDOM_BYTES} bytes are derived from, not {len(random)}")
    coefficients = (
        # Twice as many bits as the field has: the remainder is uniform to 2^-129.
        int.from_bytes(expand(random, COEFFICIENT_LABEL + job.digest + index.to_bytes(2, "big"), 32), "big") % PRIME
        for index in range(job.share_threshold)
    )
    polynomial = Polynomial(tuple(coefficients))
    return KeyMaterial(tag_of(polynomial, job, artifact), polynomial)


def tag_of(polynomial: Polynomial, job: Job, artifact: bytes) -> bytes:
    """The one tag under which an artifact's shares and ciphertext are valid.

    It commits to both: whoever finds a second polynomial or a second text for a tag has found a collision of SHA-512
    cut to 256 bits (a job's polynomials have one length, so the key of HMAC has too). Without the polynomial, that is
    without k shares, it says nothing of a text that was guessed.
    """
    return hmac.digest(polynomial.pack(), TAG_LABEL + job.digest + artifact, "sha512")[:TAG_BYTES]


def expand(random: bytes, info: bytes, length: int) -> bytes:
    return HKDFExpand(SHA512(), length, info).derive(random)


def artifact_key(secret: int, job: Job) -> bytes:
    """The key of AES-256-SIV that encrypts an artifact."""
    return HKDF(SHA512(), 64, None, KEY_LABEL + job.digest).derive(secret.to_bytes(ELEMENT_BYTES, "big"))


def share_place(user_key: bytes, job: Job, artifact: bytes) -> int:
    """Where a user's share of an artifact lies: the same from all machines of the user, so that it counts once.

    It holds job and artifact: a place that were the user's alone would link what one user sends, and let a month that
    was decrypted unmask the rare tags of the next.
    """
    digest = hmac.digest(user_key, PLACE_LABEL + job.digest + artifact, "sha256")
    return 1 + int.from_bytes(digest, "big") % (PRIME - 1)


def random_place() -> int:
    """Where the share of one instance lies, for the policies that count instances."""
    return 1 + secrets.randbelow(PRIME - 1)


def epoch_evaluator(seed: bytes, epoch: Month) -> Evaluator:
    """The randomness server's side of an epoch, from the 32 random bytes that are deleted when it closes."""
    return make_evaluator(seed, EPOCH_LABEL + epoch.encode())


def make_evaluator(seed: bytes, info: bytes) -> Evaluator:
    from voprf.ristretto import Evaluator

    if len(seed) != SEED_BYTES:  # voprf takes any length, and a short one could be guessed
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    return Evaluator.from_seed(seed, info)


def public_key_of(evaluator: Evaluator) -> bytes:
    """The public key by which clients check an evaluator's answers."""
    return evaluator.public_key.serialize()


def evaluate(evaluator: Evaluator, blinded: Sequence[bytes]) -> bytes:
    """The answer to blinded inputs, in their order: for each a proof and a point."""
    from voprf.ristretto import BlindedInput

    answers = []
    for data in blinded:
        try:
            point = BlindedInput.deserialize(data)
        except ValueError:
            raise MalformedError("blinded input is no point of the curve") from None
        answers.append(evaluator.evaluate(point).serialize())
    return b"".join(answers)


@dataclass(frozen=True)
class BlindedBatch:
    """The client's side of one request: the blinding factors, which never leave it."""

    clients: tuple[Client, ...]

    @classmethod
    def blind(cls, inputs: Sequence[bytes]) -> tuple[Self, list[bytes]]:
        """What to keep and what to send."""
        from voprf.ristretto import Client

        pairs = [Client.blind(data) for data in inputs]
        return cls(tuple(client for client, _ in pairs)), [point.serialize() for _, point in pairs]

    def finish(self, answer: bytes, public_key: bytes) -> list[bytes]:
        """The function's outputs, in the order of the inputs; refused unless the public key's owner computed all."""
        from voprf.ristretto import VerifiableOutput

        key = read_public_key(public_key)
        if len(answer) != ANSWER_BYTES * len(self.clients):
            raise MalformedError("answer has another length than was asked for")
        outputs = []
        for number, client in enumerate(self.clients):
            part = answer[ANSWER_BYTES * number : ANSWER_BYTES * (number + 1)]
            try:
                output = VerifiableOutput.deserialize(part)
            except ValueError:
                raise MalformedError("answer is no point of the curve with a proof") from None
            try:
                outputs.append(client.finalize(output, key))
            except ValueError:
                raise MalformedError("proof does not verify under the public key") from None
        return outputs


def read_public_key(data: bytes) -> PublicKey:
    from voprf.ristretto import PublicKey

    try:
        return PublicKey.deserialize(data)
    except ValueError:
        raise MalformedError("public key is no point of the curve") from None
