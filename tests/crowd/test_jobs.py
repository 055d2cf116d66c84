"""Job files, digests, windows, what a person is shown, and the bytes of an artifact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.crowd_jobs import make_job

from qlog_assets.crowd.jobs import (
    ARTIFACT_BYTES,
    COLUMNS,
    Application,
    Job,
    Policy,
    decode,
    default_window,
    encode,
    parse_job,
    read_job,
    read_jobs,
)
from qlog_assets.errors import QlogError
from qlog_assets.months import Month

MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
JOBS = st.builds(
    lambda opens, length, **values: Job(opens=opens, closes=opens + length, **values),
    opens=MOMENTS,
    length=st.timedeltas(timedelta(microseconds=1), timedelta(days=90)),
    application=st.sampled_from(get_args(Application)),
    epoch=st.dates().map(Month.containing),
    artifacts_per_user=st.integers(1, 1000),
    share_threshold=st.integers(1, 1000),
    policy=st.sampled_from(get_args(Policy)),
    epsilon=st.none() | st.sampled_from(["0.5", "2.302585092994046", "3"]),
    delta=st.none() | st.sampled_from(["1e-8", "0.000001"]),
)
FIELDS = st.text(st.characters(exclude_characters="\t\n", exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(JOBS)
def test_a_job_reads_back_from_its_own_file_with_the_same_digest(job: Job) -> None:
    again = parse_job(job.as_toml())
    assert again == job and again.digest == job.digest and len(job.digest) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"application": "urls"},
        {"epoch": "2006-04"},
        {"artifacts_per_user": 11},
        {"share_threshold": 4},
        {"policy": "gaussian"},
        {"opens": datetime(2006, 4, 2, tzinfo=UTC)},
        {"closes": datetime(2006, 4, 9, tzinfo=UTC)},
        {"epsilon": "1"},
        {"delta": "1e-9"},
    ],
)
def test_no_two_jobs_that_differ_in_anything_share_a_digest(change: dict[str, Any]) -> None:
    window = dict(zip(("opens", "closes"), default_window(Month("2006-03")), strict=True))
    assert make_job(**(window | change)).digest != make_job(**window).digest


def test_a_copy_that_was_changed_has_a_digest_of_its_own() -> None:
    job = make_job()
    digest = job.digest
    assert job.model_copy(update={"policy": "gaussian"}).digest == make_job(policy="gaussian").digest != digest


def test_the_same_moment_in_another_zone_is_the_same_job() -> None:
    opens = datetime(2006, 4, 1, tzinfo=UTC)
    elsewhere = opens.astimezone(timezone(timedelta(hours=5)))
    assert make_job(opens=opens).digest == make_job(opens=elsewhere).digest


def test_the_window_follows_the_month() -> None:
    assert default_window(Month("2006-12")) == (datetime(2007, 1, 1, tzinfo=UTC), datetime(2007, 1, 8, tzinfo=UTC))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"artifacts_per_user": 0}, "artifacts_per_user"),
        ({"share_threshold": 1001}, "share_threshold"),
        ({"policy": "exact"}, "policy"),
        ({"thresholds": 3}, "perhaps share_threshold"),
        ({"epsilon": "-1"}, "epsilon: write a decimal"),
        ({"delta": "1e-999999999"}, "delta: write a decimal"),
        ({"delta": "0.0"}, "delta: write a decimal"),
        ({"opens": datetime(2006, 4, 1)}, "opens"),  # a moment without a zone means another one on each machine
        ({"closes": datetime(2006, 4, 1, tzinfo=UTC)}, "later than opens"),
    ],
)
def test_a_job_that_cannot_be_meant_is_refused_by_the_name_of_its_key(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(QlogError, match=reason):
        make_job(**change)


def test_a_person_writes_numbers_without_quotes(tmp_path: Path) -> None:
    text = make_job().as_toml() + "epsilon = 2\ndelta = 1e-8\n"
    (tmp_path / "queries.toml").write_text(text)
    job = read_job(tmp_path / "queries.toml")
    assert (job.epsilon, job.delta) == ("2", "1e-8")


def test_the_jobs_of_a_folder_come_in_one_order_and_only_once(tmp_path: Path) -> None:
    for name, job in [
        ("b", make_job()),
        ("a", make_job(application="urls")),
        ("c", make_job(application="clicks", epoch="2006-02")),
    ]:
        (tmp_path / f"{name}.toml").write_text(job.as_toml())
    assert [(job.epoch, job.application) for job in read_jobs(tmp_path)] == [
        ("2006-02", "clicks"),
        ("2006-03", "queries"),
        ("2006-03", "urls"),
    ]
    (tmp_path / "d.toml").write_text(make_job(share_threshold=9).as_toml())
    with pytest.raises(QlogError, match=r"d\.toml: b\.toml already has the job queries of 2006-03"):
        read_jobs(tmp_path)


@pytest.mark.parametrize("text", ["canary", "a = [" * 5000, "#" * 5000, "application = 'canary'\n"])
def test_a_text_that_is_no_job_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(QlogError) as refused:
        parse_job(text)
    assert "canary" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("policy", get_args(Policy))
def test_a_person_reads_what_leaves_and_what_is_promised(policy: Any) -> None:
    job = make_job(policy=policy, epsilon="0.7", delta="1e-9")
    text = "\n".join(job.describe())
    assert "10 encrypted reports" in text and "2006-04-08" in text and "3 " in text
    assert ("ε = 0.7" in text) == (policy in ("sound", "gaussian"))
    assert ("no differential privacy" in text) == (policy in ("ft_a", "ft_u"))
    assert job.counts == ("instances" if policy in ("ft_a", "dp_a") else "users")


@given(st.data(), st.sampled_from(get_args(Application)))
def test_an_artifact_comes_back_from_its_bytes(data: st.DataObject, application: Any) -> None:
    fields = tuple(data.draw(FIELDS) for _ in COLUMNS[application])
    assert decode(encode(fields), application) == fields


@given(st.binary(max_size=ARTIFACT_BYTES + 5), st.sampled_from(get_args(Application)))
def test_bytes_are_an_artifact_only_as_they_are_written(data: bytes, application: Any) -> None:
    try:
        fields = decode(data, application)
    except ValueError:
        return
    assert encode(fields) == data and len(fields) == len(COLUMNS[application])


@pytest.mark.parametrize("fields", [("",), ("a\tb",), ("a\nb",), ("a" * 511,), ("é" * 256,), ("a", ""), ("\ud800",)])
def test_what_has_no_bytes_is_never_sent(fields: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        encode(fields)
    assert len(encode(("a" * 510,))) == ARTIFACT_BYTES
