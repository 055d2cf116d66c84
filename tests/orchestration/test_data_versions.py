"""What Dagster shows as out of date: every stage follows its data, and a release follows nothing but the ledger."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from support.door import charges, warehouse_at
from support.instances import AOL_HEADER, MONTHS, load_definitions, make_home, small_log

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.orchestration.log_assets import DATA_VERSION_TAG
from qlog_assets.orchestration.metadata import data_version
from qlog_assets.orchestration.resources import BATCHES
from qlog_assets.pipeline.landing import batch_of, land
from qlog_assets.pipeline.public_material import PUBLIC_LISTS

pytestmark = pytest.mark.slow

MARCH, APRIL = MONTHS
STAGES = ("cleaned_log", "capped_log", "pool_augmented")
RELEASED = ("released_queries", "released_clicks", "released_transitions")
MORE = "41\tnews\t{}-05 10:00:00\t1\thttp://www.news.example\n"


class Months:
    """A warehouse and its Dagster instance: files come in, assets are made, and Dagster says what is out of date."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.home, self.instance = make_home(folder / "warehouse"), instance
        self.definitions = load_definitions(self.home, patch)
        self.incoming = folder

    def ingest(self, name: str, text: str) -> None:
        path = self.incoming / name
        path.write_text(text, encoding="utf-8")
        (landed,) = land(warehouse_at(self.home), [path], "aol")
        key = batch_of(landed, "aol").key
        self.instance.add_dynamic_partitions(str(BATCHES.name), [key])
        job = self.definitions.resolve_job_def("ingest")
        assert job.execute_in_process(instance=self.instance, partition_key=key).success

    def release(
        self, *assets: str, job: str = "safelog_release", again: str | None = None
    ) -> dg.ExecuteInProcessResult:
        """Run the release of March, or only some assets of it."""
        return self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            partition_key=MARCH,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in assets] or None,
            run_config={} if again is None else {"ops": {"selected": {"config": {"again": again}}}},
        )

    def stale(self) -> set[str]:
        """The assets of March that Dagster shows as out of date; all of them must be there."""
        graph = self.definitions.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        found = {
            name: resolver.get_status(dg.AssetKey(name), None if name in PUBLIC_LISTS else MARCH)
            for name in (*PUBLIC_LISTS, *STAGES, "selected", *RELEASED)
        }
        assert StaleStatus.MISSING not in found.values()
        return {name for name, status in found.items() if status is StaleStatus.STALE}


@pytest.fixture
def months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Months:
    made = Months(tmp_path, dg.DagsterInstance.ephemeral(), monkeypatch)
    made.ingest("small.txt", small_log())
    return made


@pytest.fixture
def released(months: Months) -> Months:
    """March released by Safelog; everything is up to date."""
    assert months.release().success
    assert months.stale() == set()
    return months


def versions(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """The data version of each materialization of a run, by asset."""
    found = {}
    for event in result.get_asset_materialization_events():
        assert event.asset_key is not None
        tags = event.step_materialization_data.materialization.tags or {}
        assert tags.get("dagster/data_version_is_user_provided") == "true", event.asset_key
        found[event.asset_key.to_user_string()] = tags[DATA_VERSION_TAG]
    return found


@pytest.mark.parametrize("name", ["safelog", "zealous"])
def test_every_materialization_of_a_release_says_which_data_it_holds(months: Months, name: str) -> None:
    result = months.release(job=f"{name}_release")
    assert result.success
    found, released_by, warehouse = versions(result), mechanism(name), warehouse_at(months.home)
    job = months.definitions.resolve_job_def(f"{name}_release")
    assert set(found) == {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    for asset in ("raw_log", "cleaned_log", *released_by.inputs):
        assert found[asset] == data_version(warehouse.current(asset, MARCH)), asset
    (charge,) = charges(months.home)
    of_the_release = (released_by.draw_asset, *released_by.released_assets.values())
    assert {found[asset] for asset in of_the_release} == {charge.release_id}


def test_ingesting_reports_the_data_version_of_every_month_it_touches(months: Months) -> None:
    for month in MONTHS:
        event = months.instance.get_latest_data_version_record(dg.AssetKey("raw_log"), partition_key=month)
        assert event is not None and event.asset_materialization is not None
        raw = warehouse_at(months.home).current("raw_log", month)
        assert (event.asset_materialization.tags or {})[DATA_VERSION_TAG] == data_version(raw)


def test_the_same_run_again_holds_the_same_data(released: Months) -> None:
    first, second = versions(released.release()), versions(released.release())
    assert first == second and released.stale() == set()


def test_new_rows_of_the_month_make_its_stages_stale_one_by_one_and_never_what_is_published(released: Months) -> None:
    """Dagster compares an asset with what is right above it: each stage is shown once the one above was made again."""
    released.ingest("late.txt", AOL_HEADER + MORE.format(MARCH))
    assert released.stale() == {"cleaned_log"}
    assert released.release("raw_log", "cleaned_log").success
    assert released.stale() == {"capped_log"}
    # The draw is of other rows than the month now has. Whether that is worth another charge a person decides, and until
    # then nothing is made for it.
    for assets in (["capped_log"], ["pool_augmented"], ["selected"], []):
        refused = released.release(*assets)
        assert refused.success and versions(refused) == {}
    assert released.stale() == {"capped_log"} and len(charges(released.home)) == 1
    assert released.release(again="late rows").success
    assert released.stale() == set() and len(charges(released.home)) == 2


def test_rows_of_another_month_make_no_draw_stale(released: Months) -> None:
    released.ingest("april.txt", AOL_HEADER + MORE.format(APRIL))
    assert released.stale() == set()
    assert released.release().success
    assert released.stale() == set() and len(charges(released.home)) == 1


def test_another_pool_makes_the_counts_stale_and_not_what_is_published(released: Months) -> None:
    with (released.home / "pool.txt").open("a", encoding="utf-8") as pool:
        pool.write("umbrella\n")
    assert released.release("pool").success
    assert released.stale() == {"pool_augmented"}
    assert released.release("pool_augmented").success
    assert released.stale() == {"pool_augmented"}  # nothing is made for a release that nobody asked for
