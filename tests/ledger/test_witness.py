"""The witness: it has every event before a write returns, and a ledger that was set back is refused until recovered."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledgers import DATASET, hand_in, opened, published, request

from qlog_assets.ledger import Budget, Charge, Event, Ledger, LedgerError, Witness, WitnessError
from qlog_assets.ledger.chain import FIRST_PREVIOUS, broken_links
from qlog_assets.ledger.recovery import Recovery, recover, reset_witness
from qlog_assets.ledger.state import fold
from qlog_assets.ledger.store import Author, Store, url_of
from qlog_assets.ledger.witness import DatabaseWitness, compare, is_known
from qlog_assets.ledger.witness_file import FileWitness
from qlog_assets.report.public_zone import tombstone_texts
from qlog_assets.storage.digests import canonical_line

pytest_plugins = ("support.ledger_fixtures",)
LOST = r"knows (\d+) events? that the ledger at .* lost"


@pytest.fixture(params=["file", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def witness(request: pytest.FixtureRequest, tmp_path: Path) -> Witness:
    """A witness of each kind, empty."""
    outside = tmp_path / "outside"
    outside.mkdir()
    if request.param == "file":
        return FileWitness(outside / "witness.jsonl", wait_seconds=5)
    if request.param == "sqlite":
        return DatabaseWitness(url_of(f"sqlite:///{outside / 'witness.db'}", "witness"), wait_seconds=5)
    return DatabaseWitness(url_of(request.getfixturevalue("postgresql_schema"), "witness"), wait_seconds=5)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


def file_witness(tmp_path: Path) -> FileWitness:
    return FileWitness(tmp_path / "witness.jsonl", wait_seconds=5)


def set_back(place: str, work: Callable[[], Any]) -> Any:
    """Do something, then put the ledger's file back as it was before."""
    shutil.copy(place, f"{place}.snapshot")
    answer = work()
    os.replace(f"{place}.snapshot", place)
    return answer


# Two histories held against each other --------------------------------------------------------------------------------


def chain(start: list[Event], texts: list[str]) -> list[Event]:
    """A history that goes on from another one."""
    events = list(start)
    for text in texts:
        previous = events[-1].hash if events else FIRST_PREVIOUS
        number = len(events) + 1
        events.append(Event(number, "", "note", "", "", None, None, canonical_line([text]), previous, "").sealed())
    return events


@given(
    common=st.lists(st.text(max_size=2), max_size=6),
    own=st.lists(st.text(max_size=2), max_size=4),
    kept=st.lists(st.text(max_size=2), max_size=4),
)
def test_a_comparison_says_what_each_side_has_beyond_what_they_share(
    common: list[str], own: list[str], kept: list[str]
) -> None:
    shared = chain([], common)
    ledger, witness = chain(shared, [f"l{text}" for text in own]), chain(shared, [f"w{text}" for text in kept])
    found = compare(ledger, witness)
    assert (found.shared, found.behind, found.lost) == (len(common), len(own), len(kept))
    assert found.agrees is (not kept)
    assert found.diverges is bool(own and kept)
    assert found.foreign is bool(own and kept and not common)
    # The last event alone decides the same, which is what is asked before every write.
    if witness:
        assert is_known(witness[-1], ledger) is found.agrees


# Every write reaches it -----------------------------------------------------------------------------------------------


def test_whatever_is_written_is_with_the_witness_when_the_write_returns(place: str, witness: Witness) -> None:
    ledger = opened(place, witness=witness)
    first, _ = ledger.reserve(**request())
    assert witness.read() == ledger.events()
    for write in (
        lambda: ledger.record_draw(first.release_id, "1" * 64),
        lambda: ledger.record_publication(first.release_id, "2" * 64),
        lambda: ledger.withdraw(first.release_id, "a mistake"),
        lambda: ledger.abandon(ledger.reserve(**request(month="2006-04"))[0].release_id, "not needed"),
        lambda: ledger.set_budget(DATASET, "5", "1e-5", "one more year"),
        lambda: ledger.record("forgotten", DATASET, {"months": []}),
    ):
        before = len(ledger.events())
        write()
        assert len(ledger.events()) > before and witness.read() == ledger.events()
    assert broken_links(witness.read()) == []


def test_a_ledger_with_a_history_gives_it_to_its_first_witness(place: str, witness: Witness) -> None:
    published(opened(place))
    opened(place, witness=witness).reserve(**request(month="2006-04"))
    events = Ledger.read(place).events()
    assert witness.read() == events
    assert [event.kind for event in events].count("witnessed") == 1


def test_a_witness_that_is_behind_is_brought_up_to_date_by_the_next_write(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    ledger.reserve(**request())
    kept = witness.path.read_bytes().splitlines(keepends=True)
    witness.path.write_bytes(b"".join(kept[:2]))
    assert ledger.reserve(**request())[1] is False  # a known request writes no event, and is witnessed all the same
    assert witness.read() == ledger.events()


def test_a_ledger_without_a_witness_says_nothing_of_one(place: str) -> None:
    published(opened(place))
    assert not any(event.kind.endswith("witnessed") for event in Ledger.read(place).events())


# Set back -------------------------------------------------------------------------------------------------------------


def test_a_ledger_that_was_set_back_refuses_every_write_and_goes_on_answering(place: str, witness: Witness) -> None:
    ledger = opened(place, witness=witness)
    march = published(ledger)
    set_back(place, lambda: published(ledger, month="2006-04"))
    before = ledger.events()
    for write in (
        lambda: ledger.reserve(**request(month="2006-04")),
        lambda: ledger.reserve(**request()),
        lambda: ledger.withdraw(march.release_id, "why"),
        lambda: ledger.set_budget(DATASET, "9", "1e-5", "more"),
        lambda: ledger.record("forgotten", DATASET, {}),
    ):
        with pytest.raises(WitnessError, match=LOST) as refusal:
            write()
        assert "knows 3 events" in str(refusal.value) and "run qlog ledger recover" in str(refusal.value)
        assert "\n" not in str(refusal.value)
    assert ledger.events() == before and ledger.charge(march.release_id) == march


def test_recovery_brings_the_lost_events_back_as_they_were(place: str, witness: Witness) -> None:
    ledger = opened(place, witness=witness)
    published(ledger)
    april = set_back(place, lambda: published(ledger, month="2006-04"))
    full = witness.read()
    assert recover(place, witness, "the disk was restored", who="ada") == Recovery(restored=3)
    events = ledger.events()
    assert events[: len(full)] == full and ledger.verify_chain() == []
    assert [(event.kind, event.who) for event in events[len(full) :]] == [("recovered", "ada")]
    assert events[-1].facts == {"events": 3, "after": len(full) - 3, "reason": "the disk was restored"}
    assert ledger.charge(april.release_id) == april and ledger.spent(DATASET).epsilon == 2
    assert ledger.reserve(**request(month="2006-04")) == (april, False)
    assert witness.read() == ledger.events()
    assert recover(place, witness, "again") == Recovery() and ledger.events() == events


def test_a_lost_ledger_is_not_made_anew_and_comes_back_whole(place: str, witness: Witness) -> None:
    ledger = opened(place, witness=witness)
    march = published(ledger)
    full = ledger.events()
    Path(place).unlink()
    with pytest.raises(WitnessError, match=LOST):
        Ledger.open(place, witness=witness)
    assert not Path(place).exists()
    assert recover(place, witness, "the file was deleted").restored == len(full) - 1
    assert ledger.events()[: len(full)] == full and ledger.charge(march.release_id) == march


def test_a_witness_of_another_ledger_is_refused_and_never_recovered_from(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    opened(str(tmp_path / "other.db"), witness=witness)
    ledger = opened(place)
    before, kept = ledger.events(), witness.path.read_bytes()
    ledger = Ledger.open(place, witness=witness)
    for ask in (lambda: ledger.reserve(**request()), lambda: recover(place, witness, "why")):
        with pytest.raises(WitnessError, match="belongs to another ledger"):
            ask()
    assert ledger.events() == before and witness.path.read_bytes() == kept


def force_unwitnessed(place: str) -> None:
    """What somebody does who uses a restored ledger without its witness."""
    with Store.open(place, Author("x"), create=False, wait_seconds=5).writing(Author("x")) as writer:
        writer.append("unwitnessed", "", {"reason": "forced"})


# The ledger went on ---------------------------------------------------------------------------------------------------


def test_what_a_ledger_lost_and_went_on_without_is_charged_once_more(place: str, witness: Witness) -> None:
    """Restored, and used by somebody who did not name the witness: March was drawn twice, and both draws are paid."""
    ledger = opened(place, witness=witness)
    lost = set_back(place, lambda: published(ledger))
    force_unwitnessed(place)
    own, charged = Ledger.open(place).reserve(**request())
    assert charged and own.release_id != lost.release_id
    with pytest.raises(WitnessError, match="the ledger went on without them after event 3"):
        ledger.reserve(**request(month="2006-04"))
    answer = recover(place, witness, "two keepers")
    assert answer == Recovery(charged_as_lost=(lost.release_id,), diverged=True)
    found = ledger.charge(lost.release_id)
    assert (found.state, found.lost, found.counted, found.live) == ("withdrawn", True, True, False)
    assert ledger.spent(DATASET).epsilon == 2 and ledger.verify_chain() == []
    events = ledger.events()
    assert recover(place, witness, "again") == Recovery(diverged=True) and ledger.events() == events
    # The month's own release is still the one that is served, and a new witness takes over.
    new = FileWitness(Path(place).with_name("new.jsonl"))
    assert Ledger.open(place, witness=new).reserve(**request()) == (own, False)
    assert new.read() == ledger.events()


@pytest.mark.parametrize("earlier", [False, True], ids=["this version", "a version up to 0.4.0"])
def test_a_withdrawal_that_a_ledger_lost_comes_back_with_its_day_and_what_the_public_was_told(
    place: str, tmp_path: Path, earlier: bool
) -> None:
    """Its tombstone is public already, and is held against what the ledger says."""
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    charge = published(ledger)
    set_back(place, lambda: ledger.withdraw(charge.release_id, "why", "A corrected one follows."))
    *before, withdrawal = witness.read()
    told = {name: fact for name, fact in withdrawal.facts.items() if not (earlier and name == "public_text")}
    dated = replace(withdrawal, at="2020-02-02T10:00:00+00:00", payload=canonical_line(told)).sealed()
    witness = FileWitness(tmp_path / "dated.jsonl")
    witness.catch_up([*before, dated])
    remembered = fold(witness.read())[0].charges[charge.release_id]
    force_unwitnessed(place)
    assert recover(place, witness, "two keepers").diverged
    found = ledger.charge(charge.release_id)
    assert found.state == "withdrawn" and (found.closed_at or "")[:10] == "2020-02-02"
    assert found.public_text == (None if earlier else "A corrected one follows.")
    assert tombstone_texts(found) == tombstone_texts(remembered) and ledger.verify_chain() == []


def test_what_the_public_was_told_of_a_release_is_kept_where_it_is_charged_as_lost(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)

    def withdraw() -> Charge:
        return ledger.withdraw(published(ledger).release_id, "why", "A corrected one follows.")

    lost = set_back(place, withdraw)
    force_unwitnessed(place)
    assert recover(place, witness, "two keepers").charged_as_lost == (lost.release_id,)
    assert ledger.charge(lost.release_id).public_text == "A corrected one follows."


def test_a_file_that_was_withdrawn_stays_out_of_use_although_the_ledger_lost_that(place: str, witness: Witness) -> None:
    ledger, file = opened(place, witness=witness), ("checksum", "reading")
    set_back(place, lambda: ledger.record_batch("batch_withdrawn", DATASET, "log-aol-1", file, "of a test"))
    force_unwitnessed(place)
    assert Ledger.open(place).batch_withdrawals(DATASET) == []
    assert recover(place, witness, "two keepers").diverged
    (record,) = ledger.batch_withdrawals(DATASET)
    assert record.in_force and (record.identity, record.reason) == (file, "of a test")
    assert ledger.verify_chain() == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "draw", "publish", "withdraw", "abandon", "lower"]), st.integers(1, 3)),
    max_size=5,
)


def walk(ledger: Ledger, steps: list[tuple[str, int]], digit: str) -> None:
    """Take a ledger through some steps; those that it refuses are left out."""
    for step, month in steps:
        asked = request(month=f"2006-0{month}")
        try:
            charge, _ = ledger.reserve(**asked)
            if step == "draw":
                ledger.record_draw(charge.release_id, digit * 64)
            elif step == "publish":
                ledger.record_draw(charge.release_id, charge.draw_digest or digit * 64)
                ledger.record_publication(charge.release_id, digit * 64)
            elif step == "withdraw":
                ledger.withdraw(charge.release_id, "a reason")
            elif step == "abandon":
                ledger.abandon(charge.release_id, "a reason")
            elif step == "lower":
                ledger.set_budget(DATASET, 5 + month, "1e-5", "a reason")
        except LedgerError as refusal:
            assert not isinstance(refusal, WitnessError), refusal


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(before=STEPS, after=STEPS, meanwhile=STEPS)
def test_whatever_was_lost_and_whatever_came_after_a_recovery_only_shrinks_what_is_left(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int]],
    after: list[tuple[str, int]],
    meanwhile: list[tuple[str, int]],
) -> None:
    folder = tmp_path_factory.mktemp("walk")
    place, witness = str(folder / "ledger.db"), file_witness(folder)
    ledger = opened(place, epsilon="9")
    walk(ledger, before, "1")
    snapshot = folder / "snapshot.db"
    shutil.copy(place, snapshot)
    watched = Ledger.open(place, witness=witness)
    walk(watched, after, "2")
    remembered = watched.balance(DATASET)
    os.replace(snapshot, place)
    walk(Ledger.open(place), meanwhile, "3")
    own, mine, kept = ledger.balance(DATASET), ledger.events(), witness.read()

    found = compare(mine, kept)
    answer = recover(place, witness, "a test") if kept else Recovery()
    left = ledger.balance(DATASET)
    assert ledger.verify_chain() == [] and ledger.events()[: len(mine)] == mine
    assert answer.diverged is found.diverges
    if not found.diverges:
        assert left == (remembered if found.lost else own)
        return
    assert left.left.epsilon <= min(own.left.epsilon, remembered.left.epsilon)
    assert left.left.delta <= min(own.left.delta, remembered.left.delta)
    # Every draw that either side knows is paid by itself.
    folded = {(charge.fingerprint, charge.draw_digest) for charge in ledger.charges() if charge.counted}
    drawn = {
        (charge.fingerprint, charge.draw_digest)
        for charge in history_charges(kept, folder)
        if charge.counted and charge.draw_digest is not None
    }
    assert drawn <= folded
    assert recover(place, witness, "again") == Recovery(diverged=True)


def history_charges(events: list[Event], folder: Path) -> list[Any]:
    """The charges of a history, as a ledger of its own has them."""
    place = str(folder / "copy.db")
    store = Store.open(place, Author("x"), create=True, wait_seconds=5, first=events[0])
    with store.writing(Author("x")) as writer:
        for event in events[1:]:
            writer.copy(event)
    return Ledger.read(place).charges()


# Gone, emptied, unreachable -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("emptied", [True, False])
def test_a_witness_that_vanished_is_refused_until_somebody_says_why(place: str, tmp_path: Path, emptied: bool) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    ledger.reserve(**request())
    witness.path.write_bytes(b"") if emptied else witness.path.unlink()
    before = ledger.events()
    with pytest.raises(WitnessError, match=r"is empty or gone; nothing was charged: .* qlog ledger witness --reset"):
        ledger.reserve(**request(month="2006-04"))
    with pytest.raises(LedgerError, match="a reason is needed"):
        reset_witness(place, witness, " ")
    assert ledger.events() == before
    reset_witness(place, witness, "the other machine burnt down", who="ada")
    assert ledger.events()[-1].facts == {"reason": "the other machine burnt down"}
    assert ledger.reserve(**request(month="2006-04"))[1]
    assert witness.read() == ledger.events()


def test_a_witness_that_the_policy_no_longer_names_is_refused_until_somebody_says_why(
    place: str, tmp_path: Path
) -> None:
    opened(place, witness=file_witness(tmp_path))
    ledger = Ledger.open(place)
    with pytest.raises(WitnessError, match="has a witness and the policy names none"):
        ledger.reserve(**request())
    reset_witness(place, None, "we do without")
    assert ledger.reserve(**request())[1]


def test_a_witness_that_knows_more_than_the_ledger_cannot_be_given_up(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    with pytest.raises(WitnessError, match="is there and agrees with the ledger: nothing to reset"):
        reset_witness(place, witness, "why")
    set_back(place, lambda: ledger.reserve(**request()))
    with pytest.raises(WitnessError, match=LOST):
        reset_witness(place, witness, "why")


def test_a_witness_that_cannot_be_reached_stops_a_charge_before_it_is_made(place: str, tmp_path: Path) -> None:
    (tmp_path / "mount").mkdir()
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    ledger = opened(place, witness=file_witness(tmp_path / "mount"))
    (tmp_path / "mount").rename(tmp_path / "unmounted")
    before = ledger.events()
    nowhere = url_of("postgresql://ada:hunter2@127.0.0.1:1/witness?password=hunter3", "witness")
    for witness in (
        file_witness(tmp_path / "mount"),
        DatabaseWitness(url_of(f"sqlite:///{tmp_path}/mount/witness.db", "witness")),
        FileWitness(tmp_path / "directory"),
        FileWitness(tmp_path / "pipe"),
        DatabaseWitness(nowhere, wait_seconds=1),
    ):
        with pytest.raises(LedgerError, match=r"the witness at .* cannot be (reached|used)") as refusal:
            Ledger.open(place, witness=witness).reserve(**request())
        assert witness.where in str(refusal.value) and "hunter" not in str(refusal.value)
        assert Ledger.open(place, witness=witness).spent(DATASET).epsilon == 0  # questions are answered
    assert ledger.events() == before


def test_a_witness_in_the_ledgers_own_database_is_refused(place: str) -> None:
    opened(place)
    with pytest.raises(WitnessError, match="lies in the database of a ledger"):
        Ledger.open(place, witness=DatabaseWitness(url_of(place, "witness"))).reserve(**request())
    assert Ledger.read(place).charges() == []


def _reserve_with_a_full_witness(place: str, path: Path, answer: multiprocessing.SimpleQueue[str]) -> None:
    witness = FileWitness(path)
    ledger = Ledger.open(place, witness=witness)
    # The ledger's file is larger than the witness may become: only the witness is full.
    size = path.stat().st_size + 100
    write = os.write

    def limited(descriptor: int, data: bytes) -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return write(descriptor, data)

    os.write = limited  # type: ignore[assignment]
    try:
        ledger.reserve(**request(month="2006-04"))
    except LedgerError as error:
        answer.put(str(error))


def test_a_full_disk_under_the_witness_is_an_error_and_room_is_all_it_takes(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    ledger.reserve(**request())
    fork = multiprocessing.get_context("fork")
    answer = fork.SimpleQueue()
    child = fork.Process(target=_reserve_with_a_full_witness, args=(place, witness.path, answer))
    child.start()
    said = answer.get()
    child.join()
    assert str(witness.path) in said and "nothing is drawn" in said and "at no new charge" in said
    assert len(ledger.charges()) == 2 and len(witness.read()) == len(ledger.events()) - 1
    assert not witness.path.read_bytes().endswith(b"\n")  # torn
    assert ledger.reserve(**request(month="2006-04"))[1] is False
    assert witness.read() == ledger.events()


# The file -------------------------------------------------------------------------------------------------------------


def test_a_new_witness_file_is_for_its_owner_only(place: str, witness: Witness, tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        opened(place, witness=witness)
    finally:
        os.umask(mask)
    for path in (tmp_path / "outside").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_torn_at_any_byte_loses_nothing_and_is_never_taken_away(place: str, tmp_path: Path) -> None:
    """A file that may only be appended to keeps the torn line; the event is written again after it."""
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    whole = witness.path.read_bytes()
    ledger.reserve(**request())
    line = witness.path.read_bytes().removeprefix(whole)
    for torn in (line[:1], line[: len(line) // 2], line[:-2], line[:-1], line, b"\0" * 40):
        witness.path.write_bytes(whole + torn)
        assert ledger.reserve(**request())[1] is False
        assert witness.path.read_bytes().startswith(whole + torn)
        assert witness.read() == ledger.events() and broken_links(witness.read()) == []


def test_the_last_event_is_found_whatever_long_and_torn_lines_surround_it(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    ledger.record("note", DATASET, {"text": "x" * 300_000})
    assert witness.last() == ledger.events()[-1]
    with witness.path.open("ab") as stream:
        stream.write(b"y" * 200_000)
    assert witness.last() == ledger.events()[-1]
    ledger.reserve(**request())
    assert witness.read() == ledger.events()


def test_an_edited_or_missing_line_is_never_recovered_from(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    set_back(place, lambda: published(ledger))
    lines = witness.path.read_bytes().splitlines(keepends=True)
    before = ledger.events()
    for wrong in (
        lines[:3] + lines[4:],
        [*lines[:3], lines[3].replace(b"safelog", b"zealous"), *lines[4:]],
        lines[::-1],
    ):
        assert wrong != lines
        witness.path.write_bytes(b"".join(wrong))
        with pytest.raises(WitnessError, match=r"does not verify \("):
            recover(place, witness, "why")
    assert ledger.events() == before


def test_a_mistaken_hand_at_a_witness_database_cannot_change_rows(place: str, tmp_path: Path) -> None:
    copy = tmp_path / "witness.db"
    ledger = opened(place, witness=DatabaseWitness(url_of(copy, "witness")))
    with sqlite3.connect(copy) as connection:
        for statement in ("UPDATE witnessed_events SET who = 'nobody'", "DELETE FROM witnessed_events"):
            with pytest.raises(sqlite3.DatabaseError, match="the witness is append-only"):
                connection.execute(statement)
    assert ledger.reserve(**request())[1]


def test_a_rewritten_history_differs_from_what_the_witness_kept(place: str, tmp_path: Path) -> None:
    """Fitting hashes all the way: only the copy outside remembers the other event."""
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    published(ledger)
    with hand_in(place) as connection:
        events = ledger.events()
        previous = FIRST_PREVIOUS
        connection.execute(sa.text("DELETE FROM events"))
        for event in events:
            payload = event.payload.replace('"epsilon":"1"', '"epsilon":"1/10"')
            sealed = replace(event, payload=payload, previous_hash=previous).sealed()
            previous = sealed.hash
            values = ", ".join(f":{name}" for name in sealed.__dataclass_fields__)
            connection.execute(sa.text(f"INSERT INTO events VALUES ({values})"), sealed.__dict__)
    assert ledger.verify_chain() == []
    with pytest.raises(WitnessError, match="the ledger went on without"):
        ledger.reserve(**request(month="2006-05"))
    answer = recover(place, witness, "somebody edited it")
    assert answer.diverged


def test_a_budget_that_was_lowered_and_forgotten_is_lowered_again(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, epsilon="9")
    ledger.reserve(**request())
    shutil.copy(place, tmp_path / "snapshot.db")
    Ledger.open(place, witness=witness).set_budget(DATASET, "1", "1e-5", "enough")
    os.replace(tmp_path / "snapshot.db", place)
    ledger.reserve(**request(month="2006-04"))
    recover(place, witness, "why")
    balance = ledger.balance(DATASET)
    assert (balance.budget.epsilon, balance.spent.epsilon, balance.left.epsilon) == (1, 2, -1)
    assert ledger.verify_chain() == []
    with pytest.raises(LedgerError, match="passes its budget since charges were recovered"):
        Ledger.open(place, witness=FileWitness(tmp_path / "new.jsonl")).reserve(**request(month="2006-05"))


def test_a_copy_of_an_old_line_at_the_end_of_the_file_sets_nothing_back(place: str, tmp_path: Path) -> None:
    """A file that can only be appended to can still be appended to."""
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    set_back(place, lambda: published(ledger))
    lines = (tmp_path / "witness.jsonl").read_bytes().splitlines(keepends=True)
    with (tmp_path / "witness.jsonl").open("ab") as stream:
        stream.write(lines[1])
    with pytest.raises(WitnessError, match="does not verify"):
        opened(place, witness=witness).reserve(**request())


def test_what_was_recovered_over_the_budget_stops_every_release_until_somebody_says_how_much_it_is(
    place: str, tmp_path: Path
) -> None:
    witness = file_witness(tmp_path)
    ledger = opened(place, witness=witness)
    set_back(place, lambda: published(ledger, epsilon="3"))
    force_unwitnessed(place)
    went_on = opened(place)
    published(went_on, epsilon="3", mechanism_version=2)
    recover(place, witness, "restored by mistake")
    assert went_on.is_over_budget(DATASET)
    with pytest.raises(LedgerError, match="passes its budget since charges were recovered"):
        went_on.reserve(**request(month="2030-01", epsilon="0", delta="0"))
    went_on.set_budget(DATASET, "6", "1e-5", "what the recovery found")
    assert went_on.reserve(**request(month="2030-01", epsilon="0", delta="0"))[1]


def test_a_ledger_and_a_witness_that_count_by_other_windows_are_recovered_for_ever(place: str, tmp_path: Path) -> None:
    witness = file_witness(tmp_path)
    ledger = Ledger.open(place, witness=witness)
    ledger.ensure_dataset(DATASET, Budget("3", "1e-5"), window_months=12)
    set_back(place, lambda: ledger.set_unit(DATASET, 6, "releases for years"))
    force_unwitnessed(place)
    went_on = Ledger.open(place)
    published(went_on, epsilon="1")
    assert recover(place, witness, "restored by mistake").diverged
    assert went_on.dataset(DATASET).window_months is None
    assert went_on.verify_chain() == []
