"""Great Expectations in a process of its own, beside a command: importing it takes four seconds of a core, and a thread
would take them from the command's own imports.

Only counts and released tables go to it, through a pipe. Where it ends before it has answered, nothing passes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

from qlog_assets.checks import suites
from qlog_assets.processes import end_with_parent


class Checker:
    """The process beside, and the pipes to it."""

    def __init__(self) -> None:
        self._asked = 0
        self._process = subprocess.Popen(
            # -P: nothing is imported from the directory that the command happens to be called in.
            [sys.executable, "-P", "-W", "ignore", "-m", "qlog_assets.checks.beside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the library's log may quote a value; what it found comes back by the pipe
            process_group=0,  # a terminal's control-C is for the command, which ends this one
            preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGKILL),  # noqa: PLW1509
        )

    def evaluate(self, *question: Any) -> suites.CheckResult:
        """What `suites.evaluate` answers there."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked += 1
        try:
            send(self._process.stdin, (self._asked, question))
            number, answer = receive(self._process.stdout)
        except BaseException as error:
            # An answer that comes later would be taken for that of the next question.
            self.end()
            if not isinstance(error, OSError | EOFError | ValueError | pickle.UnpicklingError):
                raise
            raise suites.CheckError(
                f"{question[0]}: the process that checks ended before it answered, perhaps for want of memory: run it "
                "again"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        if number != self._asked or not isinstance(answer, suites.CheckResult):
            self.end()
            raise suites.CheckError(f"{question[0]}: the process that checks gave no result")
        return answer

    def end(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was not sent yet
                pipe.close()
        self._process.wait()


@contextlib.contextmanager
def checking_beside() -> Iterator[None]:
    """Have suites evaluated beside a block, unless this process has the library, or another block has begun it."""
    if suites.is_loaded() or suites.evaluate_elsewhere.get() is not None:
        yield
        return
    checker = Checker()
    token = suites.evaluate_elsewhere.set(checker.evaluate)
    try:
        yield
    finally:
        suites.evaluate_elsewhere.reset(token)
        checker.end()


def send(pipe: IO[bytes], message: object) -> None:
    pickle.dump(message, pipe)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    return pickle.load(pipe)


def answer_questions(evaluate: Callable[..., suites.CheckResult] = suites.evaluate) -> None:
    """The other process: answers until its parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    suites.load_library()
    while True:
        try:
            number, question = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: object = evaluate(*question)
        except Exception as error:  # noqa: BLE001 - for the asker, who fails as if it had been here
            answer = error
        send(answers, (number, answer))


if __name__ == "__main__":
    gc.set_threshold(100_000)  # as the command itself: see cli/app.py
    answer_questions()
