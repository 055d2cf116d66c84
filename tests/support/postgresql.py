"""A throw-away PostgreSQL server for tests, on a socket in a private temporary directory.

As a program it runs a command with QLOG_TEST_POSTGRESQL set to the server's URL and stops the server afterwards:

    python tests/support/postgresql.py python -m pytest -m postgresql
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

VARIABLE = "QLOG_TEST_POSTGRESQL"
UNPRIVILEGED = "postgres"
"""PostgreSQL refuses to run as root; Debian's package makes this user for it."""


class UnavailableError(RuntimeError):
    """No server can be started here; the message says why."""


def find_programs() -> Path:
    """The directory of initdb and pg_ctl: on the path, or where Debian puts them, which is not on the path."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True
    )
    for directory in candidates:
        if (directory / "initdb").exists() and (directory / "pg_ctl").exists():
            return directory
    raise UnavailableError("PostgreSQL's server programs are not installed")


class Server:
    """A server that runs, and can be stopped and started again on the same files."""

    def __init__(self, home: Path, run: Callable[..., None]) -> None:
        self._home, self._run = home, run
        self.url = f"postgresql+psycopg://postgres@/postgres?host={home}"

    def start(self) -> None:
        # A socket only its owner and root can reach, no network, and no care for durability.
        self._run("pg_ctl", "start", "--wait", "-o", f"-k {self._home} -c listen_addresses= -c fsync=off")

    def stop(self) -> None:
        """As a machine stops that loses its power."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate")

    def wait_for_waiting(self, seconds: float = 120) -> None:
        """Wait until somebody waits for a lock."""
        import sqlalchemy as sa

        until = time.monotonic() + seconds
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while time.monotonic() < until:
            with engine.connect() as connection:
                if connection.scalar(waiting):
                    return
            time.sleep(0.01)
        raise AssertionError(f"nobody waited for a lock for {seconds} s")


@contextmanager
def temporary_server() -> Iterator[str]:
    """Start a server, yield an SQLAlchemy URL for it, stop it and remove its files."""
    with running_server() as server:
        yield server.url


@contextmanager
def running_server() -> Iterator[Server]:
    """The same, as a server that the block may stop and start."""
    programs = find_programs()
    user = UNPRIVILEGED if os.getuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="qlog-postgresql-"))

    def run(program: str, *arguments: str) -> None:
        # The server's output goes to a file: a server that inherited a pipe would keep its reader waiting for ever.
        with open(home / "output", "ab") as output:
            finished = subprocess.run(
                [programs / program, "-D", home / "data", *arguments],
                cwd=home, user=user, group=user, extra_groups=[] if user else None,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
            )  # fmt: skip
        if finished.returncode != 0:
            lines = (home / "output").read_text(errors="replace").strip().splitlines()
            raise UnavailableError(f"{program} failed: {lines[-1] if lines else 'it said nothing'}")

    try:
        if user is not None:
            try:
                shutil.chown(home, user, user)
            except LookupError:
                raise UnavailableError(f"running as root, and there is no user {user}") from None
        run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        server = Server(home, run)
        server.start()
        try:
            yield server
        finally:
            if (home / "data" / "postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(home)


def main(command: list[str]) -> int:
    def stop(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)  # unwinds the server too

    signal.signal(signal.SIGTERM, stop)
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with temporary_server() as url:
            return subprocess.run(command, env={**os.environ, VARIABLE: url}, check=False).returncode
    except UnavailableError as error:
        print(f"no PostgreSQL server: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
