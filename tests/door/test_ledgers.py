"""A warehouse's ledger and its witness: one way to write, a witness outside, draws that no charge accounts for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import MARCH, charges, door_at, public_files, release, warehouse_at
from support.ledgers import request
from support.witnesses import name_witness

import qlog_assets
from qlog_assets.door.inputs import DoorError
from qlog_assets.door.ledgers import named_witness, open_ledger
from qlog_assets.door.preconditions import orphan_draws
from qlog_assets.ledger import Ledger, LedgerError
from qlog_assets.policy import LedgerPolicy, Policy
from qlog_assets.report.manifest import load_manifest

pytest_plugins = ("support.warehouse_fixtures",)


def calls(path: Path) -> list[str]:
    """The calls of methods in a module, as `Name.method`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    methods = [function for function in functions if isinstance(function, ast.Attribute)]
    return [f"{each.value.id}.{each.attr}" for each in methods if isinstance(each.value, ast.Name)]


def test_no_code_but_one_function_opens_the_ledger_for_writing() -> None:
    """Whoever opens it in another way could write an event that the witness never gets."""
    package = Path(qlog_assets.__file__).parent
    opening = {str(path.relative_to(package)) for path in package.rglob("*.py") if "Ledger.open" in calls(path)}
    writing = {str(path.relative_to(package)) for path in package.rglob("*.py") if "Store.open" in calls(path)}
    assert opening == {"door/ledgers.py"}
    assert writing == {"ledger/ledger.py", "ledger/recovery.py"}


def test_a_ledger_that_is_open_for_questions_writes_nothing(released: Path) -> None:
    ledger = Ledger.read(warehouse_at(released).ledger_url)
    (charge,) = ledger.charges()
    with pytest.raises(LedgerError, match="was opened for reading"):
        ledger.withdraw(charge.release_id, "why")


# Where it may be ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["witness.jsonl", "private/w", "../{home}/w", "sqlite:///witness.db", "../link/w"])
def test_a_witness_inside_the_warehouse_is_refused(home: Path, place: str) -> None:
    (home.parent / "link").symlink_to(home)
    name_witness(home, place.format(home=home.name))
    refusal = qlog(home, "ledger").refusal
    assert refusal.startswith("ledger.witness: ") and "a snapshot of the one would set back the other" in refusal
    assert not (home / "ledger.db").exists()


def test_a_witness_is_named_relative_to_the_policy_file_and_its_password_is_nowhere(home: Path) -> None:
    warehouse = warehouse_at(home)
    outside = home.parent / "outside"
    for named, where in (
        ("../outside/witness.jsonl", str(outside / "witness.jsonl")),
        ("sqlite:///../outside/witness.db", str(outside / "witness.db")),
        ("postgresql://ada:hunter2@db.example/w?password=hunter2", "postgresql+psycopg://ada:***@db.example/w"),
    ):
        policy = Policy(ledger=LedgerPolicy(witness=named)).relative_to(home)
        witness = named_witness(warehouse, policy)
        assert witness is not None and witness.where == where
        assert "hunter2" not in repr(policy) and "hunter2" not in str(policy.as_public())
    assert named_witness(warehouse, Policy()) is None


def test_a_witness_url_that_names_no_database_is_one_line(home: Path) -> None:
    name_witness(home, "mysql://ada:hunter2@host/w")
    assert qlog(home, "ledger").refusal == "a witness is kept in SQLite or PostgreSQL, not in mysql"


# What a release says of it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_release_says_whether_a_witness_knew_its_charge(chained: Path, witnessed: bool) -> None:
    if witnessed:
        name_witness(chained)
    path = release(chained).path
    assert path is not None and load_manifest(path / "manifest.json")["ledger"]["witnessed"] is witnessed
    page = (path / "datasheet.html").read_text(encoding="utf-8")
    assert ("copied to a witness outside the ledger before noise was drawn" in page) is witnessed
    assert ("has no witness: if its keeper restored an old copy of it, nobody could tell" in page) is not witnessed


@pytest.mark.slow
def test_an_audit_without_a_witness_says_what_it_cannot_tell(released: Path) -> None:
    answer = qlog(released, "audit", "--json").json
    (note,) = [note for note in answer["notes"] if note.startswith("witness: ")]
    assert answer["ok"] and "an old copy of the ledger" in note and "cannot tell" in note
    assert "names no witness" in qlog(released, "audit", "--witness").refusal
    assert "names no witness" in qlog(released, "ledger", "recover", "--reason", "why").refusal


@pytest.mark.slow
def test_an_audit_finds_a_witness_that_is_ahead_emptied_or_damaged(chained: Path) -> None:
    witness = name_witness(chained)
    release(chained)
    lines = witness.path.read_bytes().splitlines(keepends=True)
    for kept, lost, finding in (
        ([], False, "is empty or gone, and the ledger has one"),
        (lines[:2] + lines[3:], False, "does not verify: event 3 is missing"),
        (lines, True, "lost (it was restored from a snapshot?)"),
    ):
        witness.path.write_bytes(b"".join(kept))
        if lost:
            (chained / "ledger.db").unlink()
        answer = qlog(chained, "audit", "--witness")
        assert answer.code == 1 and finding in answer.out, answer
        facts = qlog(chained, "ledger", "witness", "--json").json
        assert facts["agrees"] is False and finding in facts["findings"][0]


def test_a_witness_is_given_up_by_a_command_that_records_why(chained: Path) -> None:
    witness = name_witness(chained)
    warehouse, policy = warehouse_at(chained), Policy.load(chained / "policy.toml")
    door_at(chained).open_account()
    assert "nothing to reset" in qlog(chained, "ledger", "witness", "--reset", "why").refusal
    witness.path.unlink()
    with pytest.raises(LedgerError, match="is empty or gone"):
        open_ledger(warehouse, policy).record("forgotten", "small", {})
    assert qlog(chained, "ledger", "witness", "--reset", "it burnt", "--json").json["agrees"] is True
    open_ledger(warehouse, policy).record("forgotten", "small", {})
    assert [event.kind for event in witness.read()][-3:] == ["unwitnessed", "witnessed", "forgotten"]


# Draws that no charge accounts for ------------------------------------------------------------------------------------


def test_a_draw_that_no_charge_accounts_for_shuts_the_door(drawn: Path) -> None:
    """The ledger and the mark of its data set are gone, and nothing was public yet: only the draw remembers."""
    (fingerprint,) = [path.name for path in (drawn / "private" / "draws").glob("[!.]*")]
    (drawn / "ledger.db").unlink()
    (drawn / "private" / "dataset").unlink()
    expected = f"the door refuses to work: private/draws holds the draw of safelog {MARCH}, number 1, which no charge"
    for ask in (lambda: door_at(drawn).draw("safelog", MARCH), lambda: door_at(drawn).open_account()):
        with pytest.raises(DoorError, match=expected) as refusal:
            ask()
        assert "restore the ledger that charged for it" in str(refusal.value)
        assert fingerprint not in str(refusal.value)
    assert expected in qlog(drawn, "ledger").refusal
    assert charges(drawn) == [] and public_files(drawn) == {}


def test_what_is_no_draw_at_all_is_an_orphan_too_and_a_scratch_directory_is_not(drawn: Path) -> None:
    door = door_at(drawn)
    (drawn / "private" / "draws" / ".qlog-tmp-abc").mkdir()
    assert orphan_draws(door.warehouse, door.ledger) == []
    (drawn / "private" / "draws" / "x").mkdir()
    (sentence,) = orphan_draws(door.warehouse, door.ledger)
    assert "something that cannot be read as a draw" in sentence


def test_the_draw_of_a_reservation_that_was_given_back_is_an_orphan(chained: Path) -> None:
    door = door_at(chained)
    door.open_account()
    charge, _ = door.ledger.reserve(**request(dataset=door.policy.dataset))
    (chained / "private" / "draws" / charge.fingerprint).mkdir()
    assert orphan_draws(door.warehouse, door.ledger) == []
    door.ledger.abandon(charge.release_id, "not needed")
    assert len(orphan_draws(door.warehouse, door.ledger)) == 1
