"""A client against servers in this process: what it sends, when, over which relays, and what it refuses."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from support.crowd_double import ACCOUNT, SECRET, ServersDouble
from support.crowd_jobs import make_job

from qlog_assets.crowd.client import LAST_MARGIN, LATE_AFTER, Client, Preview
from qlog_assets.crowd.client_servers import NoAnswerError, Servers, TurnedDownError
from qlog_assets.crowd.client_settings import ClientSettings, OptOut
from qlog_assets.crowd.client_state import ClientState
from qlog_assets.crowd.envelopes import onion_bytes
from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import derive, epoch_evaluator, prf_input, share_place
from qlog_assets.crowd.local_log import LocalLog
from qlog_assets.crowd.messages import open_ciphertext
from qlog_assets.errors import QlogError

JOB = make_job(artifacts_per_user=5)
DURING = JOB.opens + timedelta(hours=1)
ARTIFACTS = (("green tea",), ("pot",))


class Killed(BaseException):
    """What ends a process at a point of a test's choice."""


@dataclass
class World:
    """A person's folder, the servers, and a clock."""

    folder: Path
    servers: ServersDouble
    now: datetime = DURING
    settings: ClientSettings = field(default_factory=ClientSettings)
    pauses: list[float] = field(default_factory=list)
    """What the client would have waited."""

    @contextmanager
    def client(self) -> Iterator[Client]:
        """The client as a new process would open it."""
        with ClientState.open(self.folder) as state, self.servers.http() as http:
            yield Client(
                state, Servers(self.servers.cast, http, pause=self.pauses.append), self.settings, clock=lambda: self.now
            )

    def take_part(self, artifacts: tuple[tuple[str, ...], ...] = ARTIFACTS, job: Job = JOB) -> None:
        with self.client() as client:
            client.take_part(Preview(job, artifacts), client.poll())

    def send_all(self) -> None:
        """Send everything by letting the window pass."""
        self.now = JOB.closes - timedelta(seconds=1)
        with self.client() as client:
            client.send_due()


@pytest.fixture
def world(tmp_path: Path) -> World:
    ClientState.create(tmp_path / "client", ACCOUNT, SECRET)
    return World(tmp_path / "client", ServersDouble.make(tmp_path / "cast", [JOB]))


def secret_of(world: World, artifact: tuple[str, ...], job: Job = JOB) -> tuple[bytes, int]:
    """Tag and secret of an artifact, as whoever holds the epoch's key computes them."""
    evaluator = epoch_evaluator(world.servers.epoch_seed, job.epoch)
    data = encode(artifact)
    material = derive(evaluator.evaluate_known_input(prf_input(job, data)), job, data)
    return material.tag, material.polynomial.at(0)


# What leaves ----------------------------------------------------------------------------------------------------------


def test_every_client_sends_d_messages_of_one_size_whatever_its_log_holds(world: World, tmp_path: Path) -> None:
    for artifacts in ((), ARTIFACTS, tuple((f"query {n}",) for n in range(5))):
        folder = tmp_path / f"client {len(artifacts)}"
        ClientState.create(folder, ACCOUNT, SECRET)
        one = World(folder, ServersDouble.make(tmp_path / f"cast {len(artifacts)}", [JOB]))
        one.take_part(artifacts)
        one.send_all()
        assert len(one.servers.reports) == JOB.artifacts_per_user == len(set(one.servers.messages))
        assert {len(body) for body in one.servers.messages} == {onion_bytes(one.servers.cast.hops)}
        assert len({report.token.serial for report in one.servers.reports}) == JOB.artifacts_per_user
        assert len({len(request.content) for request in one.servers.requests if request.url.path == "/tokens"}) == 1


def test_reports_hold_the_artifacts_and_shares_on_their_polynomials(world: World) -> None:
    world.take_part()
    world.send_all()
    with world.client() as client:
        user_key = client.state.identity().user_key
    by_tag = {report.tag: report for report in world.servers.reports}
    for artifact in ARTIFACTS:
        tag, secret = secret_of(world, artifact)
        report = by_tag.pop(tag)
        assert open_ciphertext(secret, JOB, tag, report.ciphertext) == encode(artifact)
        assert report.x == share_place(user_key, JOB, encode(artifact))
    assert len(by_tag) == 3, "the rest are dummies of other tags"


def test_instances_have_a_share_each_at_a_place_of_its_own(tmp_path: Path) -> None:
    job = make_job(artifacts_per_user=4, policy="ft_a")
    ClientState.create(tmp_path / "client", ACCOUNT, SECRET)
    world = World(tmp_path / "client", ServersDouble.make(tmp_path / "cast", [job]))
    world.take_part((("tea",), ("pot",), ("tea",)), job)
    world.send_all()
    tag, _ = secret_of(world, ("tea",), job)
    places = [report.x for report in world.servers.reports if report.tag == tag]
    assert len(places) == 2 == len(set(places))


def test_everything_but_tokens_goes_through_relays_and_no_artifact_is_in_any_request(world: World) -> None:
    world.take_part()
    world.send_all()
    direct = [request for request in world.servers.requests if "relay" not in name_of(world, request)]
    assert [request.url.path for request in direct] == ["/tokens"]
    for request in world.servers.requests:
        assert b"green tea" not in request.content and request.url.path in ("/tokens", "/ask", "/messages")
    assert (world.folder / "client.db").read_bytes().count(b"green tea") == 0


def name_of(world: World, request: httpx.Request) -> str:
    return next(party.name for party in world.servers.cast.parties if str(request.url).startswith(party.url + "/"))


def test_messages_have_random_times_in_the_window_and_random_first_relays(tmp_path: Path) -> None:
    """With 60 messages all three first relays occur, and so do both halves of the window: false alarms below 1e-9."""
    job = make_job(artifacts_per_user=60)
    ClientState.create(tmp_path / "client", ACCOUNT, SECRET)
    world = World(tmp_path / "client", ServersDouble.make(tmp_path / "cast", [job]))
    world.take_part((("tea",),), job)
    with world.client() as client:
        waiting = client.state.due(job.closes)
    due = [each.planned.due for each in waiting]
    assert len(set(due)) == 60 and world.now <= min(due) and max(due) <= job.closes - LAST_MARGIN
    middle = world.now + (job.closes - world.now) / 2
    assert min(due) < middle < max(due)
    assert {each.planned.relay for each in waiting} == {party.name for party in world.servers.cast.relays}
    assert due == sorted(due) and [each.number for each in waiting] == list(range(60)), (
        "the number tells the time alone"
    )


def test_a_message_leaves_when_it_is_due_and_not_before(world: World) -> None:
    world.take_part()
    with world.client() as client:
        times = [each.planned.due for each in client.state.due(JOB.closes)]
        for number, due in enumerate(times):
            world.now = due - timedelta(microseconds=1)
            assert client.send_due().sent == 0
            assert client.seconds_to_next() == pytest.approx(1e-6)
            world.now = due
            assert client.send_due().sent == 1 and len(world.servers.reports) == number + 1
        assert client.seconds_to_next() is None


def test_messages_that_are_late_get_new_times_and_never_leave_in_one_burst(tmp_path: Path) -> None:
    """Of 60 times over a week, ten within two hours, or ten at most in its first half: false alarms below 1e-5."""
    job = make_job(artifacts_per_user=60)
    ClientState.create(tmp_path / "client", ACCOUNT, SECRET)
    world = World(tmp_path / "client", ServersDouble.make(tmp_path / "cast", [job]))
    world.take_part((("tea",),), job)
    world.now = job.opens + (job.closes - job.opens) / 2
    with world.client() as client:
        before = {each.number: each.planned for each in client.state.due(job.closes)}
        late = {number for number, each in before.items() if each.due < world.now - LATE_AFTER}
        assert len(late) > 10
        assert client.send_due().sent < 10
    with world.client() as client:
        after = {each.number: each.planned for each in client.state.due(job.closes)}
        again = [after[number] for number in late]
        assert all(world.now <= each.due <= job.closes - LAST_MARGIN for each in again)
        assert all(after[number] == before[number] for number in after.keys() - late)
        assert all(after[number].body == before[number].body for number in late)
        most = 0
        while (seconds := client.seconds_to_next()) is not None:
            world.now += timedelta(seconds=max(seconds, 3600))
            most = max(most, client.send_due().sent)
    assert most < 10 and world.now < job.closes
    assert len(world.servers.reports) == 60 and set(world.servers.messages.values()) == {1}


def test_a_new_time_is_stored_before_anything_is_sent(world: World) -> None:
    world.take_part()
    world.now = DURING + timedelta(days=3)
    with world.client() as client:
        *late, punctual = client.state.due(JOB.closes)
        client.state.put_off([*((each, DURING) for each in late), (punctual, world.now)])
        world.servers.fault = killing(lambda request: True)
        with pytest.raises(Killed):
            client.send_due()
    with world.client() as client:
        assert [each.number for each in client.state.due(world.now)] == [punctual.number]


def test_what_is_late_when_the_window_is_nearly_over_leaves_at_once(world: World) -> None:
    world.take_part()
    world.now = JOB.closes - LAST_MARGIN
    with world.client() as client:
        assert client.send_due().sent == JOB.artifacts_per_user


# What is refused ------------------------------------------------------------------------------------------------------


def test_keys_that_differ_between_the_servers_are_refused_before_anything_leaves(world: World) -> None:
    world.servers.shown_epoch_seed = secrets.token_bytes(32)
    with pytest.raises(QlogError, match="different keys"):
        world.take_part()
    assert "/tokens" not in {request.url.path for request in world.servers.requests}
    with world.client() as client:
        assert client.state.progress() == [] and client.standing(JOB) == "open"


@pytest.mark.parametrize("purpose", ["evaluate", "report"])
def test_a_key_of_tokens_that_the_collector_does_not_show_or_shows_otherwise_is_not_taken_on_trust(
    world: World, purpose: str
) -> None:
    with world.client() as client:
        offers = client.poll()
        shown = offers.token_keys[JOB.digest]
        missing = {JOB.digest: {name: key for name, key in shown.items() if name != purpose}}
        for token_keys, reason in (
            (missing, "does not show it with its keys"),
            ({JOB.digest: {**shown, purpose: secrets.token_bytes(32)}}, "different keys"),
        ):
            with pytest.raises(QlogError, match=reason):
                client.take_part(Preview(JOB, ARTIFACTS), replace(offers, token_keys=token_keys))
        assert client.state.progress() == []
    assert "/tokens" not in {request.url.path for request in world.servers.requests}


def test_a_job_that_the_randomness_server_does_not_know_so_is_not_entered(world: World) -> None:
    """A job made for one person would have keys of its own."""
    special = make_job(artifacts_per_user=5, share_threshold=2)
    with world.client() as client:
        offers = replace(client.poll(), jobs=(special,))
        with pytest.raises(QlogError, match="does not know the job"):
            client.take_part(Preview(special, ARTIFACTS), offers)
        assert client.state.progress() == []


def test_a_job_that_is_shown_to_one_question_alone_is_not_entered(world: World) -> None:
    """Whoever runs both servers cannot tell which of two questions came from whom."""
    special = make_job(artifacts_per_user=5, share_threshold=2)
    world.servers.jobs = [special]
    with world.client() as client:
        offers = client.poll()
        world.servers.jobs, world.servers.known = [JOB], [JOB, special]
        with pytest.raises(NoAnswerError, match="does not show it"):
            client.take_part(Preview(special, ARTIFACTS), offers)
        assert client.state.progress() == []


def test_a_server_that_answers_with_another_key_is_found_by_its_proof(world: World) -> None:
    class OtherKey(ServersDouble):
        def _issue(self, body: dict[str, object]) -> httpx.Response:
            kept, self.seed = self.seed, secrets.token_bytes(32)
            try:
                return super()._issue(body)
            finally:
                self.seed = kept

    world.servers.__class__ = OtherKey
    with pytest.raises(QlogError, match="proof does not verify"):
        world.take_part()
    with world.client() as client:
        assert client.state.next_due() is None and client.standing(JOB) == "interrupted"


def test_a_job_is_entered_in_its_window_alone_and_never_when_it_is_declined(world: World) -> None:
    for now, standing in [(JOB.opens - timedelta(seconds=1), "not open yet"), (JOB.closes, "closed")]:
        world.now = now
        with world.client() as client:
            assert client.standing(JOB) == standing
        with pytest.raises(QlogError, match="is open from"):
            world.take_part()
    world.now, world.settings = DURING, ClientSettings(opt_out=OptOut(jobs=("queries",)))
    with world.client() as client:
        assert client.standing(JOB) == "opted out"
    with pytest.raises(QlogError, match="opted out"):
        world.take_part()
    assert {request.url.path for request in world.servers.requests} == {"/ask"}


def test_a_wrong_secret_stops_the_job_and_a_right_one_goes_on_with_it(world: World) -> None:
    with world.client() as client:
        client.state.change_secret(ACCOUNT, "wrong")
    with pytest.raises(TurnedDownError, match="turned the request down"):
        world.take_part()
    with world.client() as client:
        client.state.change_secret(ACCOUNT, SECRET)
        (interrupted,) = client.state.unfinished()
        client.resume(interrupted, client.poll())
    world.send_all()
    assert len(world.servers.reports) == JOB.artifacts_per_user


def test_a_job_is_taken_part_in_once(world: World) -> None:
    world.take_part()
    with pytest.raises(QlogError, match="nothing is sent twice"):
        world.take_part((("another",),))
    world.send_all()
    assert len(world.servers.reports) == JOB.artifacts_per_user


def test_opt_outs_come_before_the_choice_and_their_places_are_filled_from_the_log(world: World, tmp_path: Path) -> None:
    rows = "".join(f"7\t{text} {n}\t2006-03-01 10:00:0{n}\t\t\n" for n, text in enumerate(["tea"] * 5 + ["smith"] * 3))
    (tmp_path / "log.txt").write_text(rows, encoding="utf-8")
    world.settings = ClientSettings(opt_out=OptOut(patterns=("Smith",)))
    with world.client() as client:
        preview = client.preview(JOB, LocalLog(tmp_path / "log.txt", "file", "aol"))
    assert preview.artifacts == tuple((f"tea {n}",) for n in (4, 3, 2, 1, 0)) and preview.dummies == 0
    assert "tea" not in repr(preview)


# Crashes and faults ---------------------------------------------------------------------------------------------------


def killing(when: Callable[[httpx.Request], bool]) -> Callable[[httpx.Request], None]:
    def fault(request: httpx.Request) -> None:
        if when(request):
            raise Killed

    return fault


def test_a_crash_before_the_tokens_are_asked_for_changes_nothing(world: World) -> None:
    world.servers.fault = killing(lambda request: request.url.path == "/tokens")
    with pytest.raises(Killed):
        world.take_part()
    world.servers.fault = lambda request: None
    finish(world)
    assert sum(report.tag == secret_of(world, ("pot",))[0] for report in world.servers.reports) == 1


def test_a_crash_while_tokens_are_on_the_way_ends_the_job_without_a_message(world: World) -> None:
    class DiesThen(ServersDouble):
        def _issue(self, body: dict[str, object]) -> httpx.Response:
            super()._issue(body)
            raise Killed

    whole = world.servers.__class__
    world.servers.__class__ = DiesThen
    with pytest.raises(Killed):
        world.take_part()
    world.servers.__class__ = whole
    with world.client() as client:
        (interrupted,) = client.state.unfinished()
        with pytest.raises(QlogError, match="given out before"):
            client.resume(interrupted, client.poll())
        assert client.standing(JOB) == "lost" and client.state.next_due() is None
    with pytest.raises(QlogError, match="nothing is sent twice"):
        world.take_part()


@pytest.mark.parametrize("refused_then", [False, True])
def test_a_crash_while_randomness_is_asked_for_still_gives_d_messages(world: World, refused_then: bool) -> None:
    """Where the one evaluation is used up, all of them are dummies: nobody can tell who crashed."""
    asked = itertools.count()
    # The questions through relays are: jobs, keys, jobs, then the evaluation.
    world.servers.fault = killing(lambda request: request.url.path == "/ask" and next(asked) == 3)
    with pytest.raises(Killed):
        world.take_part()
    world.servers.fault = lambda request: None
    if refused_then:
        again = itertools.count()

        def refuse(request: httpx.Request) -> httpx.Response | None:
            return httpx.Response(409) if request.url.path == "/ask" and next(again) >= 3 else None

        world.servers.fault = refuse
    finish(world)
    known = sum(
        report.tag == secret_of(world, artifact)[0] for report in world.servers.reports for artifact in ARTIFACTS
    )
    assert known == (0 if refused_then else 2)


def interrupt(world: World) -> None:
    """Enter a job, and die before its tokens are asked for."""
    world.servers.fault = killing(lambda request: request.url.path == "/tokens")
    with pytest.raises(Killed):
        world.take_part()
    world.servers.fault = lambda request: None
    world.servers.requests.clear()


def test_an_interrupted_job_that_was_opted_out_of_since_is_lost_and_takes_no_tokens(world: World) -> None:
    interrupt(world)
    world.settings = ClientSettings(opt_out=OptOut(jobs=("queries",)))
    with world.client() as client:
        (interrupted,) = client.state.unfinished()
        with pytest.raises(QlogError, match="opted out"):
            client.resume(interrupted, client.poll())
        assert client.standing(JOB) == "lost" and client.state.next_due() is None
    assert {request.url.path for request in world.servers.requests} == {"/ask"}


def test_what_matches_a_pattern_that_is_new_since_an_interruption_becomes_a_dummy(world: World) -> None:
    interrupt(world)
    world.settings = ClientSettings(opt_out=OptOut(patterns=("Green",)))
    finish(world)
    tags = {report.tag for report in world.servers.reports}
    assert [secret_of(world, artifact)[0] in tags for artifact in ARTIFACTS] == [False, True]


def finish(world: World) -> None:
    """Go on as the next process would, and send everything."""
    with world.client() as client:
        (interrupted,) = client.state.unfinished()
        assert client.standing(JOB) == "interrupted"
        client.resume(interrupted, client.poll())
        assert client.standing(JOB) == "took part"
    world.servers.fault = lambda request: None
    world.send_all()
    assert len(world.servers.reports) == JOB.artifacts_per_user


def test_a_message_is_repeated_only_byte_for_byte(world: World) -> None:
    """The relay has it, and the client dies before it knows."""
    world.take_part()
    sent = world.servers.messages

    class DiesAfter(ServersDouble):
        def _collect(self, report: object) -> None:
            super()._collect(report)  # type: ignore[arg-type]
            if len(self.reports) == 3:
                raise Killed

    whole = world.servers.__class__
    world.servers.__class__ = DiesAfter
    with pytest.raises(Killed):
        world.send_all()
    world.servers.__class__ = whole
    world.send_all()
    assert len(sent) == JOB.artifacts_per_user and sorted(sent.values()) == [1, 1, 1, 1, 2]
    with world.client() as client:
        assert client.state.progress()[0].messages == {"planned": 0, "sent": 5, "missed": 0}


def test_what_a_relay_does_not_take_is_kept_and_the_others_are_sent(world: World) -> None:
    world.take_part()
    down = world.servers.cast.relays[0]
    world.servers.fault = lambda request: httpx.Response(503) if str(request.url).startswith(down.url) else None
    with world.client() as client:
        mine = client.state.due(JOB.closes)
        failing = sum(each.planned.relay == down.name for each in mine)
        world.now = JOB.closes - timedelta(seconds=1)
        found = client.send_due()
        assert (found.sent, found.failed) == (len(mine) - failing, failing)
        world.servers.fault = lambda request: None
        assert client.send_due().sent == failing
    assert set(world.servers.messages.values()) == {1}


def test_a_connection_that_breaks_is_one_line_without_an_address(world: World) -> None:
    def broken(request: httpx.Request) -> None:
        raise httpx.ConnectError("http://127.0.0.1/private", request=request)

    world.servers.fault = broken
    with pytest.raises(NoAnswerError, match="cannot be reached") as refused, world.client() as client:
        client.poll()
    assert "http" not in str(refused.value).replace("HTTP", "")


def test_an_answer_for_tokens_that_gets_lost_is_asked_for_again_with_the_same_request(world: World) -> None:
    lost = iter([True, False, False])

    class Loses(ServersDouble):
        def _issue(self, body: dict[str, object]) -> httpx.Response:
            answer = super()._issue(body)
            return httpx.Response(502) if next(lost) else answer

    world.servers.__class__ = Loses
    world.take_part()
    asked = [request.content for request in world.servers.requests if request.url.path == "/tokens"]
    assert len(asked) == 2 and asked[0] == asked[1] and world.pauses == [1.0]


@pytest.mark.parametrize("why", ["closed", "opted out"])
def test_messages_of_a_job_that_closed_or_was_opted_out_of_are_never_sent(world: World, why: str) -> None:
    world.take_part()
    world.now = JOB.closes if why == "closed" else JOB.closes - timedelta(seconds=1)
    if why == "opted out":
        world.settings = ClientSettings(opt_out=OptOut(jobs=("queries-2006-03",)))
    with world.client() as client:
        found = client.send_due()
        assert (found.sent, found.missed) == (0, JOB.artifacts_per_user) and client.seconds_to_next() is None
    assert world.servers.reports == []
