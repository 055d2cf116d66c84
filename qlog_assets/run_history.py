"""Dagster's history of runs, in the files where Dagster keeps it by default, without opening them for every event.

Dagster's own SQLite storage makes a database engine, compiles its statements, opens the file and syncs the disk for
each event of a run, and reads all of its migrations for each database it looks at. On the peers' task that took some
0.75 of 5.3 seconds; kept open, it takes 0.25. The files are the same: with Dagster's own storage in dagster.yaml they
are read as before.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Self

from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sql import get_alembic_config, stamp_alembic_rev
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

from qlog_assets.errors import QlogError

OPEN_SHARDS = 8
"""How many runs' databases stay open. A run needs its own and the index; the UI looks at a few runs at once."""


class RunHistory(DagsterSqliteStorage):
    """What dagster.yaml names: runs, events and schedules below DAGSTER_HOME."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        base = Path(base_dir).expanduser()
        if not (base / "dagster.yaml").exists():
            # A history made where no instance is would be believed by whoever looks there.
            raise QlogError(f"DAGSTER_HOME names {base}, which has no dagster.yaml: name the warehouse's own")
        self.base_dir = str(base)
        self._run_storage = OpenRunStorage.from_local(str(base / "history"))
        self._event_log_storage = OpenEventLog(str(base / "history" / "runs"))
        self._schedule_storage = ReadyScheduleStorage.from_local(str(base / "schedules"))
        self._inst_data = inst_data
        # Not DagsterSqliteStorage's: it would make the storages that these replace.
        super(DagsterSqliteStorage, self).__init__()

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        return cls(inst_data=inst_data, **config_value)


class OpenRunStorage(SqliteRunStorage):
    """The runs, through one engine for the life of the instance."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engine = kept_engine(conn_string)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> Self:
        if is_newest(Path(base_dir) / "runs.db"):
            return cls(create_db_conn_string(base_dir, "runs"), inst_data)
        return super().from_local(base_dir, inst_data)

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        close(self._engine)


class ReadyScheduleStorage(SqliteScheduleStorage):
    """The schedules. A run of the command line never asks for them, so only opening them is cut short."""

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> SqliteScheduleStorage:
        if is_newest(Path(base_dir) / "schedules.db"):
            return cls(create_db_conn_string(base_dir, "schedules"), inst_data)
        return super().from_local(base_dir, inst_data)


class OpenEventLog(SqliteEventLogStorage):
    """The events: one database a run and an index over all of them, the last few kept open."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, tuple[Engine, FileIdentity]] = OrderedDict()
        super().__init__(base_dir, inst_data)

    @contextlib.contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).begin() as connection:
            yield connection

    def store_event(self, event: EventLogEntry) -> None:
        super().store_event(event)
        # The UI watches a run's database file. What is kept open is written to the log beside it for a long time.
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path_for_shard(event.run_id))

    def _engine(self, shard: str) -> Engine:
        path = self.path_for_shard(shard)
        engine, file = self._engines.get(shard, (None, None))
        if engine is None or file != identity(path):
            # New here, or deleted by somebody else since: a connection to a file that has no name would write nowhere.
            self._close(shard)
            engine = kept_engine(self.conn_string_for_shard(shard))
            self._initdb(engine, for_index_shard=shard == INDEX_SHARD_NAME)
            self._engines[shard] = (engine, identity(path))
        self._engines.move_to_end(shard)
        if len(self._engines) > OPEN_SHARDS:
            self._close(next(iter(self._engines)))
        return engine

    def _close(self, shard: str) -> None:
        engine, file = self._engines.pop(shard, (None, None))
        if engine is None:
            return
        if file == identity(self.path_for_shard(shard)):
            close(engine)
        else:
            engine.dispose()

    def _initdb(self, engine: Engine, for_index_shard: bool = False) -> None:
        path = Path(str(engine.url.database))
        place(path, empty_database()[0])
        if not is_newest(path):
            super()._initdb(engine, for_index_shard)

    def wipe(self) -> None:
        with self._db_lock:
            self._close_all()
        super().wipe()

    def dispose(self) -> None:
        super().dispose()
        with self._db_lock:
            self._close_all()

    def _close_all(self) -> None:
        for shard in list(self._engines):
            self._close(shard)


FileIdentity = tuple[int, int] | None


def identity(path: str) -> FileIdentity:
    """What tells a file from another one of its name; None where there is none."""
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def kept_engine(conn_string: str, synchronous: str = "NORMAL") -> Engine:
    """An engine whose connections stay open between statements, which SQLAlchemy's default pool does.

    What is written is synced to the disk by `close`, not at each event. A power cut in the middle of a run may take its
    last events along, and leaves the database whole; the ledger is another database, and synced at each.
    """
    engine = create_engine(conn_string, max_overflow=-1, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})

    @event.listens_for(engine, "connect")
    def sync_when_closed(connection: sqlite3.Connection, record: object) -> None:
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    return engine


def close(engine: Engine) -> None:
    """Sync what was written, also where another process still has the file open, and close the connections."""
    # On a full disk the events stay in the log beside the file, where every reader finds them.
    try:
        with contextlib.suppress(OperationalError), engine.connect() as connection:
            connection.execute(text("PRAGMA wal_checkpoint(PASSIVE)"))
    finally:
        engine.dispose()


@cache
def empty_database() -> tuple[bytes, str]:
    """An events database without events, as Dagster makes it, and the revision its schema has."""
    with tempfile.TemporaryDirectory(prefix="qlog-history-") as scratch:
        path = Path(scratch) / "empty.db"
        engine = kept_engine(f"sqlite:///{path}", synchronous="OFF")
        SqlEventLogStorageMetadata.create_all(engine)
        with engine.connect() as connection:
            connection.execute(text("PRAGMA journal_mode = WAL"))
            stamp_alembic_rev(get_alembic_config(sqlite_event_log.__file__), connection)
            connection.commit()
        engine.dispose()
        revision = revision_of(path)
        assert revision is not None
        return path.read_bytes(), revision


def is_newest(path: Path) -> bool:
    """Whether a database of Dagster's has the schema of the installed version: all its databases have one revision."""
    return revision_of(path) == empty_database()[1]


def revision_of(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=SQLITE_BUSY_TIMEOUT_SECONDS)) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError:
        # Made by a version that did not say, not finished yet, or no database: Dagster knows what to do, or to say.
        return None
    return None if found is None else str(found[0])


def place(path: Path, content: bytes) -> None:
    """Make a file whole, unless there is one: of two processes that open a run's database at once, one makes it.

    A log that was left of a deleted database would be taken for this one's. Dagster makes an empty file then, and
    SQLite throws that log away.
    """
    if path.exists() or Path(f"{path}-wal").exists():
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-") as stream:
        stream.write(content)
        stream.flush()
        # Somebody was first; or the file system knows no links, and Dagster makes the file its own way.
        with contextlib.suppress(OSError):
            os.link(stream.name, path)
