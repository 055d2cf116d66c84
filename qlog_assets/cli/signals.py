"""SIGINT and SIGTERM: the first is an exception in the main thread, the second ends the process at once.

Dagster puts handlers of its own in place while a step runs, and they do not tell which signal came. So the numbers are
read from the descriptor that Python writes every signal to, whoever handles it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType
from typing import NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM)
ONE_GESTURE_SECONDS = 0.5
"""`timeout` sends its signal to the process and to its group: what comes twice so soon was meant once."""
ASKED = 0
"""Written to the descriptor to learn that all before it was heard. No signal has this number."""


class Stopped(BaseException):
    """A signal asks this process to end. No `Exception`: nothing on the way may take it for a failure of its own."""


class Listener(threading.Thread):
    """Hears the signals of this process, whatever the main thread is doing."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first: signal.Signals | None = None
        self._since = 0.0
        self._reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)  # as Python asks of a descriptor that a signal handler writes to
        self._caught_up = threading.Event()

    def run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # the main thread's, so that its waiting ends
        while numbers := os.read(self._reading, 64):
            for number in numbers:
                if number == ASKED:
                    self._caught_up.set()
                elif number in STOPPING:
                    self._hear(signal.Signals(number))

    def _hear(self, number: signal.Signals) -> None:
        if self.first is None:
            self.first, self._since = number, time.monotonic()
        elif time.monotonic() - self._since > ONE_GESTURE_SECONDS:
            os._exit(exit_code(number))

    def catch_up(self) -> None:
        """Wait until every signal that came was heard."""
        self._caught_up.clear()
        os.write(self.writing, bytes([ASKED]))
        self._caught_up.wait()


_listener: Listener | None = None


def watch() -> None:
    """From now on SIGINT and SIGTERM stop this process in order; a second one at once."""
    global _listener  # noqa: PLW0603 - a process has one set of signals
    _listener = Listener()
    _listener.start()
    signal.set_wakeup_fd(_listener.writing, warn_on_full_buffer=False)
    for number in STOPPING:
        signal.signal(number, _stop)


def received() -> signal.Signals | None:
    """The signal that stopped this process, if one did."""
    if _listener is None:
        return None
    _listener.catch_up()
    return _listener.first


def exit_code(number: int) -> int:
    """As a shell tells that a signal ended a command."""
    return 128 + number


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Stopped
