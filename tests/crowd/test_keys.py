"""Key material: the same for all holders of an artifact, different for everything else, and as RFC 9497 has it."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import voprf_reference
from support.crowd_jobs import make_job

from qlog_assets.crowd.field import PRIME
from qlog_assets.crowd.keys import (
    ANSWER_BYTES,
    BlindedBatch,
    artifact_key,
    derive,
    epoch_evaluator,
    evaluate,
    hashed,
    make_evaluator,
    prf_input,
    public_key_of,
    random_place,
    share_place,
    tag_of,
)
from qlog_assets.crowd.messages import MalformedError
from qlog_assets.crowd.shares import Polynomial
from qlog_assets.months import Month

SEEDS = st.binary(min_size=32, max_size=32)
NO_POINTS = {"identity": bytes(32), "not canonical": b"\xff" * 32, "not on the curve": b"\2" + bytes(31), "short": b""}


@settings(max_examples=30)
@given(SEEDS, st.binary(max_size=60), st.binary(min_size=1, max_size=600))
def test_the_oblivious_function_is_that_of_rfc_9497(seed: bytes, info: bytes, message: bytes) -> None:
    evaluator = make_evaluator(seed, info)
    scalar = voprf_reference.derive_key(seed, info)
    assert public_key_of(evaluator) == voprf_reference.public_key(scalar)
    batch, blinded = BlindedBatch.blind([message])
    expected = voprf_reference.evaluate(scalar, message)
    assert batch.finish(evaluate(evaluator, blinded), public_key_of(evaluator)) == [expected]
    assert evaluator.evaluate_known_input(message) == expected


def test_the_reference_gives_the_vector_that_rfc_9497_prints() -> None:
    """Appendix A.1.2: seed a3…, info "test key", input 00."""
    scalar = voprf_reference.derive_key(b"\xa3" * 32, b"test key")
    assert scalar.hex() == "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909"
    assert voprf_reference.evaluate(scalar, b"\0").hex() == (
        "b58cfbe118e0cb94d79b5fd6a6dafb98764dff49c14e1770b566e42402da1a7d"
        "a4d8527693914139caee5bd03903af43a491351d23b430948dd50cde10d32b3c"
    )


def test_a_batch_is_answered_in_its_order_and_every_blinding_is_new() -> None:
    evaluator = epoch_evaluator(secrets.token_bytes(32), Month("2006-03"))
    inputs = [b"one", b"two", b"two", b"three"]
    (first, sent), (_, sent_again) = BlindedBatch.blind(inputs), BlindedBatch.blind(inputs)
    assert len({*sent, *sent_again}) == 8, "equal inputs must not be told apart from others by the server"
    outputs = first.finish(evaluate(evaluator, sent), public_key_of(evaluator))
    assert outputs == [evaluator.evaluate_known_input(data) for data in inputs]


def test_each_epoch_has_a_key_of_its_own_even_from_one_seed() -> None:
    seed = secrets.token_bytes(32)
    assert public_key_of(epoch_evaluator(seed, Month("2006-03"))) != public_key_of(
        epoch_evaluator(seed, Month("2006-04"))
    )


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_of_another_length_makes_no_evaluator(length: int) -> None:
    with pytest.raises(ValueError, match="a seed has 32 bytes"):
        make_evaluator(bytes(length), b"")


@pytest.mark.parametrize("point", NO_POINTS.values(), ids=NO_POINTS)
def test_what_is_no_point_is_neither_evaluated_nor_taken_as_a_key(point: bytes) -> None:
    evaluator = make_evaluator(bytes(32), b"")
    batch, blinded = BlindedBatch.blind([b"a", b"b"])
    with pytest.raises(MalformedError, match="blinded input is no point of the curve"):
        evaluate(evaluator, [blinded[0], point])
    with pytest.raises(MalformedError, match="public key is no point of the curve"):
        batch.finish(evaluate(evaluator, blinded), point)


def test_an_answer_that_was_not_made_with_the_published_key_is_refused() -> None:
    evaluator, other = make_evaluator(bytes(32), b"one"), make_evaluator(bytes(32), b"other")
    batch, blinded = BlindedBatch.blind([b"a", b"b"])
    answer = evaluate(evaluator, blinded)
    swapped = answer[ANSWER_BYTES:] + answer[:ANSWER_BYTES]
    mixed = answer[:ANSWER_BYTES] + evaluate(other, blinded)[ANSWER_BYTES:]
    for wrong in (evaluate(other, blinded), swapped, mixed):
        with pytest.raises(MalformedError, match="proof does not verify"):
            batch.finish(wrong, public_key_of(evaluator))
    for wrong in (answer[:-1], answer + b"\0", answer[:ANSWER_BYTES], b""):
        with pytest.raises(MalformedError, match="another length"):
            batch.finish(wrong, public_key_of(evaluator))
    with pytest.raises(MalformedError, match="no point of the curve with a proof"):
        batch.finish(b"\xff" * len(answer), public_key_of(evaluator))


@settings(max_examples=20)
@given(st.binary(min_size=64, max_size=64), st.integers(1, 30))
def test_material_follows_from_the_randomness_the_job_and_the_artifact_alone(random: bytes, threshold: int) -> None:
    job = make_job(share_threshold=threshold)
    material = derive(random, job, b"dog")
    assert material == derive(random, job, b"dog")
    assert derive(random, job, b"cat").tag != material.tag == tag_of(material.polynomial, job, b"dog")
    shifted = Polynomial((*material.polynomial.coefficients[:-1], 5))
    assert tag_of(shifted, job, b"dog") != material.tag, "every coefficient is committed to"
    assert len(material.tag) == 32 and len(material.polynomial.coefficients) == threshold
    assert all(0 <= coefficient < PRIME for coefficient in material.polynomial.coefficients)
    assert len(set(material.polynomial.coefficients)) == threshold
    other = derive(random, make_job(share_threshold=threshold, policy="gaussian"), b"dog")
    assert other.tag != material.tag and not set(other.polynomial.coefficients) & set(material.polynomial.coefficients)


def test_the_largest_threshold_has_as_many_coefficients() -> None:
    assert len(set(derive(bytes(64), make_job(share_threshold=1000), b"").polynomial.coefficients)) == 1000
    with pytest.raises(ValueError, match="64 bytes"):
        derive(bytes(63), make_job(), b"")


def test_keys_and_inputs_of_two_jobs_have_nothing_in_common() -> None:
    one, other = make_job(), make_job(epoch="2006-04")
    assert len(artifact_key(5, one)) == 64
    assert artifact_key(5, one) != artifact_key(5, other) != artifact_key(6, other)
    assert prf_input(one, b"a") != prf_input(other, b"a")
    assert len(hashed(one, b"a")) == 64 and hashed(one, b"a") != hashed(other, b"a")


def test_a_users_place_is_the_same_everywhere_and_links_nothing() -> None:
    job, user = make_job(), secrets.token_bytes(32)
    assert share_place(user, job, b"a") == share_place(user, job, b"a")
    places = {
        share_place(user, job, b"a"),
        share_place(user, job, b"b"),
        share_place(user, make_job(epoch="2006-04"), b"a"),
        share_place(secrets.token_bytes(32), job, b"a"),
        random_place(),
        random_place(),
    }
    assert len(places) == 6 and all(0 < place < PRIME for place in places)
