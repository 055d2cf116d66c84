"""Runs Dagster jobs from Python as the UI would, on the same instance.

One run is one process's work; several months run as several processes, with the memory limit divided among them.
"""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from qlog_assets.checks.beside import checking_beside
from qlog_assets.errors import QlogError
from qlog_assets.processes import end_with_parent
from qlog_assets.storage.dagster_home import owner_only, prepare_home
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import dagster as dg

LEAST_MEMORY_MB = 512
Tell = Callable[[str], None]
"""Hears what is being done."""
Bar = Callable[[int, int, str], None]
"""Hears how many parts of a long job are done, of how many, and which one is next."""


def ignore(step: str) -> None:
    """For callers who do not want to hear."""


class RunFailedError(QlogError):
    """A Dagster run that did not succeed: its reason in one line."""


@dataclass(frozen=True)
class JobRun:
    """One run to make: a job, a partition, and what the launchpad would say."""

    job: str
    partition: str | None
    config: Mapping[str, Any]
    new_in: str | None = None
    """The dynamic partitions that the partition is added to first, where it is one of those."""
    evaluates_checks: bool = True


@contextmanager
def dagster_instance(warehouse: Warehouse) -> Iterator[dg.DagsterInstance]:
    import dagster as dg

    with saying_what_failed(), owner_only():
        prepare_home(warehouse)
        with dg.DagsterInstance.get() as instance:
            yield instance


def get_ready(warehouse: Warehouse) -> None:
    """Import what a run needs and make the instance's databases: a second or two, better spent beside other work."""
    from qlog_assets import definitions  # noqa: F401

    with dagster_instance(warehouse):
        pass


def run(warehouse: Warehouse, work: JobRun, tell: Tell = ignore, bar: Bar | None = None) -> str:
    """Run a job for a partition; returns the run's id. A failure is one line that says why."""
    with checking_beside() if work.evaluates_checks else nullcontext():
        return _run_here(warehouse, work, tell, bar)


def _run_here(warehouse: Warehouse, work: JobRun, tell: Tell, bar: Bar | None) -> str:
    import dagster as dg

    from qlog_assets.definitions import defs
    from qlog_assets.orchestration.asking import COMMAND, INTERFACE

    config = {**work.config, "loggers": {"events": {}}}
    with dagster_instance(warehouse) as instance, listening(tell, bar) as heard, without_echoes():
        if work.new_in is not None and work.partition is not None:
            instance.add_dynamic_partitions(work.new_in, [work.partition])
        job = defs.resolve_job_def(work.job)
        try:
            result = job.execute_in_process(
                instance=instance, partition_key=work.partition, run_config=config, tags={INTERFACE: COMMAND}
            )
        except dg.DagsterUnknownPartitionError:
            raise RunFailedError(
                f"{work.partition} is outside the policy's months: change first or last in the policy"
            ) from None
        except dg.DagsterError:
            # Dagster says that a blocking check failed, and not why: the check said it before.
            if not heard.failed_checks:
                raise
            raise RunFailedError("; ".join(heard.failed_checks)) from None
        if heard.refusals:
            raise RunFailedError(heard.refusals[-1])
        return str(result.run_id)


@contextmanager
def saying_what_failed() -> Iterator[None]:
    """One line for a full disk, a database that cannot be written, too little memory: in a run and in what opens it."""
    try:
        yield
    except Exception as error:
        if (reason := machine_words(error)) is None:
            raise
        raise RunFailedError(f"the machine could not finish the run ({reason}): mend that and run it again") from error


def machine_words(error: BaseException) -> str | None:
    """What a file, a database or the memory says of its failure; None for any other error.

    These texts name files, never values.
    """
    import duckdb
    from sqlalchemy.exc import OperationalError

    if isinstance(error, MemoryError):
        return "too little memory"
    if not isinstance(error, OSError | OperationalError | duckdb.IOException | duckdb.OutOfMemoryException):
        return None
    words = str(getattr(error, "orig", None) or error).strip().splitlines()
    return words[0] if words else type(error).__name__


ECHO = "Exception while writing logger call to event log"
"""How Dagster begins when it prints an event that its history could not take."""


class Unechoed(io.TextIOBase):
    """Standard error without Dagster's echoes.

    It has no `buffer`, and closing it closes nothing else: a library that wraps the stream it finds, and drops the
    wrapper later, would otherwise close standard error for everybody.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if text.startswith(ECHO) else self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


@contextmanager
def without_echoes() -> Iterator[None]:
    """Keep Dagster from printing whole events where its history has no room: it raises what failed as well."""
    if sys.stderr is None:  # The caller closed it.
        yield
        return
    with redirect_stderr(Unechoed(sys.stderr)):
        yield


def run_all(
    warehouse: Warehouse, works: Sequence[JobRun], tell: Tell = ignore, *, in_order: bool = False
) -> dict[str, str]:
    """Run several partitions, side by side where there is more than one; returns what failed, by partition.

    `in_order`: one after the other, each only if those before it succeeded, because it looks at what they published.
    """
    if len(works) == 1 or in_order:
        # One process that checks for all of them: its imports take seconds.
        with checking_beside() if any(work.evaluates_checks for work in works) else nullcontext():
            return _run_in_order(warehouse, works, tell)
    at_once = min(len(works), os.cpu_count() or 1)
    share = max(LEAST_MEMORY_MB, warehouse.settings.memory_limit_mb // at_once)
    with saying_what_failed():
        prepare_home(warehouse)
    preload()
    # Forked children share the imports. What had threads in this process, DuckDB and the imports ahead, was closed and
    # has none any more.
    fork = multiprocessing.get_context("fork")
    failures: dict[str, str] = {}
    with ProcessPoolExecutor(at_once, fork, initializer=_begin_work, initargs=(os.getpid(), share)) as pool:
        futures = {pool.submit(_run_quietly, warehouse, work): str(work.partition) for work in works}
        with ending_children():
            for future in as_completed(futures):
                partition = futures[future]
                try:
                    failure = future.result()
                except BrokenProcessPool:
                    # One process that dies takes its siblings along; the door takes up each of them where it stopped.
                    failure = "its process was killed, perhaps for want of memory: run it again, at no new charge"
                tell(f"{partition} {'failed' if failure else 'done'}")
                if failure:
                    failures[partition] = failure
    return failures


def _run_in_order(warehouse: Warehouse, works: Sequence[JobRun], tell: Tell) -> dict[str, str]:
    """One after the other, until one fails; returns what failed and what was not begun."""
    for number, work in enumerate(works):
        try:
            run(warehouse, work, tell)
        except QlogError as error:
            left = {str(each.partition): f"not begun: {work.partition} comes first" for each in works[number + 1 :]}
            return {str(work.partition): str(error), **left}
        if len(works) > 1:
            tell(f"{work.partition} done")
    return {}


@contextmanager
def ending_children() -> Iterator[None]:
    """Have the children stop in order where this process is to end before they are done."""
    try:
        yield
    except Exception:
        raise  # a month that failed: the others are finished
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def preload() -> None:
    """Import what every run needs, before forking."""
    from qlog_assets import definitions  # noqa: F401
    from qlog_assets.checks.suites import load_library

    load_library()


_heard: list[int] = []
"""In a child: a pipe that Python writes the numbers of its signals to."""


def _begin_work(parent: int, megabytes: int) -> None:
    """What a child does first: it ends with its parent, which alone tells it to stop, and knows its share of memory."""
    end_with_parent(parent, by=signal.SIGKILL)
    # Not the parent's descriptor, which would take this process's signals for the parent's.
    _heard[:] = os.pipe()
    for end in _heard:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(_heard[1], warn_on_full_buffer=False)
    # A terminal sends control-C to everybody: the parent hears it and passes it on, once.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ["QLOG_MEMORY_MB"] = str(megabytes)


def _run_quietly(warehouse: Warehouse, work: JobRun) -> str | None:
    """Run one partition in a process of its own; the reason if it was refused."""
    try:
        run(warehouse, work)
    except QlogError as error:
        return str(error)
    finally:
        if _was_told_to_stop():
            os._exit(1)  # it has cleaned up, and the pool would give it the next month
    return None


def _was_told_to_stop() -> bool:
    """Whether a signal came to this child, whoever handled it."""
    try:
        return bool(os.read(_heard[0], 1))
    except BlockingIOError:
        return False


@dataclass(frozen=True)
class Heard:
    """What a run said beside its result."""

    failed_checks: list[str] = field(default_factory=list)
    """Why checks failed that stop a run. One that only warns stops nothing, and the UI shows it."""
    refusals: list[str] = field(default_factory=list)
    """Why the door refused what was asked: then the run ends without failure and without output."""


@contextmanager
def listening(tell: Tell, bar: Bar | None = None) -> Iterator[Heard]:
    """Pass the names of steps that start to `tell` and how far a study is to `bar`; hear failed checks and refusals."""
    import dagster as dg

    from qlog_assets.orchestration.asking import REFUSED
    from qlog_assets.orchestration.jobs import EVENTS_LOGGER
    from qlog_assets.orchestration.study_assets import PROGRESS

    heard = Heard()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", None) or {}
            event = meta.get("dagster_event")
            said = str(meta.get("orig_message") or "")
            if event is None:
                if bar is not None and said.startswith(PROGRESS):
                    counted, _, step = said.removeprefix(PROGRESS).partition(" ")
                    done, _, of = counted.partition("/")
                    bar(int(done), int(of), step)
                return
            if event.event_type_value == "STEP_START":
                tell(str(event.step_key))
            elif event.event_type_value == "ASSET_CHECK_EVALUATION" and not event.event_specific_data.passed:
                facts = event.event_specific_data
                if facts.severity == dg.AssetCheckSeverity.WARN:
                    return
                heard.failed_checks.append(
                    f"{facts.asset_key.to_user_string()} {facts.check_name}: {facts.description}"
                )
            elif event.event_type_value == "ASSET_OBSERVATION":
                facts = event.event_specific_data.asset_observation.metadata
                if REFUSED in facts:
                    heard.refusals.append(str(facts[REFUSED].value))

    listener, logger = Listener(), logging.getLogger(EVENTS_LOGGER)
    logger.addHandler(listener)
    try:
        yield heard
    finally:
        logger.removeHandler(listener)
