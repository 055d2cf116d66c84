"""Pool and url list as assets: what they are is told, a broken one stops every run that would use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import charges, warehouse_at
from support.instances import MONTHS, POLICY, POOL, load_definitions
from support.tampering import enter

from qlog_assets.pipeline.public_material import PUBLIC_LISTS
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.partition import PUBLIC_MATERIAL

URLS = "http://www.weather.example\nhttp://www.news.example/\nhttp://www.news.example\n"
WITH_URLS = f'url_list = "urls.txt"\n{POLICY}'

Run = Callable[..., dg.ExecuteInProcessResult]
Damage = Callable[[pa.Table], pa.Table]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def run(ingested: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Materializes the public lists of the small log's warehouse, or runs the release of its March."""

    def running(job: str | None = None, policy: str = WITH_URLS) -> dg.ExecuteInProcessResult:
        (ingested / "policy.toml").write_text(policy, encoding="utf-8")
        (ingested / "urls.txt").write_text(URLS, encoding="utf-8")
        definitions = load_definitions(ingested, monkeypatch)
        if job is not None:
            resolved, options = definitions.resolve_job_def(job), {"partition_key": MONTHS[0]}
        else:
            resolved = definitions.resolve_implicit_global_asset_job_def()
            options = {"asset_selection": [dg.AssetKey(name) for name in PUBLIC_LISTS]}
        return resolved.execute_in_process(instance=instance, raise_on_error=False, **options)

    return running


def facts_of(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    (event,) = result.asset_materializations_for_node(asset)
    return {name: entry.value for name, entry in event.metadata.items()}


def verdicts(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {found.asset_key.to_user_string(): found for found in result.get_asset_check_evaluations()}


def data_version(instance: dg.DagsterInstance, asset: str) -> str:
    event = instance.get_latest_materialization_event(dg.AssetKey(asset))
    assert event is not None and event.asset_materialization is not None
    return (event.asset_materialization.tags or {})["dagster/data_version"]


def test_a_list_says_how_long_it_is_and_where_it_comes_from(run: Run) -> None:
    result = run()
    assert result.success and all(found.passed for found in verdicts(result).values())
    pool, urls = facts_of(result, "pool"), facts_of(result, "url_list")
    assert pool["used"] and pool["dagster/row_count"] == len(POOL.splitlines())
    assert (pool["kind"], pool["origin"]) == ("query_list", "pool.txt")
    assert (pool["description"], pool["licence"]) == ("Queries of the test's own", "not stated")
    assert urls["used"] and urls["dagster/row_count"] == 2, "two spellings of one address are one"
    assert (urls["kind"], urls["origin"], urls["licence"]) == ("url_list", "urls.txt", "not stated")


def test_the_pool_that_ships_says_under_which_licence(run: Run) -> None:
    result = run(policy='dataset = "small"\nfirst = "2006-03"\nlast = "2006-05"\n')
    pool = facts_of(result, "pool")
    assert pool["dagster/row_count"] > 100_000 and pool["licence"].startswith("Apache-2.0")
    assert pool["origin"] == "wordsegment" and "Web Trillion Word Corpus" in pool["description"]
    assert verdicts(result)["pool"].passed


def test_a_list_that_the_policy_does_not_name_is_not_used(run: Run, instance: dg.DagsterInstance) -> None:
    result = run(policy=POLICY)
    assert result.success and facts_of(result, "url_list") == {"used": False}
    found = verdicts(result)["url_list"]
    assert found.passed and "no such list" in (found.description or "")
    assert data_version(instance, "url_list") == "none"


def test_the_same_texts_are_the_same_data_and_another_text_is_not(
    ingested: Path, run: Run, instance: dg.DagsterInstance
) -> None:
    versions = []
    for pool in (POOL, "\n".join(reversed(POOL.split("\n"))), POOL + "one more\n"):
        (ingested / "pool.txt").write_text(pool, encoding="utf-8")
        assert run().success
        versions.append(data_version(instance, "pool"))
    assert versions[0] == versions[1] != versions[2]


def test_lists_are_of_no_month_and_stand_above_the_stage_that_reads_them(
    ingested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = load_definitions(ingested, monkeypatch).resolve_asset_graph()
    parents = {key.to_user_string() for key in graph.get(dg.AssetKey("pool_augmented")).parent_keys}
    assert parents == {"capped_log", *PUBLIC_LISTS}
    for name in PUBLIC_LISTS:
        node = graph.get(dg.AssetKey(name))
        assert node.partitions_def is None and node.parent_keys == set() and node.group_name == "public_lists"
        assert [graph.get_check_spec(key).blocking for key in node.check_keys] == [True]


def with_column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    position = table.schema.get_field_index(name)
    return table.set_column(position, table.schema.field(name), pa.array(values, table.schema.field(name).type))


BROKEN: dict[str, Damage] = {
    "a text twice": lambda rows: with_column(
        rows, "query", [rows["query"][0].as_py(), *rows["query"].to_pylist()[:-1]]
    ),
    "an empty text": lambda rows: with_column(rows, "query", ["", *rows["query"].to_pylist()[1:]]),
    "a number twice": lambda rows: with_column(rows, "pool_id", [1, *rows["pool_id"].to_pylist()[1:-1], 0]),
    "a gap in the numbers": lambda rows: with_column(rows, "pool_id", [*rows["pool_id"].to_pylist()[:-1], 99]),
    "no text at all": lambda rows: rows.slice(0, 0),
    "another column": lambda rows: rows.append_column("user", pa.array(["u"] * rows.num_rows)),
}


def break_pool(home: Path, damage: Damage) -> None:
    """Change the rows of the current pool, and let its provenance and the ledger vouch for them."""
    partition = warehouse_at(home).current("pool", PUBLIC_MATERIAL)
    (path,) = partition.files("queries")
    rows = damage(pq.read_table(path))
    # A file of its own: the partition's is another name of the one that the list was loaded into.
    pq.write_table(rows, path.with_name("broken"))
    os.replace(path.with_name("broken"), path)
    facts = replace(partition.provenance.tables["queries"], rows=rows.num_rows, files={path.name: file_checksum(path)})
    changed = replace(partition.provenance, tables={"queries": facts})
    changed.write(partition.path / "provenance.json")
    enter(home, changed)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_list_fails_its_check_and_nothing_is_drawn_with_it(ingested: Path, run: Run, kind: str) -> None:
    """Code that is wrong wrote the list so: a text that is there twice would get two noises."""
    assert run().success
    break_pool(ingested, BROKEN[kind])
    lists = verdicts(run())
    assert not lists["pool"].passed and lists["url_list"].passed
    assert "log/public_list: " in (lists["pool"].description or "")
    released = run("safelog_release")
    assert not released.success and not verdicts(released)["pool"].passed
    made = {
        event.asset_key.to_user_string() for event in released.get_asset_materialization_events() if event.asset_key
    }
    assert "capped_log" in made and not made & {"pool_augmented", "selected", "released_queries"}
    assert charges(ingested) == []


def test_a_release_is_made_with_the_lists_that_were_checked(ingested: Path, run: Run) -> None:
    result = run("safelog_release")
    assert result.success and {"pool", "url_list"} <= set(verdicts(result))
    used = warehouse_at(ingested).current("pool_augmented", MONTHS[0]).provenance.upstream
    for name in PUBLIC_LISTS:
        assert used[name] == warehouse_at(ingested).current(name, PUBLIC_MATERIAL).provenance.shape
