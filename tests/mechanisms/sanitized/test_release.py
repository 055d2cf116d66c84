"""Sanitized logs through the door as a person uses it: a log of made-up users, used again; what is refused."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import door_at, latest_folder, warehouse_at
from support.instances import MONTHS, PRIVATE_QUERY, USERS, Prepared, copy_warehouse, edit_policy, make_home
from support.tampering import vouch_for

from qlog_assets.checks.released import released_frames
from qlog_assets.checks.suites import run_suite
from qlog_assets.door.inputs import DoorError
from qlog_assets.mechanisms.sanitized.tables import LOG
from qlog_assets.months import Month

MARCH = MONTHS[0]
# Little noise, so that forty users have something to release; the test's budget is as large.
LOUD_POLICY = 'epsilon = 40\ndelta = "1e-3"\npairs_per_user = 8\nsynthetic_users = 25\nasked_size = 120'
LOUD = [argument for line in LOUD_POLICY.splitlines() for argument in ("--set", line.replace(" ", "").replace('"', ""))]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def released(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a release of March; the tests that share it leave it as it is."""
    home = copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("sanitized") / "home")
    edit_policy(home, sanitized=LOUD_POLICY)
    answer = qlog(home, "release", "sanitized", "--month", MARCH, "--json").json
    assert answer["charged"] is True and (answer["epsilon"], answer["delta"]) == (40.0, 0.001)
    return home


def folder_of(home: Path) -> Path:
    return latest_folder(home, "sanitized")


def test_a_release_is_a_log_of_made_up_users_of_the_asked_size_and_its_datasheet_says_so(released: Path) -> None:
    manifest = json.loads((folder_of(released) / "manifest.json").read_text(encoding="utf-8"))
    table = pq.read_table(folder_of(released) / "log.parquet")
    assert table.schema.equals(LOG.schema) and manifest["tables"]["log"]["threshold"] is None
    # Made-up users are no counts: what is stated is the noise of the numbers that the log was dealt from.
    assert manifest["tables"]["log"]["noise"]["deviation"] > 0
    rows = table.to_pylist()
    assert sum(row["count"] for row in rows) == 120
    assert {row["user"] for row in rows} <= set(range(1, 26)) and {row["month"] for row in rows} == {MARCH}
    assert {"weather", "news"} <= {row["query"] for row in rows}
    assert not any(PRIVATE_QUERY.format(user) in row["query"] for user in range(1, USERS + 1) for row in rows)
    assert [part["name"] for part in manifest["guarantee"]["parts"]] == ["pairs", "activity"]
    assert not {"clicks", "minimum_support", "count_epsilon"} & set(manifest["parameters"])
    page = (folder_of(released) / "datasheet.html").read_text(encoding="utf-8")
    assert "These users never lived." in page and "Which pairs one user has together is chance" in page


def test_the_released_log_is_ingested_into_another_warehouse_like_any_log(released: Path, tmp_path: Path) -> None:
    columns = tmp_path / "log.columns.toml"
    named = "".join(f'{name} = "{name}"\n' for name in ("user", "query", "url", "count"))
    columns.write_text(named + 'time = "month"\ntime_format = "%Y-%m"\n', encoding="utf-8")
    other = make_home(tmp_path / "other")
    file = folder_of(released) / "log.parquet"
    answer = qlog(other, "ingest", file, "--format", "table", "--columns", columns, "--json").json
    assert (answer["read"], answer["accepted"], answer["months"]) == (120, 120, {MARCH: 120})
    assert qlog(other, "release", "safelog", "--month", MARCH, "--json").json["charged"] is True
    cleaned = pq.read_table(warehouse_at(other).current("cleaned_log", MARCH).files("log")[0]).to_pylist()
    expected = Counter()
    for row in pq.read_table(file).to_pylist():
        expected[str(row["user"]), row["query"]] += row["count"]
    assert Counter((row["user"], row["query"]) for row in cleaned) == expected
    assert {row["time"] for row in cleaned} == {datetime.fromisoformat(f"{MARCH}-01")}


def test_asking_again_costs_nothing_and_the_audit_computes_it_again(released: Path) -> None:
    assert qlog(released, "release", "sanitized", "--month", MARCH, "--json").json["charged"] is False
    report = qlog(released, "audit", "--deep", "--json").json
    assert report["ok"] is True
    assert any(f"sanitized_pairs {MARCH}, from" in line for line in report["releases"][0]["recomputed"])


@pytest.mark.parametrize(("what", "number"), [("max_per_user", 9), ("repeated_rows", 2)])
def test_the_door_refuses_pairs_beyond_the_limit_they_were_made_with(
    released: Path, tmp_path: Path, what: str, number: int
) -> None:
    home = copy_warehouse(released, tmp_path / "copy")
    partition = warehouse_at(home).current("sanitized_pairs", MARCH)
    (file,) = partition.files("pairs")
    rows = pq.read_table(file)
    texts = [f"q{place}" if what == "max_per_user" else "q" for place in range(number)]
    more = [{"user": "one more", "query": text, "url": "u"} for text in texts]
    pq.write_table(pa.concat_tables([rows, pa.Table.from_pylist(more, rows.schema)]), file)
    vouch_for(home, partition, entered=True)
    with pytest.raises(DoorError, match=rf"sanitized_pairs breaks the contribution limits.*{what}"):
        door_at(home).draw("sanitized", Month(MARCH), again="with more")


def test_the_paper_and_a_log_without_urls_never_pass_the_door(released: Path, tmp_path: Path) -> None:
    with pytest.raises(DoorError, match="studies alone"):
        door_at(released).draw("sanitized", Month(MARCH), variant="paper", again="as printed")
    home = copy_warehouse(released, tmp_path / "copy")
    edit_policy(home, top="has_urls = false")
    refused = qlog(home, "release", "sanitized", "--month", MONTHS[1])
    assert "has_urls = false says that the log has no urls" in refused.refusal
    assert len(qlog(home, "ledger", "--json").json["charges"]) == 1


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (("method=stability", "objective=frequent_pairs", "minimum_support=0.1"), ["pairs", "activity"]),
        (("association_share=0.4", "objective=diversity"), ["pairs", "activity", "associations"]),
    ],
)
def test_every_form_that_may_be_published_is_released_and_audited(
    ingested: Path, settings: tuple[str, ...], parts: list[str]
) -> None:
    edit_policy(ingested, sanitized=LOUD_POLICY)
    chosen = [argument for setting in settings for argument in ("--set", setting)]
    answer = qlog(ingested, "release", "sanitized", "--month", MARCH, *chosen, "--json").json
    assert answer["rows"]["log"] >= 1 and (answer["epsilon"], answer["delta"]) == (40.0, 0.001)
    manifest = json.loads((Path(answer["path"]) / "manifest.json").read_text(encoding="utf-8"))
    assert [part["name"] for part in manifest["guarantee"]["parts"]] == parts
    assert qlog(ingested, "audit", "--json").json["ok"] is True


def test_a_month_in_which_noise_leaves_nothing_is_an_empty_log_and_no_failure(ingested: Path) -> None:
    edit_policy(ingested, sanitized='epsilon = "0.01"\nassociation_share = "0.2"')
    answer = qlog(ingested, "release", "sanitized", "--month", MARCH, "--json").json
    assert answer["charged"] is True and answer["rows"] == {"log": 0}


def test_seeded_simulations_repeat_themselves_and_never_charge(ingested: Path) -> None:
    command = ("simulate", "sanitized", "--month", MARCH, "--variant", "sound", *LOUD, "--json")
    first, second = (qlog(ingested, *command).json for _ in range(2))
    assert first["charged"] is False and first["rows"]["log"] >= 1
    tables = [pq.read_table(Path(each["path"]) / "log.parquet") for each in (first, second)]
    assert tables[0].equals(tables[1])


def test_no_pattern_of_personal_data_is_applied_to_a_made_up_users_number_and_all_are_to_texts() -> None:
    """123456789 was once taken for a social security number."""
    rows = {"user": [123456789], "query": ["weather"], "url": ["http://w.example"], "count": [2], "month": [MARCH]}
    good = pa.table(rows, LOG.schema)
    assert run_suite("sanitized/released_log", released_frames(good, LOG, None)).passed
    for changes in ({"query": ["123456789"]}, {"user": [0]}, {"count": [0]}, {"month": ["2006-03-01"]}):
        bad = pa.table(rows | changes, LOG.schema)
        assert not run_suite("sanitized/released_log", released_frames(bad, LOG, None)).passed, changes
