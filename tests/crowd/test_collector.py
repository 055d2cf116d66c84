"""The collector over HTTP: an answer means durable, and what is no report is refused or counted."""

from __future__ import annotations

import dataclasses
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from support.crowd_cast import (
    QUICK,
    free_ports,
    made_reports,
    open_job,
    read_metrics,
    sealed_reports,
    serving,
    wait_for,
)

from qlog_assets.crowd.cast import Cast, CollectorSettings, RandomnessSettings, make_cast, open_folder
from qlog_assets.crowd.collector import MOST_REPORTS, Collector
from qlog_assets.crowd.envelopes import SEALED_REPORT_BYTES, make_request, read_response, seal_report, write_bytes
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import public_key_of
from qlog_assets.crowd.opening import Opener
from qlog_assets.crowd.randomness import RandomnessServer
from qlog_assets.crowd.tokens import Token


@dataclass
class Scene:
    """A collector that runs, and what it is to be told."""

    folder: Path
    cast: Cast
    job: Job
    client: httpx.Client

    def post(self, body: bytes) -> int:
        return self.client.post("/reports", content=body).status_code

    def metrics(self) -> dict[str, float]:
        return read_metrics(self.client.get("/metrics").text)

    def rejected(self) -> dict[str, float]:
        start = 'reports_rejected_total{reason="'
        found = self.metrics().items()
        return {name.removeprefix(start).removesuffix('"}'): value for name, value in found if name.startswith(start)}

    def wait_until_opened(self) -> None:
        wait_for(lambda: self.metrics()["reports_waiting"] == 0, 60)


def made_folder(tmp_path: Path, job: Job, **settings: object) -> tuple[Path, Cast]:
    cast = make_cast(tmp_path / "cast", 1, 1, settings={**QUICK, "collector": {**QUICK["collector"], **settings}})
    write_jobs([job], [tmp_path / "cast" / "collector" / "jobs"])
    return tmp_path / "cast" / "collector", cast


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    job = open_job()
    folder, cast = made_folder(tmp_path_factory.mktemp("collector"), job)
    with serving(Collector(open_folder(folder, CollectorSettings)).application()) as client:
        yield Scene(folder, cast, job, client)


def test_a_report_is_accepted_once_however_often_it_comes(scene: Scene) -> None:
    before = scene.metrics()
    (report,) = made_reports(scene.folder, scene.job, 1)
    first, second = sealed_reports(scene.cast, [report, report])  # the same report in two envelopes
    assert [scene.post(body) for body in (first, first, second, first + second)] == [200] * 4
    scene.wait_until_opened()
    now = scene.metrics()
    assert now["reports_accepted_total"] - before["reports_accepted_total"] == 1
    assert now["reports_repeated_total"] - before["reports_repeated_total"] == 3
    assert scene.rejected()["report came before"] == 1


def test_a_token_counts_for_the_first_of_two_reports(scene: Scene) -> None:
    before = scene.metrics()["reports_accepted_total"]
    one, other = made_reports(scene.folder, scene.job, 2)
    for report in (one, dataclasses.replace(other, token=one.token)):
        assert scene.post(seal_report(scene.cast.collector, report.pack())) == 200
        scene.wait_until_opened()
    assert scene.metrics()["reports_accepted_total"] == before + 1
    assert scene.rejected()["token is spent"] == 1


def test_what_opens_to_no_fitting_report_is_counted_by_its_reason(scene: Scene) -> None:
    (good,) = made_reports(scene.folder, scene.job, 1)
    other_job = open_job(application="urls")
    packed = good.pack()
    sealed = {
        "envelope does not open": os.urandom(SEALED_REPORT_BYTES),
        "report is of an unknown version": seal_report(scene.cast.collector, b"\x09" + packed[1:]),
        "x is 0": seal_report(scene.cast.collector, packed[:593] + bytes(16) + packed[609:]),
        "y is not below p": seal_report(scene.cast.collector, packed[:609] + b"\xff" * 16 + packed[625:]),
        "unknown job": seal_report(scene.cast.collector, dataclasses.replace(good, job=other_job.digest).pack()),
        "forged token": seal_report(
            scene.cast.collector,
            dataclasses.replace(good, token=Token(good.token.serial, secrets.token_bytes(64))).pack(),
        ),
    }
    before = scene.rejected()
    assert scene.post(b"".join(sealed.values())) == 200
    scene.wait_until_opened()
    after = scene.rejected()
    assert {reason: after[reason] - before.get(reason, 0) for reason in sealed} == dict.fromkeys(sealed, 1)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"x", 400),
        (bytes(SEALED_REPORT_BYTES - 1), 400),
        (bytes(SEALED_REPORT_BYTES + 1), 400),
        (bytes(SEALED_REPORT_BYTES * (MOST_REPORTS + 1)), 413),
    ],
)
def test_a_body_that_is_no_whole_number_of_reports_or_too_large_is_refused(
    scene: Scene, body: bytes, status: int
) -> None:
    stored = scene.metrics()["reports_stored_total"]
    assert scene.post(body) == status
    assert scene.metrics()["reports_stored_total"] == stored


def test_a_body_that_does_not_say_how_large_it_is_is_cut_off_too(scene: Scene) -> None:
    parts = (bytes(SEALED_REPORT_BYTES) for _ in range(MOST_REPORTS + 1))
    assert scene.client.post("/reports", content=parts).status_code == 413


def test_the_jobs_are_told_plainly_and_through_an_envelope_with_the_same_keys(scene: Scene) -> None:
    plain = scene.client.get("/jobs").json()
    assert plain["jobs"] == [scene.job.as_toml()]
    assert set(plain["token_keys"][scene.job.digest.hex()]) == {"report"}
    assert plain["epoch_keys"] == {}  # no randomness server is up: what it alone knows is not told
    request, key = make_request([], scene.cast.collector, {"op": "jobs"})
    assert read_response(key, scene.client.post("/ask", content=request).content) == plain


def test_the_keys_of_tokens_for_evaluations_are_shown_as_the_randomness_server_stated_them(tmp_path: Path) -> None:
    job, clock = open_job(), time.time()
    cast = make_cast(tmp_path / "cast", 1, 1, ports=free_ports(3), settings=QUICK)
    randomness = open_folder(tmp_path / "cast" / "randomness", RandomnessSettings)
    home = open_folder(tmp_path / "cast" / "collector", CollectorSettings)
    write_jobs([job], [home.jobs, randomness.jobs])
    collector = Collector(home, clock=lambda: clock)
    with serving(collector.application()) as client:
        assert set(client.get("/jobs").json()["token_keys"][job.digest.hex()]) == {"report"}
        clock += 60
        server = RandomnessServer(randomness)
        with serving(server.application(), urlsplit(cast.randomness.url).port or 0):
            shown = client.get("/jobs").json()
            keys = shown["token_keys"][job.digest.hex()]
            assert keys["evaluate"] == write_bytes(public_key_of(server.epochs.token_evaluator(job)))
            assert shown["epoch_keys"] == {job.epoch: write_bytes(public_key_of(server.epochs.evaluator(job.epoch)))}
        clock += 60
        assert client.get("/jobs").json() == shown, "it keeps what it heard first"


def test_a_question_that_is_none_is_refused(scene: Scene) -> None:
    request, _ = make_request([], scene.cast.collector, {"op": "everything"})
    assert scene.client.post("/ask", content=request).status_code == 400
    assert scene.client.post("/ask", content=os.urandom(1104)).status_code == 400


def test_nothing_that_was_answered_for_is_lost_with_the_server_and_later_reports_open_with_it(tmp_path: Path) -> None:
    job = open_job()
    folder, cast = made_folder(tmp_path, job)
    home = open_folder(folder, CollectorSettings)
    bodies = sealed_reports(cast, made_reports(folder, job, 30))
    with serving(Collector(home).application()) as client:
        assert client.post("/reports", content=b"".join(bodies)).status_code == 200
    opener = Opener(home)
    while opener.open_waiting():
        pass
    with serving(Collector(home).application()) as client:
        assert read_metrics(client.get("/metrics").text)["reports_accepted_total"] == 30


def test_a_backlog_at_its_limit_puts_senders_off(tmp_path: Path) -> None:
    job = open_job()
    folder, cast = made_folder(tmp_path, job, largest_backlog=10)
    bodies = sealed_reports(cast, made_reports(folder, job, 11))
    with serving(Collector(open_folder(folder, CollectorSettings)).application()) as client:
        answer = client.post("/reports", content=b"".join(bodies))
        assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0
        assert client.post("/reports", content=b"".join(bodies[:5])).status_code == 200


def test_a_peer_that_asks_too_often_is_told_so(tmp_path: Path) -> None:
    folder, _ = made_folder(tmp_path, open_job(), requests_per_second=0.001)
    with serving(Collector(open_folder(folder, CollectorSettings)).application()) as client:
        assert [client.post("/reports", content=b"").status_code for _ in range(3)] == [400, 429, 429]
        assert client.get("/health").json() == {"name": "collector", "role": "collector"}


def test_reports_before_their_job_opens_do_not_count(tmp_path: Path) -> None:
    opens = datetime.now(UTC) + timedelta(hours=1)
    job = open_job(opens=opens, closes=opens + timedelta(days=1))
    folder, cast = made_folder(tmp_path, job)
    home = open_folder(folder, CollectorSettings)
    with serving(Collector(home).application()) as client:
        (body,) = sealed_reports(cast, made_reports(folder, job, 1))
        client.post("/reports", content=body)
        name = 'reports_rejected_total{reason="job is not open yet"}'
        wait_for(lambda: read_metrics(client.get("/metrics").text).get(name) == 1)


def test_a_broken_job_file_is_counted_and_told_and_reports_of_the_other_jobs_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = open_job()
    folder, cast = made_folder(tmp_path, job)
    (folder / "jobs" / "broken.toml").write_text('application = "quer')
    with serving(Collector(open_folder(folder, CollectorSettings)).application()) as client:
        (body,) = sealed_reports(cast, made_reports(folder, job, 1))
        assert client.post("/reports", content=body).status_code == 200
        wait_for(lambda: read_metrics(client.get("/metrics").text)["reports_accepted_total"] == 1)
        assert client.get("/jobs").json()["jobs"] == [job.as_toml()]
        assert read_metrics(client.get("/metrics").text)["job_files_left_out"] == 1
    told = [record.getMessage() for record in caplog.records if "broken.toml" in record.getMessage()]
    assert len(told) == 1 and "\n" not in told[0]


@pytest.mark.parametrize("peers", [[], ["192.0.2.1"]])
def test_metrics_are_told_to_nobody_who_is_not_named(tmp_path: Path, peers: list[str]) -> None:
    """Behind a proxy on the same machine everybody comes from there: so nobody is named unless somebody says so."""
    assert CollectorSettings(name="collector", role="collector", port=1).metrics_peers == ()
    folder, _ = made_folder(tmp_path, open_job(), metrics_peers=peers)
    with serving(Collector(open_folder(folder, CollectorSettings)).application()) as client:
        assert client.get("/metrics").status_code == 403
