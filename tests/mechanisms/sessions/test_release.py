"""Session logs through the door as a person uses it: sequences and clicks under one charge; what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import door_at, latest_folder, warehouse_at
from support.instances import MONTHS, PRIVATE_QUERY, Prepared, copy_warehouse, edit_policy
from support.tampering import vouch_for

from qlog_assets.door.inputs import DoorError
from qlog_assets.months import Month

MARCH = MONTHS[0]
# Little noise, so that forty users have something to release; the test's budget is as large.
LOUD_POLICY = 'epsilon = 40\ndelta = "1e-3"\nsessions_per_user = 2\nclicks_per_user = 8\nqueries_per_session = 4'
LOUD = [argument for line in LOUD_POLICY.splitlines() for argument in ("--set", line.replace(" ", "").replace('"', ""))]
SCALES = ("--set", "session_scale=0.5", "--set", "click_scale=0.5", "--set", "threshold=1")


@pytest.fixture(scope="module")
def released(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a release of March; the tests that share it leave it as it is."""
    home = copy_warehouse(prepared("ingested"), tmp_path_factory.mktemp("sessions") / "home")
    edit_policy(home, sessions=LOUD_POLICY)
    answer = qlog(home, "release", "sessions", "--month", MARCH, "--json").json
    assert answer["charged"] is True and (answer["epsilon"], answer["delta"]) == (40.0, 0.001)
    return home


def folder_of(home: Path) -> Path:
    return latest_folder(home, "sessions")


def test_a_release_holds_sequences_and_clicks_under_one_charge(released: Path) -> None:
    manifest = json.loads((folder_of(released) / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["tables"]) == {"sessions", "clicks"} and manifest["variant"] == "modern"
    assert [part["name"] for part in manifest["guarantee"]["parts"]] == ["sessions", "clicks"]
    # What this variant does not read is not printed as if it had decided something.
    assert not {"session_scale", "click_scale", "threshold"} & set(manifest["parameters"])
    ledger = qlog(released, "ledger", "--json").json
    assert len([charge for charge in ledger["charges"] if charge["mechanism"] == "sessions"]) == 1
    page = (folder_of(released) / "datasheet.html").read_text(encoding="utf-8")
    assert "A sequence says that one query came later than another in a session" in page


def test_a_sequence_is_a_list_in_parquet_and_a_column_per_place_in_csv(released: Path) -> None:
    table = pq.read_table(folder_of(released) / "sessions.parquet")
    assert table.schema.field("queries").type == pa.list_(pa.string())
    rows = table.to_pylist()
    assert ["weather", "train times"] in [row["queries"] for row in rows]
    with (folder_of(released) / "sessions.csv").open(encoding="utf-8", newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert list(cells[0]) == ["queries_1", "queries_2", "users", "standard_error", "month"]
    assert [[cell["queries_1"], cell["queries_2"]] for cell in cells] == [row["queries"] for row in rows]


def test_nothing_of_one_user_alone_is_released(released: Path) -> None:
    texts = "".join(
        (folder_of(released) / f"{name}.csv").read_text(encoding="utf-8") for name in ("sessions", "clicks")
    )
    assert PRIVATE_QUERY.format(1) not in texts and "weather" in texts


def test_asking_again_costs_nothing_and_the_audit_computes_it_again(released: Path) -> None:
    assert qlog(released, "release", "sessions", "--month", MARCH, "--json").json["charged"] is False
    report = qlog(released, "audit", "--deep", "--json").json
    assert report["ok"] is True
    assert any(f"kept_sessions {MARCH}, from" in line for line in report["releases"][0]["recomputed"])


@pytest.mark.parametrize(
    ("what", "places"),
    [
        ("max_sessions_per_user", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]),
        ("max_queries_per_session", [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]),
        ("sessions_of_one_query", [(1, 1)]),
        ("sessions_out_of_order", [(1, 1), (1, 1)]),
    ],
)
def test_the_door_refuses_sessions_beyond_the_limits_they_were_made_with(
    released: Path, tmp_path: Path, what: str, places: list[tuple[int, int]]
) -> None:
    home = copy_warehouse(released, tmp_path / "copy")
    partition = warehouse_at(home).current("kept_sessions", MARCH)
    (file,) = partition.files("sessions")
    rows = pq.read_table(file)
    more = [{"user": "one more", "session": session, "place": place, "query": "q"} for session, place in places]
    pq.write_table(pa.concat_tables([rows, pa.Table.from_pylist(more, rows.schema)]), file)
    vouch_for(home, partition, entered=True)
    with pytest.raises(DoorError, match=rf"kept_sessions breaks the contribution limits.*{what}"):
        door_at(home).draw("sessions", Month(MARCH), again="with more")


@pytest.mark.parametrize(("what", "urls"), [("max_per_user", range(9)), ("repeated_rows", (0, 0))])
def test_the_door_refuses_clicks_beyond_the_limits_they_were_made_with(
    released: Path, tmp_path: Path, what: str, urls: Sequence[int]
) -> None:
    home = copy_warehouse(released, tmp_path / "copy")
    partition = warehouse_at(home).current("kept_sessions", MARCH)
    (file,) = partition.files("clicks")
    rows = pq.read_table(file)
    more = [{"user": "one more", "query": "q", "url": f"{url}.example"} for url in urls]
    pq.write_table(pa.concat_tables([rows, pa.Table.from_pylist(more, rows.schema)]), file)
    vouch_for(home, partition, entered=True)
    with pytest.raises(DoorError, match=rf"kept_sessions breaks the contribution limits.*{what}"):
        door_at(home).draw("sessions", Month(MARCH), again="with more")


def test_the_paper_never_passes_the_door(released: Path) -> None:
    assert "variant" in qlog(released, "release", "sessions", "--month", MARCH, "--set", "variant=paper").refusal
    with pytest.raises(DoorError, match="studies alone"):
        door_at(released).draw("sessions", Month(MARCH), variant="paper", again="as printed")


def test_a_part_that_is_switched_off_costs_nothing_and_both_off_is_refused(released: Path) -> None:
    alone = qlog(released, "guarantee", "sessions", "--variant", "sound", *SCALES, "--json").json
    clicks = qlog(
        released, "guarantee", "sessions", "--variant", "sound", *SCALES, "--set", "session_scale=none", "--json"
    ).json
    assert [part["name"] for part in clicks["parts"]] == ["clicks"]
    assert clicks["proven"]["epsilon"] < alone["proven"]["epsilon"]
    off = ("--set", "session_scale=none", "--set", "click_scale=none")
    assert "nothing is left to release" in qlog(released, "guarantee", "sessions", *off).refusal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "tables"),
    [
        (("variant=sound", "session_scale=0.5", "click_scale=0.5", "threshold=1"), {"sessions", "clicks"}),
        (("method=gaussian_counts", "items=subsequences"), {"sessions", "clicks"}),
        (("session_scale=none",), {"clicks"}),
        (("click_scale=none",), {"sessions"}),
    ],
)
def test_every_form_that_may_be_published_is_released_and_audited(
    ingested: Path, settings: tuple[str, ...], tables: set[str]
) -> None:
    edit_policy(ingested, sessions=LOUD_POLICY)
    chosen = [argument for setting in settings for argument in ("--set", setting)]
    answer = qlog(ingested, "release", "sessions", "--month", MARCH, *chosen, "--json").json
    assert set(answer["rows"]) == tables and min(answer["rows"].values()) >= 1
    assert qlog(ingested, "audit", "--json").json["ok"] is True
    again = qlog(ingested, "release", "sessions", "--month", MARCH, *chosen, "--json").json
    assert again["charged"] is False


QUERIES = 'epsilon = 20\ndelta = "1e-3"\nitems_per_user = 8\nkinds = "queries"'
ASK = ("release", "sessions", "--month", MARCH, "--set", "click_scale=none", "--set", "epsilon=20")


@pytest.mark.slow
def test_pairs_over_a_release_keep_to_its_queries_and_nothing_is_drawn_over_one_that_was_withdrawn(
    ingested: Path,
) -> None:
    edit_policy(ingested, sessions=LOUD_POLICY, zealous=QUERIES)
    unknown = ("--set", "domain=zealous-2006-03-0123456789ab")
    assert "is no published release of 2006-03" in qlog(ingested, *ASK, *unknown).refusal
    domain = qlog(ingested, "release", "zealous", "--month", MARCH, "--json").json
    over = (*ASK, "--set", f"domain={domain['release_id']}")
    assert 'drawn by variant = "modern" alone' in qlog(ingested, *over, "--set", "variant=sound").refusal
    answer = qlog(ingested, *over, "--json").json
    assert answer["charged"] is True and answer["delta"] == 0
    public = set(pq.read_table(Path(domain["path"]) / "queries.parquet")["query"].to_pylist())
    sequences = pq.read_table(Path(answer["path"]) / "sessions.parquet")["queries"].to_pylist()
    assert ["weather", "train times"] in sequences and {query for pair in sequences for query in pair} <= public
    manifest = json.loads((Path(answer["path"]) / "manifest.json").read_text(encoding="utf-8"))
    (pool,) = manifest["pools"]
    assert pool["name"] == manifest["parameters"]["domain"] == domain["release_id"] and pool["rows"] == len(public)
    assert "were public before, from another release" in (Path(answer["path"]) / "datasheet.html").read_text()
    assert qlog(ingested, "audit", "--deep", "--json").json["ok"] is True
    # Withdrawn, it steers nothing new; what was drawn over it is served, whatever is left of its private tables.
    assert qlog(ingested, "withdraw", domain["release_id"], "--reason", "a mistake").success
    assert "it is withdrawn" in qlog(ingested, *over, "--again", "a second look").refusal
    assert qlog(ingested, *over, "--json").json["charged"] is False
    audited = qlog(ingested, "audit", "--json").json
    notes = [note for release in audited["releases"] for note in release["notes"]]
    assert audited["ok"] is True and any("which it was counted over, is withdrawn" in note for note in notes)


@pytest.mark.slow
def test_the_door_and_the_audit_see_a_domain_with_a_query_more_than_its_release(ingested: Path) -> None:
    """A query of the log among the public ones would be printed at δ = 0; one that is there twice moves many counts."""
    edit_policy(ingested, sessions=LOUD_POLICY, zealous=QUERIES)
    domain = qlog(ingested, "release", "zealous", "--month", MARCH, "--json").json["release_id"]
    over = {"sessions.click_scale": "none", "sessions.epsilon": "20", "sessions.domain": domain}
    assert qlog(ingested, *ASK, "--set", f"domain={domain}", "--json").json["charged"] is True
    partition = warehouse_at(ingested).current("kept_sessions", MARCH)
    (file,) = partition.files("domain")
    rows = pq.read_table(file)
    for query in (PRIVATE_QUERY.format(1), "weather"):
        more = pa.table({"query_id": [rows.num_rows], "query": [query]}, rows.schema)
        pq.write_table(pa.concat_tables([rows, more]), file)
        vouch_for(ingested, partition, entered=True)
        with pytest.raises(DoorError, match="kept_sessions has other queries"):
            door_at(ingested, over).draw("sessions", Month(MARCH), again="with one more")
    audited = qlog(ingested, "audit", "--json")
    findings = [line for release in json.loads(audited.out)["releases"] for line in release["findings"]]
    assert audited.code == 1 and any("kept_sessions 2006-03 is not what was released from" in line for line in findings)


@pytest.mark.study
def test_seeded_simulations_repeat_themselves_and_never_charge(ingested: Path) -> None:
    for variant in ("paper", "sound", "modern"):
        command = ("simulate", "sessions", "--month", MARCH, "--variant", variant, *LOUD, *SCALES, "--json")
        first, second = (qlog(ingested, *command).json for _ in range(2))
        assert first["charged"] is False and first["rows"]["sessions"] >= 1
        assert all(
            pq.read_table(Path(first["path"]) / f"{name}.parquet").equals(
                pq.read_table(Path(second["path"]) / f"{name}.parquet")
            )
            for name in ("sessions", "clicks")
        )


def test_a_release_suggests_what_people_search_next(released: Path) -> None:
    facts = qlog(released, "suggest", "Weather", "--json").json
    assert facts["release_id"] == folder_of(released).resolve().name
    assert "train times" in [each["query"] for each in facts["suggestions"]]
    assert "is not in" in qlog(released, "suggest", PRIVATE_QUERY.format(1)).refusal
