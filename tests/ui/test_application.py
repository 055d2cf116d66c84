"""What is used of Dagster's private side, pinned: an upgrade that changes it fails here, not in front of the lock."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._grpc.client import DagsterGrpcClient
from dagster_graphql.schema import create_schema
from dagster_webserver.app import create_app_from_workspace_process_context
from graphql import ExecutionResult
from starlette.routing import Mount, Route, WebSocketRoute
from support.asgi import ask

from qlog_assets.ui.application import NamedRequest, Workspace
from qlog_assets.ui.asked import NAME_TAG, Seal
from qlog_assets.ui.lock import GRAPHQL

SEAL = Seal(b"k" * 32)


def names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_private_functions_take_what_they_took() -> None:
    """Dagster 1.13.27. If this fails after an upgrade: read ui/application.py beside dagster_webserver/cli.py."""
    assert dg.__version__ == "1.13.27"
    assert names(create_app_from_workspace_process_context) == [
        *("workspace_process_context", "path_prefix", "live_data_poll_rate", "kwargs")
    ]
    assert names(WorkspaceProcessContext)[:4] == ["instance", "workspace_load_target", "version", "read_only"]
    assert names(WorkspaceProcessContext.create_request_context) == ["self", "source"]
    assert names(WorkspaceRequestContext) == [
        *("instance", "current_workspace", "process_context", "version", "source", "read_only", "read_only_locations")
    ]
    assert names(WorkspaceRequestContext.get_viewer_tags) == ["self"]
    assert names(dg.DagsterInstance.optimize_for_webserver)[1:] == [
        *("statement_timeout", "pool_recycle", "max_overflow")
    ]
    assert list(WorkspaceFileTarget(paths=[]).create_origins()) == []
    assert "socket" in names(DagsterGrpcClient) and names(DagsterGrpcClient.ping)[:2] == ["self", "echo"]
    assert names(dg.QueuedRunCoordinator.submit_run) == ["self", "context"]
    assert names(dg.SubmitRunContext) == ["dagster_run", "workspace"]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace without a code location, which needs no second process."""
    file = tmp_path / "workspace.yaml"
    file.write_text("load_from: []\n", encoding="utf-8")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, Workspace(instance, file, SEAL) as made:
        yield made


def test_graphql_is_answered_where_the_lock_looks_for_it_and_nowhere_else(workspace: Workspace) -> None:
    """A GET reaches GraphQL only under this address; all that changes something besides is a POST."""
    application = create_app_from_workspace_process_context(workspace)
    found = {
        (route.path, method)
        for route in application.routes
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
        if method not in ("GET", "HEAD")
    }
    assert found == {
        (GRAPHQL, "POST"),
        ("/report_asset_materialization/{asset_key:path}", "POST"),
        ("/report_asset_check/{asset_key:path}", "POST"),
        ("/report_asset_observation/{asset_key:path}", "POST"),
    }
    questions = [route for route in application.routes if getattr(route, "path", "").startswith(GRAPHQL)]
    assert {(type(route), getattr(route, "path", "")) for route in questions} == {
        (Route, GRAPHQL),
        (WebSocketRoute, GRAPHQL),
    }
    assert [route for route in application.routes if isinstance(route, WebSocketRoute)] == [questions[1]]
    assert all(isinstance(route, Route | Mount | WebSocketRoute) for route in application.routes)


def test_without_the_lock_dagster_runs_what_stands_in_an_address(workspace: Workspace) -> None:
    """Why the lock refuses it. If Dagster stops doing this, the lock's rule may go."""
    application = create_app_from_workspace_process_context(workspace)
    mutation = "mutation%20%7B%20setNuxSeen%20%7D"
    reply = ask(application, "GET", f"/graphql?query={mutation}", [("Accept", "*/*")])
    assert reply.status == 200 and '"setNuxSeen"' in reply.text


def test_a_websocket_answers_subscriptions_only(workspace: Workspace) -> None:
    """Dagster's websocket subscribes whatever it is sent: a mutation is an error there and does nothing."""
    asked = create_schema().subscribe("mutation { setNuxSeen }", context=workspace.create_request_context())
    answer = asyncio.run(asked)
    assert isinstance(answer, ExecutionResult) and answer.data is None
    assert [error.message for error in answer.errors or []] == ["The subscription field 'setNuxSeen' is not defined."]


def test_a_backfill_carries_the_name_that_our_own_server_signed(workspace: Workspace) -> None:
    class Connection:
        headers = SEAL.headers("alice")

    class Forged:
        headers = SEAL.headers("alice") | {"x-qlog-asked-by": "root"}

    request = workspace.create_request_context(Connection())
    assert isinstance(request, NamedRequest) and request.get_viewer_tags()[NAME_TAG] == "alice"
    assert SEAL.backfiller(request.get_viewer_tags()) == "alice"
    for source in (Forged(), object(), None):
        assert workspace.create_request_context(source).get_viewer_tags() == {}
