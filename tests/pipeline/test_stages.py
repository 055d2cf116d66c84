"""The stages between raw log and draw: made once, beside each other for other parameters, counted right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.door import MARCH, warehouse_at
from support.instances import POOL, POPULAR, USERS
from support.stages import Stages

from qlog_assets.errors import QlogError
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse


@pytest.fixture
def warehouse(ingested: Path) -> Warehouse:
    return warehouse_at(ingested)


@pytest.fixture
def policy(ingested: Path) -> Policy:
    return Policy.load(ingested / "policy.toml")


@pytest.fixture
def chain(warehouse: Warehouse) -> Iterator[Stages]:
    with Engine.open(warehouse) as engine:
        yield Stages(warehouse, engine)


def stages(chain: Stages, policy: Policy) -> tuple[list[Partition], list[bool]]:
    """All stages of a month, and which of them were written anew."""
    made = [chain.clean(MARCH, chain.warehouse.current("raw_log", MARCH))]
    made.append(chain.cap(MARCH, made[0][0], policy.section("safelog")))
    made.append(chain.augment(MARCH, made[1][0], policy))
    return [partition for partition, _ in made], [fresh for _, fresh in made]


def test_every_stage_is_made_once(chain: Stages, policy: Policy) -> None:
    first, fresh = stages(chain, policy)
    assert fresh == [True, True, True]
    again, fresh = stages(chain, policy)
    assert fresh == [False, False, False]
    assert [part.provenance.shape for part in again] == [part.provenance.shape for part in first]


def test_another_limit_is_another_partition_beside_the_first(chain: Stages, policy: Policy) -> None:
    (cleaned, capped, _), _ = stages(chain, policy)
    stricter, fresh = chain.cap(MARCH, cleaned, policy.section("safelog").with_changes(queries_per_user=2))
    assert fresh and stricter.path != capped.path and capped.path.exists()
    assert stricter.provenance.parameters["queries_per_user"] == 2
    assert chain.warehouse.current("capped_log", MARCH).path == stricter.path


def test_a_parameter_that_only_the_noise_reads_makes_no_new_partition(chain: Stages, policy: Policy) -> None:
    """Otherwise every change of a threshold would count the whole log again."""
    (cleaned, capped, _), _ = stages(chain, policy)
    other = policy.section("safelog").with_changes(threshold=77, selection_scale="3", delta="1e-9")
    assert chain.cap(MARCH, cleaned, other) == (capped, False)


def test_the_counts_are_users_and_the_pool_is_there_at_zero(chain: Stages, policy: Policy) -> None:
    (_, capped, augmented), _ = stages(chain, policy)
    rows = [row for path in augmented.files("queries") for row in pq.read_table(path).to_pylist()]
    held = Counter(row["query"] for path in capped.files("queries") for row in pq.read_table(path).to_pylist())
    pool = set(POOL.split("\n")) - {""}
    assert {row["query"]: row["users"] for row in rows} == {**dict.fromkeys(pool, 0), **held}
    assert {row["query"] for row in rows if row["in_pool"]} == pool
    assert held[POPULAR[0]] == USERS and max(held.values()) <= USERS


def test_stages_make_nothing_of_what_was_changed_after_it_was_written(chain: Stages, policy: Policy) -> None:
    """What a partition's provenance says of its upstream is only true if the upstream is what it was."""
    (cleaned, capped, _), _ = stages(chain, policy)
    for partition, table in ((cleaned, "log"), (capped, "queries")):
        path = partition.files(table)[0]
        pq.write_table(pq.read_table(path).slice(1), path)
    private = chain.warehouse.private
    before = {path: path.stat().st_mtime_ns for path in private.rglob("*") if "locks" not in path.parts}
    with pytest.raises(QlogError, match=r"cleaned_log 2006-03: log\.parquet was changed"):
        chain.cap(MARCH, cleaned, policy.section("safelog").with_changes(queries_per_user=3))
    with pytest.raises(QlogError, match=r"cleaned_log 2006-03: log\.parquet was changed"):
        chain.choose_items(MARCH, cleaned, 3)
    assert {path.name for path in set(private.rglob("*")) - set(before) if "locks" not in path.parts} == {
        "zealous_items",
        MARCH,
    }, "empty directories are all there is"
    current = private / "capped_log" / MARCH / "current"
    assert current.stat().st_mtime_ns == before[current]
    (chain.warehouse.home / "pool.txt").write_text("another pool\n", encoding="utf-8")
    with pytest.raises(QlogError, match=r"capped_log 2006-03: queries\.parquet was changed"):
        chain.augment(MARCH, capped, policy)
    raw = chain.warehouse.current("raw_log", MARCH)
    raw.files("log")[0].unlink()
    with pytest.raises(QlogError, match="raw_log 2006-03"):
        Stages(chain.warehouse, chain.engine, make_current=False).clean(MARCH, raw)
