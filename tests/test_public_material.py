"""Pools and url lists at the door: what a list says decides whether a request is new, not what it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.door import MARCH, door_at, release
from support.warehouses import build_chain

from qlog_assets.ledger_rules import LiveReleaseError


def change(home: Path, old: str, new: str) -> None:
    policy = home / "policy.toml"
    text = policy.read_text(encoding="utf-8")
    assert old in text
    policy.write_text(text.replace(old, new), encoding="utf-8")


def rename_pool(home: Path) -> None:
    (home / "pool.txt").rename(home / "public-queries.txt")
    change(home, "pool.txt", "public-queries.txt")


def reorder_pool(home: Path) -> None:
    lines = (home / "pool.txt").read_text(encoding="utf-8").splitlines()
    (home / "pool.txt").write_text("\r\n".join(reversed([*lines, "WEATHER"])), encoding="utf-8")


@pytest.mark.parametrize(
    "edit",
    [lambda home: change(home, "Queries of the test's own", "Corrected"), rename_pool, reorder_pool],
    ids=["description", "file name", "order of lines"],
)
def test_the_same_pool_described_otherwise_is_the_same_request(
    copied: Callable[[str], Path], edit: Callable[[Path], None]
) -> None:
    home = copied("chained")
    first = release(home)
    edit(home)
    build_chain(home)
    second = release(home)
    assert second.charge.release_id == first.charge.release_id and second.charged is False


def test_another_query_in_the_pool_is_another_request(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    release(home)
    with (home / "pool.txt").open("a", encoding="utf-8") as pool:
        pool.write("umbrella\n")
    build_chain(home)
    with pytest.raises(LiveReleaseError, match="again"):
        door_at(home).draw("safelog", MARCH)
