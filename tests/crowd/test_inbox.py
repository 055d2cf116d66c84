"""The durable queue: what was answered for is there after a restart, once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from qlog_assets.crowd.inbox import ClosedError, FullError, Inbox, Item, digest_of


def item(message: bytes, onward: str = "", due: float = 0.0, late: float = 0.0) -> Item:
    return Item(digest_of(message), message, onward, due, late)


def with_inbox(
    path: Path,
    use: Callable[[Inbox], Coroutine[Any, Any, Any]],
    *,
    limit: int = 1000,
    days: int | None = 2,
    now: Callable[[], float] | float = 1e9,
) -> Any:
    async def run() -> Any:
        clock = now if callable(now) else lambda: now
        async with Inbox(path, largest_backlog=limit, remember_days=days, delayed=True, clock=clock) as inbox:
            return await use(inbox)

    return asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


async def messages_of(inbox: Inbox) -> list[bytes]:
    found = [inbox.take(group, 1e12, 1000) for group in inbox.due_groups(1e12)]
    return sorted(message for part in found for _, message in part)


def test_what_was_put_is_there_for_the_next_process(path: Path) -> None:
    with_inbox(path, lambda inbox: inbox.put([item(b"b"), item(b"a")]))
    assert with_inbox(path, messages_of) == [b"a", b"b"]


def test_a_message_that_comes_again_is_stored_once_also_after_it_left(path: Path) -> None:
    async def use(inbox: Inbox) -> None:
        await inbox.put([item(b"a"), item(b"a")])
        await inbox.put([item(b"a"), item(b"b")])
        await inbox.done([digest_of(b"a")])
        await inbox.put([item(b"a")])
        assert (inbox.stored, inbox.repeated, inbox.backlog()) == (2, 3, 1)

    with_inbox(path, use)
    assert with_inbox(path, messages_of) == [b"b"]


def test_messages_are_forgotten_some_days_after_they_left(path: Path) -> None:
    async def send_once(inbox: Inbox) -> int:
        await inbox.put([item(b"a")])
        new = inbox.stored
        await inbox.done([digest_of(b"a")])
        return new

    day = 86_400.0
    assert [with_inbox(path, send_once, now=number * day) for number in (10, 11, 12, 14)] == [1, 0, 0, 1]


def test_unless_told_so_messages_are_never_forgotten_and_no_day_is_stored_with_them(path: Path) -> None:
    async def send_once(inbox: Inbox) -> int:
        await inbox.put([item(b"a")])
        new = inbox.stored
        await inbox.done([digest_of(b"a")])
        return new

    moments = (1e9, 2e9, 3e9)
    assert [with_inbox(path, send_once, days=None, now=moment) for moment in moments] == [1, 0, 0]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT DISTINCT day FROM seen").fetchall() == [(0,)]


def test_messages_that_left_are_in_no_file_when_nothing_waits_or_after_a_while(path: Path) -> None:
    first, second, third = (os.urandom(500) for _ in range(3))
    now = [1e9]

    def stored(message: bytes) -> bool:
        return any(message in file.read_bytes() for file in path.parent.iterdir())

    async def use(inbox: Inbox) -> None:
        await inbox.put([item(first), item(second)])
        assert stored(first) and stored(second)
        await inbox.done([digest_of(first), digest_of(second)])
        assert not stored(first) and not stored(second)
        await inbox.put([item(second + b"!"), item(third)])
        now[0] += 1000
        await inbox.done([digest_of(third)])
        assert not stored(third) and inbox.backlog() == 1

    with_inbox(path, use, now=lambda: now[0])


def test_requests_at_the_same_time_share_a_transaction_and_are_all_answered(path: Path) -> None:
    async def use(inbox: Inbox) -> None:
        await asyncio.gather(*(inbox.put([item(os.urandom(20))]) for _ in range(500)))

    with_inbox(path, use)
    assert len(with_inbox(path, messages_of)) == 500


def test_a_full_inbox_refuses_whole_requests_until_there_is_room(path: Path) -> None:
    async def use(inbox: Inbox) -> None:
        await inbox.put([item(b"1"), item(b"2")])
        with pytest.raises(FullError):
            await inbox.put([item(b"3"), item(b"4")])
        await inbox.put([item(b"5")])
        await inbox.done([digest_of(b"1"), digest_of(b"2")])
        await inbox.put([item(b"3"), item(b"4")])

    with_inbox(path, use, limit=3)
    assert with_inbox(path, messages_of) == [b"3", b"4", b"5"]


def test_messages_wait_for_their_time_in_groups_that_look_alike(path: Path) -> None:
    async def use(inbox: Inbox) -> None:
        await inbox.put([item(b"aa", "x", 5, 50), item(b"bb", "x", 10, 40), item(b"ccc", "x", 0, 9), item(b"d", "y")])
        assert inbox.due_groups(5) == [("x", 2, 1, 50), ("x", 3, 1, 9), ("y", 1, 1, 0)]
        (group, *_) = inbox.due_groups(10)
        assert [message for _, message in inbox.take(group, 10, 10)] == [b"bb", b"aa"]

    with_inbox(path, use)


def test_the_order_of_arrival_within_a_transaction_is_not_stored(path: Path) -> None:
    sent = [os.urandom(8) for _ in range(100)]
    with_inbox(path, lambda inbox: inbox.put([item(message) for message in sent]))
    with sqlite3.connect(path) as connection:
        stored = [digest for (digest,) in connection.execute("SELECT digest FROM waiting ORDER BY number")]
    assert stored == sorted(digest_of(message) for message in sent)


def test_a_closed_inbox_takes_nothing(path: Path) -> None:
    async def use() -> None:
        inbox = Inbox(path, largest_backlog=10, remember_days=1)
        await asyncio.to_thread(inbox.close)
        with pytest.raises(ClosedError):
            await inbox.put([item(b"a")])

    asyncio.run(use())
    assert with_inbox(path, messages_of) == []


def test_the_database_is_the_owners_alone(path: Path) -> None:
    with_inbox(path, lambda inbox: inbox.put([item(b"a")]))
    assert path.stat().st_mode & 0o077 == 0
