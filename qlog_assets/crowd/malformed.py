"""The one error for bytes that another party sent and that are not what they should be."""

from __future__ import annotations

from qlog_assets.errors import QlogError


class MalformedError(QlogError):
    """Bytes that are refused. The reason says what is wrong with them in words that may be counted and logged: it is
    one of a few fixed ones, and never holds anything of the bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed: {reason}")
        self.reason = reason
