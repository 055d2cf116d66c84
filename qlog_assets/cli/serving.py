"""`qlog ui`: becomes Dagster's web server and daemon on the warehouse's instance."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from qlog_assets.errors import QlogError
from qlog_assets.storage.dagster_home import prepare_home
from qlog_assets.storage.warehouse import Warehouse


def serve_ui(warehouse: Warehouse, host: str, port: int, tell: Callable[[str], None]) -> NoReturn:
    """Become Dagster's web server and daemon on the warehouse's instance."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise QlogError(f"cannot serve on {host}:{port} ({error.strerror}): choose another --port") from None
    prepare_home(warehouse)
    os.umask(0o077)  # for good: this process becomes Dagster, whose files are the owner's alone
    tell(f"http://{host}:{port} shows {warehouse.home}; control-C ends it")
    sys.stdout.flush()
    # `dagster dev` recommends another tool in a warning; the definitions are loaded by name, from any directory.
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-m", "qlog_assets.definitions"]
    os.execv(sys.executable, [*command, "--host", host, "--port", str(port)])
