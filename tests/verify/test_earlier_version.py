"""Warehouses of earlier versions open: their releases audit green, are served, and come out of their draws unchanged.

`tests/data/warehouse-0.1.0.tar.xz` was made by that version from the small log of `support.instances`: two releases of
March, one of April that was withdrawn, partitions, ledger, and Dagster's history with the dagster.yaml of that time.
`tests/data/warehouse-0.2.0.tar.xz` likewise, without the history: Safelog with and without δ, ZEALOUS by both variants.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import charges, public_files, warehouse_at
from support.instances import edit_policy, small_log

from qlog_assets.ledger import Charge
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.pipeline.batches import ingest_batch
from qlog_assets.pipeline.landing import batch_of, landed_files
from qlog_assets.policy import Policy
from qlog_assets.report.public_zone import LATEST, PAGES, latest_release
from qlog_assets.storage.dagster_home import open_existing
from qlog_assets.storage.engine import Engine
from qlog_assets.verify.audit import audit_warehouse

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
ARCHIVE, SECOND_ARCHIVE = DATA / "warehouse-0.1.0.tar.xz", DATA / "warehouse-0.2.0.tar.xz"
MECHANISMS = ("safelog", "zealous")
ZEALOUS = 'epsilon = 20\ndelta = "0.01"'
"""What they were asked for by --set. A run may ask for no more than the policy now, so its owner writes it."""
SAFELOG_THEN, ZEALOUS_THEN = 'variant = "sound"', 'method = "weighted_gaussian"\nitems_per_user = 200'
"""The defaults of that time. They are others now, so an owner who asks for such a month again writes them."""
SECOND_REQUESTS = {
    ("safelog", "2006-03"): (),
    ("zealous", "2006-03"): (),
    ("safelog", "2006-04"): ("--set", "delta=0"),
    ("zealous", "2006-04"): ("--set", "variant=sound", "--set", "items_per_user=2", "--set", "min_users=2"),
}


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return unpacked(tmp_path)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    with tarfile.open(SECOND_ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return unpacked(tmp_path)


def unpacked(folder: Path) -> Path:
    """The warehouse of an archive, with the modes that a warehouse has and the policy that its releases need now."""
    home = folder / "qlog"
    # The archive does not keep that directories are their owner's alone; a warehouse does.
    for path in (home / "private", *(home / "private").rglob("*"), home / "landing", home / "dagster"):
        if path.exists():
            path.chmod(0o700 if path.is_dir() else 0o600)
    (home / "ledger.db").chmod(0o600)
    edit_policy(home, safelog=SAFELOG_THEN, zealous=f"{ZEALOUS}\n{ZEALOUS_THEN}")
    return home


def released_bytes(home: Path) -> dict[str, bytes]:
    """The files of releases, and tombstones; today's version writes pointers and lists of releases anew."""
    return {name: text for name, text in public_files(home).items() if Path(name).name not in (LATEST, *PAGES)}


def every_file(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_its_releases_audit_green_with_nothing_left_uncounted(earlier: Path) -> None:
    report = audit_warehouse(warehouse_at(earlier))
    assert report.ok, report.all_findings
    assert len(report.releases) == 3
    # No note says that a limit could not be counted or a run is unknown: stages and history are read as they were.
    assert [verdict.notes for verdict in report.releases] == [[], [], ["withdrawn; its charge stays"]]


def test_a_deep_audit_of_it_is_green_and_says_that_the_ledger_has_no_entries(earlier: Path) -> None:
    report = audit_warehouse(warehouse_at(earlier), deep=Policy.load(earlier / "policy.toml").lists)
    assert report.ok, report.all_findings
    believed = report.releases[0].believed
    assert "capped_log 2006-03: its own provenance, because the ledger has no entry of it" in believed


@pytest.mark.parametrize(
    ("mechanism", "refusal"),
    [
        ("safelog", 'click_scale: is read by variant = "sound" alone'),
        ("zealous", "parameter method (weighted_gaussian, now steered)"),
    ],
)
def test_a_month_of_the_defaults_of_that_time_is_refused_under_todays_and_nothing_is_charged(
    earlier: Path, mechanism: str, refusal: str
) -> None:
    """An owner who never wrote them down is told what differs, and no second release of the month is made."""
    policy = earlier / "policy.toml"
    text = policy.read_text(encoding="utf-8")
    for pins in (SAFELOG_THEN, ZEALOUS_THEN):
        assert pins in text
        text = text.replace(pins, "")
    policy.write_text(text, encoding="utf-8")
    files, charged = released_bytes(earlier), charges(earlier)
    assert refusal in qlog(earlier, "release", mechanism, "--month", "2006-03").refusal
    assert released_bytes(earlier) == files and charges(earlier) == charged


def test_its_history_is_read_and_its_settings_are_left_alone_by_an_audit(earlier: Path) -> None:
    settings = earlier / "dagster" / "dagster.yaml"
    before = settings.read_bytes()
    assert b"qlog_assets.run_history" in before
    with open_existing(earlier / "dagster") as instance:
        assert {run.job_name for run in instance.get_runs()} >= {"ingest", "safelog_release", "zealous_release"}
    assert settings.read_bytes() == before


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_is_served_and_not_charged_again(earlier: Path, mechanism: str) -> None:
    before = released_bytes(earlier)
    answer = qlog(earlier, "release", mechanism, "--month", "2006-03", "--json").json
    assert answer["charged"] is False
    assert released_bytes(earlier) == before
    # The command also brought the instance's settings up to date, and the history went on in the same files.
    assert b"run_history" not in (earlier / "dagster" / "dagster.yaml").read_bytes()
    with open_existing(earlier / "dagster") as instance:
        assert len([run for run in instance.get_runs() if run.job_name == f"{mechanism}_release"]) >= 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_stored_draw_is_published_again_byte_for_byte(earlier: Path, mechanism: str) -> None:
    before = released_bytes(earlier)
    (release,) = (earlier / "released" / mechanism / "2006-03").glob(f"{mechanism}-*")
    shutil.rmtree(release)
    qlog(earlier, "release", mechanism, "--month", "2006-03", "--json").json  # noqa: B018
    assert released_bytes(earlier) == before


def test_its_index_is_written_and_its_links_become_files_when_a_release_is_served(earlier: Path) -> None:
    report = audit_warehouse(warehouse_at(earlier))
    assert [note for note in report.notes if "is not there: the next publication writes it" in note]
    links = [path for path in (earlier / "released").glob("*/*/latest") if path.is_symlink()]
    assert len(links) == 2
    qlog(earlier, "release", "safelog", "--month", "2006-03", "--json").json  # noqa: B018
    assert not [path for path in links if path.is_symlink()]
    assert all(latest_release(warehouse_at(earlier), name, "2006-03") is not None for name in MECHANISMS)
    index = (earlier / "released" / "index.html").read_text(encoding="utf-8")
    assert all(charge.release_id in index for charge in charges(earlier)) and "was withdrawn by its publisher" in index
    report = audit_warehouse(warehouse_at(earlier))
    assert report.ok and not [note for note in report.notes if "released/" in note], report.all_findings


def test_a_file_that_was_ingested_then_adds_nothing_now(earlier: Path, tmp_path: Path) -> None:
    log = tmp_path / "again.txt"
    log.write_text(small_log(), encoding="utf-8")
    private = every_file(earlier / "private" / "raw_log")
    assert qlog(earlier, "ingest", log, "--format", "aol", "--json").json["already_ingested"] == ["again.txt"]
    assert every_file(earlier / "private" / "raw_log") == private
    assert not (earlier / "private" / "landing_batch").exists()


def test_a_file_read_again_by_todays_reader_changes_no_release_where_no_id_changes(earlier: Path) -> None:
    """What docs/checks.md tells the operator to do about ids that an earlier reader left in another form."""
    before, warehouse = released_bytes(earlier), warehouse_at(earlier)
    (landed,) = landed_files(warehouse)
    with Engine.open(warehouse) as engine:
        _, fresh = ingest_batch(warehouse, engine, batch_of(*landed), Policy.load(earlier / "policy.toml").admission)
    assert fresh and not list((earlier / "private" / "rejected_log").glob("*/current"))
    answer = qlog(earlier, "release", "safelog", "--month", "2006-03", "--json").json
    assert answer["charged"] is False and released_bytes(earlier) == before


def test_its_months_can_be_forgotten(earlier: Path) -> None:
    answer = qlog(earlier, "forget", "--before", "2006-04", "--json").json
    assert answer["months"] == ["2006-03"]
    assert not (earlier / "private" / "capped_log" / "2006-03").exists()
    assert audit_warehouse(warehouse_at(earlier)).ok


def test_releases_of_the_second_version_audit_green(second: Path) -> None:
    report = audit_warehouse(warehouse_at(second))
    assert report.ok, report.all_findings
    assert len(report.releases) == len(SECOND_REQUESTS)


@pytest.mark.parametrize(("mechanism", "month"), SECOND_REQUESTS)
def test_a_draw_of_the_second_version_is_published_again_byte_for_byte_and_not_charged(
    second: Path, mechanism: str, month: str
) -> None:
    before = released_bytes(second)
    (release,) = (second / "released" / mechanism / month).glob(f"{mechanism}-*")
    shutil.rmtree(release)
    answer = qlog(second, "release", mechanism, "--month", month, *SECOND_REQUESTS[mechanism, month], "--json").json
    assert answer["charged"] is False
    assert released_bytes(second) == before


def test_one_more_draw_of_a_month_of_an_earlier_version_is_of_todays_and_is_served_from_then_on(second: Path) -> None:
    before = released_bytes(second)
    assert [charge.mechanism_version for charge in march_of(second)] == [1]
    again = ("release", "safelog", "--month", "2006-03", "--again", "a better draw", "--json")
    answer = qlog(second, *again).json
    assert answer["charged"] is True
    assert [charge.mechanism_version for charge in march_of(second)] == [1, mechanism("safelog").version]
    drawn = released_bytes(second)
    assert before.items() <= drawn.items(), "the first one stays as it is"
    for words in (again, again[:4] + again[6:]):
        served = qlog(second, *words).json
        assert (served["charged"], served["release_id"]) == (False, answer["release_id"])
    assert released_bytes(second) == drawn and audit_warehouse(warehouse_at(second)).ok


def march_of(home: Path) -> list[Charge]:
    return [each for each in charges(home) if (each.mechanism, each.month) == ("safelog", "2006-03")]
