"""The jobs that a server knows: files come, break and go while it runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from support.crowd_cast import open_job

from qlog_assets.crowd.job_list import JobList, write_jobs


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def jobs(tmp_path: Path, told: list[str]) -> JobList:
    return JobList(tmp_path, told.append)


def test_files_that_come_and_go_are_noticed(tmp_path: Path, jobs: JobList) -> None:
    assert jobs.by_digest() == {}
    job = open_job()
    write_jobs([job], [tmp_path])
    assert jobs.by_digest() == {job.digest: job}
    assert jobs.of_epoch("2006-03") == [job] and jobs.of_epoch("2006-04") == []
    (tmp_path / "2006-03-queries.toml").unlink()
    assert jobs.by_digest() == {}


def test_a_file_that_is_no_job_is_told_once_and_left_out(tmp_path: Path, jobs: JobList, told: list[str]) -> None:
    job = open_job()
    write_jobs([job], [tmp_path])
    (tmp_path / "broken.toml").write_text('application = "quer')
    assert [jobs.by_digest() for _ in range(3)] == [{job.digest: job}] * 3
    assert jobs.left_out() == len(told) == 1 and "broken.toml" in told[0] and "\n" not in told[0]
    (tmp_path / "broken.toml").unlink()
    assert jobs.left_out() == 0 and len(told) == 1


def test_of_two_jobs_on_the_same_artifacts_the_one_stays_that_was_there_before(
    tmp_path: Path, jobs: JobList, told: list[str]
) -> None:
    job = open_job()
    write_jobs([job], [tmp_path])
    jobs.by_digest()
    other = open_job(closes=job.closes + timedelta(days=1))
    (tmp_path / "0-first-by-name.toml").write_text(other.as_toml())
    assert jobs.by_digest() == {job.digest: job}
    assert jobs.left_out() == 1 and "two jobs queries of 2006-03" in told[0]


def test_a_link_to_nothing_is_no_job_and_ends_nothing(tmp_path: Path, jobs: JobList) -> None:
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nowhere")
    assert jobs.by_digest() == {}
