"""Relays, collector and randomness server in this very process, behind httpx: for faults that real servers do not have.

They are made of the protocol's own functions and of a real cast's keys. Each request passes all its relays. What the
collector would get is kept, opened; what went wrong can be switched on.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from qlog_assets.crowd.cast import Cast, make_cast, read_secret
from qlog_assets.crowd.envelopes import (
    REPORT,
    make_response,
    open_sealed,
    read_bytes,
    read_request,
    unwrap,
    write_bytes,
)
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import epoch_evaluator, evaluate, public_key_of
from qlog_assets.crowd.messages import Report
from qlog_assets.crowd.tokens import Purpose, Token, check, token_evaluator, tokens_per_account

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

ACCOUNT, SECRET = "ann", "a secret that nobody guesses"


@dataclass
class ServersDouble:
    """All servers of a cast."""

    folder: Path
    jobs: Sequence[Job]
    cast: Cast
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    epoch_seed: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    known: Sequence[Job] | None = None
    """The jobs that the randomness server knows, if they are others."""
    shown_epoch_seed: bytes | None = None
    """What the collector shows instead, if it is another one."""
    fault: Callable[[httpx.Request], httpx.Response | None] = lambda request: None
    """What happens to a request instead of an answer."""
    requests: list[httpx.Request] = field(default_factory=list)
    issued: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    evaluated: dict[bytes, int] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    messages: Counter[bytes] = field(default_factory=Counter)
    """Onions as the first relays got them, and how often."""

    @classmethod
    def make(cls, folder: Path, jobs: Sequence[Job]) -> ServersDouble:
        return cls(folder, jobs, make_cast(folder))

    def http(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self.answer))

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if (failed := self.fault(request)) is not None:
            return failed
        party = next(each for each in self.cast.parties if str(request.url).startswith(each.url + "/"))
        if request.url.path == "/tokens":
            assert party.role == "randomness"
            return self._issue(json.loads(request.content))
        assert party.role == "relay", "a client speaks to relays"
        name, data = party.name, request.content
        if request.url.path == "/messages":
            self.messages[data] += 1
        while self.cast.party(name).role == "relay":
            name, data = unwrap(read_secret(self.folder / name / "private.key"), data)
        key = read_secret(self.folder / name / "private.key")
        if request.url.path == "/messages":
            self._collect(Report.unpack(open_sealed(key, data, REPORT)))
            return httpx.Response(200)
        body, response_key = read_request(key, data)
        found = self._ask(name, body)
        if isinstance(found, int):
            return httpx.Response(found)
        return httpx.Response(200, content=make_response(response_key, found))

    def _ask(self, name: str, body: dict[str, Any]) -> dict[str, Any] | int:
        if name == "collector":
            return self._offers() if body["op"] == "jobs" else 400
        if body["op"] == "keys":
            token_keys = self._token_keys(self.known or self.jobs)
            return {"public_key": self._epoch_key(self.epoch_seed), "token_keys": token_keys}
        job = self._job(body["job"])
        token = Token(*(read_bytes(each) for each in body["token"]))
        blinded = [read_bytes(each) for each in body["blinded"]]
        assert len(blinded) == job.artifacts_per_user
        if not check(self._evaluator("evaluate", job), token):
            return 403
        self.evaluated[token.serial] = self.evaluated.get(token.serial, 0) + 1
        return {"answer": evaluate(epoch_evaluator(self.epoch_seed, job.epoch), blinded)}

    def _offers(self) -> dict[str, Any]:
        shown = self._epoch_key(self.shown_epoch_seed or self.epoch_seed)
        return {
            "jobs": [job.as_toml() for job in self.jobs],
            "token_keys": self._token_keys(self.jobs),
            "epoch_keys": {str(job.epoch): shown for job in self.jobs},
        }

    def _token_keys(self, jobs: Sequence[Job]) -> dict[str, dict[str, str]]:
        return {
            job.digest.hex(): {
                purpose: write_bytes(public_key_of(self._evaluator(purpose, job)))
                for purpose in tokens_per_account(job)
            }
            for job in jobs
        }

    def _evaluator(self, purpose: Purpose, job: Job) -> Evaluator:
        """Of tokens: those for evaluations are under the epoch's secret, which the collector has not."""
        return token_evaluator(self.epoch_seed if purpose == "evaluate" else self.seed, purpose, job)

    def _epoch_key(self, seed: bytes) -> str:
        return write_bytes(public_key_of(epoch_evaluator(seed, self.jobs[0].epoch)))

    def _issue(self, body: dict[str, Any]) -> httpx.Response:
        if (body["account"], body["secret"]) != (ACCOUNT, SECRET):
            return httpx.Response(403)
        job = self._job(body["job"])
        if body["job"] in self.issued:
            before, answer = self.issued[body["job"]]
            return httpx.Response(200, json=answer) if before == body else httpx.Response(409)
        assert (len(body["evaluate"]), len(body["report"])) == (1, job.artifacts_per_user)
        answer = {
            purpose: write_bytes(evaluate(self._evaluator(purpose, job), [read_bytes(each) for each in body[purpose]]))
            for purpose in tokens_per_account(job)
        }
        self.issued[body["job"]] = (body, answer)
        return httpx.Response(200, json=answer)

    def _collect(self, report: Report) -> None:
        job = next(each for each in self.jobs if each.digest == report.job)
        assert check(self._evaluator("report", job), report.token)
        self.reports.append(report)

    def _job(self, digest: str) -> Job:
        return next(each for each in self.jobs if each.digest.hex() == digest)
