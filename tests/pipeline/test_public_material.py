"""Pools and url lists at the door: what a list says decides whether a request is new, not what it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, door_at, release
from support.warehouses import build_chain

from qlog_assets.ledger.rules import LiveReleaseError


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


# Releases of earlier months as a pool ---------------------------------------------------------------------------------


def pool_of_releases(home: Path, *release_ids: str) -> None:
    """Let the policy's pool be the queries of these releases."""
    policy = home / "policy.toml"
    kept = [
        line
        for line in policy.read_text(encoding="utf-8").splitlines()
        if not line.startswith(("path", "kind", "release_ids"))
    ]
    pinned = f"[pool]\nkind = 'releases'\nrelease_ids = {list(release_ids)}"
    policy.write_text("\n".join(kept).replace("[pool]", pinned), encoding="utf-8")


def release_id_of(home: Path) -> str:
    return str(qlog(home, "ledger", "--json").json["charges"][0]["release_id"])


@pytest.mark.slow
def test_a_release_of_an_earlier_month_can_be_the_pool_of_a_later_one_and_is_named_in_its_manifest(
    released: Path,
) -> None:
    earlier = release_id_of(released)
    pool_of_releases(released, earlier)
    answer = qlog(released, "release", "safelog", "--month", APRIL, "--set", "delta=0", "--json").json
    march = pq.read_table(released / "released" / "safelog" / MARCH / earlier / "queries.parquet")["query"].to_pylist()
    april = pq.read_table(Path(answer["path"]) / "queries.parquet")["query"].to_pylist()
    assert april and set(april) <= set(march), "with delta = 0 nothing but the pool can appear"
    assert earlier in (Path(answer["path"]) / "manifest.json").read_text(encoding="utf-8")
    assert qlog(released, "audit", "--json").json["ok"] is True


def test_a_release_is_no_pool_for_its_own_month_nor_an_unknown_one_for_any(released: Path) -> None:
    pool_of_releases(released, release_id_of(released))
    assert "cannot be in the pool of 2006-03" in qlog(released, "release", "safelog", "--month", MARCH).refusal
    pool_of_releases(released, "safelog-2006-01-000000000000")
    assert "safelog-2006-01-000000000000" in qlog(released, "release", "safelog", "--month", APRIL).refusal


def test_a_withdrawn_release_is_no_pool(released: Path) -> None:
    earlier = release_id_of(released)
    assert qlog(released, "withdraw", earlier, "--reason", "a test").success
    pool_of_releases(released, earlier)
    assert "withdrawn" in qlog(released, "release", "safelog", "--month", APRIL).refusal
