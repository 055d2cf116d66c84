"""Jobs for tests of CrowdLogging's protocol, and what clients would send for them."""

from __future__ import annotations

import secrets
from typing import Any

from qlog_assets.crowd.jobs import Job, default_window
from qlog_assets.crowd.tokens import OUTPUT_BYTES, SERIAL_BYTES, Token
from qlog_assets.months import Month


def make_job(**changes: Any) -> Job:
    epoch = Month(changes.pop("epoch", "2006-03"))
    opens, closes = default_window(epoch)
    values = {
        "application": "queries",
        "artifacts_per_user": 10,
        "share_threshold": 3,
        "policy": "sound",
        "opens": opens,
        "closes": closes,
    }
    return Job(epoch=epoch, **(values | changes))


def any_token() -> Token:
    """A token that nobody issued: for what does not look at tokens."""
    return Token(secrets.token_bytes(SERIAL_BYTES), secrets.token_bytes(OUTPUT_BYTES))
