"""`qlog ui` while it runs: the web server in this process, the code location's server and the daemon beside it, and how
all of them end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import uvicorn

from qlog_assets.errors import QlogError
from qlog_assets.processes import SIGNALS, end_with_parent, on_signals, user_name
from qlog_assets.settings import LOCKED
from qlog_assets.storage.dagster_home import prepare_home
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.ui.asked import Seal
from qlog_assets.ui.hosts import Hosts, bracketed, is_loopback
from qlog_assets.ui.lock import Lock
from qlog_assets.ui.passwords import Passwords
from qlog_assets.ui.sessions import Gate

MODULE = "qlog_assets.definitions"
ORDERLY_SECONDS = 3
"""How long a child may take to end with what it started, before its whole group is asked to: runs are under way."""
END_SECONDS = 8
"""How long its group may take then, before it is killed."""
REQUEST_SECONDS = 2
"""How long requests in flight may take after the end was asked for; pages keep a websocket open for good."""


class Ended(BaseException):
    """A signal came. Not an Exception: nothing on the way may take it for an error of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


def serve_ui(
    warehouse: Warehouse,
    host: str,
    port: int,
    *,
    passwords: Path | None = None,
    allowed_hosts: Sequence[str] = (),
    tell: Callable[[str], None],
) -> int:
    """Serve the UI until a signal ends it; returns the exit code, which names the signal as a shell does."""
    hosts = Hosts.of(host, port, allowed_hosts)
    gate = Gate(user_name(), None if passwords is None else Passwords(passwords))
    try:
        with ExitStack() as stack:
            stack.enter_context(ending_on_signals())
            listener = stack.enter_context(listening(host, port))
            prepare_home(warehouse)
            os.umask(0o077)  # for good: what this process and its children make is their owner's alone
            os.environ[LOCKED] = "1"
            seal = Seal.made(warehouse.private)
            children = Children()
            stack.callback(children.end)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qlog-ui-")))
            workspace = start_children(children, folder)
            application = stack.enter_context(application_on(workspace, folder, children, seal))
            lock = Lock(application, gate, hosts, port, seal.headers)
            tell(f"{opened_url(gate, host, port)} shows {warehouse.home}; control-C ends it")
            if not is_loopback(host):
                tell("anybody on the way can read along: put a proxy with TLS before it, see docs/security.md")
            serve(lock, listener, children)
    except Ended as ended:
        return ended.code


def opened_url(gate: Gate, host: str, port: int) -> str:
    """The address to open. The token is printed here, and nowhere else."""
    address = f"http://{bracketed(host)}:{port}/"
    return f"{address}?token={gate.token}" if gate.takes_token else address


# The web server -------------------------------------------------------------------------------------------------------


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """The socket, held from the start: a second server is told at once, and who opens the page early waits."""
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError as error:
            raise QlogError(f"cannot serve on {host}:{port} ({error.strerror}): choose another --port") from None
        yield listener


@contextmanager
def application_on(workspace: Path, folder: Path, children: Children, seal: Seal) -> Iterator[Any]:
    from qlog_assets.ui.application import dagster_application, wait_for_code_server

    wait_for_code_server(folder / "code.sock", children.check)
    with dagster_application(workspace, seal) as application:
        yield application


class Server(uvicorn.Server):
    """uvicorn, which leaves the signals to us and ends when a child does."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end once; a second signal does not wait for requests in flight."""

        def ask(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit
            self.should_exit = True
            self.ended_by = self.ended_by or number

        with on_signals(ask):
            yield

    ended_by: int = 0


def serve(lock: Lock, listener: socket.socket, children: Children) -> NoReturn:
    config = uvicorn.Config(
        lock,
        access_log=False,  # it would hold addresses, and the first one holds the token
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=REQUEST_SECONDS,
    )
    server = Server(config)
    with children.watched(server):
        server.run(sockets=[listener])
    if not server.ended_by:
        children.check()
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # ending is under way: a second control-C must not leave children behind
    raise Ended(server.ended_by)


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise `Ended` on a signal. Set whatever the parent said: a shell starts what it puts in the background with
    SIGINT ignored, and Dagster's own processes then ignore SIGTERM, too.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)  # ending is under way
        raise Ended(number)

    with on_signals(end):
        yield


# Its children ---------------------------------------------------------------------------------------------------------


class Children:
    """Processes beside the server, each the head of a group of its own, so that it ends with all it started."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> None:
        parent = os.getpid()
        # `-W ignore`: Dagster warns of its own next version.
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", *arguments],
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: end_with_parent(parent),  # noqa: PLW1509  they are started before any thread
        )

    def check(self) -> None:
        """Raise if one of them is gone: half a server would launch nothing and say nothing."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise QlogError(f"Dagster's {name} ended by itself (code {process.returncode}): see what it said above")

    @contextmanager
    def watched(self, server: Server) -> Iterator[None]:
        """End the server when one of the children ends."""

        def watch(process: subprocess.Popen[bytes]) -> None:
            with suppress(ChildProcessError):  # it ended, and `poll` has collected it
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # leaves it to be collected by `poll`
            server.should_exit = True

        for process in self._processes.values():
            threading.Thread(target=watch, args=(process,), daemon=True).start()
        yield

    def end(self) -> None:
        """End all of them with what they started, the last started first: who asks ends before who is asked.

        Dagster's server meets a request that comes while it ends with a traceback. So each is first asked alone, and
        ends what it started in its own order; the code server waits for its runs, so those are interrupted next, with
        the rest of its group, and say so in their history. What is left then is killed.
        """
        for process in reversed(self._processes.values()):
            if process.poll() is None:
                # Dagster takes SIGTERM as SIGINT once it is up; before that SIGINT would be a traceback of an import.
                process.terminate()
                if not ended_within(process, ORDERLY_SECONDS):
                    signal_group(process.pid, signal.SIGTERM)
                    ended_within(process, END_SECONDS)
            signal_group(process.pid, signal.SIGKILL)
            process.wait()


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def start_children(children: Children, folder: Path) -> Path:
    """The code location's server, which launches runs, and the daemon, for schedules, sensors and the queue of runs.

    Returns the workspace file that leads to the first, for everybody who asks it. It loads the code again when the UI
    says so, and stays where it is meanwhile.
    """
    code = folder / "code.sock"
    workspace = folder / "workspace.yaml"
    found = {"load_from": [{"grpc_server": {"location_name": MODULE, "socket": str(code)}}]}
    workspace.write_text(json.dumps(found), encoding="utf-8")
    children.start(
        "code server",
        *("dagster", "code-server", "start", "--module-name", MODULE, "--location-name", MODULE),
        *("--socket", str(code), "--use-python-environment-entry-point", "--log-level", "warning"),
    )
    children.start("daemon", "dagster._daemon", "run", "--workspace", str(workspace))
    return workspace
