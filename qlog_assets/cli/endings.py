"""How a command ends: one line and an exit code for whatever stopped it, never a traceback nobody asked for.

| code | meaning |
|---|---|
| 0 | done |
| 1 | done, with a finding; or nobody read the answer to its end |
| 2 | refused, or the machine could not do it: the line says what to mend |
| 70 | a fault of qlog's own: QLOG_TRACEBACK=1 shows where |
| 130, 143 | stopped by SIGINT or SIGTERM: nothing half-written, run it again |
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from typer.exceptions import TyperException

from qlog_assets.cli import signals
from qlog_assets.cli.output import stderr_line
from qlog_assets.errors import QlogError
from qlog_assets.settings import PACKAGE

UNREAD = 1
"""Where nobody read the answer to its end; rich ends with the same while it prints."""
REFUSED = 2
FAULT = 70
"""What sysexits.h calls EX_SOFTWARE."""
TRACEBACK = "QLOG_TRACEBACK"
"""The environment variable that shows where a fault is. What is printed then may quote a value of the log."""


def run_command(command: Callable[[], object]) -> int:
    """Run a command; returns its exit code, after the one line that it may need."""
    prepare_streams()
    signals.watch()
    try:
        code = command()
    except BaseException as error:  # noqa: BLE001 - the last one to see it: whatever it is, it ends here
        return explain(error)
    return code if isinstance(code, int) else 0


def prepare_streams() -> None:
    """Make standard output and error fit for any text, and let warnings of ours be lines like the others."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The caller closed it: the next file that is opened would get the number, and what a library prints.
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler()
    handler.emit = lambda record: stderr_line(f"qlog: {record.getMessage()}")  # type: ignore[method-assign]
    logger = logging.getLogger("qlog_assets")
    logger.handlers, logger.propagate = [handler], False


def explain(error: BaseException) -> int:
    """Say in one line what stopped a command; returns the exit code."""
    if (number := signals.received()) is not None:
        stderr_line(f"qlog: stopped by {number.name}: nothing half-written is left; run it again to finish it")
        return signals.exit_code(number)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else UNREAD
    if isinstance(error, QlogError | TyperException):
        stderr_line(f"qlog: {error.format_message() if isinstance(error, TyperException) else error}")
        return REFUSED
    if (reason := unwritten_answer()) is not None:
        say_unwritten(reason)
        return REFUSED
    if (trouble := machine_trouble(error)) is not None:
        stderr_line(f"qlog: the machine could not do it ({trouble}): mend that and run it again")
        return REFUSED
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    # Not the error's own words: those of a library may quote a value of the log.
    stderr_line(
        f"qlog: a fault of qlog's own ({type(error).__name__}{place_of(error)}): {TRACEBACK}=1 shows where; "
        "please report it"
    )
    return FAULT


def machine_trouble(error: BaseException) -> str | None:
    """What failed, where it is the machine that did: a file, a database, too little memory."""
    from qlog_assets.api.runs import machine_words

    return machine_words(error)


def place_of(error: BaseException) -> str:
    """Where in the package an error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    return f" at {Path(ours[-1].filename).relative_to(PACKAGE)}:{ours[-1].lineno}" if ours else ""


def unwritten_answer() -> OSError | None:
    """Why standard output does not take what was printed, if it does not."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def say_unwritten(reason: OSError) -> None:
    stderr_line(f"qlog: the answer could not be written to standard output ({reason.strerror}): what was asked is done")


def end(code: int) -> NoReturn:
    """End the process now. The interpreter would take apart every imported module first, which takes a second."""
    atexit._run_exitfuncs()
    reason = unwritten_answer()
    if isinstance(reason, BrokenPipeError):
        code = code or UNREAD
    elif reason is not None and code != REFUSED:
        say_unwritten(reason)
        code = REFUSED
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.flush()
    os._exit(code)
