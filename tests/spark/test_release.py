"""A whole release on Spark is the release on DuckDB: the same tables up to the noise, and with one seed behind it.

The size of the log is QLOG_SPARK_ROWS; `make test-spark` runs a million rows.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.spark_release import DRAWN, MARCH, ingest, release, warehouse_at

from qlog_assets.settings import CHECKOUT
from qlog_assets.storage.engine import Engine, EnginePolicy, open_duckdb

pytestmark = pytest.mark.spark

PATIENCE_SECONDS = 120
STATEMENTS = "tests/spark/test_statements.py"
APART = ("unshare", "--mount")
"""Runs a program that mounts what others do not see."""
ROWS = int(os.environ.get("QLOG_SPARK_ROWS", "20000"))


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ingested") / "home"
    ingest(home, ROWS)
    return home


@pytest.fixture(scope="module")
def expected(ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What DuckDB makes of it."""
    home = shutil.copytree(ingested, tmp_path_factory.mktemp("duckdb") / "home")
    with open_duckdb(warehouse_at(home)) as engine:
        return release(home, engine, list(DRAWN))


def same(found: dict[str, Any], expected: dict[str, Any], *names: str) -> None:
    wanted = {key: value for key, value in expected["drawn"].items() if key.split()[0] in names}
    assert wanted and found["drawn"] == wanted
    assert set(found["made"]) <= set(expected["made"]) and len(found["made"]) >= 4
    assert found["made"] == {key: expected["made"][key] for key in found["made"]}


def test_every_table_and_every_seeded_draw_is_that_of_duckdb(
    ingested: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    home = shutil.copytree(ingested, tmp_path / "home")
    with Engine.open(warehouse_at(home), EnginePolicy(kind="spark", master="local[2]")) as engine:
        found = release(home, engine, list(DRAWN))
    same(found, expected, *DRAWN)
    assert set(found["made"]) == set(expected["made"])


# A cluster ----------------------------------------------------------------------------------------------------------


class Cluster:
    """A master and two workers with a core each, as processes of this machine, that share a secret and encrypt."""

    def __init__(self, folder: Path, port: int) -> None:
        import pyspark

        self.home, self.folder = Path(pyspark.__file__).parent, folder
        told = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
        told["spark.authenticate.secret"] = secrets.token_hex(16)
        (folder / "conf").mkdir(mode=0o700)
        lines = [f"{name} {value}\n" for name, value in told.items()]
        (folder / "conf" / "spark-defaults.conf").write_text("".join(lines), encoding="ascii")
        self.address = f"spark://127.0.0.1:{port}"
        self.master = self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(2):
            self.add_worker()

    def add_worker(self, hidden: Path | None = None) -> None:
        """One more; with its own disk where a folder is hidden from it."""
        folder = self.folder / f"work-{len(self.workers)}"
        self.workers.append(
            self._start(
                "worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                "--work-dir", str(folder), self.address, hidden=hidden,
            )
        )  # fmt: skip

    def _start(self, name: str, *arguments: str, hidden: Path | None = None) -> subprocess.Popen[bytes]:
        apart = [*APART, "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden)] if hidden else []
        here = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        return subprocess.Popen(
            [*apart, str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            env=self.environment() | here,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def environment(self) -> dict[str, str]:
        """That of whoever knows the secret. Where a driver listens is left to qlog."""
        known = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
        return known | {"SPARK_CONF_DIR": str(self.folder / "conf"), "PYTHONPATH": f"{CHECKOUT / 'tests'}:{CHECKOUT}"}

    def kill_a_worker(self) -> None:
        """At once, with everything it runs."""
        os.killpg(self.workers[0].pid, signal.SIGKILL)

    def close(self) -> None:
        for process in (*self.workers, self.master):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 17077 + os.getpid() % 1000)
    yield made
    made.close()


def start_release(home: Path, cluster: Cluster, *names: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "support.spark_release", str(home), cluster.address, *names],
        cwd=CHECKOUT,
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_statement_says_the_same_on_a_cluster(cluster: Cluster) -> None:
    """The test body of test_statements, in a process whose Spark is the cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", "spark", STATEMENTS],
        cwd=CHECKOUT,
        env=cluster.environment() | {"QLOG_SPARK_MASTER": cluster.address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_two_workers_of_which_one_is_killed_in_mid_job_change_nothing(
    ingested: Path, expected: dict[str, Any], tmp_path: Path, cluster: Cluster
) -> None:
    """Another worker takes its place, as on clusters that are looked after: two count what is left."""
    home = shutil.copytree(ingested, tmp_path / "home")
    running = start_release(home, cluster, *DRAWN)
    capped = home / "private" / "capped_log" / MARCH
    until = time.monotonic() + 1200
    # Once the cleaned log is there and the next table is being written, a worker dies with its part of the shuffle.
    while not list(capped.glob(".qlog-tmp-*/queries/*")) and running.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert running.poll() is None, "the release ended before a worker could be killed"
    cluster.kill_a_worker()
    cluster.add_worker()
    answer, _ = running.communicate(timeout=3600)
    assert running.returncode == 0
    found = json.loads(answer)
    same(found, expected, *DRAWN)
    assert found["host"] == "127.0.0.1", "other machines could speak to the driver"


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*APART, "true"], check=False, capture_output=True).returncode != 0,
    reason="this user may mount nothing",
)
def test_a_worker_that_does_not_mount_the_warehouse_gets_no_row(tmp_path: Path, cluster: Cluster) -> None:
    """It would write to its own disk what nobody finds again."""
    home = tmp_path / "home"
    warehouse_at(home)
    cluster.add_worker(hidden=home)
    until = time.monotonic() + PATIENCE_SECONDS
    while not (cluster.folder / "work-2").exists() and time.monotonic() < until:
        time.sleep(0.2)
    done = subprocess.run(
        [sys.executable, "-m", "support.spark_release", str(home), cluster.address, "safelog"],
        cwd=CHECKOUT,
        env=cluster.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    said = done.stderr.splitlines()[-1]
    assert "QLOG_HOME: Spark's machines" in said and "do not see it" in said
