"""The randomness server: issues tokens to accounts, and evaluates blinded artifacts with the epoch's key until the
epoch closes.

It knows accounts and blinded inputs, never an artifact. Questions come through relays with a blind token, so it cannot
tell whose they are. When an epoch closes its key is deleted, and it states so to everybody; how many accounts took part
it states to the collector alone, and not before.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from qlog_assets.crowd import epochs, issuing
from qlog_assets.crowd.cast import PartyFolder, RandomnessSettings
from qlog_assets.crowd.envelopes import make_response, read_bytes, read_request, write_bytes
from qlog_assets.crowd.epochs import DeletedEpochError, Epochs, UnknownEpochError
from qlog_assets.crowd.inbox import open_database
from qlog_assets.crowd.issuing import (
    ISSUED_HEADER,
    Accounts,
    IssuedBeforeError,
    Issuer,
    TooOftenError,
    issued_proof,
    sign,
)
from qlog_assets.crowd.job_list import JobList
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import POINT_BYTES, evaluate, public_key_of
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.serving import Metrics, Refusal, make_application, read_json, repeating
from qlog_assets.crowd.tokens import (
    OUTPUT_BYTES,
    SERIAL_BYTES,
    Purpose,
    Token,
    check,
    token_evaluator,
    tokens_per_account,
)
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

DATABASE = "issuer.db"
SCHEMA = issuing.SCHEMA + epochs.SCHEMA
LARGEST_REQUEST = 262_144
"""A thousand points in base64, five times over."""
LOOK_SECONDS = 10.0
"""How often it looks whether an epoch has closed. Nothing is evaluated for one that has, looked at or not."""
STATUS: dict[type[QlogError], tuple[int, str]] = {
    UnknownEpochError: (404, "unknown epoch"),
    DeletedEpochError: (410, "the epoch's key is deleted"),
    IssuedBeforeError: (409, "answered before, another question"),
    TooOftenError: (429, "answered often enough"),
}


def open_epochs(home: PartyFolder[RandomnessSettings], clock: Callable[[], float] = time.time) -> Epochs:
    """The epochs of a randomness server's folder, for a command beside the server, too."""
    return Epochs(home.folder, open_database(home.folder / DATABASE, SCHEMA), JobList(home.jobs), clock)


class RandomnessServer:
    """The server's state and what it answers."""

    def __init__(self, home: PartyFolder[RandomnessSettings], clock: Callable[[], float] = time.time) -> None:
        self._home = home
        self._seed = home.token_seed()
        self._metrics = Metrics()
        self._jobs = JobList(home.jobs)
        self._database = open_database(home.folder / DATABASE, SCHEMA)
        self._issuer = Issuer(self._database, home.settings.answers_per_token)
        self._accounts = Accounts(home.folder)
        self.epochs = Epochs(home.folder, self._database, self._jobs, clock)

    def application(self) -> Starlette:
        return make_application(
            self._home.settings,
            self._metrics,
            posts={"/tokens": (self.issue, LARGEST_REQUEST), "/ask": (self.answer, LARGEST_REQUEST)},
            gets={"/epochs/{epoch}": self.tell_epoch, "/issued/{job}": self.tell_issued},
            gauges=lambda: {"accounts": self._accounts.number(), "job_files_left_out": self._jobs.left_out()},
            lifespan=self.lifespan,
        )

    @asynccontextmanager
    async def lifespan(self, application: Starlette) -> AsyncIterator[None]:
        async with repeating(application, self.delete_closed, LOOK_SECONDS, self._metrics):
            yield
        self._accounts.close()
        self._database.close()

    async def delete_closed(self) -> bool:
        """Delete the keys of epochs that have closed, and forget who took part in them."""
        self._metrics.add("keys_deleted", len(self.epochs.delete_closed()))
        self._issuer.forget_deleted()
        return False

    # Tokens -----------------------------------------------------------------------------------------------------------

    async def issue(self, body: bytes) -> Response:
        """Tokens for an account and a job, once. The same request again gets tokens of the same serials."""
        asked = read_json(body)
        account, secret = asked.get("account"), asked.get("secret")
        if not isinstance(account, str) or not isinstance(secret, str):
            raise MalformedError("account or secret is no text")
        if not await asyncio.to_thread(self._accounts.is_secret, account, secret):
            raise Refusal(401, "unknown account or wrong secret")
        job = self._find_job(asked.get("job"))
        with refusing():  # tokens of an epoch that closed would be spent on nothing
            evaluators = self._token_evaluators(job)
        wanted = tokens_per_account(job)
        blinded: dict[Purpose, list[bytes]] = {
            purpose: read_points(asked.get(purpose), number) for purpose, number in wanted.items()
        }
        answer = await asyncio.to_thread(sign, evaluators, blinded)
        with refusing():
            self._issuer.record(account, job, blinded)
        self._metrics.add("tokens_issued", sum(wanted.values()))
        return JSONResponse({purpose: write_bytes(tokens) for purpose, tokens in answer.items()})

    def _token_evaluators(self, job: Job) -> dict[Purpose, Evaluator]:
        """What makes the tokens of each purpose, while the epoch is open."""
        return {"evaluate": self.epochs.token_evaluator(job), "report": token_evaluator(self._seed, "report", job)}

    def _find_job(self, name: object) -> Job:
        jobs = {digest.hex(): job for digest, job in self._jobs.by_digest().items()}
        if not isinstance(name, str) or name not in jobs:
            raise Refusal(404, "unknown job")
        return jobs[name]

    # Questions --------------------------------------------------------------------------------------------------------

    async def answer(self, body: bytes) -> Response:
        """A question that came through relays."""
        asked, response_key = await asyncio.to_thread(read_request, self._home.private_key, body)
        operations = {"keys": self._tell_keys, "evaluate": self._evaluate}
        operation = asked.get("op")
        if not isinstance(operation, str) or operation not in operations:
            raise MalformedError("unknown question")
        with refusing():
            return Response(make_response(response_key, await operations[operation](asked)))

    async def _tell_keys(self, asked: dict[str, Any]) -> dict[str, Any]:
        epoch = read_epoch(asked.get("epoch"))
        public_key = public_key_of(self.epochs.evaluator(epoch))
        jobs = {job.digest.hex(): self._token_evaluators(job) for job in self._jobs.of_epoch(epoch)}
        return {
            "public_key": public_key,
            "token_keys": {
                job: {purpose: public_key_of(each) for purpose, each in evaluators.items()}
                for job, evaluators in jobs.items()
            },
        }

    async def _evaluate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Evaluate as many blinded artifacts as every client sends, for a token."""
        epoch = read_epoch(asked.get("epoch"))
        evaluator = self.epochs.evaluator(epoch)
        job = self._find_job(asked.get("job"))
        if job.epoch != epoch:
            raise MalformedError("job is not of this epoch")
        token = read_token(asked.get("token"))
        blinded = read_points(asked.get("blinded"), job.artifacts_per_user)
        if not await asyncio.to_thread(check, self.epochs.token_evaluator(job), token):
            raise Refusal(403, "forged token")
        answer = await asyncio.to_thread(evaluate, evaluator, blinded)
        self._issuer.spend(job, token, blinded)
        self._metrics.add("evaluations")
        return {"answer": answer}

    # Statements -------------------------------------------------------------------------------------------------------

    async def tell_epoch(self, request: Request) -> Response:
        """The epoch's state and public key, and while it is open the keys of tokens for evaluations, by job: the
        collector has no seed to compute them from, and shows them to clients for comparison."""
        epoch = read_epoch(request.path_params["epoch"])
        with refusing():
            stated = self.epochs.statement(epoch)
            jobs = self._jobs.of_epoch(epoch) if stated.state == "open" else []
            tokens = {job.digest.hex(): public_key_of(self.epochs.token_evaluator(job)) for job in jobs}
        return JSONResponse(
            {
                "state": stated.state,
                "public_key": None if stated.public_key is None else write_bytes(stated.public_key),
                "token_keys": {job: write_bytes(key) for job, key in tokens.items()},
                "deleted_at": stated.deleted_at,
            }
        )

    async def tell_issued(self, request: Request) -> Response:
        """To the collector, once nobody can join any more: before that the number tells who joined just now."""
        job = self._find_job(request.path_params["job"])
        proof = request.headers.get(ISSUED_HEADER, "")
        if not hmac.compare_digest(proof.encode(), issued_proof(self._seed, job.digest).encode()):
            raise Refusal(403, "for the collector alone")
        with refusing():
            if self.epochs.statement(job.epoch).state != "deleted":
                raise Refusal(409, "the epoch's key is not deleted yet")
        issued = self._issuer.issued(job)
        return JSONResponse({"accounts": issued.accounts, "tokens_per_account": issued.tokens_per_account})


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what an account, a token or an epoch does not admit into the answer that says so."""
    try:
        yield
    except tuple(STATUS) as error:
        raise Refusal(*STATUS[type(error)]) from None


def read_epoch(value: object) -> Month:
    try:
        return Month(str(value))
    except ParameterError:
        raise Refusal(404, "unknown epoch") from None


def read_points(value: object, number: int) -> list[bytes]:
    """Blinded inputs, exactly so many."""
    if not isinstance(value, list) or len(value) != number:
        raise MalformedError("another number of blinded inputs than the job says")
    return [read_bytes(each, POINT_BYTES) for each in value]


def read_token(value: object) -> Token:
    if not isinstance(value, list) or len(value) != 2:
        raise MalformedError("token is no serial with its output")
    return Token(read_bytes(value[0], SERIAL_BYTES), read_bytes(value[1], OUTPUT_BYTES))
