"""A Spark Connect server as the engine: the tests of the engine, in a process that speaks to a server alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.spark_settings import OTHER_SETTINGS, OTHER_VARIABLES

from qlog_assets.settings import CHECKOUT

pytestmark = pytest.mark.spark

PATIENCE_SECONDS = 180
ENGINE = "tests/spark/test_engine.py"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server on this machine, with two cores and a scratch directory of its own."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = OTHER_SETTINGS | {
        "spark.ui.enabled": "false",
        "spark.local.dir": str(tmp_path),
        "spark.sql.shuffle.partitions": "8",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    owners = {name: value for name, value in environment().items() if name not in OTHER_VARIABLES}
    process = subprocess.Popen(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master", "local[2]",
            *(word for name, value in told.items() for word in ("--conf", f"{name}={value}")),
            "spark-internal",
        ],
        env=owners | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while not answers(port) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        assert process.poll() is None, "the server ended before it answered"
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{CHECKOUT / 'tests'}:{CHECKOUT}"}


def test_a_server_answers_as_the_engine_of_a_process_does(server: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", "spark", ENGINE],
        cwd=CHECKOUT,
        env=environment() | {"QLOG_SPARK_MASTER": server},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
