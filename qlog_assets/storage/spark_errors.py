"""Says what failed on Spark without its words, and tells a fault of a machine from one of a statement.

Spark's words may quote a value of the log, and whether a failed draw is spent depends on whose fault it was: so nothing
here reads them. Errors are known by their class, by the condition that Spark names, or by the part of Spark that made
them. What is not known is a statement's fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import grpc
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from qlog_assets.errors import QlogError
from qlog_assets.storage.engine import STATEMENT_ADVICE

MACHINE_CLASSES = {
    "java.io.IOException",
    "java.lang.OutOfMemoryError",
    "java.net.ConnectException",
    "java.net.SocketException",
    "java.nio.file.FileSystemException",
    "org.apache.spark.ExecutorDeadException",
    "org.apache.spark.memory.SparkOutOfMemoryError",
    "org.apache.spark.shuffle.FetchFailedException",
    "org.apache.spark.shuffle.MetadataFetchFailedException",
}
"""What Java raises for want of memory, disk or another machine."""
MACHINE_CONDITIONS = {
    "AGGREGATE_OUT_OF_MEMORY",
    "POINTER_ARRAY_OUT_OF_MEMORY",
    "SPILL_OUT_OF_MEMORY",
    "UNABLE_TO_ACQUIRE_MEMORY",
}
"""The same as Spark names it."""
SCHEDULER = "org.apache.spark.scheduler.DAGScheduler"
"""Ends a job whose machine is gone or whose answer is too large. What a task raised would be the cause of its error."""
LONGEST_CHAIN = 50
"""Errors may be causes of each other in a circle."""


class EngineLostError(QlogError, OSError):
    """Spark or this process has too little memory or disk, or Spark is gone: no fault of the work, which may be tried
    again."""


@contextlib.contextmanager
def quoting_nothing(doing: str) -> Iterator[None]:
    """Say in one line that Spark failed: its own words may quote a value that it stumbled over."""
    try:
        yield
    except (PySparkException, Py4JError, grpc.RpcError) as error:
        raise describe(doing, error) from None


def describe(doing: str, error: Exception) -> QlogError:
    """The error that is raised in place of one of Spark's: its kind, and nothing it quotes."""
    kind = type(error).__name__
    try:
        if isinstance(error, PySparkException) and error.getCondition():
            kind = str(error.getCondition())
        ended_by_scheduler, lost = is_ended_by_scheduler(error), is_lost(error)
    except (Py4JError, OSError):
        # Java cannot be asked any more.
        ended_by_scheduler, lost = False, True
    if ended_by_scheduler:
        # No fault of the work: a draw that has taken random bits is not spent by it.
        return EngineLostError(
            f"{doing}: spark: ended the job: machines were lost, or the answer does not fit into this process "
            "(spark.driver.maxResultSize is half of QLOG_MEMORY_MB): try it again, or raise QLOG_MEMORY_MB, or choose "
            "a variant that needs counts alone"
        )
    if lost:
        return EngineLostError(f"{doing}: spark: lost a machine, memory or disk ({kind}): try it again")
    return QlogError(f"{doing} failed on spark ({kind}): {STATEMENT_ADVICE}")


def is_lost(error: Exception) -> bool:
    """Whether a machine, and no statement, is at fault."""
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, PySparkException) and error.getCondition() in MACHINE_CONDITIONS:
        return True
    code = getattr(error, "code" if isinstance(error, grpc.RpcError) else "getGrpcStatusCode", None)
    if code is not None and code() == grpc.StatusCode.UNAVAILABLE:
        return True
    return any(each.getClass().getName() in MACHINE_CLASSES for each in java_errors(error))


def is_ended_by_scheduler(error: Exception) -> bool:
    """Whether Spark's scheduler ended a job of its own accord, and not because of what a task raised."""
    chain = list(java_errors(error))
    frames = chain[-1].getStackTrace() if chain else []
    return len(frames) > 0 and str(frames[0].getClassName()) == SCHEDULER


def java_errors(error: Exception) -> Iterator[Any]:
    """An error of Java's, its cause, the cause of that, and so on. None from a server: Java is not here then."""
    found = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(LONGEST_CHAIN):
        if found is None:
            return
        yield found
        found = found.getCause()
