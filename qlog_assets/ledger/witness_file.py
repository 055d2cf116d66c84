"""The witness in a file: one event per line as JSON, only ever appended to, so that `chattr +a` may be set on it.

A process that dies while it writes leaves a line without an end. It cannot be taken away in a file that may only grow:
the next writer ends it and writes the event again, and readers leave out what is not a whole event. Leaving out is
safe, because a gap in the history shows in the chain of hashes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path

from qlog_assets.ledger.chain import Event, hash_of
from qlog_assets.ledger.store import LedgerError
from qlog_assets.ledger.witness import Witness, WitnessError
from qlog_assets.storage.digests import canonical_line
from qlog_assets.storage.scratch import POLL_SECONDS, sync

FIELDS = {field.name for field in fields(Event)}
TAIL_BYTES = 1 << 16
"""How much of a file's end is read first in search of its last event; more where that holds no whole one."""


class FileWitness(Witness):
    """A witness in an append-only file. Holds no descriptor between calls, so it survives a fork."""

    def __init__(self, path: Path, wait_seconds: float = 30) -> None:
        self.path = path
        self.where = str(path)
        self.wait_seconds = wait_seconds

    def last(self) -> Event | None:
        with self._opened(os.O_RDONLY) as descriptor:
            return None if descriptor is None else _last_event(descriptor)

    def read(self) -> list[Event]:
        with self._opened(os.O_RDONLY) as descriptor:
            found = [] if descriptor is None else _events_in(_read_from(descriptor, 0))
        # A whole line whose end was missing was written again: it is one event.
        return [event for number, event in enumerate(found) if number == 0 or event != found[number - 1]]

    def catch_up(self, events: Sequence[Event]) -> None:
        new = not self.path.exists()
        with self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            assert descriptor is not None
            missing = self.missing_of(_last_event(descriptor), events)
            if missing:
                text = "".join(f"{canonical_line(asdict(event))}\n" for event in missing)
                write_whole(descriptor, (b"" if _ends_whole(descriptor) else b"\n") + text.encode("ascii"))
                os.fsync(descriptor)
        if new:
            sync(self.path.parent)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int | None]:
        """The file, open and locked: shared for reading, alone for writing. None where there is no file to read."""
        try:
            # Not blocking: opening a pipe that nobody writes to would wait for ever.
            descriptor = os.open(self.path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            if not self.path.parent.is_dir():
                raise WitnessError(
                    f"the witness at {self.where} cannot be reached: its directory is not there"
                ) from None
            yield None
            return
        except OSError as error:
            raise self._unusable(error) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise WitnessError(f"the witness at {self.where} cannot be used: it is not a file")
            self._lock(descriptor, fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX)
            yield descriptor
        except OSError as error:
            raise self._unusable(error) from None
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int, kind: int) -> None:
        until = time.monotonic() + self.wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                    raise
            if time.monotonic() >= until:
                raise WitnessError(
                    f"the witness at {self.where} is locked by another process (waited {self.wait_seconds:g} s)"
                )
            time.sleep(POLL_SECONDS)

    def _unusable(self, error: OSError) -> LedgerError:
        return WitnessError(f"the witness at {self.where} cannot be used: {error.strerror or error}")


def _events_in(data: bytes) -> list[Event]:
    return [event for line in data.split(b"\n") if (event := _event_of(line)) is not None]


def _event_of(line: bytes) -> Event | None:
    """The event that a line holds; None where it is not a whole one."""
    try:
        values = json.loads(line)
        if not isinstance(values, dict) or set(values) != FIELDS or not isinstance(values["seq"], int):
            return None
        event = Event(**values)
        return event if hash_of(event) == event.hash else None
    except (ValueError, TypeError, RecursionError):
        return None


def _last_event(descriptor: int) -> Event | None:
    """The event with the highest number, wherever it stands: a copy of an old line at the end sets nothing back."""
    return max(_events_in(_read_from(descriptor, 0)), key=lambda event: event.seq, default=None)


def _ends_whole(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


def _read_from(descriptor: int, start: int) -> bytes:
    parts = []
    while part := os.pread(descriptor, 1 << 20, start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of it: a disk that fills up takes a part, and says so only when it is asked again."""
    while data:
        data = data[os.write(descriptor, data) :]
