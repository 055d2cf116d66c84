"""Processes of the operating system: who runs this one, what ends it, and children that end with their parent."""

from __future__ import annotations

import ctypes
import getpass
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a server takes as a request to end."""
PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


def user_name() -> str:
    """The operating system's name for the user, without a host: the ledger may travel to an auditor."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run a user that has no name
        return f"uid {os.getuid()}"


@contextmanager
def on_signals(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have the signals that ask for the end handled, for the time of a block."""
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_parent(parent: int, by: int = signal.SIGTERM) -> None:
    """Have the kernel send this process a signal when its parent is gone, a kill -9 included.

    To be called in the child, with the process number of the parent; also between fork and exec, which keeps it. The
    kernel watches the thread that forked: fork in one that lasts. Only Linux can do this; elsewhere nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(by), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before this was asked for
        os.kill(os.getpid(), by)
