"""People who take part in CrowdLogging in tests: an account with the running servers, a client's folder and a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from support.crowd_cast import RunningCast
from support.instances import AOL_HEADER

from qlog_assets.crowd.cast import RandomnessSettings, open_folder
from qlog_assets.crowd.client import Client
from qlog_assets.crowd.client_servers import Servers
from qlog_assets.crowd.client_settings import ClientSettings
from qlog_assets.crowd.client_state import ClientState
from qlog_assets.crowd.issuing import Accounts
from qlog_assets.crowd.local_log import LocalLog


class Person:
    """Somebody who searched for something in March 2006, one query per second."""

    def __init__(self, cast: RunningCast, folder: Path, name: str, queries: Sequence[str]) -> None:
        self.cast, self.folder = cast, folder / name
        accounts = Accounts(open_folder(cast.folder("randomness"), RandomnessSettings).folder)
        self.secret = accounts.add([name])[name]
        accounts.close()
        ClientState.create(self.folder, name, self.secret)
        self.log = LocalLog(write_log(folder, name, *queries), "file", "aol")

    @contextmanager
    def client(self, now: datetime | None = None, transport: httpx.BaseTransport | None = None) -> Iterator[Client]:
        """The client as a new process would open it; the time stands still if one is given."""
        with (
            ClientState.open(self.folder) as state,
            httpx.Client(timeout=60, trust_env=False, transport=transport) as http,
        ):
            servers = Servers(self.cast.cast, http)
            yield Client(state, servers, ClientSettings(), clock=lambda: now or datetime.now(UTC))


def write_log(folder: Path, name: str, *queries: str) -> Path:
    """An AOL log of one user with a click for each query."""
    rows = [f"7\t{query}\t2006-03-02 10:00:{n:02}\t1\thttp://tea.example\n" for n, query in enumerate(queries)]
    path = folder / f"{name}.txt"
    path.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
    return path
