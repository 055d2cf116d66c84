"""Skips in the ledger: recorded once with author and run, without cost, never beside a release; and events in words."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.ledgers import DATASET, opened, published, request

from qlog_assets.ledger import Ledger, LedgerError
from qlog_assets.ledger.chain import MADE
from qlog_assets.ledger.ledger import OWN_KINDS
from qlog_assets.ledger.recovery import recover
from qlog_assets.ledger.store import Author, Store
from qlog_assets.ledger.telling import WORDS, told_events
from qlog_assets.ledger.witness_file import FileWitness

pytest_plugins = ("support.ledger_fixtures",)


def test_a_skip_is_recorded_once_with_its_author_and_run_and_costs_nothing(ledger_place: str) -> None:
    ledger = opened(ledger_place, who="ada (ui)", run_id="run-1")
    before = ledger.balance(DATASET)
    (skip,) = ledger.skip(DATASET, "2006-04", ["safelog"], "  half of it\nis missing ")
    assert (skip.month, skip.mechanism, skip.reason) == ("2006-04", "safelog", "half of it is missing")
    assert (skip.who, skip.run_id) == ("ada (ui)", "run-1")
    written = len(ledger.events())
    assert ledger.skip(DATASET, "2006-04", ["safelog"], "half of it is missing") == [skip]
    assert len(ledger.events()) == written, "a command that is run twice records once"
    (other,) = ledger.skip(DATASET, "2006-04", ["safelog"], "the vendor confirmed it")
    assert other.reason == "the vendor confirmed it" and ledger.skips(DATASET) == [other]
    assert ledger.balance(DATASET) == before and ledger.verify_chain() == []


def test_what_the_public_was_told_of_a_skip_stays_when_another_reason_is_recorded(ledger_place: str) -> None:
    ledger = opened(ledger_place)
    ledger.skip(DATASET, "2006-04", ["safelog"], "half of it is missing", "Nothing yet.")
    (other,) = ledger.skip(DATASET, "2006-04", ["safelog"], "the vendor confirmed it")
    assert (other.reason, other.public_text) == ("the vendor confirmed it", "Nothing yet.")
    (told,) = ledger.skip(DATASET, "2006-04", ["safelog"], "the vendor confirmed it", "Nothing was logged.")
    assert told.public_text == "Nothing was logged." and ledger.verify_chain() == []


def test_a_month_with_a_release_is_not_skipped_and_a_skipped_one_can_be_released(tmp_path: Path) -> None:
    ledger = opened(str(tmp_path / "ledger.db"))
    release_id = published(ledger).release_id
    with pytest.raises(LedgerError, match=f"{release_id} \\(published\\) and needs no skip"):
        ledger.skip(DATASET, "2006-03", ["safelog"], "why")
    ledger.withdraw(release_id, "a mistake")
    with pytest.raises(LedgerError, match="withdrawn"):
        ledger.skip(DATASET, "2006-03", ["safelog"], "why")
    skips = ledger.skip(DATASET, "2006-03", ["safelog", "zealous"], "why")
    assert [skip.mechanism for skip in skips] == ["zealous"], "what is released is passed over among several"
    assert published(ledger, mechanism="zealous").state == "published"
    assert len(ledger.skips(DATASET)) == 1 and ledger.verify_chain() == []
    for month, reason in (("2006-13", "why"), ("2006-04", " ")):
        with pytest.raises((LedgerError, ValueError)):
            ledger.skip(DATASET, month, ["safelog"], reason)


def test_a_forged_skip_of_a_released_month_contradicts_the_history(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    ledger = opened(place)
    release_id = published(ledger).release_id
    with Store.open(place, Author("x"), create=False, wait_seconds=5).writing(Author("x")) as writer:
        writer.append("skipped", DATASET, {"month": "2006-03", "mechanism": "safelog", "reason": "forged"})
    (finding,) = ledger.verify_chain()
    assert f"2006-03 was skipped although {release_id} was charged by then" in finding


def test_a_skip_that_a_restored_ledger_lost_and_went_on_without_comes_back(tmp_path: Path) -> None:
    place, witness = str(tmp_path / "ledger.db"), FileWitness(tmp_path / "witness.jsonl", wait_seconds=5)
    ledger = opened(place, witness=witness)
    shutil.copy(place, tmp_path / "snapshot.db")
    ledger.skip(DATASET, "2006-04", ["safelog", "zealous"], "nothing was logged")
    os.replace(tmp_path / "snapshot.db", place)
    with Store.open(place, Author("x"), create=False, wait_seconds=5).writing(Author("x")) as writer:
        writer.append("unwitnessed", "", {"reason": "forced"})
    went_on = Ledger.open(place)
    published(went_on, month="2006-04", mechanism="zealous")
    assert recover(place, witness, "restored by mistake").diverged
    assert [(skip.mechanism, skip.reason) for skip in went_on.skips(DATASET)] == [("safelog", "nothing was logged")]
    assert went_on.verify_chain() == []


def test_every_kind_of_event_is_told_in_words_with_its_reason_author_and_run(tmp_path: Path) -> None:
    assert {*OWN_KINDS} - {MADE} <= set(WORDS)
    place = str(tmp_path / "ledger.db")
    ledger = opened(place, who="ada (ui)", run_id="run-1")
    first = published(ledger).release_id
    ledger.withdraw(first, "it was the wrong log")
    again = ledger.reserve(**request(again="the right log"))[0].release_id
    ledger.abandon(again, "its run was killed")
    ledger.set_budget(DATASET, "4", "1e-5", "the board agreed")
    ledger.set_unit(DATASET, 12, "releases for years", since="2006-04")
    ledger.skip(DATASET, "2006-05", ["safelog"], "nothing was logged")
    ledger.record("forgotten", DATASET, {"months": ["2006-03"]})
    ledger.record("some_remark", DATASET, {"file": "x", "reason": "a note of another kind"})
    told = told_events(ledger.events(), DATASET)
    assert [(each["what"], each["reason"]) for each in told] == [
        ("ledger made", None),
        ("account opened: ε = 3, δ = 1e-05, for ever", None),
        (f"{first} charged: ε = 1, δ = 1e-06", None),
        (f"{first} drawn", None),
        (f"{first} published", None),
        (f"{first} withdrawn", "it was the wrong log"),
        (f"{again} charged: ε = 1, δ = 1e-06, draw 2", "the right log"),
        (f"{again} given back", "its run was killed"),
        ("budget set: ε = 4, δ = 1e-05; was ε = 3, δ = 1e-05", "the board agreed"),
        ("budget in any 12 consecutive months from 2006-04 on; was for ever", "releases for years"),
        ("2006-05 skipped by safelog", "nothing was logged"),
        ("private data forgotten: 2006-03", None),
        ("some remark", "a note of another kind"),
    ]
    assert {(each["who"], each["run_id"]) for each in told} == {("ada (ui)", "run-1")}
    assert all(each["at"] for each in told)
