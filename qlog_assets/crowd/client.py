"""A client: from a person's log to messages that are planned, stored and sent, each once.

What leaves is decided here and shown before it leaves. Every client that takes part in a job sends exactly as many
messages as every other, each over relays of its own and at a time of its own in the job's window; what the log does not
fill is filled with dummies. How servers are asked is `client_servers.py`, what survives a crash `client_state.py`.

The blinding factors live in this process alone, because the library does not give them away. A process that dies while
its request for tokens is on the way has no part in the job: the issuer gives no account tokens twice. One that dies
while it asks for randomness asks again; if it is refused then, it sends dummies alone. Nothing is ever sent twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random, SystemRandom
from typing import Literal

from qlog_assets.crowd.cast import Cast
from qlog_assets.crowd.client_servers import JobKeys, NoAnswerError, Offers, Servers, TurnedDownError
from qlog_assets.crowd.client_settings import ClientSettings, job_name
from qlog_assets.crowd.client_state import ClientState, Participation, Planned, Waiting
from qlog_assets.crowd.envelopes import seal_report, wrap
from qlog_assets.crowd.jobs import Job, decode, encode
from qlog_assets.crowd.keys import BlindedBatch, derive, prf_input, random_place, share_place
from qlog_assets.crowd.local_log import LocalLog
from qlog_assets.crowd.messages import Report, make_dummy, make_report
from qlog_assets.crowd.mining import Artifact, choose, mine
from qlog_assets.crowd.tokens import Token
from qlog_assets.errors import QlogError

Clock = Callable[[], datetime]
Standing = Literal["open", "not open yet", "closed", "opted out", "interrupted", "took part", "lost"]
"""How a job stands for this client."""
LAST_MARGIN = timedelta(hours=1)
"""How long before a job closes its last message is planned, at most: a relay that is down then can be tried again."""
LATE_AFTER = timedelta(hours=2)
"""From when on a message gets a new time. Long enough for whoever sends by a timer every hour."""
MARGIN_SHARE = 20
"""Both are at most this fraction of the window."""
FILLER_BYTES = 32
REFUSED_FOR_GOOD = (403, 409, 410)


@dataclass(frozen=True)
class Preview:
    """What would leave for a job."""

    job: Job
    artifacts: tuple[Artifact, ...] = field(repr=False)
    """In the clear: for the person's own eyes."""

    @property
    def dummies(self) -> int:
        return self.job.artifacts_per_user - len(self.artifacts)


@dataclass(frozen=True)
class Sent:
    """What became of the messages that were due."""

    sent: int
    failed: int
    """Kept for another try."""
    missed: int
    """Given up, because their job closed or the person opted out of it."""
    reason: str | None
    """Why the last one failed."""


class Client:
    """One person's client."""

    def __init__(
        self,
        state: ClientState,
        servers: Servers,
        settings: ClientSettings,
        clock: Clock = lambda: datetime.now(UTC),
        chance: Random | None = None,
    ) -> None:
        self.state = state
        self._servers = servers
        self._settings = settings
        self._clock = clock
        self._chance = chance or SystemRandom()

    @property
    def _cast(self) -> Cast:
        return self._servers.cast

    # Before anything leaves ------------------------------------------------------------------------------------------

    def poll(self) -> Offers:
        """Ask which jobs there are. The question is the same for everybody, and goes through relays."""
        return self._servers.offers()

    def standing(self, job: Job) -> Standing:
        """How a job stands for this client now."""
        found = self.state.find(job)
        if found is not None and found.stage in ("planned", "lost"):
            return "took part" if found.stage == "planned" else "lost"
        if self._clock() >= job.closes:
            return "closed"
        if found is not None:
            return "interrupted"
        if self._settings.opt_out.declines(job):
            return "opted out"
        return "open" if self._clock() >= job.opens else "not open yet"

    def preview(self, job: Job, log: LocalLog) -> Preview:
        """What would leave for a job, from a log. Opt-outs come before the choice."""
        searches = log.searches(job.epoch, self.state.folder)
        artifacts = mine(searches, job.application, self._settings.opt_out.leaves_out)
        return Preview(job, tuple(choose(artifacts, job.artifacts_per_user, job.counts)))

    # Taking part -----------------------------------------------------------------------------------------------------

    def take_part(self, preview: Preview, offers: Offers) -> None:
        """Enter a job and store its messages. The state is held by the caller."""
        job = preview.job
        if self._settings.opt_out.declines(job):
            raise QlogError(f"{job_name(job)}: you opted out of it in client.toml")
        keys = self._agreed_keys(job, offers)
        self.state.enter(job, [encode(artifact) for artifact in preview.artifacts])
        self._carry_on(job, keys)

    def resume(self, participation: Participation, offers: Offers) -> None:
        """Go on with a job where a crash or a lost connection left it, without what was opted out of since."""
        job = participation.job
        if self._settings.opt_out.declines(job):
            self.state.lose(job)
            raise QlogError(f"{job_name(job)}: you opted out of it in client.toml: nothing is sent for it")
        if self._clock() >= job.closes:
            self.state.lose(job)
            raise QlogError(f"{job_name(job)}: closed before its messages were ready: nothing is sent for it")
        self._carry_on(job, self._agreed_keys(job, offers))

    def _agreed_keys(self, job: Job, offers: Offers) -> JobKeys:
        """The keys of a job, if both servers publish the same: a key of one's own would tell one person's messages
        from all others."""
        if not job.opens <= self._clock() < job.closes:
            window = f"from {job.opens:%Y-%m-%d %H:%M} to {job.closes:%Y-%m-%d %H:%M} UTC"
            raise QlogError(f"{job_name(job)}: is open {window}: take part then")
        keys = self._servers.keys(job)
        # Asked once more, by other relays: the collector cannot tell who asks, so it cannot show one person a job or a
        # key of its own every time.
        for shown in (offers, self._servers.offers()):
            if not shown.shows(job):
                raise NoAnswerError(f"{job_name(job)}: the collector does not show it with its keys: try again later")
            if not shown.agrees(job, keys):
                raise QlogError(
                    f"{job_name(job)}: collector and randomness server publish different keys: nothing was sent; tell "
                    "others who take part"
                )
        return keys

    def _carry_on(self, job: Job, keys: JobKeys) -> None:
        found = self.state.find(job)
        assert found is not None  # entered before
        if found.stage == "chosen":
            self.state.pay(job, [(token.serial, token.output) for token in self._issue(job, keys)])
            found = self.state.find(job)
            assert found is not None
        evaluate, *tokens = (Token(*parts) for parts in found.tokens)
        # Once more: what was chosen before an interruption may be opted out of by now.
        artifacts = [each for each in found.artifacts if not self._is_left_out(job, each)]
        reports = self._make_reports(job, keys, artifacts, evaluate, tokens)
        self.state.plan(job, self._plan(job, reports))

    def _is_left_out(self, job: Job, artifact: bytes) -> bool:
        return any(map(self._settings.opt_out.leaves_out, decode(artifact, job.application)))

    def _issue(self, job: Job, keys: JobKeys) -> list[Token]:
        try:
            return self._servers.issue(self.state.identity(), job, keys)
        except TurnedDownError as refusal:
            if refusal.status == 409:
                self.state.lose(job)
                raise QlogError(
                    f"{job_name(job)}: this account's tokens were given out before, to a client that was stopped "
                    "or to another machine of yours: this client sends nothing for the job"
                ) from None
            raise

    def _make_reports(
        self, job: Job, keys: JobKeys, artifacts: Sequence[bytes], evaluate: Token, tokens: Sequence[Token]
    ) -> list[Report]:
        """A report per token: of each artifact one, then dummies."""
        randoms = self._randoms(job, keys, artifacts, evaluate)
        identity = self.state.identity()
        reports = []
        for artifact, random, token in zip(artifacts, randoms, tokens, strict=False):
            is_counted_once = job.counts == "users"
            place = share_place(identity.user_key, job, artifact) if is_counted_once else random_place()
            reports.append(make_report(job, artifact, derive(random, job, artifact), place, token))
        return reports + [make_dummy(job, token) for token in tokens[len(reports) :]]

    def _randoms(self, job: Job, keys: JobKeys, artifacts: Sequence[bytes], evaluate: Token) -> list[bytes]:
        """The oblivious function's value at each artifact; none at all if the one request for it was used up."""
        fillers = [secrets.token_bytes(FILLER_BYTES) for _ in range(job.artifacts_per_user - len(artifacts))]
        batch, blinded = BlindedBatch.blind([prf_input(job, each) for each in (*artifacts, *fillers)])
        try:
            answer = self._servers.evaluate(job, evaluate, blinded)
        except TurnedDownError as refusal:
            if refusal.status not in REFUSED_FOR_GOOD:
                raise
            return []
        return batch.finish(answer, keys.epoch)[: len(artifacts)]

    def _plan(self, job: Job, reports: Sequence[Report]) -> list[Planned]:
        """The messages, each with a route and a time of its own that say nothing of what is in it."""
        collector = self._cast.collector
        planned = []
        for report in reports:
            route = self._cast.choose_route(self._chance)
            body = wrap(route, collector, seal_report(collector, report.pack()))
            planned.append(Planned(self._choose_time(job), route[0].name, body))
        # In the order of time: the place in the list would tell artifacts from dummies.
        return sorted(planned, key=lambda each: each.due)

    def _choose_time(self, job: Job) -> datetime:
        """A random time in what is left of a job's window."""
        start = max(self._clock(), job.opens)
        left = job.closes - start
        seconds = (left - min(LAST_MARGIN, left / MARGIN_SHARE)).total_seconds()
        return start + timedelta(seconds=self._chance.uniform(0, seconds))

    # Sending ---------------------------------------------------------------------------------------------------------

    def send_due(self) -> Sent:
        """Send what is due. A message that no relay confirmed stays as it is, to be sent again byte for byte.

        What is late, because the machine was off or a relay was down, gets a new time first: messages that leave at
        once arrive together, and would show the collector which tags are one person's.
        """
        with self.state.hold():
            missed = self.state.give_up(self._is_over)
            self._put_off_late()
            sent, failed, reason = 0, 0, None
            for waiting in self.state.due(self._clock()):
                try:
                    self._servers.send(waiting.planned.relay, waiting.planned.body)
                except (NoAnswerError, TurnedDownError) as error:
                    failed, reason = failed + 1, str(error)
                    continue
                self.state.mark_sent(waiting)
                sent += 1
        return Sent(sent, failed, missed, reason)

    def _put_off_late(self) -> None:
        """Give late messages new times. Not so near the end that they might miss it: they leave now."""
        now, jobs = self._clock(), {each.job.digest: each.job for each in self.state.progress()}

        def is_put_off(waiting: Waiting) -> bool:
            job = jobs[waiting.job]
            share = (job.closes - job.opens) / MARGIN_SHARE
            is_late = now - waiting.planned.due > min(LATE_AFTER, share)
            return is_late and job.closes - now > min(LAST_MARGIN, share)

        late = [waiting for waiting in self.state.due(now) if is_put_off(waiting)]
        self.state.put_off([(waiting, self._choose_time(jobs[waiting.job])) for waiting in late])

    def _is_over(self, job: Job) -> bool:
        """Whether nothing more is sent for a job: it closed, or the person opted out meanwhile."""
        return job.closes <= self._clock() or self._settings.opt_out.declines(job)

    def seconds_to_next(self) -> float | None:
        """How long until the next message is due; None if all are sent."""
        next_due = self.state.next_due()
        return None if next_due is None else max(0.0, (next_due - self._clock()).total_seconds())
