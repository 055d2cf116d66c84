"""Tokens: issued blind, good for one purpose and job, and not to be made without the seed."""

from __future__ import annotations

import secrets

import pytest
from support.crowd_jobs import any_token, make_job

from qlog_assets.crowd.keys import evaluate, public_key_of
from qlog_assets.crowd.messages import MalformedError
from qlog_assets.crowd.tokens import Purse, Token, check, token_evaluator, tokens_per_account

SEED = secrets.token_bytes(32)


def issue(purpose: str, tokens: int) -> list[Token]:
    evaluator = token_evaluator(SEED, purpose, make_job())  # type: ignore[arg-type]
    purse, blinded = Purse.blind(tokens)
    return purse.finish(evaluate(evaluator, blinded), public_key_of(evaluator))


def test_a_token_is_good_for_its_purpose_and_job_alone() -> None:
    job = make_job()
    tokens = issue("report", tokens_per_account(job)["report"])
    assert len({token.serial for token in tokens}) == job.artifacts_per_user
    assert all(check(token_evaluator(SEED, "report", job), token) for token in tokens)
    for evaluator in (
        token_evaluator(SEED, "evaluate", job),
        token_evaluator(SEED, "report", make_job(epoch="2006-04")),
        token_evaluator(secrets.token_bytes(32), "report", job),
    ):
        assert not any(check(evaluator, token) for token in tokens)


def test_a_token_that_nobody_issued_is_refused() -> None:
    evaluator, (token,) = token_evaluator(SEED, "evaluate", make_job()), issue("evaluate", 1)
    assert check(evaluator, token)
    assert not check(evaluator, any_token())
    assert not check(evaluator, Token(token.serial[::-1], token.output))
    assert not check(evaluator, Token(token.serial, token.output[:-1]))


def test_what_the_issuer_sees_is_in_no_token() -> None:
    evaluator = token_evaluator(SEED, "report", make_job())
    purse, blinded = Purse.blind(5)
    answer = evaluate(evaluator, blinded)
    seen = b"".join(blinded) + answer
    for token in purse.finish(answer, public_key_of(evaluator)):
        assert token.serial not in seen and token.output[:32] not in seen


def test_a_purse_refuses_what_another_key_has_marked() -> None:
    """An issuer that gives each account a key of its own could tell its tokens apart later."""
    honest, marking = token_evaluator(SEED, "report", make_job()), token_evaluator(bytes(32), "report", make_job())
    purse, blinded = Purse.blind(2)
    with pytest.raises(MalformedError, match="proof does not verify"):
        purse.finish(evaluate(marking, blinded), public_key_of(honest))
