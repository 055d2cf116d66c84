"""The landing sensor ingests and never releases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from support.instances import AOL_HEADER, load_definitions, make_home, small_log

Look = Callable[[], dg.SensorResult]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "warehouse")


@pytest.fixture
def look(home: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """One look of the sensor after the other, as the daemon has it evaluate."""
    definitions = load_definitions(home, monkeypatch)
    sensor = definitions.resolve_sensor_def("landing_files")
    instance, cursor = dg.DagsterInstance.ephemeral(), None

    def looking() -> dg.SensorResult:
        nonlocal cursor
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, definitions=definitions, resources=definitions.resources
        ) as context:
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        cursor = result.cursor
        return result

    return looking


def put(home: Path, name: str, text: str, format: str = "aol") -> Path:
    path = home / "landing" / format / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def requested(result: dg.SensorResult) -> list[str]:
    keys = [str(request.partition_key) for request in result.run_requests or []]
    added = [key for request in result.dynamic_partitions_requests or [] for key in request.partition_keys]
    assert added == keys
    return keys


def test_the_sensor_asks_for_one_ingest_of_a_new_file(home: Path, look: Look) -> None:
    assert requested(look()) == []
    put(home, "march.txt", small_log())
    assert requested(look()) == []
    (key,) = requested(look())
    assert key.startswith("march-txt-")
    assert [requested(look()) for _ in range(3)] == [[], [], []]


def test_the_sensor_waits_until_a_file_no_longer_grows(home: Path, look: Look) -> None:
    """Half a file would be ingested, and its rows once more with the whole of it."""
    for rows in (10, 20, 30):
        put(home, "growing.txt", AOL_HEADER + "1\tnews\t2006-03-01 10:00:00\t\t\n" * rows)
        assert requested(look()) == []
    assert len(requested(look())) == 1


def test_the_sensor_asks_again_when_a_file_was_replaced(home: Path, look: Look) -> None:
    put(home, "log.txt", AOL_HEADER)
    look()
    (first,) = requested(look())
    put(home, "log.txt", small_log())
    look()
    (second,) = requested(look())
    assert first != second


def test_the_sensor_tells_files_of_one_name_in_two_formats_apart(home: Path, look: Look) -> None:
    put(home, "log.txt", small_log())
    put(home, "log.txt", "u\t060301100000\tnews\n", "excite")
    look()
    assert len(set(requested(look()))) == 2
    assert requested(look()) == []


def test_the_sensor_does_not_ask_for_what_was_ingested_already(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definitions = load_definitions(ingested, monkeypatch)
    sensor, cursor = definitions.resolve_sensor_def("landing_files"), None
    for _ in range(3):
        with dg.build_sensor_context(
            cursor=cursor, definitions=definitions, resources=definitions.resources
        ) as context:
            result = sensor(context)
        assert requested(result) == []
        cursor = result.cursor
    assert json.loads(cursor)


def test_a_file_without_its_column_map_is_left_until_the_map_comes(home: Path, look: Look) -> None:
    path = put(home, "table.csv", "user,query,time\n1,news,2006-03-01 10:00:00\n", "table")
    assert [requested(look()) for _ in range(3)] == [[], [], []]
    path.with_name("table.csv.columns.toml").write_text(
        'user = "user"\nquery = "query"\ntime = "time"\ndelimiter = ","\n', encoding="utf-8"
    )
    assert len(requested(look())) == 1


def said(result: dg.SensorResult) -> str:
    """What the tick shows."""
    assert result.skip_reason is not None and result.skip_reason.skip_message is not None
    return result.skip_reason.skip_message


def test_a_tick_shows_what_nobody_will_read_as_it_lies(home: Path, look: Look) -> None:
    """In the log of the sensor alone, nobody saw it."""
    assert said(look()) == "no new file in the landing zone"
    put(home, "table.csv", "user,query,time\n1,news,2006-03-01 10:00:00\n", "table")
    put(home, "log.txt", small_log(), "aohell")
    (home / "landing" / "loose.txt").write_text("1\n", encoding="utf-8")
    assert "landing/loose.txt, landing/aohell/log.txt: no format's folder holds it" in said(look())
    assert "landing/table/table.csv is not ingested: " in said(look()) and "columns.toml" in said(look())


def test_a_tick_shows_a_file_that_was_asked_for_and_is_not_in(home: Path, look: Look) -> None:
    put(home, "march.txt", small_log())
    look()
    (key,) = requested(look())
    assert f"see the runs of ingest for {key}" in said(look())


def test_a_file_with_a_bad_header_does_not_keep_others_out(home: Path, look: Look) -> None:
    for name, text in (("bad.csv", "a,b|c,d|e\n1,2|3,4|5\n"), ("good.csv", "who,what,at\n1,news,2006-03-01\n")):
        put(home, name, text, "table")
        put(home, f"{name}.columns.toml", 'user = "who"\nquery = "what"\ntime = "at"\n', "table")
    look()
    result = look()
    assert [key.split("-")[0] for key in requested(result)] == ["good"]
    assert "bad.csv is not ingested" in str(look().skip_reason)


def test_hidden_and_unfinished_files_are_no_logs(home: Path, look: Look) -> None:
    put(home, ".landing-abc", small_log())
    shutil.copytree(home / "landing" / "aol", home / "landing" / "aol" / "folder")
    look()
    assert requested(look()) == []


def test_the_sensor_runs_the_ingest_job_which_releases_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definitions = load_definitions(home, monkeypatch)
    sensor = definitions.resolve_sensor_def("landing_files")
    assert [target.job_name for target in sensor.targets] == ["ingest"]
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    job = definitions.resolve_job_def("ingest")
    assert {key.to_user_string() for key in job.asset_layer.executable_asset_keys} == {"landing_batch"}
