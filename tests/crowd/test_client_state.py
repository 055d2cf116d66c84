"""A client's memory: private, once per job, and whole after a crash between any two steps."""

from __future__ import annotations

import sqlite3
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from support.crowd_jobs import make_job

from qlog_assets.crowd.client_state import FILE, ClientState, Planned
from qlog_assets.crowd.jobs import Job
from qlog_assets.errors import QlogError

JOB = make_job(artifacts_per_user=2)
OPENS = JOB.opens
OTHER = make_job(artifacts_per_user=2, share_threshold=4)
TOKENS = [(bytes([n]) * 32, bytes([n]) * 64) for n in range(3)]
PRIVATE = b"a query that nobody must see"


def planned(hours: int, body: bytes = b"onion") -> Planned:
    return Planned(OPENS + timedelta(hours=hours), "relay-1", body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ClientState.create(tmp_path / "client", "ann", "secret")
    return tmp_path / "client"


def test_the_memory_is_the_owners_alone_and_made_once(folder: Path) -> None:
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with ClientState.open(folder) as state:
        before = state.identity()
    with pytest.raises(QlogError, match="another process"):
        ClientState.create(folder, "eve", "other")
    (folder / FILE).chmod(0o644)
    with ClientState.open(folder) as state:
        assert state.identity() == before and before.account == "ann" and len(before.user_key) == 32
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert "secret" not in repr(before)
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_the_secret_is_replaced_for_the_same_account_alone(folder: Path) -> None:
    with ClientState.open(folder) as state:
        key = state.identity().user_key
        state.change_secret("ann", "new")
        assert (state.identity().secret, state.identity().user_key) == ("new", key)
        with pytest.raises(QlogError, match="another account"):
            state.change_secret("eve", "x")


def test_every_step_is_there_when_the_memory_is_opened_again(folder: Path) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [PRIVATE])
    with ClientState.open(folder) as state:
        (found,) = state.unfinished()
        assert (found.job, found.stage, found.artifacts, found.tokens) == (JOB, "chosen", (PRIVATE,), ())
        state.pay(JOB, TOKENS)
    with ClientState.open(folder) as state:
        (found,) = state.unfinished()
        assert (found.stage, found.artifacts, list(found.tokens)) == ("paid", (PRIVATE,), TOKENS)
        state.plan(JOB, [planned(1, b"first"), planned(5, b"second")])
    with ClientState.open(folder) as state:
        assert state.unfinished() == []
        assert state.due(OPENS) == [] and state.next_due() == OPENS + timedelta(hours=1)
        (waiting,) = state.due(OPENS + timedelta(hours=1))
        assert waiting.planned.body == b"first"
        state.mark_sent(waiting)
    with ClientState.open(folder) as state:
        (progress,) = state.progress()
        assert progress.messages == {"planned": 1, "sent": 1, "missed": 0}
        assert [each.planned.body for each in state.due(JOB.closes)] == [b"second"]


def test_what_is_no_more_needed_is_overwritten(folder: Path) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [PRIVATE])
        state.pay(JOB, TOKENS)
        state.plan(JOB, [planned(0, b"the bytes of one message"), planned(1)])
        state.mark_sent(state.due(OPENS)[0])
    content = (folder / FILE).read_bytes()
    for gone in (PRIVATE, b"YSBxdWVyeSB0aGF0", b"the bytes of one message"):
        assert gone not in content


@pytest.mark.parametrize("again", [JOB, OTHER], ids=["the same job", "another job of its application and month"])
def test_a_job_is_entered_once_whatever_it_is_called(folder: Path, again: Job) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [])
        with pytest.raises(QlogError, match="nothing is sent twice"):
            state.enter(again, [PRIVATE])
        state.lose(JOB)
        with pytest.raises(QlogError, match="nothing is sent twice"):
            state.enter(again, [])


def test_messages_are_stored_all_or_none_and_never_twice(folder: Path) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [])
        with pytest.raises(RuntimeError, match="not paid"):
            state.plan(JOB, [planned(0), planned(1)])
        state.pay(JOB, TOKENS)
        with pytest.raises(ValueError, match="as many messages"):
            state.plan(JOB, [planned(0)])
        with pytest.raises(AttributeError):
            state.plan(JOB, [planned(0), None])  # type: ignore[list-item]
        assert state.find(JOB).stage == "paid" and state.next_due() is None  # type: ignore[union-attr]
        state.plan(JOB, [planned(0), planned(1)])
        with pytest.raises(RuntimeError, match="not paid"):
            state.plan(JOB, [planned(0), planned(1)])


def test_messages_of_a_job_that_is_over_are_given_up(folder: Path) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [])
        state.pay(JOB, TOKENS)
        state.plan(JOB, [planned(0), planned(1)])
        state.mark_sent(state.due(OPENS)[0])
        assert state.give_up(lambda job: job != JOB) == 0
        assert state.give_up(lambda job: job == JOB) == 1 and state.give_up(lambda job: True) == 0
        assert state.due(JOB.closes) == [] and state.progress()[0].messages["missed"] == 1


def test_a_folder_without_a_memory_or_with_a_damaged_one_is_one_line(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(QlogError, match="client init"), ClientState.open(tmp_path / "nowhere"):
        pass
    (folder / FILE).write_bytes(b"no database at all, but some words of somebody" * 100)
    with pytest.raises(QlogError, match="cannot be used") as refused, ClientState.open(folder) as state:
        state.progress()
    assert "somebody" not in str(refused.value)


def test_a_step_that_is_cut_off_leaves_the_one_before(folder: Path) -> None:
    with ClientState.open(folder) as state:
        state.enter(JOB, [PRIVATE])
        state.pay(JOB, TOKENS)
    # What a process leaves that is killed inside a transaction: a journal that the next one rolls back.
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE participations SET stage = 'planned', artifacts = NULL, tokens = NULL")
    connection.close()
    with ClientState.open(folder) as state:
        assert [(each.stage, each.artifacts) for each in state.unfinished()] == [("paid", (PRIVATE,))]
