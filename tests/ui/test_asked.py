"""Who asked for a run: only a name that our own server and queue signed, for this very run, counts as proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.workspace.context import CurrentWorkspace, WorkspaceRequestContext

from qlog_assets.processes import user_name
from qlog_assets.settings import Settings
from qlog_assets.storage.dagster_home import prepare_home
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.ui.asked import NAME_HEADER, NAME_TAG, PROOF_HEADER, PROOF_TAG, Seal, author
from qlog_assets.ui.coordinator import BACKFILL_TAG, AskedByCoordinator

RUN, OTHER = "11111111-aaaa", "22222222-bbbb"
pytestmark = pytest.mark.usefixtures("restored_environment")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return tmp_path / "warehouse" / "private"


def test_the_key_is_made_once_and_is_its_owners_alone(private: Path) -> None:
    assert Seal.found(private) is None
    first = Seal.made(private)
    assert Seal.made(private) == first == Seal.found(private)
    assert (private / "ui.key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in private.iterdir()) == ["ui.key"]


def test_a_key_that_others_could_read_proves_nothing_and_is_replaced(private: Path) -> None:
    tags = Seal.made(private).run_tags(RUN, "alice")
    assert author(tags, RUN, private) == "alice (ui)"
    (private / "ui.key").chmod(0o640)
    assert Seal.found(private) is None
    assert author(tags, RUN, private) == f"{user_name()}, claimed: alice"
    Seal.made(private)
    assert author(tags, RUN, private) == f"{user_name()}, claimed: alice", "signed with the key that was loose"


def test_the_ledger_names_a_proven_user_and_marks_every_other_name(private: Path) -> None:
    seal = Seal.made(private)
    proven = seal.run_tags(RUN, "alice")
    mine = user_name()
    assert author(proven, RUN, private) == "alice (ui)"
    assert author({}, RUN, private) == mine
    assert author({PROOF_TAG: proven[PROOF_TAG]}, RUN, private) == mine
    for tags in (
        {NAME_TAG: "alice"},
        {NAME_TAG: "alice", PROOF_TAG: ""},
        {NAME_TAG: "alice", PROOF_TAG: "é"},
        {NAME_TAG: "alice", PROOF_TAG: seal.headers("alice")[PROOF_HEADER]},
        seal.backfill_tags("alice"),
        seal.run_tags(OTHER, "alice"),
    ):
        assert author(tags, RUN, private) == f"{mine}, claimed: alice", tags
    assert author(proven | {NAME_TAG: "bob"}, RUN, private) == f"{mine}, claimed: bob"


def test_a_claimed_name_cannot_break_a_line_or_fill_the_ledger(private: Path) -> None:
    said = author({NAME_TAG: "alice (ui)\n\x1b[2J" + "x" * 10_000}, RUN, private)
    assert said.startswith(f"{user_name()}, claimed: alice (ui)??[2Jxx") and len(said) < 120 and said.isprintable()


# The queue of runs ---------------------------------------------------------------------------------------------------


class Request:
    """What Dagster knows of a web request: its headers."""

    def __init__(self, **headers: str) -> None:
        self.headers = headers


@dg.op
def nothing() -> None: ...


@dg.job
def idle() -> None:
    nothing()


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The warehouse's own instance, as `qlog` sets it up."""
    home = tmp_path / "warehouse"
    monkeypatch.setenv("QLOG_HOME", str(home))
    warehouse = Warehouse(Settings.from_environment())
    prepare_home(warehouse)
    with dg.DagsterInstance.get() as found:
        yield found


def submitted(instance: dg.DagsterInstance, source: object | None, tags: dict[str, str]) -> dg.DagsterRun:
    """A run as Dagster's web server (with a request) or its daemon (without one) puts it into the queue."""
    somewhere = GrpcServerCodeLocationOrigin(host="localhost", port=1)
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(somewhere, "__repository__"), "idle")
    run = instance.create_run_for_job(idle, tags=tags, remote_job_origin=origin)
    nowhere: Any = None
    workspace = WorkspaceRequestContext(instance, CurrentWorkspace({}), nowhere, None, source, False)
    coordinator = instance.run_coordinator
    assert isinstance(coordinator, AskedByCoordinator)
    coordinator.submit_run(dg.SubmitRunContext(run, workspace))
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found


def asked(instance: dg.DagsterInstance, private: Path, source: object | None, tags: dict[str, str]) -> str:
    run = submitted(instance, source, tags)
    return author(run.tags, run.run_id, private)


def test_the_queue_signs_for_our_own_server_whatever_the_client_sent(
    instance: dg.DagsterInstance, private: Path
) -> None:
    seal = Seal.made(private)
    for sent in ({}, {NAME_TAG: "root", PROOF_TAG: "x"}, seal.run_tags(OTHER, "root")):
        assert asked(instance, private, Request(**seal.headers("alice")), sent) == "alice (ui)"


def test_a_request_past_our_own_server_proves_no_name(instance: dg.DagsterInstance, private: Path) -> None:
    """A plain `dagster dev` on the same warehouse has the same queue; anybody may send headers and tags there."""
    seal, mine = Seal.made(private), user_name()
    forged = {NAME_HEADER: "alice", PROOF_HEADER: "0" * 64}
    assert asked(instance, private, Request(**forged), {}) == mine
    assert asked(instance, private, Request(), {NAME_TAG: "alice"}) == f"{mine}, claimed: alice"
    assert asked(instance, private, Request(), seal.run_tags(OTHER, "alice")) == f"{mine}, claimed: alice"
    copied = seal.backfill_tags("alice") | {BACKFILL_TAG: "someone's"}
    assert asked(instance, private, Request(), copied) == f"{mine}, claimed: alice"


def test_without_a_key_runs_are_queued_as_ever(instance: dg.DagsterInstance, private: Path) -> None:
    assert submitted(instance, Request(), {}).tags.get(NAME_TAG) is None


def backfill(instance: dg.DagsterInstance, backfill_id: str, at: float, tags: dict[str, str]) -> None:
    instance.add_backfill(PartitionBackfill(backfill_id, BulkActionStatus.REQUESTED, False, tags, at))


def test_the_runs_of_a_backfill_are_its_askers_and_a_copied_proof_is_not(
    instance: dg.DagsterInstance, private: Path
) -> None:
    """The daemon launches them, long after the request. Tags of a backfill can be read in the UI and sent again."""
    tags = Seal.made(private).backfill_tags("alice")
    backfill(instance, "first", 1000.0, tags)
    assert asked(instance, private, None, tags | {BACKFILL_TAG: "first"}) == "alice (ui)"
    backfill(instance, "copy", 2000.0, tags)
    mine = user_name()
    assert asked(instance, private, None, tags | {BACKFILL_TAG: "copy"}) == f"{mine}, claimed: alice"
    assert asked(instance, private, None, tags) == f"{mine}, claimed: alice"
    assert asked(instance, private, None, tags | {NAME_TAG: "bob", BACKFILL_TAG: "first"}) == f"{mine}, claimed: bob"
    assert asked(instance, private, None, {}) == mine, "a schedule or sensor"
