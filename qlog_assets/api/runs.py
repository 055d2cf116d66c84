"""Runs Dagster jobs from Python as the UI would, on the same instance. The command line is its only user.

One run is one process's work; several months run as several processes, with the memory limit divided among them.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from qlog_assets.errors import QlogError
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import dagster as dg

DAGSTER_YAML = """\
# Written by qlog: nothing leaves this machine, no sign-up window covers the UI, what a library may print of the log
# while a step runs is not kept, and the history's files stay open while a run writes them.
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
storage:
  custom:
    module: qlog_assets.run_history
    class: RunHistory
    config:
      base_dir:
        env: DAGSTER_HOME
"""
OURS = "# Written by qlog"
"""How a dagster.yaml begins that nobody made their own: it follows this version."""
LEAST_MEMORY_MB = 512
EVENTS_LOGGER = "qlog.dagster_events"
"""A logger that prints nothing: the command line listens to it instead of Dagster's console output."""


class RunFailedError(QlogError):
    """A Dagster run that did not succeed: its reason in one line."""


@dataclass(frozen=True)
class Work:
    """One run to make: a job, a partition, and what the launchpad would say."""

    job: str
    partition: str
    config: Mapping[str, Any]
    new_in: str | None = None
    """The dynamic partitions that the partition is added to first, where it is one of those."""
    evaluates_checks: bool = True


def prepare_instance(warehouse: Warehouse) -> None:
    """Make the warehouse's DAGSTER_HOME, where the UI looks, and point this process at it."""
    warehouse.make()
    settings = warehouse.dagster / "dagster.yaml"
    written = settings.read_text(encoding="utf-8") if settings.exists() else OURS
    if written.startswith(OURS) and written != DAGSTER_YAML:
        settings.write_text(DAGSTER_YAML, encoding="utf-8")
    os.environ["DAGSTER_HOME"] = str(warehouse.dagster)
    os.environ["QLOG_HOME"] = str(warehouse.home)
    # Great Expectations asks at import; it must not find out by sending something.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"


@contextmanager
def dagster_instance(warehouse: Warehouse) -> Iterator[dg.DagsterInstance]:
    import dagster as dg

    with saying_what_failed():
        prepare_instance(warehouse)
        with dg.DagsterInstance.get() as instance:
            yield instance


@contextmanager
def existing_instance(directory: Path) -> Iterator[dg.DagsterInstance]:
    """The instance whose dagster.yaml lies in a directory, whichever one this process is pointed at."""
    import dagster as dg
    from dagster_shared.utils import environ

    # The file asks the environment where the history is.
    with environ({"DAGSTER_HOME": str(directory)}):
        instance = dg.DagsterInstance.from_config(str(directory))
    with instance:
        yield instance


def get_ready(warehouse: Warehouse) -> None:
    """Import what a run needs and make the instance's databases: a second or two, better spent beside other work."""
    from qlog_assets import definitions  # noqa: F401

    with dagster_instance(warehouse):
        pass


def serve_ui(warehouse: Warehouse, host: str, port: int, tell: Callable[[str], None]) -> NoReturn:
    """Become Dagster's web server and daemon on the warehouse's instance."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise QlogError(f"cannot serve on {host}:{port} ({error.strerror}): choose another --port") from None
    prepare_instance(warehouse)
    tell(f"http://{host}:{port} shows {warehouse.home}; control-C ends it")
    sys.stdout.flush()
    # `dagster dev` recommends another tool in a warning; the definitions are loaded by name, from any directory.
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-m", "qlog_assets.definitions"]
    os.execv(sys.executable, [*command, "--host", host, "--port", str(port)])


def run(warehouse: Warehouse, work: Work, tell: Callable[[str], None] = lambda step: None) -> str:
    """Run a job for a partition; returns the run's id. A failure is one line that says why."""
    import dagster as dg
    from dagster._core.errors import DagsterAssetCheckFailedError

    from qlog_assets.checks.suites import loading_ahead
    from qlog_assets.definitions import defs

    ahead = loading_ahead() if work.evaluates_checks else nullcontext()
    config = {**work.config, "loggers": {"events": {}}}
    with dagster_instance(warehouse) as instance, listening(tell) as failed_checks, ahead:
        if work.new_in is not None:
            instance.add_dynamic_partitions(work.new_in, [work.partition])
        job = defs.resolve_job_def(work.job)
        try:
            result = job.execute_in_process(instance=instance, partition_key=work.partition, run_config=config)
        except dg.DagsterUnknownPartitionError:
            raise RunFailedError(
                f"{work.partition} is outside the policy's months: change first or last in the policy"
            ) from None
        except DagsterAssetCheckFailedError:
            raise RunFailedError("; ".join(failed_checks) or "a blocking check failed") from None
        return str(result.run_id)


@contextmanager
def saying_what_failed() -> Iterator[None]:
    """One line for a full disk, a database that cannot be written, too little memory: in a run and in what opens it.

    These texts name files, never values.
    """
    import duckdb
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except (OSError, OperationalError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        words = str(getattr(error, "orig", None) or error).strip().splitlines()
        reason = words[0] if words else type(error).__name__
        raise RunFailedError(f"the machine could not finish the run ({reason}): mend that and run it again") from error


def run_all(
    warehouse: Warehouse, works: Sequence[Work], tell: Callable[[str], None] = lambda step: None
) -> dict[str, str]:
    """Run several partitions, side by side where there is more than one; returns what failed, by partition."""
    if len(works) == 1:
        try:
            run(warehouse, works[0], tell)
        except QlogError as error:
            return {works[0].partition: str(error)}
        return {}
    at_once = min(len(works), os.cpu_count() or 1)
    share = max(LEAST_MEMORY_MB, warehouse.settings.memory_limit_mb // at_once)
    with saying_what_failed():
        prepare_instance(warehouse)
    preload()
    # Forked children share the imports. What had threads in this process, DuckDB and the imports ahead, was closed and
    # has none any more.
    fork = multiprocessing.get_context("fork")
    failures: dict[str, str] = {}
    with ProcessPoolExecutor(at_once, fork, initializer=_limit_memory, initargs=(share,)) as pool:
        futures = {pool.submit(_run_quietly, warehouse, work): work.partition for work in works}
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


def preload() -> None:
    """Import what every run needs, before forking."""
    from qlog_assets import definitions  # noqa: F401
    from qlog_assets.checks.suites import load_library

    load_library()


def _limit_memory(megabytes: int) -> None:
    # What was imported before the fork stays shared: looking for garbage in it would write to every page of it.
    gc.freeze()
    os.environ["QLOG_MEMORY_MB"] = str(megabytes)


def _run_quietly(warehouse: Warehouse, work: Work) -> str | None:
    """Run one partition in a process of its own; the reason if it was refused."""
    try:
        run(warehouse, work)
    except QlogError as error:
        return str(error)
    return None


@contextmanager
def listening(tell: Callable[[str], None]) -> Iterator[list[str]]:
    """Pass the names of steps that start to `tell`; collects the reasons of checks that fail."""
    failed: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", None) or {}
            event = meta.get("dagster_event")
            if event is None:
                return
            if event.event_type_value == "STEP_START":
                tell(str(event.step_key))
            elif event.event_type_value == "ASSET_CHECK_EVALUATION" and not event.event_specific_data.passed:
                facts = event.event_specific_data
                failed.append(f"{facts.asset_key.to_user_string()} {facts.check_name}: {facts.description}")

    listener, logger = Listener(), logging.getLogger(EVENTS_LOGGER)
    logger.addHandler(listener)
    try:
        yield failed
    finally:
        logger.removeHandler(listener)
