"""Scratch directories and locks that a kill -9 cannot leave behind for good, and writes that survive a power cut.

Whoever makes a scratch directory holds a lock on it that the kernel drops when its process dies. One that nobody holds
was left behind, and whoever works next removes it: no clock and no process number decides that. What is in the files
is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from qlog_assets.errors import QlogError

PREFIX = ".qlog-tmp-"
"""No other program names its directories so: what is left behind under it is ours to remove."""
POLL_SECONDS = 0.05


class BusyError(QlogError):
    """Another process holds what this one needs."""


def remove_tree(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def temporary_directory(beside: Path, remove: Callable[[Path], None] = remove_tree) -> Iterator[Path]:
    """A scratch directory on the same file system; removed unless it was renamed away."""
    make_private(beside)
    scratch, descriptor = _make_held(beside)
    maker = os.getpid()
    try:
        yield scratch
    finally:
        try:
            # A process that was forked meanwhile has this block to end as well, and nothing to remove.
            if os.getpid() == maker:
                remove(scratch)
        except BaseException:
            # A signal ended the first try half-way.
            remove(scratch)
            raise
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def system_scratch() -> Iterator[Path]:
    """A scratch directory where the machine keeps such things, for what belongs to no warehouse.

    All lie in one directory of the user's own, so that the next one finds what a killed process left there.
    """
    beside = Path(tempfile.gettempdir()) / f"qlog-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        beside.mkdir(mode=0o700)
    facts = beside.lstat()
    # Everybody may write in the directory above: somebody may have been there first.
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise QlogError(f"{beside}: is no directory of yours alone: remove it, or set TMPDIR to another place")
    remove_leftovers(beside)
    with temporary_directory(beside) as scratch:
        yield scratch


def remove_leftovers(folder: Path, remove: Callable[[Path], None] = remove_tree) -> None:
    """Remove the scratch directories in a folder that no living process holds."""
    for path in folder.glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or nothing that was made here
            continue
        if _hold(descriptor) is True:
            remove(path)
        os.close(descriptor)


@contextlib.contextmanager
def hold_lock(path: Path, wait_seconds: float, busy: str) -> Iterator[None]:
    """Hold a lock file for the time of a block. Raises `busy` as an error if another process keeps it too long."""
    make_private(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + wait_seconds
        # A file system without locks lets everybody in: what must never happen is prevented by the ledger and by
        # renames; the lock spares work and makes an order out of what would be a refusal.
        while _hold(descriptor) is False:
            if time.monotonic() >= until:
                raise BusyError(f"{busy} (waited {wait_seconds:g} s)")
            time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, readable by the owner alone."""
    if directory.is_dir():
        return
    if not directory.parent.exists():
        make_private(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)


def sync(path: Path) -> None:
    """Make a file's bytes, or a directory's names, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """The same for a directory with everything in it."""
    for path in directory.rglob("*"):
        sync(path)
    sync(directory)


def _make_held(beside: Path) -> tuple[Path, int]:
    while True:
        scratch = Path(tempfile.mkdtemp(dir=beside, prefix=PREFIX))
        try:
            descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        # Somebody who cleans up may have found it before it was held: then it is theirs to remove.
        if _hold(descriptor) is not False and _is_still(scratch, descriptor):
            return scratch, descriptor
        os.close(descriptor)


def _hold(descriptor: int) -> bool | None:
    """Whether the lock was free and is now ours; None where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR) else None
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
