"""Jobs as a collector keeps them: as they were first seen, whatever becomes of their files until they are sealed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.crowd_cast import QUICK, made_reports, open_job, sealed_reports, serving, wait_for

from qlog_assets.crowd.cast import CollectorSettings, PartyFolder, make_cast, open_folder
from qlog_assets.crowd.collector import Collector
from qlog_assets.crowd.inbox import digest_of
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.kept_jobs import KeptJobs
from qlog_assets.crowd.opening import Opener, open_collector

JOB = open_job()


@pytest.fixture
def home(tmp_path: Path) -> PartyFolder[CollectorSettings]:
    """A collector's folder with one job."""
    make_cast(tmp_path / "cast", 1, 1, settings=QUICK)
    write_jobs([JOB], [tmp_path / "cast" / "collector" / "jobs"])
    return open_folder(tmp_path / "cast" / "collector", CollectorSettings)


def store(home: PartyFolder[CollectorSettings], job: Job, number: int) -> None:
    """Reports as the collector's server stores them, not opened yet."""
    connection = open_collector(home.folder)
    for message in sealed_reports(home.cast, made_reports(home.folder, job, number)):
        row = (digest_of(message), message, len(message))
        connection.execute(
            "INSERT INTO waiting (digest, message, onward, size, due, late) VALUES (?, ?, '', ?, 0, 0)", row
        )
    connection.execute("UPDATE totals SET messages = messages + ?", (number,))
    connection.close()


def kept(home: PartyFolder[CollectorSettings], told: list[str]) -> KeptJobs:
    """As a process that starts now has them."""
    return KeptJobs(open_collector(home.folder), home.jobs, told.append)


def break_file(path: Path) -> None:
    path.write_text("x =")


@pytest.mark.parametrize("lose", [break_file, Path.unlink])
def test_reports_are_judged_by_their_job_although_its_file_is_away(
    home: PartyFolder[CollectorSettings], lose: Callable[[Path], None]
) -> None:
    kept(home, []).by_digest()  # as the server does that shows it to clients
    store(home, JOB, 20)
    (path,) = home.jobs.glob("*.toml")
    lose(path)
    connection = open_collector(home.folder)
    Opener(home).open_waiting()
    assert connection.execute("SELECT epoch, reports FROM accepted").fetchall() == [(JOB.epoch, 20)]
    assert connection.execute("SELECT * FROM rejected").fetchall() == []


def test_of_two_jobs_on_the_same_artifacts_the_one_that_was_seen_first_stays_over_a_restart(
    home: PartyFolder[CollectorSettings],
) -> None:
    told: list[str] = []
    assert list(kept(home, told).by_digest()) == [JOB.digest] and told == []
    other = open_job(share_threshold=7)
    (home.jobs / "2006-03-a.toml").write_text(other.as_toml())  # the first by its name
    for _ in range(2):
        again = kept(home, told)
        assert list(again.by_digest()) == [JOB.digest] == [job.digest for job in again.shown()]
        assert again.left_out() == 1
    (home.jobs / "2006-03-queries.toml").unlink()
    last = kept(home, told)
    assert list(last.by_digest()) == [JOB.digest] and last.shown() == [], "another one is not shown in its place"
    assert last.left_out() == 1 and all("\n" not in line for line in told) and told


def test_a_job_is_kept_before_it_is_shown_and_not_shown_while_its_file_is_away(
    home: PartyFolder[CollectorSettings],
) -> None:
    (path,) = home.jobs.glob("*.toml")
    text = path.read_text()
    with serving(Collector(home).application()) as client:
        assert client.get("/jobs").json()["jobs"] == [JOB.as_toml()]
        assert list(kept(home, []).by_digest()) == [JOB.digest]
        path.unlink()
        assert client.get("/jobs").json()["jobs"] == []
        (body,) = sealed_reports(home.cast, made_reports(home.folder, JOB, 1))
        assert client.post("/reports", content=body).status_code == 200
        wait_for(lambda: "reports_accepted_total 1\n" in client.get("/metrics").text)
        path.write_text(text)
        assert client.get("/jobs").json()["jobs"] == [JOB.as_toml()]
