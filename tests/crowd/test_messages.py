"""Reports: one size, read back whole, and refused with a reason that holds nothing of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd_jobs import any_token, make_job

from qlog_assets.crowd.field import PRIME
from qlog_assets.crowd.jobs import ARTIFACT_BYTES
from qlog_assets.crowd.keys import artifact_key, derive, hashed
from qlog_assets.crowd.messages import (
    PLAINTEXT_BYTES,
    REPORT_BYTES,
    MalformedError,
    Report,
    make_dummy,
    make_report,
    open_ciphertext,
)

JOB = make_job()
MATERIAL = derive(hashed(JOB, b"dog food"), JOB, b"dog food")
SECRET = MATERIAL.polynomial.coefficients[0]
REPORT = make_report(JOB, b"dog food", MATERIAL, 5, any_token())
X_AT, Y_AT = 593, 609


def put(at: int, data: bytes) -> Callable[[bytes], bytes]:
    return lambda report: report[:at] + data + report[at + len(data) :]


@settings(max_examples=30)
@given(st.binary(max_size=ARTIFACT_BYTES), st.integers(1, PRIME - 1))
def test_a_report_has_one_size_and_opens_with_the_secret_alone(artifact: bytes, place: int) -> None:
    material = derive(hashed(JOB, artifact), JOB, artifact)
    report = make_report(JOB, artifact, material, place, any_token())
    data = report.pack()
    assert len(data) == REPORT_BYTES == 721
    assert Report.unpack(data) == report
    assert report.y == material.polynomial.at(place)
    secret = material.polynomial.coefficients[0]
    assert open_ciphertext(secret, JOB, report.tag, report.ciphertext) == artifact
    with pytest.raises(MalformedError, match="does not authenticate"):
        open_ciphertext((secret + 1) % PRIME, JOB, report.tag, report.ciphertext)


def test_equal_artifacts_have_equal_tags_and_ciphertexts_and_other_shares() -> None:
    other = make_report(JOB, b"dog food", MATERIAL, 6, any_token())
    assert (other.tag, other.ciphertext) == (REPORT.tag, REPORT.ciphertext)
    assert (other.x, other.y) != (REPORT.x, REPORT.y)


def test_a_dummy_has_a_reports_form_and_nobody_elses_tag() -> None:
    dummies = [make_dummy(JOB, any_token()) for _ in range(20)]
    assert {len(dummy.pack()) for dummy in dummies} == {REPORT_BYTES}
    assert [Report.unpack(dummy.pack()) for dummy in dummies] == dummies
    assert len({dummy.tag for dummy in dummies}) == len({dummy.ciphertext for dummy in dummies}) == 20


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda report: report[:-1], "report is not 721 bytes long"),
        (lambda report: report + b"\0", "report is not 721 bytes long"),
        (lambda report: b"", "report is not 721 bytes long"),
        (put(0, b"\0"), "report is of an unknown version"),
        (put(0, b"\2"), "report is of an unknown version"),
        (put(X_AT, bytes(16)), "x is 0"),
        (put(X_AT, PRIME.to_bytes(16, "big")), "x is not below p"),
        (put(X_AT, b"\xff" * 16), "x is not below p"),
        (put(Y_AT, PRIME.to_bytes(16, "big")), "y is not below p"),
    ],
)
def test_a_malformed_report_is_refused_with_its_reason(spoil: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(MalformedError) as refused:
        Report.unpack(spoil(REPORT.pack()))
    assert refused.value.reason == reason and str(refused.value) == f"malformed: {reason}"


@given(st.binary(max_size=REPORT_BYTES) | st.binary(min_size=REPORT_BYTES - 1, max_size=REPORT_BYTES - 1))
def test_any_bytes_are_a_report_or_malformed(data: bytes) -> None:
    for candidate in (data, b"\1" + data):
        try:
            assert Report.unpack(candidate).pack() == candidate
        except MalformedError as error:
            assert error.reason


@pytest.mark.parametrize("at", [0, 15, 16, 527])
def test_a_forged_ciphertext_does_not_open(at: int) -> None:
    forged = bytearray(REPORT.ciphertext)
    forged[at] ^= 1
    with pytest.raises(MalformedError, match="does not authenticate"):
        open_ciphertext(SECRET, JOB, REPORT.tag, bytes(forged))


def test_a_ciphertext_opens_under_its_own_tag_and_job_alone() -> None:
    with pytest.raises(MalformedError, match="does not authenticate"):
        open_ciphertext(SECRET, JOB, REPORT.tag[::-1], REPORT.ciphertext)
    with pytest.raises(MalformedError, match="does not authenticate"):
        open_ciphertext(SECRET, make_job(policy="gaussian"), REPORT.tag, REPORT.ciphertext)
    with pytest.raises(MalformedError, match="ciphertext is not 528 bytes long"):
        open_ciphertext(SECRET, JOB, REPORT.tag, REPORT.ciphertext[:-1])


@pytest.mark.parametrize(
    "plaintext",
    [b"\0\3dog?", b"\xff\xff" + b"a" * 510, b"\1\xff" + b"a" * 510],
    ids=["bytes behind the artifact", "a length beyond the end", "one byte beyond the end"],
)
def test_a_holder_of_the_secret_cannot_hide_bytes_in_the_padding(plaintext: bytes) -> None:
    sealed = AESSIV(artifact_key(SECRET, JOB)).encrypt(plaintext.ljust(PLAINTEXT_BYTES, b"\0"), [JOB.digest, b"t" * 32])
    with pytest.raises(MalformedError, match="padding"):
        open_ciphertext(SECRET, JOB, b"t" * 32, sealed)


def test_the_client_makes_no_report_that_would_be_refused() -> None:
    for place in (0, PRIME):
        with pytest.raises(ValueError, match="place"):
            make_report(JOB, b"dog food", MATERIAL, place, any_token())
    with pytest.raises(ValueError, match="at most 510 bytes"):
        make_report(JOB, b"a" * 511, MATERIAL, 1, any_token())
    with pytest.raises(ValueError, match="length"):
        Report(b"", REPORT.tag, REPORT.ciphertext, 1, 1, any_token()).pack()
