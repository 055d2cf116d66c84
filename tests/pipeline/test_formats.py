"""Logs of every shape through `qlog ingest`, and what is said in public of users who have no names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import warehouse_at
from support.instances import edit_policy, make_home

from qlog_assets.errors import QlogError
from qlog_assets.pipeline.batches import batches, ingest_batch, rejected_share
from qlog_assets.pipeline.landing import Batch, batch_of, land
from qlog_assets.pipeline.public_material import build_public_list
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse

FILES = Path(__file__).parents[1] / "data" / "formats"
HASHED = 'one_user = "address_and_agent"'
LINE = '192.0.2.{} - - [0{}/Mar/2006:08:17:12 +0100] "GET {} HTTP/1.1" 200 9 "-" "Mozilla/5.0"\n'


@pytest.fixture
def hashed(home: Path) -> Warehouse:
    """A warehouse of a policy under which one user is one address with one agent."""
    make_home(home)
    edit_policy(home, unit=HASHED)
    return warehouse_at(home)


def landed(warehouse: Warehouse, name: str, content: str) -> Batch:
    path = warehouse.home.parent / name
    path.write_text(content, encoding="utf-8")
    return batch_of(land(warehouse, [path], "access", FILES / "access.toml")[0], "access")


def ingest(warehouse: Warehouse, batch: Batch) -> None:
    with Engine.open(warehouse) as engine:
        ingest_batch(warehouse, engine, batch, Policy.load(warehouse.home / "policy.toml").admission)


def users_of(warehouse: Warehouse) -> list[set[str]]:
    found = []
    with Engine.open(warehouse) as engine:
        for batch in batches(warehouse):
            engine.view("accepted", batch.files("2006-03"))
            found.append({row[0] for row in engine.connection.execute('SELECT "user" FROM accepted').fetchall()})
    return found


def test_one_visitor_has_one_id_in_all_files_and_another_in_another_warehouse(
    hashed: Warehouse, tmp_path: Path
) -> None:
    for day in (1, 2):
        ingest(hashed, landed(hashed, f"day{day}.log", LINE.format(7, day, f"/search?q=tea+{day}")))
    first, second = users_of(hashed)
    assert first == second and len(first) == 1
    key = hashed.private / "users.key"
    assert key.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    other = warehouse_at(make_home(tmp_path / "other" / "home"))
    edit_policy(other.home, unit=HASHED)
    ingest(other, landed(other, "day1.log", LINE.format(7, 1, "/search?q=tea+1")))
    assert users_of(other)[0].isdisjoint(first)
    secret = key.read_text()
    kept = [path for path in hashed.home.rglob("*") if path.is_file() and path != key and path.suffix != ".log"]
    assert not [path for path in kept if secret.encode() in path.read_bytes() or b"192.0.2.7" in path.read_bytes()]


@pytest.mark.parametrize("harm", ["lost", "replaced", "open to others", "damaged"])
def test_a_key_that_is_not_the_one_of_earlier_batches_is_refused_and_never_made_anew(
    hashed: Warehouse, harm: str
) -> None:
    ingest(hashed, landed(hashed, "day1.log", LINE.format(7, 1, "/search?q=tea")))
    key = hashed.private / "users.key"
    if harm == "lost":
        key.unlink()
    elif harm == "open to others":
        key.chmod(0o640)
    else:
        key.write_text("0" * 64 if harm == "replaced" else "0" * 63)
    before = key.read_bytes() if key.exists() else None
    with pytest.raises(QlogError, match=r"private/users\.key is .*: restore it from a backup"):
        ingest(hashed, landed(hashed, "day2.log", LINE.format(7, 2, "/search?q=tea")))
    assert (key.read_bytes() if key.exists() else None) == before
    assert len(batches(hashed)) == 1


def test_requests_that_are_no_searches_are_counted_and_no_reason_to_warn(hashed: Warehouse) -> None:
    requests = [LINE.format(7, 1, "/style.css")] * 97 + [LINE.format(7, 1, "/search?q=tea")] * 2 + ["no request\n"]
    batch = landed(hashed, "day1.log", "".join(requests))
    ingest(hashed, batch)
    (partition,) = batches(hashed)
    assert partition.provenance.tables["rejected"].rows == 98
    assert rejected_share(partition) * 100 == 1


def test_a_pool_in_another_encoding_is_read_as_the_policy_says(home: Path) -> None:
    make_home(home)
    (home / "pool.txt").write_bytes("café\n天气\n".encode("gb18030"))
    with pytest.raises(QlogError, match=r"pool\.txt, line 1: is not utf-8: name its encoding .*pool\.encoding"):
        build_public_list("pool", warehouse_at(home), Policy.load(home / "policy.toml").lists)
    edit_policy(home, pool='encoding = "gb18030"')
    loaded = build_public_list("pool", warehouse_at(home), Policy.load(home / "policy.toml").lists)
    assert loaded is not None and loaded.rows("queries") == 2
    edit_policy(home, pool='encoding = "klingon"')
    with pytest.raises(QlogError, match="pool: encoding: 'klingon' is not a text encoding"):
        Policy.load(home / "policy.toml")


@pytest.mark.slow
def test_five_formats_go_through_the_command_line(home: Path) -> None:
    make_home(home)
    read = {}
    for name, format, columns in (
        ("semicolon.csv", "table", "semicolon.toml"),
        ("nested.jsonl", "json", "nested.toml"),
        ("aol.txt.zst", "aol", None),
        ("sogou.txt", "table", "sogou.toml"),
    ):
        mapped = () if columns is None else ("--columns", FILES / columns)
        facts = qlog(home, "ingest", FILES / name, "--format", format, *mapped, "--json").json
        again = qlog(home, "ingest", FILES / name, "--format", format, *mapped, "--json").json
        assert again["already_ingested"] == [name]
        read[name] = (facts["read"], facts["accepted"])
    assert read == {"semicolon.csv": (5, 3), "nested.jsonl": (6, 2), "aol.txt.zst": (3, 2), "sogou.txt": (5, 3)}
    refused = qlog(home, "ingest", FILES / "access.log", "--format", "access", "--columns", FILES / "access.toml")
    assert (
        "one user is one address with one agent there, and the policy says unit.one_user = user_id" in refused.refusal
    )
    assert "needs a column map" in qlog(home, "ingest", FILES / "nested.jsonl", "--format", "json").refusal
    assert not (home / "private" / "users.key").exists() and not list((home / "landing" / "access").glob("*"))


def test_an_access_log_without_any_search_is_taken_in_with_a_note_on_its_map(hashed: Warehouse, tmp_path: Path) -> None:
    columns, log = tmp_path / "wrong.toml", tmp_path / "site.log"
    columns.write_text('user = "address_and_agent"\nquery_parameter = "term"\n', "utf-8")
    words = (log, "--format", "access", "--columns", columns, "--json")
    log.write_text("".join(LINE.format(n, 1, f"/search?q=tea+{n}") for n in range(5)), "utf-8")
    (said,) = qlog(hashed.home, "ingest", "--check", *words).json["files"]
    (note,) = [each for each in said["notes"] if "'term'" in each]
    assert "no line is a good GET request with the url parameter" in note
    answer = qlog(hashed.home, "ingest", *words).json
    assert answer["rejected"] == {"not_a_search": 5} and f"site.log: {note}" in answer["notes"]
    # One search is enough: whoever made it, the map is right.
    log.write_text(LINE.format(1, 1, "/search?q=tea") + LINE.format(1, 1, "/search?term=tea"), "utf-8")
    (said,) = qlog(hashed.home, "ingest", "--check", *words).json["files"]
    assert not any("'term'" in each for each in said["notes"])


@pytest.mark.slow
def test_a_release_of_an_access_log_says_that_it_protects_addresses_with_agents(home: Path) -> None:
    make_home(home)
    edit_policy(home, unit=HASHED)
    mapped = ("--format", "access", "--columns", FILES / "access.toml")
    facts = qlog(home, "ingest", FILES / "access.log", *mapped, "--json").json
    assert (facts["read"], facts["accepted"], facts["rejected"]["not_a_search"]) == (12, 3, 5)
    edit_policy(home, unit='one_user = "user_id"')
    assert "the policy says unit.one_user = user_id" in qlog(home, "release", "safelog", "--month", "2006-03").refusal
    assert qlog(home, "ledger", "--json").json["charges"] == []
    edit_policy(home, unit=HASHED)
    answer = qlog(home, "release", "safelog", "--month", "2006-03", "--json").json
    manifest = json.loads((Path(answer["path"]) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["one_user"] == "address_and_agent"
    page = (Path(answer["path"]) / "datasheet.html").read_text(encoding="utf-8")
    assert "One user is here everybody who comes from one network address with one user agent" in page
    assert qlog(home, "audit", "--deep", "--json").json["findings"] == []
