"""A landing batch in the UI: its page, its checks, and the job that withdraws it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support.instances import AOL_HEADER, MONTHS, PRIVATE_QUERY, load_definitions

from qlog_assets.door import preconditions
from qlog_assets.ledger import Ledger
from qlog_assets.mechanisms.register import releasable
from qlog_assets.pipeline.landing import batch_key
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

pytestmark = pytest.mark.slow
MARCH = MONTHS[0]
Run = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


@pytest.fixture
def run(ingested: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a job for a batch, as the launchpad would."""
    definitions = load_definitions(ingested, monkeypatch)

    def running(job: str, key: str, **config: Any) -> dg.ExecuteInProcessResult:
        instance.add_dynamic_partitions("ingest_batches", [key])
        step = "landing_batch" if job == "ingest" else "withdrawal"
        return definitions.resolve_job_def(job).execute_in_process(
            instance=instance,
            partition_key=key,
            run_config={"ops": {step: {"config": config}}},
            raise_on_error=False,
        )

    return running


@pytest.fixture
def poor(ingested: Path) -> str:
    """The key of a file with three good rows of March and two bad ones."""
    path = ingested / "landing" / "aol" / "poor.txt"
    rows = [f"p{n}\t{PRIVATE_QUERY.format(n)}\t{MARCH}-09 10:00:00\t\t" for n in range(3)] + ["x\ty\tnever\t\t"] * 2
    path.write_text(AOL_HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return batch_key(path, "aol")


def page(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    events = result.asset_materializations_for_node("landing_batch")
    return {
        name: [record.data for record in value.records] if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in events[0].metadata.items()
    }


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    return next(each for each in result.get_asset_check_evaluations() if each.check_name == "few_rows_rejected")


def is_shown_good(instance: dg.DagsterInstance) -> bool:
    """What the asset's page shows of its check, whichever run it was evaluated by."""
    key = dg.AssetCheckKey(dg.AssetKey("landing_batch"), "few_rows_rejected")
    event = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key].event
    assert event is not None and event.dagster_event is not None
    return event.dagster_event.asset_check_evaluation_data.passed


def raw_rows(home: Path) -> int:
    return Warehouse(Settings(home=home)).current("raw_log", MARCH).rows("log")


def test_a_batch_says_what_became_of_its_rows_and_is_withdrawn_by_a_job_with_a_reason(
    ingested: Path, instance: dg.DagsterInstance, run: Run, poor: str
) -> None:
    before = raw_rows(ingested)
    ingest = run("ingest", poor)
    facts = page(ingest)
    assert ingest.success and (facts["file"], facts["format"], facts["state"]) == ("poor.txt", "aol", "in use")
    assert (facts["rows read"], facts["rows accepted"], facts["rows rejected"]) == (5, 3, 2)
    assert facts["rejected by reason"] == [{"reason": "bad_time", "rows": 2}]
    assert facts["months"] == [{"month": MARCH, "rows": 3}]
    warned = check(ingest)
    assert not warned.passed and warned.severity is dg.AssetCheckSeverity.WARN and warned.description is not None
    assert warned.description.startswith("poor.txt: 40 % of its 5 rows were rejected (bad_time 2)")
    assert "withdraw_batch" in warned.description and not is_shown_good(instance)
    assert not run("withdraw_batch", poor, reason=" ").success and raw_rows(ingested) == before + 3
    withdrawn = run("withdraw_batch", poor, reason="of the test system")
    assert withdrawn.success and raw_rows(ingested) == before and is_shown_good(instance)
    (record,) = Ledger.read(ingested / "ledger.db").batch_withdrawals("small")
    assert (record.batch, record.reason, record.run_id) == (poor, "of the test system", withdrawn.run_id)
    newest = instance.get_latest_materialization_event(dg.AssetKey("landing_batch"))
    assert newest is not None and newest.asset_materialization is not None
    assert newest.asset_materialization.metadata["state"].value == "withdrawn"
    # It cannot come back by a click: the run says what to do in the launchpad.
    again = run("ingest", poor)
    failure = again.failure_data_for_node("landing_batch")
    assert not again.success and failure is not None and failure.error is not None
    assert "again_because in the run's config" in failure.error.to_string()
    assert run("ingest", poor, again_because="it was real").success and raw_rows(ingested) == before + 3
    for result in (ingest, warned, withdrawn, again):
        events = result.all_events if isinstance(result, dg.ExecuteInProcessResult) else [result]
        assert PRIVATE_QUERY.format(1) not in "\n".join(map(str, events))


def test_a_batch_is_not_withdrawn_while_anything_is_drawn_from_one_of_its_months(
    ingested: Path, run: Run, poor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The door has looked at its inputs by then: rows that nobody may use any more would be in its draw."""
    assert run("ingest", poor).success
    rows = raw_rows(ingested)
    monkeypatch.setattr(preconditions, "LONGEST_WAIT_SECONDS", 0)
    for mechanism in (each.name for each in releasable()):
        with preconditions.lock_month(Warehouse(Settings(home=ingested)), mechanism, MARCH):
            ended = run("withdraw_batch", poor, reason="a test")
        failure = ended.failure_data_for_node("withdrawal")
        assert failure is not None and failure.error is not None and failure.error.cause is not None
        reason = f"nothing was withdrawn: another process is at the door for {mechanism} {MARCH}"
        assert reason in str(failure.error.cause)
    assert Ledger.read(ingested / "ledger.db").batch_withdrawals("small") == [] and raw_rows(ingested) == rows
    assert run("withdraw_batch", poor, reason="a test").success and raw_rows(ingested) == rows - 3


def test_the_page_of_a_file_without_urls_says_what_releases_would_pay_for(ingested: Path, run: Run) -> None:
    path = ingested / "landing" / "excite" / "plain.log"
    path.parent.mkdir()
    path.write_text("2A9EABFB35F5B954\t060309105432\tnews\n", encoding="latin-1")
    note = page(run("ingest", batch_key(path, "excite")))["note"]
    assert note.startswith("plain.log has no column of urls: ") and "has_urls = false" in note
