"""Dagster's web application on an instance. The one module that uses what Dagster keeps private.

Dagster offers its web server as a command only, and a command cannot be put behind a lock.
`tests/ui/test_application.py` pins what is used here to the version that is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._grpc.client import DagsterGrpcClient
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__
from starlette.applications import Starlette

from qlog_assets.ui.asked import NAME_HEADER, PROOF_HEADER, Seal

POLL_MILLISECONDS = 2000
"""How often a page asks for news; what `dagster dev` takes."""
POLL_SECONDS = 0.1
# What Dagster's own command sets: a question to the database may take so long, a connection is used again so long.
STATEMENT_MILLISECONDS, RECYCLE_SECONDS, MORE_CONNECTIONS = 15_000, 3600, 20


class Workspace(WorkspaceProcessContext):
    """What the application asks for the code location; its requests know who sent them."""

    def __init__(self, instance: dg.DagsterInstance, workspace_file: Path, seal: Seal) -> None:
        self._seal = seal
        super().__init__(instance, WorkspaceFileTarget(paths=[str(workspace_file)]), version=__version__)

    def create_request_context(self, source: object | None = None) -> WorkspaceRequestContext:
        return NamedRequest(
            instance=self._instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=self._read_only,
        )


class NamedRequest(WorkspaceRequestContext):
    """A request whose backfills carry the name of who asked; single runs are named by the run coordinator."""

    def get_viewer_tags(self) -> dict[str, str]:
        headers: Mapping[str, str] = getattr(self._source, "headers", {})
        assert isinstance(self._process_context, Workspace)
        seal = self._process_context._seal
        name = seal.requester({key: headers.get(key) for key in (NAME_HEADER, PROOF_HEADER)})
        return {} if name is None else seal.backfill_tags(name)


@contextmanager
def dagster_application(workspace_file: Path, seal: Seal) -> Iterator[Starlette]:
    """The ASGI application on the instance of DAGSTER_HOME, for the time of a block."""
    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(STATEMENT_MILLISECONDS, RECYCLE_SECONDS, MORE_CONNECTIONS)
        with Workspace(instance, workspace_file, seal) as workspace:
            yield create_app_from_workspace_process_context(workspace, live_data_poll_rate=POLL_MILLISECONDS)


def wait_for_code_server(socket: Path, check: Callable[[], None]) -> None:
    """Wait until the code location's server answers; `check` raises if it never will."""
    client = DagsterGrpcClient(socket=str(socket))
    while True:
        check()
        try:
            client.ping("")
            return
        except DagsterUserCodeUnreachableError:
            time.sleep(POLL_SECONDS)
