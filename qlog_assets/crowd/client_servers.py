"""The servers as a client meets them: what is asked of whom, through which relays, and what counts as an answer.

Everything but tokens goes through relays, each time by a route of its own. An answer is looked at before it is used;
what is wrong with one is said in a line that holds nothing of it. What a client does with the answers is `client.py`.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar

from qlog_assets.crowd.cast import Cast, Party
from qlog_assets.crowd.client_state import Identity
from qlog_assets.crowd.envelopes import make_request, read_bytes, read_response, write_bytes
from qlog_assets.crowd.jobs import Job, parse_job
from qlog_assets.crowd.keys import POINT_BYTES
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.tokens import Purse, Token, tokens_per_account
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    import httpx

SECONDS = 60.0
"""How long one answer may take: a question passes several relays, and each of them asks the next."""
Answer = TypeVar("Answer")
LARGEST_ANSWER = 16 << 20
REFUSED = range(400, 500)
LATER = 429
"""Too many requests: the one refusal that is none of what was asked."""
PAUSES = (1.0, 4.0, 16.0, 64.0)
"""Seconds between tries of a request whose answer would be missed for good."""


class NoAnswerError(QlogError):
    """A server that could not be reached, or could not do what it was asked: to be asked again later."""


class TurnedDownError(QlogError):
    """A server that understood and said no. `status` is HTTP's."""

    def __init__(self, party: Party, status: int) -> None:
        advice = ADVICE.get(status, "ask who runs it")
        super().__init__(f"{party.name} turned the request down (HTTP {status}): {advice}")
        self.status = status


ADVICE = {
    401: "check account and secret, and give them to `qlog crowd client init` once more",
    403: "it does not take the token",
    404: "it does not know the job",
    409: "it answered this account or token before",
    410: "the epoch is closed, and its key deleted",
}


@dataclass(frozen=True)
class JobKeys:
    """The public keys of a job, as the randomness server publishes them."""

    epoch: bytes
    evaluate: bytes
    report: bytes


@dataclass(frozen=True)
class Offers:
    """What the collector shows to everybody: the jobs, and the keys as it knows them."""

    jobs: tuple[Job, ...]
    token_keys: Mapping[bytes, Mapping[str, bytes]]
    """By the job's digest and the tokens' purpose."""
    epoch_keys: Mapping[str, bytes]

    def shows(self, job: Job) -> bool:
        """Whether the collector shows this very job, and its keys."""
        is_shown = any(each.digest == job.digest for each in self.jobs) and str(job.epoch) in self.epoch_keys
        return is_shown and set(tokens_per_account(job)) <= set(self.token_keys.get(job.digest, {}))

    def agrees(self, job: Job, keys: JobKeys) -> bool:
        """Whether the collector, which shows this job, shows the same keys of it as the randomness server."""
        shown = self.token_keys[job.digest]
        return JobKeys(self.epoch_keys[str(job.epoch)], shown["evaluate"], shown["report"]) == keys


class Servers:
    """A client's way to relays, collector and randomness server."""

    def __init__(
        self,
        cast: Cast,
        http: httpx.Client,
        chance: Random | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cast = cast
        self._http = http
        self._chance = chance or SystemRandom()
        self._pause = pause

    def offers(self) -> Offers:
        """Ask the collector for its jobs."""
        answer = self._ask(self.cast.collector, {"op": "jobs"})
        with reading(self.cast.collector):
            jobs = tuple(parse_job(text) for text in _list(answer["jobs"]))
            token_keys = {
                bytes.fromhex(digest): {purpose: read_bytes(key, POINT_BYTES) for purpose, key in keys.items()}
                for digest, keys in answer["token_keys"].items()
            }
            epoch_keys = {month: read_bytes(key, POINT_BYTES) for month, key in answer["epoch_keys"].items()}
        names = [(job.application, job.epoch) for job in jobs]
        if len(set(names)) < len(names):
            raise QlogError("the collector shows two jobs of one application and month: tell whoever runs it")
        return Offers(jobs, token_keys, epoch_keys)

    def keys(self, job: Job) -> JobKeys:
        """Ask the randomness server for the keys of a job."""
        answer = self._ask(self.cast.randomness, {"op": "keys", "epoch": str(job.epoch)})
        with reading(self.cast.randomness):
            tokens = answer["token_keys"].get(job.digest.hex())
            if tokens is None:
                raise NoAnswerError(
                    f"{job.application} of {job.epoch}: the randomness server does not know the job as the collector "
                    "shows it: try again later, or tell others who take part"
                )
            return JobKeys(
                read_bytes(answer["public_key"], POINT_BYTES),
                read_bytes(tokens["evaluate"], POINT_BYTES),
                read_bytes(tokens["report"], POINT_BYTES),
            )

    def issue(self, identity: Identity, job: Job, keys: JobKeys) -> list[Token]:
        """The tokens of an account for a job: the one for randomness, then those for reports.

        The issuer must know whose they are, so it is asked without relays; it sees blinded serials alone.
        """
        purse, blinded = Purse.blind(1)
        reports, blinded_reports = Purse.blind(job.artifacts_per_user)
        body = {
            "account": identity.account,
            "secret": identity.secret,
            "job": job.digest.hex(),
            "evaluate": blinded,
            "report": blinded_reports,
        }
        # The very same again where no answer came: another request of the account would be refused.
        data, party = json.dumps(body, default=write_bytes).encode("utf-8"), self.cast.randomness
        answer = self._insist(lambda: self._post(party, f"{party.url}/tokens", data, "application/json"), NoAnswerError)
        with reading(party):
            issued = json.loads(answer)
            found = purse.finish(read_bytes(issued["evaluate"]), keys.evaluate)
            return found + reports.finish(read_bytes(issued["report"]), keys.report)

    def evaluate(self, job: Job, token: Token, blinded: Sequence[bytes]) -> bytes:
        """Ask the randomness server about blinded artifacts, as many as every client asks about.

        No relay can make up an answer, but each can make up a refusal: one counts if it came by several routes.
        """
        body = {
            "op": "evaluate",
            "epoch": str(job.epoch),
            "job": job.digest.hex(),
            "token": [token.serial, token.output],
            "blinded": list(blinded),
        }
        answer = self._insist(lambda: self._ask(self.cast.randomness, body), NoAnswerError, TurnedDownError)
        with reading(self.cast.randomness):
            return read_bytes(answer["answer"])

    def send(self, relay: str, body: bytes) -> None:
        """Give one message to its first relay; returned from when the relay keeps it durably."""
        party = self.cast.party(relay)
        self._post(party, f"{party.url}/messages", body)

    def _insist(self, ask: Callable[[], Answer], *patience: type[QlogError]) -> Answer:
        """Ask several times: the blinding of the question is lost with this process, and so would be its answer."""
        for seconds in PAUSES:
            try:
                return ask()
            except patience as error:
                if isinstance(error, NoAnswerError):
                    self._pause(seconds)
        return ask()

    def _ask(self, destination: Party, body: Mapping[str, Any]) -> dict[str, Any]:
        """A question through relays."""
        route = self.cast.choose_route(self._chance)
        request, key = make_request(route, destination, body)
        answer = self._post(destination, f"{route[0].url}/ask", request)
        with reading(destination):
            return read_response(key, answer)

    def _post(self, party: Party, url: str, data: bytes, kind: str = "application/octet-stream") -> bytes:
        import httpx

        try:
            with self._http.stream("POST", url, content=data, headers={"Content-Type": kind}) as response:
                status = response.status_code
                if status in REFUSED and status != LATER:
                    raise TurnedDownError(party, status)
                if status != 200:
                    raise NoAnswerError(f"{party.name} cannot answer now (HTTP {status}): try again later")
                found = b""
                for part in response.iter_bytes():
                    found += part
                    if len(found) > LARGEST_ANSWER:
                        raise QlogError(f"{party.name} answered with more than {LARGEST_ANSWER >> 20} MB: not used")
                return found
        except httpx.HTTPError as error:
            raise NoAnswerError(f"{party.name} cannot be reached ({type(error).__name__}): try again later") from None


@contextlib.contextmanager
def reading(party: Party) -> Iterator[None]:
    """Say in one line that an answer is not as it must be."""
    try:
        yield
    except MalformedError as error:
        raise QlogError(f"{party.name} answered what cannot be used ({error.reason}): tell whoever runs it") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise QlogError(f"{party.name} answered without what was asked for: tell whoever runs it") from None


def _list(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError
    return value
