"""What parties learn that work together: who sent a report, and what is in it. The rows of docs/crowd.md's table.

Two hundred people send one report each of an artifact of their own, in an order that the first relay writes down. The
first relay and the collector work together throughout; the relay between them is honest, or not.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

import httpx
import numpy as np
import pytest
from support.crowd_cast import QUICK, open_job
from support.crowd_jobs import any_token

from qlog_assets.crowd.cast import CollectorSettings, RelaySettings, make_cast, open_folder
from qlog_assets.crowd.envelopes import REPORT, SEALED_REPORT_BYTES, open_sealed, seal_report, unwrap, wrap
from qlog_assets.crowd.guessing import by_epoch_key, by_hash, confirm_guesses
from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import (
    BlindedBatch,
    derive,
    epoch_evaluator,
    evaluate,
    prf_input,
    public_key_of,
    share_place,
)
from qlog_assets.crowd.messages import Report, make_report
from qlog_assets.crowd.relay import Relay

PEOPLE = 200
MOST_CORRELATION = 0.3
"""Of ranks in a random order: 200 of them are further apart than this with a probability of about 2e-5."""


@dataclass(frozen=True)
class Seen:
    """What the parties saw, each list in the order in which it was seen."""

    job: Job
    artifacts: list[bytes]
    """What person after person sent: nobody but the test knows."""
    passed_on: list[bytes]
    """What the first relay passed on, person after person: it knows their addresses."""
    collected: list[bytes]
    """Sealed reports, as they came to the collector."""
    second_key: bytes
    """Of the relay between the two."""
    collector_key: bytes
    epoch_seed: bytes

    def opened(self, sealed: bytes) -> Report:
        """What the collector sees in a sealed report."""
        return Report.unpack(open_sealed(self.collector_key, sealed, REPORT))

    def order_at_collector(self, reports: list[bytes]) -> list[int]:
        return [self.collected.index(report) for report in reports]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("collusion") / "cast"
    mixing = {**QUICK, "relay": {**QUICK["relay"], "batch": PEOPLE}}
    cast = make_cast(directory, 2, 2, settings=mixing)
    first, second = (open_folder(directory / party.name, RelaySettings) for party in cast.relays)
    job, epoch_seed = open_job(share_threshold=5), secrets.token_bytes(32)
    evaluator = epoch_evaluator(epoch_seed, job.epoch)
    artifacts = [encode((f"the secret of person {number}",)) for number in range(PEOPLE)]
    onions = []
    for artifact in artifacts:
        material = derive(evaluator.evaluate_known_input(prf_input(job, artifact)), job, artifact)
        place = share_place(secrets.token_bytes(32), job, artifact)
        report = make_report(job, artifact, material, place, any_token())
        onions.append(wrap(cast.relays, cast.collector, seal_report(cast.collector, report.pack())))
    passed_on = [unwrap(first.private_key, onion)[1] for onion in onions]
    collected: list[bytes] = []

    def collect(request: httpx.Request) -> httpx.Response:
        body = request.content
        collected.extend(body[at : at + SEALED_REPORT_BYTES] for at in range(0, len(body), SEALED_REPORT_BYTES))
        return httpx.Response(200)

    async def mix() -> None:
        relay = Relay(second, transport=httpx.MockTransport(collect))
        async with relay.opened():
            for message in passed_on:
                await relay.accept(message)
            assert await relay.send_due() == PEOPLE

    asyncio.run(mix())
    collector = open_folder(directory / "collector", CollectorSettings)
    return Seen(job, artifacts, passed_on, collected, second.private_key, collector.private_key, epoch_seed)


def test_first_relay_and_collector_find_no_bytes_and_no_order_in_common(seen: Seen) -> None:
    assert not set(seen.passed_on) & set(seen.collected)
    assert not any(sealed in message for message in seen.passed_on for sealed in seen.collected)
    truly = [unwrap(seen.second_key, message)[1] for message in seen.passed_on]
    order = seen.order_at_collector(truly)
    assert abs(np.corrcoef(np.arange(PEOPLE), order)[0, 1]) < MOST_CORRELATION


def test_with_the_relay_between_them_they_know_who_sent_which_report_and_not_what_is_in_it(seen: Seen) -> None:
    linked = [seen.opened(unwrap(seen.second_key, message)[1]) for message in seen.passed_on]
    assert len({report.tag for report in linked}) == PEOPLE
    held = [(report.tag, report.ciphertext) for report in linked]
    assert confirm_guesses(held, seen.artifacts, seen.job, by_hash(seen.job)) == {}
    another_key = by_epoch_key(epoch_evaluator(secrets.token_bytes(32), seen.job.epoch), seen.job)
    assert confirm_guesses(held, seen.artifacts, seen.job, another_key) == {}


def test_collector_and_randomness_server_read_what_they_guess_while_the_key_exists_and_not_who_sent_it(
    seen: Seen,
) -> None:
    held = [(report.tag, report.ciphertext) for report in map(seen.opened, seen.collected)]
    with_key = by_epoch_key(epoch_evaluator(seen.epoch_seed, seen.job.epoch), seen.job)
    assert confirm_guesses(held, seen.artifacts, seen.job, with_key) == dict.fromkeys(seen.artifacts, 1)


def test_all_of_them_together_know_who_sent_what_they_guess_while_the_key_exists(seen: Seen) -> None:
    with_key = by_epoch_key(epoch_evaluator(seen.epoch_seed, seen.job.epoch), seen.job)
    for person, message in enumerate(seen.passed_on):
        report = seen.opened(unwrap(seen.second_key, message)[1])
        held = [(report.tag, report.ciphertext)]
        assert list(confirm_guesses(held, seen.artifacts[person : person + 1], seen.job, with_key)) == [
            seen.artifacts[person]
        ]


def test_a_collector_with_an_account_tests_as_many_guesses_as_the_account_may_send_reports(seen: Seen) -> None:
    """An account's one question has exactly so many places; what it learnt so opens single reports, also later."""
    evaluator = epoch_evaluator(seen.epoch_seed, seen.job.epoch)
    guesses = seen.artifacts[: seen.job.artifacts_per_user]
    batch, blinded = BlindedBatch.blind([prf_input(seen.job, guess) for guess in guesses])
    learnt = dict(zip(guesses, batch.finish(evaluate(evaluator, blinded), public_key_of(evaluator)), strict=True))
    held = [(report.tag, report.ciphertext) for report in map(seen.opened, seen.collected)]
    found = confirm_guesses(held, guesses, seen.job, learnt.__getitem__)
    assert found == dict.fromkeys(guesses, 1)
