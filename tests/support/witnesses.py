"""A warehouse whose policy names a witness beside it, and a process that dies while it writes to the ledger."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.door import released_id

from qlog_assets.ledger import witness as witness_module
from qlog_assets.ledger import witness_file
from qlog_assets.ledger.witness_file import FileWitness


def name_witness(home: Path, place: str = "../outside/witness.jsonl") -> FileWitness:
    """Let the policy of a warehouse name a witness in a directory beside it."""
    (home.parent / "outside").mkdir(exist_ok=True)
    with (home / "policy.toml").open("a", encoding="utf-8") as stream:
        stream.write(f'\n[ledger]\nwitness = "{place}"\n')
    return FileWitness(home.parent / "outside" / "witness.jsonl")


def die_telling(home: Path, point: str, write: int) -> str:
    """A child's task: release March and die at a point of the n-th write to the ledger."""
    seen = []

    def kill(reached: str) -> None:
        seen.append(reached)
        if reached == point and seen.count(point) == write:
            os.kill(os.getpid(), signal.SIGKILL)

    witness_module.on_point = kill
    return released_id(home)


def die_writing(home: Path, write: int) -> str:
    """A child's task: release March and die with half of what the n-th write to the witness has to say."""
    seen: list[bytes] = []

    def tear(descriptor: int, data: bytes) -> None:
        seen.append(data)
        if len(seen) == write:
            os.write(descriptor, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        whole(descriptor, data)

    whole = witness_file.write_whole
    witness_file.write_whole = tear
    return released_id(home)
