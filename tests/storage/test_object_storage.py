"""Partitions on an object store, by the commands: moto's server speaks S3's protocol, and `make test-storage` installs
it. The size of the log is QLOG_STORAGE_ROWS."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow import fs
from support.cli import qlog
from support.door import in_child
from support.instances import make_home

from qlog_assets.settings import CHECKOUT, Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import Provenance, TableFacts, describe
from qlog_assets.storage.stored import COPIES
from qlog_assets.storage.stores import MARKERS
from qlog_assets.storage.warehouse import Warehouse

MOTO = CHECKOUT / ".cache" / "moto" / "bin" / "moto_server"
ROWS = int(os.environ.get("QLOG_STORAGE_ROWS", "20000"))
BUCKET = "query-logs"
PLACE = f"s3://{BUCKET}/warehouse"
MARCH, APRIL = "2006-03", "2006-04"
SEEDED = [(name, variant) for name in ("safelog", "zealous") for variant in ("sound", "modern")]

pytestmark = [
    pytest.mark.storage,
    pytest.mark.skipif(not MOTO.exists(), reason="make test-storage installs the server"),
]


@dataclass(frozen=True)
class Server:
    """A running server."""

    address: str

    @property
    def environment(self) -> dict[str, str]:
        """What a command is told that works on it."""
        return {
            "QLOG_PARTITIONS": PLACE,
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "AWS_ACCESS_KEY_ID": "an-id",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "AWS_REGION": "eu-central-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def ask(self, method: str, path: str, body: bytes = b"") -> None:
        kind = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"http://{self.address}/{path}", body, kind, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def files(self) -> fs.FileSystem:
        return fs.S3FileSystem(access_key="an-id", secret_key="hunter2", endpoint_override=self.address, scheme="http")

    def objects(self, bucket: str = BUCKET) -> list[str]:
        """The names of all objects of tables, without the bucket's and the prefix'."""
        found = self.files().get_file_info(fs.FileSelector(bucket, recursive=True))
        names = (info.path.removeprefix(f"{bucket}/warehouse/") for info in found if info.is_file)
        return sorted(name for name in names if not name.startswith(f"{MARKERS}/"))

    def assets(self) -> set[str]:
        return {name.partition(".")[0] for name in self.objects()}


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "log.txt").open("wb")
    process = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    server, until = Server(f"127.0.0.1:{port}"), time.monotonic() + 60
    while True:
        try:
            server.ask("GET", "moto-api/")
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
    yield server
    process.terminate()
    process.wait()
    log.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    """With one empty bucket."""
    running.ask("POST", "moto-api/reset")
    running.ask("PUT", BUCKET)
    return running


# Whole commands -----------------------------------------------------------------------------------------------------


def seeded_draws(home: Path, environment: dict[str, str]) -> dict[str, str]:
    """The checksum of every table of the seeded draws of a month."""
    found = {}
    for name, variant in SEEDED:
        arguments = ("simulate", name, "--month", MARCH, "--variant", variant, "--seed", "3", "--json")
        folder = Path(qlog(home, *arguments, environment=environment).json["path"])
        found |= {f"{name} {variant} {path.name}": file_checksum(path) for path in folder.glob("*.parquet")}
    return found


def contents(home: Path) -> dict[str, object]:
    """What every private table says, by what made it."""
    made = [Provenance.read(path) for path in sorted((home / "private").glob("*/*/*/provenance.json"))]
    return {
        f"{each.asset} {each.month} {each.shape} {table}": (facts.rows, facts.content_digest)
        for each in made
        for table, facts in each.tables.items()
    }


def test_a_log_is_ingested_released_audited_and_forgotten_with_the_tables_of_a_local_warehouse(
    server: Server, tmp_path: Path
) -> None:
    here, there = make_home(tmp_path / "here"), make_home(tmp_path / "there")
    environment = server.environment
    for home, given in ((here, {}), (there, environment)):
        assert qlog(home, "synth", ROWS, "--first", MARCH, "--last", APRIL, environment=given).code == 0
    assert seeded_draws(there, environment) == seeded_draws(here, {})
    assert contents(there) == contents(here)
    for name in ("safelog", "zealous"):
        # Two months side by side: processes that are forked from one that has talked to the server.
        months = ("--month", MARCH, "--month", APRIL)
        assert qlog(there, "release", name, *months, environment=environment).code == 0
    parquet = [path.relative_to(there).parts[1] for path in (there / "private").rglob("*.parquet")]
    assert set(parquet) <= {"draws", "studies", "public_lists"}, "and no other table is on this disk"
    assert list((there / "private" / COPIES).iterdir()) == []
    assert qlog(there, "audit", "--deep", environment=environment).code == 0
    forgotten = qlog(there, "forget", "--before", "2006-05", "--landing", environment=environment)
    assert f"{PLACE}: deleted there, too" in forgotten.success
    assert server.assets() == {"pool"}, "which is public"
    assert qlog(there, "audit", environment=environment).code == 0


def test_an_object_that_was_changed_is_found_by_the_audit_and_made_again(server: Server, tmp_path: Path) -> None:
    home, environment = make_home(tmp_path / "home"), server.environment
    assert qlog(home, "synth", 5000, "--last", MARCH, environment=environment).code == 0
    assert qlog(home, "release", "safelog", "--month", MARCH, environment=environment).code == 0
    (cleaned,) = [name for name in server.objects() if name.startswith("cleaned_log")]
    with server.files().open_output_stream(f"{BUCKET}/warehouse/{cleaned}") as out:
        out.write(b"rows of a hand")
    audit = qlog(home, "audit", environment=environment)
    assert audit.code == 1 and "cleaned_log 2006-03: log.parquet was changed after it was written" in audit.out
    assert qlog(home, "simulate", "zealous", "--month", MARCH, environment=environment).code == 0
    assert cleaned not in server.objects() and "cleaned_log" in server.assets()
    assert qlog(home, "audit", environment=environment).code == 0


# Failures -----------------------------------------------------------------------------------------------------------


def refused(home: Path, environment: dict[str, str]) -> str:
    """How a release is refused whose tables cannot be written, and that it left nothing behind."""
    before = sorted((home / "private").rglob("provenance.json"))
    line = qlog(home, "release", "safelog", "--month", MARCH, environment=environment).refusal
    assert sorted((home / "private").rglob("provenance.json")) == before and list(home.rglob(".qlog-tmp-*")) == []
    assert "hunter2" not in line and "an-id" not in line
    return line


def test_a_store_that_is_missing_closed_or_away_is_one_line_and_nothing_is_half_written(
    server: Server, ingested: Path
) -> None:
    environment = server.environment
    line = refused(ingested, environment | {"QLOG_PARTITIONS": "s3://no-such-bucket/logs"})
    assert "s3://no-such-bucket/logs: there is no such bucket: make it, or correct the name" in line
    line = refused(ingested, environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
    assert f"{PLACE}: its server does not answer: try it again later" in line
    server.ask("POST", "moto-api/reset-auth", b"0")
    try:
        line = refused(ingested, environment)
    finally:
        server.ask("POST", "moto-api/reset-auth", b"1e9")
    assert f"{PLACE}: access is denied: look at the AWS credentials in the environment" in line
    assert server.objects() == []
    assert qlog(ingested, "release", "safelog", "--month", MARCH, environment=environment).code == 0


def test_nothing_is_forgotten_while_the_server_is_away_and_an_audit_is_unfinished_then(
    server: Server, ingested: Path
) -> None:
    environment = server.environment
    away = environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    assert qlog(ingested, "release", "safelog", "--month", MARCH, environment=environment).code == 0
    before = server.objects()
    audit = qlog(ingested, "audit", environment=away)
    assert audit.code == 3 and f"{PLACE}: its server does not answer" in audit.err
    assert (
        f"{PLACE}: its server does not answer" in qlog(ingested, "forget", "--before", APRIL, environment=away).refusal
    )
    assert server.objects() == before
    assert qlog(ingested, "forget", "--before", APRIL, environment=environment).code == 0
    assert server.assets() == {"pool"}


def _die_behind_the_upload(home: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment)

    def write(directory: Path) -> dict[str, TableFacts]:
        # More than one part of an upload.
        path = directory / "log.parquet"
        path.write_bytes(os.urandom(12 << 20))
        return {"log": TableFacts(1, {path.name: file_checksum(path)})}

    warehouse = Warehouse(Settings(home=home, partitions=environment["QLOG_PARTITIONS"])).make()
    made = describe("cleaned_log", MARCH, code_version="1", parameters={}, upstream={})
    warehouse.write_partition(made, write, announce=lambda _: os.kill(os.getpid(), signal.SIGKILL))


def test_a_kill_between_the_objects_and_their_record_changes_nothing_and_is_tidied_up(
    server: Server, home: Path
) -> None:
    assert in_child(_die_behind_the_upload, home, server.environment).killed
    assert len(server.objects()) == 1 and not (home / "private" / "cleaned_log" / MARCH / "current").exists()
    away = server.environment | {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    later = qlog(home, "ledger", environment=away)
    assert later.code == 0 and "what a write left there is deleted by a later command" in later.err
    assert len(server.objects()) == 1
    assert qlog(home, "ledger", environment=server.environment).code == 0
    assert server.objects() == [] and list((home / "private").rglob(".qlog-tmp-*")) == []


def test_what_a_killed_upload_left_is_deleted_on_its_own_server_alone(
    server: Server, home: Path, tmp_path: Path
) -> None:
    assert in_child(_die_behind_the_upload, home, server.environment).killed
    with serving(tmp_path) as another:
        another.ask("PUT", BUCKET)
        later = qlog(home, "ledger", environment=another.environment)
        assert later.code == 0 and f"{PLACE}: is it the store that was written to" in " ".join(later.err.split())
    assert len(server.objects()) == 1
    assert qlog(home, "ledger", environment=server.environment).err == ""
    assert server.objects() == [] and list((home / "private").rglob(".qlog-tmp-*")) == []
