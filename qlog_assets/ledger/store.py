"""Where events are kept: one append-only table in SQLite or PostgreSQL, through SQLAlchemy.

The ledger's own table is one, a witness's copy of it another. Every difference between the two databases is in this
module. What the events mean is not: see `state.py`.
"""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from qlog_assets.errors import QlogError
from qlog_assets.ledger.chain import FIRST_PREVIOUS, Event
from qlog_assets.storage.digests import canonical_line


class LedgerError(QlogError):
    """The ledger cannot be used, or refuses a request. One line; never an input digest or a password."""


class MissingLedgerError(LedgerError):
    """There is no ledger where one was expected."""

    def __init__(self, where: str) -> None:
        super().__init__(f"there is no ledger at {where}")
        self.where = where


FORMAT = 1
"""The layout of events and payloads. Raised by hand when an older ledger could no longer be read."""


def _table(name: str) -> sa.Table:
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("dataset", "kind", "at", "who")),
        *(sa.Column(name, sa.Text, nullable=True) for name in ("run_id", "code_version")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("payload", "previous_hash", "hash")),
    )


EVENTS = _table("events")
COPIES = _table("witnessed_events")
"""The same in the database of a witness, by another name: nobody takes the one for the other."""


def _seat_belts(table: str, keeper: str) -> dict[str, tuple[str, ...]]:
    """Triggers against an honest mistake at a database prompt, by database.

    Whoever may drop a trigger can still rewrite rows: the hash chain and the heads in the manifests find that.
    """
    abort = f"BEGIN SELECT RAISE(ABORT, 'the {keeper} is append-only'); END"
    return {
        "sqlite": (
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {abort}",
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {abort}",
            # INSERT OR REPLACE removes the old row without firing the delete trigger; only the next number may come in.
            f"CREATE TRIGGER {table}_next_only BEFORE INSERT ON {table} "
            f"WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM {table}) {abort}",
        ),
        "postgresql": (
            f"CREATE FUNCTION qlog_{keeper}_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'the {keeper} is append-only'; END $$",
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION qlog_{keeper}_is_append_only()",
        ),
    }


# Two processes that open a new PostgreSQL ledger at once queue here: the table they would lock is not there yet.
_CREATION_LOCK = int.from_bytes(b"qlog")


@dataclass(frozen=True)
class Author:
    """Who writes, from where and when: what every event says about its making."""

    who: str
    run_id: str | None = None
    code_version: str | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


def user_name() -> str:
    """The operating system's name for the user, without a host: the ledger may travel to an auditor."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run a user that has no name
        return f"uid {os.getuid()}"


@dataclass
class Writer:
    """An open write transaction: the whole history as it is under the lock, and the right to add to it."""

    events: list[Event]
    _connection: sa.Connection
    _author: Author

    def append(self, kind: str, dataset: str, facts: dict[str, Any]) -> Event:
        """Add one event. It counts when the transaction commits, and not before."""
        return self.copy(_next_event(self.events[-1] if self.events else None, self._author, kind, dataset, facts))

    def copy(self, event: Event) -> Event:
        """Add an event that a witness kept, as it was."""
        self._connection.execute(sa.insert(EVENTS).values(asdict(event)))
        self.events.append(event)
        return event


class Store:
    """The table of events behind one URL. Holds no connection between calls, so it survives a fork."""

    def __init__(self, url: URL, wait_seconds: float, keeper: Literal["ledger", "witness"] = "ledger") -> None:
        self.wait_seconds = wait_seconds
        self.keeper = keeper
        self._table = EVENTS if keeper == "ledger" else COPIES
        self._sqlite = url.get_backend_name() == "sqlite"
        self.where = str(url.database) if self._sqlite else url.set(query={}).render_as_string(hide_password=True)
        arguments: dict[str, Any] = {}
        if self._sqlite:
            arguments["timeout"] = wait_seconds
        elif "connect_timeout" not in url.query:
            arguments["connect_timeout"] = max(2, round(wait_seconds))  # libpq takes whole seconds, at least two
        try:
            # Read committed: each statement sees what was committed before it, so the read under the lock is complete.
            isolation = {} if self._sqlite else {"isolation_level": "READ COMMITTED"}
            self._engine = sa.create_engine(url, poolclass=NullPool, connect_args=arguments, **isolation)
        except ModuleNotFoundError:
            raise LedgerError(
                f"the {keeper} at {self.where} needs PostgreSQL's driver: install qlog[postgresql]"
            ) from None
        if self._sqlite:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)

    @classmethod
    def open(
        cls,
        place: str | Path,
        author: Author | None,
        *,
        create: bool,
        wait_seconds: float,
        first: Event | None = None,
    ) -> Store:
        """The ledger's store at a path or an SQLAlchemy URL.

        A new one starts with an event that holds a random secret, or with the first one of a history that is brought
        back.
        """
        url = url_of(place)
        if url.get_backend_name() == "sqlite":
            path = Path(str(url.database))
            if not create and not path.exists():
                raise MissingLedgerError(str(path))
            ensure_file(path)
        store = cls(url, wait_seconds)
        exists = store.exists()
        if not exists and (not create or author is None):
            raise MissingLedgerError(store.where)
        if not exists and author is not None:
            secret = {"format": FORMAT, "secret": secrets.token_hex(16)}
            store.create([first or _next_event(None, author, "created", "", secret)])
        return store

    def exists(self, table: sa.Table | None = None) -> bool:
        """Whether the table is there: this store's own, or another one in the same database."""
        with self._transaction(write=False) as connection:
            return sa.inspect(connection).has_table((self._table if table is None else table).name)

    def read(self) -> list[Event]:
        """All events, in their order."""
        with self._transaction(write=False) as connection:
            return self._all(connection)

    def last(self) -> Event | None:
        """The newest event."""
        with self._transaction(write=False) as connection:
            return self._last(connection)

    @contextmanager
    def writing(self, author: Author) -> Iterator[Writer]:
        """One transaction with the right to write: nobody else adds an event between its read and its commit."""
        with self._writing() as connection:
            yield Writer(self._all(connection), connection, author)

    def copy(self, choose: Callable[[Event | None], Sequence[Event]]) -> None:
        """Add events as they are, in one transaction: `choose` says which ones follow the last one that is here."""
        with self._writing() as connection:
            chosen = choose(self._last(connection))
            if chosen:
                connection.execute(sa.insert(self._table), [asdict(event) for event in chosen])

    def create(self, events: Sequence[Event] = ()) -> None:
        """Make the table, with these events in it, unless another process was first."""
        with self._transaction(write=True) as connection:
            if not self._sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            if sa.inspect(connection).has_table(self._table.name):
                return
            self._table.create(connection)
            for statement in _seat_belts(self._table.name, self.keeper)[connection.dialect.name]:
                connection.exec_driver_sql(statement)
            if events:
                connection.execute(sa.insert(self._table), [asdict(event) for event in events])

    def _all(self, connection: sa.Connection) -> list[Event]:
        return [Event(*row) for row in connection.execute(sa.select(self._table).order_by(self._table.c.seq))]

    def _last(self, connection: sa.Connection) -> Event | None:
        row = connection.execute(sa.select(self._table).order_by(self._table.c.seq.desc()).limit(1)).first()
        return None if row is None else Event(*row)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._transaction(write=True) as connection:
            if not self._sqlite:
                connection.execute(sa.text(f"LOCK TABLE {self._table.name} IN EXCLUSIVE MODE"))
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                connection.execution_options(qlog_write=write)
                with connection.begin():
                    if write and not self._sqlite:
                        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(self.wait_seconds * 1000)}")
                    yield connection
        except DBAPIError as error:
            # `from None`: SQLAlchemy's own message carries the row, and the row carries input digests.
            raise self._explained(error) from None

    def _explained(self, error: DBAPIError) -> LedgerError:
        text = str(error.orig).strip()
        if "locked" in text or getattr(error.orig, "sqlstate", None) == "55P03":
            return LedgerError(
                f"the {self.keeper} at {self.where} is locked by another process (waited {self.wait_seconds:g} s); "
                "nothing was written"
            )
        return LedgerError(
            f"the {self.keeper} at {self.where} cannot be used: {text.splitlines()[0] if text else 'no reason given'}"
        )


def _next_event(last: Event | None, author: Author, kind: str, dataset: str, facts: dict[str, Any]) -> Event:
    return Event(
        seq=last.seq + 1 if last else 1,
        dataset=dataset,
        kind=kind,
        at=author.clock().astimezone(UTC).isoformat(timespec="milliseconds"),
        who=author.who,
        run_id=author.run_id,
        code_version=author.code_version,
        payload=canonical_line(facts),
        previous_hash=last.hash if last else FIRST_PREVIOUS,
        hash="",
    ).sealed()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions of its own: see _begin_sqlite
    # EXTRA also syncs the directory: a charge that was reported as taken survives a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")


def _begin_sqlite(connection: sa.Connection) -> None:
    # IMMEDIATE takes the write lock before the first read: a deferred transaction could read a sum that is stale
    # by the time it writes, and would then fail instead of waiting.
    write = connection.get_execution_options().get("qlog_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def url_of(place: str | Path, keeper: str = "ledger") -> URL:
    """The URL of a path or an SQLAlchemy URL, which must name one of the two databases."""
    if isinstance(place, Path) or "://" not in place:
        return URL.create("sqlite", database=str(place))
    try:
        url = make_url(place)
    except ArgumentError:
        raise LedgerError(
            f"the {keeper}'s URL cannot be read: write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise LedgerError(f"a {keeper} is kept in SQLite or PostgreSQL, not in {url.get_backend_name()}")
    if url.database in (None, "", ":memory:"):
        raise LedgerError(f"a {keeper} in memory would forget what was spent: name a file")
    return url


def ensure_file(path: Path, keeper: str = "ledger") -> None:
    """An empty file that only its owner may read, made before SQLite would make one that everybody may."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerError(f"the {keeper} at {path} cannot be made: {error.strerror}") from None
