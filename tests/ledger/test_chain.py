"""A history that somebody edited, cut, reordered, forged or rewrote is found; the ledger refuses to build on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.ledgers import DATASET, hand_in, opened, published, request

from qlog_assets.ledger import Event, Ledger, LedgerError, Made, SaltedHead
from qlog_assets.ledger.store import EVENTS

pytest_plugins = ("support.ledger_fixtures",)
SALT = bytes(range(16))


@pytest.fixture
def ledger(ledger_place: str) -> Ledger:
    """A history of seven events: created, data set, one release in three, one reservation, a note."""
    ledger = opened(ledger_place)
    published(ledger)
    ledger.reserve(**request(month="2006-04"))
    ledger.record("forgotten", DATASET, {"months": ["2006-03"]})
    assert ledger.verify_chain() == []
    return ledger


def rewritten(place: str, change: Callable[[list[Event]], list[Event]]) -> None:
    """Replace the history by another one whose hashes all fit."""
    with hand_in(place) as connection:
        events = change([Event(*row) for row in connection.execute(sa.select(EVENTS).order_by(EVENTS.c.seq))])
        connection.execute(sa.delete(EVENTS))
        previous = "0" * 64
        for number, event in enumerate(events, start=1):
            sealed = replace(event, seq=number, previous_hash=previous).sealed()
            connection.execute(sa.insert(EVENTS).values(asdict(sealed)))
            previous = sealed.hash


def with_facts(event: Event, **changes: Any) -> Event:
    return replace(event, payload=json.dumps({**event.facts, **changes}))


@pytest.mark.parametrize(
    "column", ["dataset", "kind", "at", "who", "run_id", "code_version", "payload", "previous_hash", "hash"]
)
def test_an_edited_field_is_found_and_nothing_is_written_on_top(ledger: Ledger, ledger_place: str, column: str) -> None:
    with hand_in(ledger_place) as connection:
        connection.execute(sa.text(f"UPDATE events SET {column} = '{{}}' WHERE seq = 4"))
    assert any("event 4" in finding for finding in ledger.verify_chain())
    for write in (
        lambda: ledger.reserve(**request(month="2006-05")),
        lambda: ledger.reserve(**request()),
        lambda: ledger.set_budget(DATASET, "9", "1e-5", "more"),
        lambda: ledger.record("note", DATASET, {}),
    ):
        with pytest.raises(LedgerError, match="does not verify"):
            write()
    assert len(ledger.events()) == 7


def test_a_cheaper_charge_written_into_a_row_is_found(ledger: Ledger, ledger_place: str) -> None:
    with hand_in(ledger_place) as connection:
        connection.execute(
            sa.text('UPDATE events SET payload = replace(payload, \'"epsilon":"1"\', \'"epsilon":"0"\')')
        )
    assert ledger.verify_chain() == [
        f"event {number} was altered: its hash does not fit its fields" for number in (3, 6)
    ]


def test_a_row_replaced_by_one_with_a_fitting_hash_breaks_the_next_link(ledger: Ledger, ledger_place: str) -> None:
    forged = replace(ledger.events()[3], who="nobody").sealed()
    with hand_in(ledger_place) as connection:
        connection.execute(sa.update(EVENTS).where(EVENTS.c.seq == 4).values(asdict(forged)))
    assert ledger.verify_chain() == ["event 5 does not follow from the event before it"]


@pytest.mark.parametrize("gone", [1, 2, 3, 4, 6])
def test_a_removed_row_is_found(ledger: Ledger, ledger_place: str, gone: int) -> None:
    with hand_in(ledger_place) as connection:
        connection.execute(sa.text(f"DELETE FROM events WHERE seq = {gone}"))
    assert any(f"event {gone} is missing" in finding for finding in ledger.verify_chain())


def test_an_emptied_ledger_is_found_and_not_begun_anew(ledger: Ledger, ledger_place: str) -> None:
    with hand_in(ledger_place) as connection:
        connection.execute(sa.delete(EVENTS))
    assert ledger.verify_chain() == ["the history is empty: its first event is gone"]
    with pytest.raises(LedgerError, match="does not verify"):
        opened(ledger_place)
    with pytest.raises(LedgerError, match="its history was removed"):
        ledger.head()


def test_swapped_rows_are_found(ledger: Ledger, ledger_place: str) -> None:
    with hand_in(ledger_place) as connection:
        for old, new in ((4, 99), (5, 4), (99, 5)):
            connection.execute(sa.text(f"UPDATE events SET seq = {new} WHERE seq = {old}"))
    assert any("event 4" in finding for finding in ledger.verify_chain())
    assert any("event 5" in finding for finding in ledger.verify_chain())


def test_a_forged_history_with_fitting_hashes_but_an_impossible_story_is_found(
    ledger: Ledger, ledger_place: str
) -> None:
    stories: list[tuple[Callable[[list[Event]], list[Event]], str]] = [
        (lambda events: [with_facts(e, epsilon="4") if e.seq == 6 else e for e in events], "over the budget"),
        (lambda events: [e for e in events if e.kind != "drawn"], "was reserved and cannot become published"),
        (lambda events: [e for e in events if e.seq != 3], "never reserved"),
        (lambda events: [e for e in events if e.kind != "dataset"], "there is no data set"),
        (lambda events: [*events, events[1]], "exists already"),
        (lambda events: [*events, events[2]], "exists already"),
        (lambda events: [*events, with_facts(events[2], release_id="other")], "is the same request"),
        (lambda events: [with_facts(e, parameters={}) if e.seq == 6 else e for e in events], "fingerprint"),
        (lambda events: [*events, replace(events[0], seq=8)], "created once"),
        (lambda events: [replace(e, payload="[]") if e.seq == 6 else e for e in events], "cannot be read"),
        (lambda events: [replace(e, payload="no") if e.seq == 2 else e for e in events], "cannot be read"),
        (
            lambda events: [
                *events,
                replace(with_facts(events[1], budget={**events[1].facts["budget"], "epsilon": "1"}), kind="budget"),
            ],
            "below what was spent",
        ),
    ]
    honest = ledger.events()
    for change, finding in stories:
        rewritten(ledger_place, lambda _events, change=change: change(honest))
        findings = ledger.verify_chain()
        assert any(finding in line for line in findings), (finding, findings)
        assert not any("hash" in line for line in findings)
        with pytest.raises(LedgerError, match="does not verify"):
            ledger.record("note", DATASET, {})
    rewritten(ledger_place, lambda _events: honest)
    assert ledger.verify_chain() == []


def test_a_cut_tail_verifies_by_itself_and_is_found_through_the_manifests_heads(
    ledger: Ledger, ledger_place: str
) -> None:
    heads = [ledger.salted_head(SALT, seq) for seq in (4, 7)]
    assert ledger.heads_missing(heads) == []
    with hand_in(ledger_place) as connection:
        connection.execute(sa.text("DELETE FROM events WHERE seq > 5"))
    assert ledger.verify_chain() == []
    assert ledger.heads_missing(heads) == [heads[1]]
    # Growing past the cut does not bring the head back.
    for month in ("2006-04", "2006-05"):
        ledger.reserve(**request(month=month, epsilon="0.1"))
    assert ledger.head()[0] == 7
    assert ledger.heads_missing(heads) == [heads[1]]


def test_a_rewritten_history_verifies_by_itself_and_is_found_through_the_manifests_heads(
    ledger: Ledger, ledger_place: str
) -> None:
    heads = [ledger.salted_head(SALT, seq) for seq in (2, 5, 7)]
    rewritten(ledger_place, lambda events: [replace(e, who="nobody") if e.seq == 4 else e for e in events])
    assert ledger.verify_chain() == []
    assert ledger.heads_missing(heads) == heads[1:]


def test_an_edit_that_keeps_the_old_hashes_does_not_match_the_heads(ledger: Ledger, ledger_place: str) -> None:
    head = ledger.salted_head(SALT, 4)
    with hand_in(ledger_place) as connection:
        connection.execute(sa.text("UPDATE events SET who = 'nobody' WHERE seq = 4"))
    assert ledger.heads_missing([head]) == [head]


def test_a_swapped_ledger_with_the_same_requests_does_not_match_the_heads(ledger: Ledger, tmp_path: Path) -> None:
    other = opened(str(tmp_path / "other.db"))
    assert other.heads_missing([ledger.salted_head(SALT, 1), ledger.salted_head(SALT)]) != []
    assert other.heads_missing([ledger.salted_head(SALT, 1)]) == [ledger.salted_head(SALT, 1)]


def test_a_salted_head_is_reproducible_and_hides_the_hash(ledger: Ledger) -> None:
    head = ledger.salted_head(SALT)
    assert (head.seq, head.salt) == (7, SALT.hex())
    assert head.digest != ledger.head()[1]
    assert head.digest != ledger.salted_head(bytes(16)).digest
    ledger.record("note", DATASET, {})
    assert ledger.salted_head(SALT, 7) == head
    assert ledger.heads_missing([SaltedHead(7, SALT.hex(), head.digest)]) == []
    with pytest.raises(LedgerError, match="no event 99"):
        ledger.salted_head(SALT, 99)


@pytest.mark.parametrize(
    "head",
    [SaltedHead(0, "00", "00"), SaltedHead(8, "00", "00"), SaltedHead(1, "not hex", "00"), SaltedHead(1, "", "é")],
)
def test_a_malformed_head_in_a_manifest_is_a_missing_one_not_a_crash(ledger: Ledger, head: SaltedHead) -> None:
    assert ledger.heads_missing([head]) == [head]


def test_the_public_number_of_a_head_tells_nothing_of_private_tables(tmp_path: Path) -> None:
    """One row of one user makes the raw log of one more month: how many tables were entered may not show in public."""
    numbers = []
    for tables in (0, 1, 5):
        place = str(tmp_path / f"{tables}.db")
        ledger = Ledger.open(place)
        for number in range(tables):
            ledger.record_made(DATASET, Made("raw_log", f"2006-{number + 1:02d}", "a" * 20, {"log": "b" * 64}, "c"))
        ledger = opened(place)
        charge = published(ledger)
        assert charge.drawn_seq is not None
        head = ledger.salted_head(SALT, seq=charge.drawn_seq)
        numbers.append(head.seq)
        assert ledger.heads_missing([head]) == []
        assert ledger.heads_missing([replace(head, seq=head.seq + 1)]) != []
    assert len(set(numbers)) == 1


def test_a_head_commits_to_the_entries_of_tables_before_it(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    ledger = opened(place)
    ledger.record_made(DATASET, Made("raw_log", "2006-03", "a" * 20, {"log": "b" * 64}, "c"))
    head = ledger.salted_head(SALT, seq=published(ledger).drawn_seq)
    rewritten(place, lambda events: [replace(e, payload=e.payload.replace("b" * 64, "d" * 64)) for e in events])
    assert ledger.verify_chain() == [] and ledger.heads_missing([head]) == [head]
