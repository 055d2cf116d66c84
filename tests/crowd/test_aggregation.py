"""Aggregation: every artifact with enough shares once and with the right count, whatever else was sent."""

from __future__ import annotations

import secrets
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd_jobs import any_token, make_job
from support.crowd_reports import as_table, make_reports, material_of

from qlog_assets.crowd import aggregation
from qlog_assets.crowd.aggregation import aggregate
from qlog_assets.crowd.field import PRIME
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import KeyMaterial, artifact_key, derive, random_place
from qlog_assets.crowd.messages import PLAINTEXT_BYTES, Report, make_dummy, make_report
from qlog_assets.crowd.shares import Polynomial
from qlog_assets.errors import QlogError

NOTHING = {"below threshold": 0, "wrong shares": 0, "not authentic": 0, "not an artifact": 0}


def counted(job: Job, reports: list[Report]) -> dict[tuple[str, ...], int]:
    artifacts = aggregate(as_table(reports), job).artifacts
    *texts, users = (column.to_pylist() for column in artifacts.columns)
    return dict(zip(zip(*texts, strict=True), users, strict=True))


def dropped(job: Job, reports: list[Report]) -> dict[str, int]:
    """By reason, without those for which nothing is dropped."""
    return {reason: tags for reason, tags in aggregate(as_table(reports), job).dropped.items() if tags}


def reports_of_text(job: Job, material: KeyMaterial, text: bytes, number: int) -> list[Report]:
    """Reports by holders of a secret that say what they like."""
    plaintext = (len(text).to_bytes(2, "big") + text).ljust(PLAINTEXT_BYTES, b"\0")
    sealed = AESSIV(artifact_key(material.polynomial.at(0), job)).encrypt(plaintext, [job.digest, material.tag])
    places = [random_place() for _ in range(number)]
    return [Report(job.digest, material.tag, sealed, x, material.polynomial.at(x), any_token()) for x in places]


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(st.sampled_from([(name,) for name in "abcdefghij"]), st.integers(1, 9), max_size=10),
    st.integers(1, 6),
    st.integers(1, 4),
    st.randoms(),
)
def test_exactly_the_artifacts_with_enough_users_are_read(
    senders: dict[tuple[str, ...], int], threshold: int, chunks: int, random: Random
) -> None:
    job = make_job(share_threshold=threshold)
    reports = make_reports(job, senders) + [make_dummy(job, any_token()) for _ in range(3)]
    random.shuffle(reports)
    found = aggregate(as_table(reports, chunks), job)
    kept = {fields: users for fields, users in sorted(senders.items()) if users >= threshold}
    assert found.artifacts == pa.table(
        {"query": pa.array([text for (text,) in kept], pa.string()), "users": pa.array(kept.values(), pa.int64())}
    )
    # A dummy has one share: only a threshold of 1 lets it be tried, and then it does not open.
    reason = "not authentic" if threshold == 1 else "below threshold"
    assert found.dropped == {**NOTHING, "below threshold": len(senders) - len(kept)} | {
        reason: 3 + len(senders) - len(kept)
    }


@pytest.mark.parametrize(
    ("application", "fields"),
    [
        ("queries", ("dog food",)),
        ("reformulations", ("dog", "dog food")),
        ("clicks", ("dog food", "http://example.com/Food?A=1")),
        ("click_hosts", ("dog food", "example.com")),
        ("urls", ("http://example.com",)),
    ],
)
def test_every_application_has_its_columns(application: Any, fields: tuple[str, ...]) -> None:
    job = make_job(application=application)
    assert counted(job, make_reports(job, {fields: 4})) == {fields: 4}


def test_a_user_counts_once_and_an_instance_each_time() -> None:
    users, instances = make_job(), make_job(policy="ft_a")
    reports = make_reports(users, {("dog food",): 3})
    assert counted(users, reports * 2) == {("dog food",): 3}, "the same reports again are no more users"
    assert counted(users, reports[:2] * 5) == {}
    assert counted(instances, make_reports(instances, {("dog food",): 7})) == {("dog food",): 7}


def test_each_wrong_share_is_set_against_a_right_one() -> None:
    job = make_job(share_threshold=4)
    honest = make_reports(job, {("dog food",): 8})
    lies = [replace(report, x=random_place(), y=secrets.randbelow(PRIME)) for report in honest]
    for wrong in range(5):
        assert counted(job, lies[:wrong] + honest) == {("dog food",): 8 - wrong}
    assert dropped(job, lies[:5] + honest) == {"wrong shares": 1}
    assert dropped(job, lies[:1] + honest[:3]) == {"not authentic": 1}, "k shares cannot contradict each other"


def test_a_report_with_another_ciphertext_is_wrong_whatever_it_opens_to() -> None:
    job = make_job()
    honest = make_reports(job, {("dog food",): 7, ("cat",): 3})
    spoilt = [replace(report, x=random_place(), ciphertext=secrets.token_bytes(528)) for report in honest[:2]]
    other = reports_of_text(job, material_of(job, b"dog food"), b"cat food", 2)
    assert counted(job, spoilt + other + honest) == {("dog food",): 3, ("cat",): 3}
    assert dropped(job, [*spoilt, *other, *honest[1:7]]) == {"not authentic": 1}
    assert dropped(job, [replace(report, ciphertext=bytes(528)) for report in honest[:7]]) == {"not authentic": 1}
    assert counted(job, [*honest, replace(honest[0], ciphertext=bytes(528))])[("dog food",)] == 7, "the place is right"


def test_only_the_text_that_a_tag_commits_to_is_read_however_many_send_another() -> None:
    """One report more once decided which of two texts was read, with the count of both."""
    job = make_job()
    honest = make_reports(job, {("dog food",): 4})
    for text in (b"aaa", b"zzz"):
        others = reports_of_text(job, material_of(job, b"dog food"), text, 4)
        assert counted(job, honest + others) == counted(job, honest[1:] + others) == {}
        assert dropped(job, others) == {"not authentic": 1}


def test_a_second_polynomial_with_the_same_secret_is_not_authentic() -> None:
    job = make_job()
    material = material_of(job, b"dog food")
    bent = replace(material, polynomial=Polynomial((*material.polynomial.coefficients[:-1], 5)))
    assert dropped(job, reports_of_text(job, bent, b"dog food", 6)) == {"not authentic": 1}


LIES = ("honest", "wrong share", "other text", "spoilt", "other polynomial", "contested", "again", "other tag")


def tell_lies(job: Job, kinds: list[str]) -> list[Report]:
    """Reports by others, of whom each follows the protocol or lies in a way of its own. All hold the artifact."""
    text = b"dog food"
    material = material_of(job, text)
    bent = replace(material, polynomial=Polynomial((*material.polynomial.coefficients[:-1], 5)))
    invented = derive(bytes(64), job, text)
    sent: list[Report] = []
    for kind in kinds:
        (report,) = reports_of_text(job, material, text, 1)
        last = sent[-1] if sent else report
        sent += {
            "honest": [report],
            "wrong share": [replace(report, y=(report.y + 1) % PRIME)],
            "other text": reports_of_text(job, material, b"cat food", 1),
            "spoilt": [replace(report, ciphertext=secrets.token_bytes(528))],
            "other polynomial": reports_of_text(job, bent, text, 1),
            "contested": [report, replace(report, y=(report.y + 1) % PRIME)],
            "again": [last, replace(last, ciphertext=report.ciphertext)],
            "other tag": reports_of_text(job, invented, text, 1),
        }[kind]
    return sent


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(LIES), max_size=24),
    st.integers(1, 4),
    st.integers(0, 12),
    st.randoms(),
)
def test_one_honest_report_moves_an_outcome_by_at_most_1_whatever_others_send(
    kinds: list[str], threshold: int, more: int, random: Random
) -> None:
    job = make_job(share_threshold=threshold)
    others = tell_lies(job, kinds + ["honest"] * more)
    (report,) = reports_of_text(job, material_of(job, b"dog food"), b"dog food", 1)
    together = [report, *others]
    random.shuffle(together)
    without, present = counted(job, others), counted(job, together)
    assert {*without, *present} <= {("dog food",)}
    shifted = [max(0, found.get(("dog food",), 0) - (threshold - 1)) for found in (without, present)]
    assert 0 <= shifted[1] - shifted[0] <= 1
    # What the door looks at before it draws: never a reason to refuse, with or without the report.
    assert all(threshold <= users for found in (without, present) for users in found.values())
    assert sum(without.values()) <= len(others) and sum(present.values()) <= len(together)
    if {*kinds} <= {"honest"}:
        assert present.get(("dog food",), 0) == (len(together) if len(together) >= threshold else 0)


@pytest.mark.parametrize(("honest", "lies"), [(5, 1), (64, 60)])
@pytest.mark.parametrize("lie", ["wrong share", "other text", "spoilt"])
def test_at_the_edge_of_what_lies_leave_one_report_brings_the_last_count_and_no_more(
    honest: int, lies: int, lie: str
) -> None:
    job = make_job(share_threshold=5)
    others = tell_lies(job, [lie] * lies + ["honest"] * honest)
    (report,) = reports_of_text(job, material_of(job, b"dog food"), b"dog food", 1)
    assert counted(job, others) == {}
    assert counted(job, [*others, report]) == {("dog food",): 5}


@pytest.mark.parametrize(
    ("application", "text"),
    [
        ("queries", b"Dog food"),
        ("queries", b"dog  food"),
        ("queries", b"dog\tfood"),
        ("queries", b""),
        ("queries", b"\xff"),
        ("reformulations", b"dog"),
        ("reformulations", b"dog\tdog\tdog"),
        ("clicks", b"dog\thttp://Example.com"),
        ("click_hosts", b"dog\texample.com/food"),
        ("click_hosts", b"dog\tExample.com"),
        ("urls", b"http://example.com/"),
    ],
)
def test_what_no_client_would_write_is_no_artifact(application: Any, text: bytes) -> None:
    job = make_job(application=application)
    reports = reports_of_text(job, material_of(job, text), text, 3)
    assert dropped(job, reports) == {"not an artifact": 1} and counted(job, reports) == {}


def test_an_artifact_under_two_tags_is_released_once() -> None:
    job = make_job()
    honest = make_reports(job, {("dog food",): 5})
    second = derive(secrets.token_bytes(64), job, b"dog food")
    for number in (3, 4):
        invented = reports_of_text(job, second, b"dog food", number)
        for order in (honest + invented, invented + honest):
            assert counted(job, order) == {("dog food",): 5}
            assert dropped(job, order) == {"not authentic": 1}


def test_reports_of_another_job_or_form_are_refused() -> None:
    job, other = make_job(), make_job(epoch="2006-04")
    mixed = make_reports(job, {("dog food",): 3}) + make_reports(other, {("dog food",): 3})
    with pytest.raises(QlogError, match="another job"):
        aggregate(as_table(mixed), job)
    table = as_table(make_reports(job, {("dog food",): 3}))
    short = table.set_column(table.schema.get_field_index("x"), "x", pa.array([b"1"] * 3, pa.binary(1)))
    missing = table.set_column(table.schema.get_field_index("y"), "y", pa.nulls(3, pa.binary(16)))
    for wrong, name in ((short, "x"), (missing, "y")):
        with pytest.raises(QlogError, match=f"{name} is not 16 bytes in every row"):
            aggregate(wrong, job)


def test_no_reports_give_a_table_without_rows() -> None:
    job = make_job(application="clicks")
    found = aggregate(as_table([]), job)
    assert found.artifacts.schema.names == ["query", "url", "users"] and len(found.artifacts) == 0
    assert found.dropped == NOTHING


def test_many_chunks_and_slices_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "COMPARED_ROWS", 7)
    job = make_job()
    senders = {(f"query {number}",): 1 + number % 6 for number in range(30)}
    reports = make_reports(job, senders)
    reports[20] = replace(reports[20], ciphertext=bytes(528))
    whole = aggregate(as_table(reports), job)
    parts = aggregate(as_table([make_dummy(job, any_token()), *reports], 11).slice(1), job)
    assert parts == whole and len(whole.artifacts) == sum(users >= 3 for users in senders.values())


def test_a_report_may_stand_for_the_longest_artifact() -> None:
    job = make_job()
    text = "é" * 255
    material = material_of(job, text.encode())
    reports = [make_report(job, text.encode(), material, random_place(), any_token()) for _ in range(3)]
    assert counted(job, reports) == {(text,): 3}
