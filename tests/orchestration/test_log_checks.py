"""Broken partitions: their checks fail, stop the run before anything is drawn, and say nothing of what they saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from support.instances import MONTHS, PRIVATE_QUERY, load_definitions
from support.tampering import enter

from qlog_assets.ledger import Ledger
from qlog_assets.pipeline.public_material import PUBLIC_LISTS
from qlog_assets.settings import Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.warehouse import Warehouse

MARCH = MONTHS[0]
SECRET = PRIVATE_QUERY.format(17)

RAW_DAMAGE = {
    "a row of another month": 'SELECT "user", query, TIMESTAMP \'2006-04-01\' AS "time", rank, url FROM good',
    "a row without a user": 'SELECT NULL::VARCHAR AS "user", query, "time", rank, url FROM good',
    "a row without a query": 'SELECT "user", \'\' AS query, "time", rank, url FROM good',
    "another column": "SELECT *, 'x' AS session FROM good",
    "a column of another type": 'SELECT "user", query, "time", rank::BIGINT AS rank, url FROM good',
    "a negative rank": 'SELECT "user", query, "time", -1::INTEGER AS rank, url FROM good',
}
CLEANED_DAMAGE = {
    "a text that was never normalised": 'SELECT "user", upper(query) AS query, "time", rank, url FROM good',
    "a search of another month": 'SELECT "user", query, TIMESTAMP \'2006-02-28\' AS "time", rank, url FROM good',
    "a search without a query": 'SELECT "user", \'\' AS query, "time", rank, url FROM good',
    "a click without an address": 'SELECT "user", query, "time", rank, \'\' AS url FROM good',
    "a user column too many": 'SELECT "user", "user" AS who, query, "time", rank, url FROM good',
}


@pytest.fixture
def run(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dg.ExecuteInProcessResult]:
    """Runs a job of the small log's warehouse without raising what the assets raise."""

    def running(job: str = "safelog_release", **options: object) -> dg.ExecuteInProcessResult:
        resolved = load_definitions(ingested, monkeypatch).resolve_job_def(job)
        return resolved.execute_in_process(
            instance=dg.DagsterInstance.ephemeral(), partition_key=MARCH, raise_on_error=False, **options
        )

    return running


def damage(home: Path, asset: str, table: str, body: str) -> None:
    """Replace a table of the current partition, checksum and entry and all, as code that is wrong would write it."""
    partition = Warehouse(Settings(home=home)).current(asset, MARCH)
    path = partition.files(table)[0]
    scratch = path.with_name("damaged")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW good AS SELECT * FROM read_parquet('{path}')")
        # One damaged row among the good ones, where the columns allow it.
        one = f"SELECT * FROM good UNION ALL ({body} WHERE query = '{SECRET}' LIMIT 1)"
        columns = connection.execute("DESCRIBE SELECT * FROM good").fetchall()
        same = columns == connection.execute(f"DESCRIBE {body}").fetchall()
        connection.execute(f"COPY ({one if same else body}) TO '{scratch}' (FORMAT parquet)")
    scratch.replace(path)
    tables = dict(partition.provenance.tables)
    tables[table] = replace(tables[table], files={**tables[table].files, path.name: file_checksum(path)})
    changed = replace(partition.provenance, tables=tables)
    changed.write(partition.path / "provenance.json")
    enter(home, changed)


def failed_checks(result: dg.ExecuteInProcessResult) -> set[str]:
    return {found.check_name for found in result.get_asset_check_evaluations() if not found.passed}


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events() if event.asset_key}


def everything_said(result: dg.ExecuteInProcessResult) -> str:
    return "\n".join(str(event) for event in result.all_events)


def charges(home: Path) -> list[object]:
    return list(Ledger.open(Warehouse(Settings(home=home)).ledger_url).charges())


@pytest.mark.parametrize("kind", RAW_DAMAGE)
def test_a_broken_raw_log_fails_its_check_and_nothing_is_made_of_it(ingested: Path, run: Callable, kind: str) -> None:
    damage(ingested, "raw_log", "log", RAW_DAMAGE[kind])
    result = run()
    assert not result.success and failed_checks(result) == {"rows_of_the_month"}
    assert materialized(result) == {"raw_log", *PUBLIC_LISTS} and charges(ingested) == []
    assert SECRET not in everything_said(result)


@pytest.mark.parametrize("kind", CLEANED_DAMAGE)
def test_a_broken_cleaned_log_fails_its_check_and_nothing_is_made_of_it(
    ingested: Path, run: Callable, kind: str
) -> None:
    assert run("safelog_release", asset_selection=[dg.AssetKey("raw_log"), dg.AssetKey("cleaned_log")]).success
    damage(ingested, "cleaned_log", "log", CLEANED_DAMAGE[kind])
    result = run()
    assert not result.success and failed_checks(result) == {"normalised_rows"}
    assert materialized(result) == {"raw_log", "cleaned_log", *PUBLIC_LISTS} and charges(ingested) == []
    said = everything_said(result)
    assert SECRET not in said and SECRET.upper() not in said


def test_a_partition_that_was_only_touched_is_made_again(ingested: Path, run: Callable) -> None:
    """Without the checksum the change is noticed, and the partition is rebuilt from what is above it."""
    assert run().success
    partition = Warehouse(Settings(home=ingested)).current("cleaned_log", MARCH)
    path = partition.files("log")[0]
    good = file_checksum(path)
    path.write_bytes(path.read_bytes()[:-9])
    result = run()
    assert result.success and file_checksum(path) == good
    assert len(charges(ingested)) == 1


def test_good_partitions_pass_every_check(ingested: Path, run: Callable) -> None:
    result = run()
    assert result.success and failed_checks(result) == set()
    checks = {found.check_name for found in result.get_asset_check_evaluations()}
    assert checks == {"rows_of_the_month", "one_id_per_person", "normalised_rows", "texts_once", "contribution_limits"}
    assert SECRET not in everything_said(result)
