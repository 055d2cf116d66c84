"""Says so where the definitions are served to a web server without a lock, such as a plain `dagster dev`."""

from __future__ import annotations

import logging
import os
import sys

from qlog_assets.settings import LOCKED

UNLOCKED = (
    "This Dagster web server has no lock: whoever reaches its address, or a page in a browser on this machine, can "
    "launch releases within the policy's limits. `qlog ui` serves the same pages behind a token; see docs/security.md."
)


def warn_if_unlocked() -> None:
    """Once for each load by a code server. Commands that load the definitions serve nobody and stay silent."""
    if is_code_server(sys.argv) and not os.environ.get(LOCKED):
        logging.getLogger("qlog").warning(UNLOCKED)


def is_code_server(arguments: list[str]) -> bool:
    """Whether this is the process that Dagster starts to serve definitions: `dagster api grpc …`."""
    return arguments[1:3] == ["api", "grpc"]
