"""Opens Spark with the machine's limits: this machine's cores, a cluster, or a Spark Connect server.

One process has one Spark application. It starts with the first engine and ends with the process; each engine has a
session of its own, so that nobody sees another's tables. What Spark would show or write about the log is switched off:
its web page has no lock, and its words on standard error may quote values.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.errors import QlogError
from qlog_assets.settings import Settings
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.spark_workers import is_here, refuse_open_network, refuse_unmounted
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from qlog_assets.storage.spark_engine import SparkEngine

NEEDED = ("pyspark", "sqlglot", "grpc")
"""What the extra brings. Without the last, importing pyspark's Connect ends the process without a word."""
LEAST_MEMORY_MB = 512
"""Spark does not start with less."""
SESSION = {
    # Times have no zone in the log: nothing may shift them.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # A number that does not fit is an error, as in DuckDB, and never NULL.
    "spark.sql.ansi.enabled": "true",
    # What statements say depends on these, and a cluster's owner may have set them otherwise.
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # A file that is gone or broken is an error, and never fewer rows.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    # A task writes one file: numbers of rows are places in it.
    "spark.sql.files.maxRecordsPerFile": "0",
    # What a task wrote is seen once the whole job is done.
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
"""What every session is told, whoever started the server."""
NOT_HEEDED = ("SPARK_LOCAL_DIRS", "SPARK_REMOTE", "SPARK_API_MODE")
"""Variables that would take the place of our own scratch directory, which goes with the process, and of the master."""
STOP_SECONDS = 30
"""How long the end of a process waits for Java's."""
RUNNING: list[SparkContext] = []
"""The application that this process has started: none or one."""
LOGGERS = (
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
    "pyspark",
    "pyspark.sql.connect.logging",
    "py4j",
    "py4j.java_gateway",
    "py4j.clientserver",
)
"""Who in this process would write Spark's words, and the values in them, to standard error: each by its name, because
a logger under one that is disabled still writes."""


@contextlib.contextmanager
def open_spark(warehouse: Warehouse, master: str | None) -> Iterator[SparkEngine]:
    """An engine with a session of its own, whose scratch is removed at the end of the block."""
    refuse_without_extra()
    for name in LOGGERS:
        logging.getLogger(name).disabled = True
    from qlog_assets.storage.spark_engine import SparkEngine
    from qlog_assets.storage.spark_errors import quoting_nothing

    with temporary_directory(warehouse.spill) as scratch:
        with quoting_nothing("starting Spark"):
            chosen = master or f"local[{warehouse.settings.threads}]"
            session = start_session(warehouse, chosen)
            if not chosen.startswith("local"):
                refuse_unmounted(session, scratch, cores_of(session, chosen))
        try:
            yield SparkEngine(session, scratch)
        finally:
            # The session of a server ends here. That of this process's own application goes with it.
            if is_connect(master):
                with quoting_nothing("leaving Spark"):
                    session.stop()


def refuse_without_extra() -> None:
    """One line where Spark is not installed, before anything imports it."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise QlogError(
            f"[engine] kind = spark: {', '.join(missing)} is not installed: pip install 'qlog[spark]', or set kind to "
            "duckdb in the policy file"
        )


def start_session(warehouse: Warehouse, master: str) -> SparkSession:
    """A fresh session on the process's Spark application, which is started by the first."""
    from pyspark.sql import SparkSession

    if is_connect(master):
        refuse_open_network(master, lambda name, default: default)
        session = SparkSession.builder.remote(master).create()
    elif re.fullmatch(r"local(\[(\d+|\*)\])?|spark://\S+|yarn|k8s://\S+", master):
        session = start_application(warehouse, master).newSession()
    else:
        raise QlogError(
            "[engine] master: is none of local[N], spark://HOST:PORT, yarn, k8s://URL and sc://HOST:PORT: write one"
        )
    for name, value in SESSION.items():
        session.conf.set(name, value)
    return session


def is_connect(master: str | None) -> bool:
    """Whether a master is the address of a Spark Connect server."""
    return master is not None and master.startswith("sc://")


def cores_of(session: SparkSession, master: str) -> int:
    """About how many tasks run at once. A server does not say: in as many parts it divides a table."""
    if is_connect(master):
        return int(str(session.conf.get("spark.sql.shuffle.partitions")))
    return int(session.sparkContext.defaultParallelism)


def start_application(warehouse: Warehouse, master: str) -> SparkSession:
    """The process's Spark application: there can be only one."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if not RUNNING:
        refuse_without_java()
        # Workers of this machine run the same Python; where a cluster's lies elsewhere, its owner sets the variable.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for name in NOT_HEEDED:
            os.environ.pop(name, None)
        keeping = contextlib.ExitStack()
        # Rows of the log are written there. It outlives the engine, and goes with the process.
        scratch = keeping.enter_context(temporary_directory(warehouse.spill))
        conf = SparkConf().setMaster(master).setAppName("qlog")
        conf.setAll(list(application_settings(warehouse.settings, master, scratch).items()))
        gateway = launch_gateway(conf, popen_kwargs={"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
        keeping.callback(_end_java, gateway)
        atexit.register(keeping.close)
        # Java has read the machine's own configuration.
        refuse_open_network(master, SparkConf(_jvm=gateway.jvm).get)
        context = SparkContext(conf=conf, gateway=gateway)
        keeping.callback(_stop, context, gateway)
        context.setLogLevel("OFF")
        RUNNING.append(context)
    elif RUNNING[0].master != master:
        raise QlogError("[engine] master: this process counts on another one already: start a new process")
    return SparkSession.builder.getOrCreate()


def application_settings(settings: Settings, master: str, scratch: Path) -> dict[str, str]:
    """Spark's configuration: memory of this process, where it spills, and what it keeps to itself."""
    if settings.memory_limit_mb < LEAST_MEMORY_MB:
        raise QlogError(
            f"QLOG_MEMORY_MB: Spark needs {LEAST_MEMORY_MB} MB in this process, and may have {settings.memory_limit_mb}"
        )
    if "," in str(scratch):
        raise QlogError("QLOG_HOME: its name has a comma, at which Spark divides names: choose another directory")
    common = {
        "spark.driver.memory": f"{settings.memory_limit_mb}m",
        # What a statement answers passes through it: half of it is for all else.
        "spark.driver.maxResultSize": f"{settings.memory_limit_mb // 2}m",
        # The collector for work that nobody waits for within a second; G1 looks over its heap beside the work.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.warehouse.dir": f"file:{scratch}/tables",
        "spark.local.dir": str(scratch),
        # Folders that hold nothing but tables: no marker beside them, and no checksum of each file.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # At its lowest level, as DuckDB writes.
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        # Files of executors are their owner's alone, wherever they end.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        # What is spilled or moved outlives a kill: the key does not.
        "spark.io.encryption.enabled": "true",
        # Whoever cannot encrypt as well as we do is refused, and not spoken to in the older way.
        "spark.network.crypto.saslFallback": "false",
    }
    if is_here(master):
        # No other machine can speak to it.
        common |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if master.startswith("local"):
        common |= {
            # Nor can anybody else on this one. A cluster has a secret of its own, or is refused.
            "spark.authenticate": "true",
            "spark.sql.shuffle.partitions": str(4 * settings.threads),
            # As many parts as a large table needs; those of a small one are put together again.
            "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(32 * settings.threads),
        }
    return common


def refuse_without_java() -> None:
    import shutil

    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise QlogError("[engine] kind = spark: Java is not installed: install version 17 or later, or set JAVA_HOME")


def _stop(context: SparkContext, gateway: Any) -> None:
    """End Spark with the process: nothing of it may go on writing where scratch is removed."""
    from py4j.protocol import Py4JError

    # A signal to the whole group may have ended Java before.
    with contextlib.suppress(Py4JError, OSError):
        context.stop()
        gateway.shutdown()


def _end_java(gateway: Any) -> None:
    """Java ends with what it reads from."""
    with contextlib.suppress(OSError):
        gateway.proc.stdin.close()
    try:
        gateway.proc.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
