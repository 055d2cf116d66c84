"""The door: what it draws and publishes once, and what it refuses by name."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import (
    APRIL,
    MARCH,
    charges,
    die_releasing,
    door_at,
    in_child,
    public_files,
    release,
    released_id,
    warehouse_at,
)
from support.instances import AOL_HEADER, edit_policy
from support.stages import Stages
from support.tampering import flip
from support.warehouses import build_chain

from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import BudgetError, LedgerError, LiveReleaseError, WithdrawnError
from qlog_assets.mechanisms.register import adding, mechanism
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.report.public_zone import pointed_at
from qlog_assets.storage.engine import Engine
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)


# Once ---------------------------------------------------------------------------------------------------------------


def test_a_release_is_charged_once_and_served_ever_after(chained: Path) -> None:
    first = release(chained)
    assert first.charged is True and first.charge.state == "published"
    assert first.rows is not None and first.rows["queries"] >= 2
    before = public_files(chained)
    for _ in range(3):
        again = release(chained)
        assert (again.charge.release_id, again.charged) == (first.charge.release_id, False)
    assert public_files(chained) == before
    assert len(charges(chained)) == 1 and charges(chained)[0].epsilon == 20


@pytest.mark.slow
def test_a_month_released_fifty_times_has_one_charge_and_the_same_bytes(chained: Path) -> None:
    release(chained)
    before = public_files(chained)
    times = {path: path.stat().st_mtime_ns for path in (chained / "released").rglob("*")}
    for _ in range(49):
        assert release(chained).charged is False
    assert public_files(chained) == before
    assert {path: path.stat().st_mtime_ns for path in (chained / "released").rglob("*")} == times
    assert len(charges(chained)) == 1


def test_the_published_release_is_served_when_its_draw_is_gone(released: Path) -> None:
    before = public_files(released)
    shutil.rmtree(released / "private" / "draws")
    assert release(released).charged is False
    assert public_files(released) == before


def test_public_files_that_are_gone_are_made_again_byte_for_byte_from_the_draw(released: Path) -> None:
    before = public_files(released)
    shutil.rmtree(released / "released" / "safelog" / MARCH)
    assert release(released).charged is False
    assert public_files(released) == before


def test_a_draw_that_is_gone_before_it_was_published_is_not_drawn_again(drawn: Path) -> None:
    shutil.rmtree(drawn / "private" / "draws")
    with pytest.raises(DoorError, match="was stored and is gone, and noise is never drawn twice"):
        release(drawn)
    assert public_files(drawn) == {} and len(charges(drawn)) == 1
    # The reason costs again: the first draw may have been seen.
    assert release(drawn, again="the disk with the draw died").charged is True
    assert len(charges(drawn)) == 2


def test_a_draw_that_was_changed_on_disk_is_not_published(drawn: Path) -> None:
    (path,) = (drawn / "private" / "draws").glob("*/queries.parquet")
    flip(path)
    with pytest.raises(DoorError, match="is not the one the ledger recorded: it was changed on disk"):
        release(drawn)
    assert public_files(drawn) == {}


def test_public_files_that_were_changed_are_not_served(released: Path) -> None:
    (path,) = (released / "released" / "safelog" / MARCH).glob("safelog-*/queries.csv")
    flip(path)
    with pytest.raises(DoorError, match=r"refuses to serve safelog-2006-03-\w+: queries.csv is not the file that was"):
        release(released)
    shutil.rmtree(path.parent)
    release(released)
    assert audit_warehouse(warehouse_at(released)).ok


@pytest.mark.slow
def test_a_clock_that_goes_backwards_changes_nothing_but_the_dates(chained: Path) -> None:
    build_chain(chained, APRIL)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    for month, at in ((MARCH, now), (APRIL, now - timedelta(days=9000))):
        door_at(chained, clock=lambda at=at: at).draw("safelog", month)
        earlier = at - timedelta(days=400)
        receipt = door_at(chained, clock=lambda at=earlier: at).publish("safelog", month)
        assert receipt.charge.drawn_at is not None and receipt.charge.published_at is not None
        assert receipt.charge.published_at < receipt.charge.drawn_at
    assert [charge.month for charge in charges(chained)] == [MARCH, APRIL]
    assert [release(chained, month).charged for month in (MARCH, APRIL)] == [False, False]
    assert audit_warehouse(warehouse_at(chained)).ok


# Refused ------------------------------------------------------------------------------------------------------------


def test_noise_from_a_seed_is_refused_before_anything_is_charged(chained: Path) -> None:
    with pytest.raises(DoorError, match="seeded source"):
        door_at(chained).draw("safelog", MARCH, source=SeededRandom(1))
    assert charges(chained) == []


def test_the_papers_variant_never_passes_the_door(chained: Path) -> None:
    with pytest.raises(DoorError, match="the door refuses safelog paper: it is for studies alone"):
        door_at(chained).draw("safelog", MARCH, variant="paper")
    assert charges(chained) == [] and public_files(chained) == {}


def test_a_month_that_was_not_materialized_is_refused_by_name(chained: Path) -> None:
    with pytest.raises(DoorError, match="the door refuses safelog 2006-04: capped_log 2006-04: not materialized yet"):
        door_at(chained).draw("safelog", APRIL)
    with pytest.raises(DoorError, match="nothing was drawn for it yet: materialize selected first"):
        door_at(chained).publish("safelog", MARCH)


def test_inputs_capped_with_another_limit_than_the_requests_are_refused_by_name(chained: Path) -> None:
    build_chain(chained, queries_per_user=10)
    expected = "capped_log was made with queries_per_user = 10 and the request says 5"
    with pytest.raises(DoorError, match=expected):
        release(chained, settings={"safelog.queries_per_user": "5"})
    assert charges(chained) == []


def test_a_half_rebuilt_chain_is_refused_by_name(chained: Path) -> None:
    door = door_at(chained)
    with Engine.open(door.warehouse) as engine:
        chosen = door.policy.section("safelog").with_changes(queries_per_user=5)
        Stages(door.warehouse, engine).cap(MARCH, door.warehouse.current("cleaned_log", MARCH), chosen)
    expected = "pool_augmented 2006-03 was made from a capped_log that is no longer current: materialize pool_augmented"
    with pytest.raises(DoorError, match=expected):
        release(chained, settings={"safelog.queries_per_user": "5"})


@pytest.mark.slow
def test_a_raw_log_with_new_rows_makes_everything_below_it_stale(chained: Path, tmp_path: Path) -> None:
    late_file(chained, tmp_path)
    expected = "cleaned_log 2006-03 was made from a raw_log that is no longer current: materialize cleaned_log again"
    with pytest.raises(DoorError, match=expected):
        release(chained)


def late_file(home: Path, folder: Path) -> None:
    """One more row of March, ingested."""
    path = folder / "late.txt"
    path.write_text(AOL_HEADER + "7777\tnews\t2006-03-30 10:00:00\t\t\n", encoding="utf-8")
    assert qlog(home, "ingest", path, "--format", "aol").code == 0


def test_a_partition_moved_to_another_month_is_refused(chained: Path) -> None:
    for asset in ("capped_log", "pool_augmented"):
        shutil.copytree(chained / "private" / asset / MARCH, chained / "private" / asset / APRIL)
    with pytest.raises(DoorError, match="its provenance was changed after it was written"):
        door_at(chained).draw("safelog", APRIL)


# One live release per month -------------------------------------------------------------------------------------------


def test_another_parameter_is_refused_with_its_name_and_costs_again_with_a_reason(released: Path) -> None:
    first = charges(released)[0]
    with pytest.raises(LiveReleaseError, match=r"differs in parameter threshold \(10, now 12\)") as refusal:
        release(released, settings={"safelog.threshold": "12"})
    assert first.release_id in str(refusal.value) and "--again" in str(refusal.value)
    assert len(charges(released)) == 1

    second = release(released, settings={"safelog.threshold": "12"}, again="the old threshold was a mistake")
    assert second.charged is True and second.charge.draw_number == 2
    assert [charge.epsilon for charge in charges(released)] == [20, 20]
    folder = released / "released" / "safelog" / MARCH
    assert pointed_at(folder / "latest") == second.charge.release_id
    assert (folder / first.release_id / "manifest.json").exists()
    # The same reason again is the same draw.
    repeated = release(released, settings={"safelog.threshold": "12"}, again="the old threshold was a mistake")
    assert (repeated.charged, repeated.charge.release_id) == (False, second.charge.release_id)


def test_a_request_that_a_later_one_replaced_is_named_and_not_drawn_again(released: Path) -> None:
    first = charges(released)[0]
    second = release(released, settings={"safelog.threshold": "12"}, again="the old threshold was a mistake").charge
    with pytest.raises(DoorError) as refusal:
        release(released)
    assert first.release_id in str(refusal.value) and second.release_id in str(refusal.value)
    assert "nothing was drawn or charged" in str(refusal.value)
    assert len(charges(released)) == 2


@pytest.mark.slow
def test_one_more_input_row_is_refused_with_what_differs_and_costs_again_with_a_reason(
    released: Path, tmp_path: Path
) -> None:
    late_file(released, tmp_path)
    build_chain(released)
    with pytest.raises(LiveReleaseError, match=r"differs in input data \(capped_log\)"):
        release(released)
    assert release(released, again="a file came late").charged is True
    assert len(charges(released)) == 2


def test_another_pool_is_refused_with_what_differs(released: Path) -> None:
    with (released / "pool.txt").open("a", encoding="utf-8") as stream:
        stream.write("one more public query\n")
    build_chain(released)
    with pytest.raises(LiveReleaseError, match=r"differs in input data \(pool\)"):
        release(released)


def _with_next_version(home: Path, again: str | None) -> str:
    """A child's task: release with a mechanism whose law was changed and whose version was raised."""
    known = mechanism("safelog")
    with adding(replace(known, version=known.version + 1)):
        return released_id(home, again=again)


@pytest.mark.slow
def test_another_version_of_the_mechanism_is_refused_with_what_differs(released: Path) -> None:
    refused = in_child(_with_next_version, released, None)
    assert "this request differs in mechanism version (" in refused.answer
    assert len(charges(released)) == 1
    drawn_again = in_child(_with_next_version, released, "the mechanism was mended")
    assert drawn_again.code == 0, drawn_again.answer
    first, second = charges(released)
    assert (second.release_id, second.mechanism_version) == (drawn_again.answer, first.mechanism_version + 1)


def test_one_more_draw_than_the_budget_holds_is_refused_with_the_shortfall(released: Path) -> None:
    door_at(released).ledger.set_budget("small", "30", "0.01", "less trust in it")
    (first,) = charges(released)
    with pytest.raises(BudgetError, match=r"ε = 20, δ = 0\.001 asked, ε = 10, δ = 0\.009 left of") as refusal:
        release(released, again="fresh noise")
    assert first.release_id in str(refusal.value) and len(charges(released)) == 1
    # What was paid for is still served.
    assert release(released).charged is False


def test_a_second_name_for_the_same_log_is_no_second_budget(released: Path) -> None:
    edit_policy(released, top='dataset = "other"')
    with pytest.raises(DoorError, match="belongs to the data set small, not to other"):
        release(released)
    shutil.rmtree(released / "released")
    with pytest.raises(DoorError, match="this warehouse holds the data set small and the policy says other"):
        release(released)
    refused = qlog(released, "release", "safelog", "--month", MARCH).refusal
    assert "a second name would be a second budget for the same people" in refused
    assert len(charges(released)) == 1


# Taken back -----------------------------------------------------------------------------------------------------------


def test_a_withdrawn_release_is_refused_and_its_charge_stays(released: Path) -> None:
    (charge,) = charges(released)
    answer = qlog(released, "withdraw", charge.release_id, "--reason", "a name was in it", "--json").json
    assert answer == {"release_id": charge.release_id, "state": "withdrawn"}
    folder = released / "released" / "safelog" / MARCH
    (stone,) = folder.iterdir()
    assert stone.name == f"{charge.release_id}.withdrawn.json" and "a name was in it" not in stone.read_text("utf-8")
    with pytest.raises(WithdrawnError, match=f"{charge.release_id} was withdrawn: a name was in it"):
        release(released)
    with pytest.raises(WithdrawnError, match=f"{charge.release_id} was withdrawn: a name"):
        door_at(released).publish("safelog", MARCH)
    assert sum(each.epsilon for each in charges(released)) == 20
    assert release(released, again="without the name").charged is True
    assert audit_warehouse(warehouse_at(released)).ok


def test_latest_goes_back_to_the_release_before_when_the_newest_is_withdrawn(released: Path) -> None:
    (first,) = charges(released)
    second = release(released, again="fresh noise").charge
    latest = released / "released" / "safelog" / MARCH / "latest"
    assert pointed_at(latest) == second.release_id
    door_at(released).withdraw(second.release_id, "no longer wanted")
    assert pointed_at(latest) == first.release_id
    door_at(released).withdraw(first.release_id, "no longer wanted")
    assert not latest.exists()


def test_a_reservation_is_given_back_only_if_no_draw_was_stored(another: Callable[[str], Path]) -> None:
    for point, given_back in (("tables_drawn", True), ("draw_stored", False)):
        home = another("chained")
        assert in_child(die_releasing, home, point).killed
        (charge,) = charges(home)
        answer = qlog(home, "ledger", "abandon", charge.release_id, "--reason", "not needed")
        assert answer.code == (0 if given_back else 2)
        assert charges(home)[0].state == ("abandoned" if given_back else "reserved")
        if not given_back:
            assert "has a stored draw, so its charge stays" in answer.err
        # Afterwards the month can be released, for one charge in all.
        release(home)
        assert sum(each.epsilon for each in charges(home) if each.state != "abandoned") == 20


def test_a_drawn_release_cannot_be_given_back(drawn: Path) -> None:
    (charge,) = charges(drawn)
    shutil.rmtree(drawn / "private" / "draws")
    with pytest.raises((DoorError, LedgerError), match="its noise was drawn, so its charge stays"):
        door_at(drawn).abandon(charge.release_id, "not needed")


# Who can read what ----------------------------------------------------------------------------------------------------


def _release_with_umask(home: Path, umask: int) -> None:
    os.umask(umask)
    build_chain(home, APRIL)
    release(home, APRIL)
    door_at(home).withdraw(release(home, APRIL, again="once more").charge.release_id, "tried out")


@pytest.mark.parametrize("umask", [0o077, pytest.param(0, marks=pytest.mark.slow)], ids=["strict", "lax"])
def test_public_files_are_readable_by_all_and_private_ones_by_the_owner_whatever_the_umask(
    another: Callable[[str], Path], umask: int
) -> None:
    warehouse = another("ingested")
    for zone in ("released", "private/draws"):
        shutil.rmtree(warehouse / zone)
    ended = in_child(_release_with_umask, warehouse, umask)
    assert ended.code == 0, ended.answer
    modes = {
        zone: {
            (path.is_dir(), stat.S_IMODE(path.stat().st_mode))
            for path in [warehouse / zone, *(warehouse / zone).rglob("*")]
            if not path.is_symlink() and path.parent.name != "public_lists"  # public, in a private directory
        }
        for zone in ("released", "private")
    }
    assert modes == {"released": {(True, 0o755), (False, 0o644)}, "private": {(True, 0o700), (False, 0o600)}}
    assert stat.S_IMODE((warehouse / "ledger.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((warehouse / "landing").stat().st_mode) == 0o700
