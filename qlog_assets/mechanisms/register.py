"""Finds the mechanisms."""

from __future__ import annotations

from functools import cache

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.mechanism import MechanismEntry


@cache
def register() -> dict[str, MechanismEntry]:
    """All mechanisms that can be released."""
    from qlog_assets.mechanisms.safelog.noise import draw as safelog
    from qlog_assets.mechanisms.zealous.noise import draw as zealous

    return {entry.name: entry for entry in (safelog.ENTRY, zealous.ENTRY)}


def mechanism(name: str) -> MechanismEntry:
    if name not in register():
        raise ParameterError(f"no mechanism {name!r} can be released: choose one of {', '.join(register())}")
    return register()[name]
