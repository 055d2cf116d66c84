"""The dictionary attack: it breaks the paper's keys, and needs the epoch's key where randomness is oblivious."""

from __future__ import annotations

import secrets

from support.crowd_jobs import make_job
from support.crowd_reports import make_reports

from qlog_assets.crowd.guessing import by_epoch_key, by_hash, confirm_guesses
from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import (
    BlindedBatch,
    KeyMaterial,
    derive,
    epoch_evaluator,
    evaluate,
    prf_input,
    public_key_of,
)
from qlog_assets.crowd.messages import Report

JOB = make_job(share_threshold=5)
SENDERS = {(f"query {number}",): 1 + number % 7 for number in range(60)}
"""Most of them below the threshold, many with one sender."""
VOCABULARY = [encode(fields) for fields in SENDERS] + [encode((f"nobody's {number}",)) for number in range(60)]
REPORTED = {encode(fields): number for fields, number in SENDERS.items()}


def sealed(reports: list[Report]) -> list[tuple[bytes, bytes]]:
    return [(report.tag, report.ciphertext) for report in reports]


def test_with_the_papers_keys_every_guess_is_answered_also_below_the_threshold() -> None:
    assert confirm_guesses(sealed(make_reports(JOB, SENDERS)), VOCABULARY, JOB, by_hash(JOB)) == REPORTED


def test_a_guess_is_answered_although_somebody_forged_a_ciphertext_under_its_tag() -> None:
    reports = sealed(make_reports(JOB, {("query",): 2}))
    forged = [(reports[0][0], secrets.token_bytes(528))]
    assert confirm_guesses(forged + reports, [b"query"], JOB, by_hash(JOB)) == {b"query": 2}


def test_oblivious_randomness_answers_no_guess_but_to_who_holds_the_epochs_key() -> None:
    """Before the key is deleted, randomness server and collector together read all they can guess. After it: nothing,
    by the hash, with another key, or with another epoch's key from the same seed."""
    seed = secrets.token_bytes(32)
    evaluator = epoch_evaluator(seed, JOB.epoch)

    def ask(job: Job, artifact: bytes) -> KeyMaterial:
        batch, blinded = BlindedBatch.blind([prf_input(job, artifact)])
        (random,) = batch.finish(evaluate(evaluator, blinded), public_key_of(evaluator))
        return derive(random, job, artifact)

    stolen = sealed(make_reports(JOB, SENDERS, ask))
    assert confirm_guesses(stolen, VOCABULARY, JOB, by_epoch_key(evaluator, JOB)) == REPORTED
    for without in (
        by_hash(JOB),
        by_epoch_key(epoch_evaluator(secrets.token_bytes(32), JOB.epoch), JOB),
        by_epoch_key(epoch_evaluator(seed, JOB.epoch.next()), JOB),
    ):
        assert confirm_guesses(stolen, VOCABULARY, JOB, without) == {}
