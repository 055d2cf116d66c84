"""The names of the mechanisms, told by their folders. Nothing is imported: a command that lists names stays quick."""

from __future__ import annotations

from pathlib import Path


def folder_names(having: str = "mechanism.py") -> tuple[str, ...]:
    """The folders beside this module that have a file: `stages.py` if it can be released, `draw.py` if it is drawn."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{having}")))
