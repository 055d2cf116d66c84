"""kill -9 at every named point of the door, and at points nobody named: one charge, one draw, all public or nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.door import (
    MARCH,
    Child,
    charges,
    die_at,
    die_releasing,
    door_at,
    in_child,
    leftovers,
    public_files,
    release,
    released_id,
    warehouse_at,
)

from qlog_assets.door.points import DRAW_POINTS, PUBLISH_POINTS, WITHDRAW_POINTS
from qlog_assets.months import Month
from qlog_assets.report.public_zone import LATEST, PAGES
from qlog_assets.verify.audit import audit_warehouse
from qlog_assets.verify.retention import FORGET_POINTS, forget_before

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults


def test_the_door_has_the_points_that_its_faults_are_tested_at() -> None:
    assert len({*DRAW_POINTS, *PUBLISH_POINTS}) >= 12


def assert_whole(home: Path) -> None:
    """One release, charged once, public in full, nothing left half-made, nothing for an auditor to find."""
    (charge,) = charges(home)
    assert charge.state == "published"
    folder = home / "released" / "safelog" / MARCH
    assert sorted(path.name for path in folder.iterdir()) == ["latest", charge.release_id]
    assert {path.name for path in (home / "released").iterdir()} == {"safelog", *PAGES}
    assert leftovers(home) == [] and list((home / "private" / "staging").iterdir()) == []
    report = audit_warehouse(warehouse_at(home))
    assert report.ok, report.all_findings


@pytest.mark.parametrize("point", DRAW_POINTS)
def test_killed_while_drawing_the_release_is_charged_and_drawn_once(chained: Path, point: str) -> None:
    assert in_child(die_releasing, chained, point).killed
    known = charges(chained)
    draws = sorted((chained / "private" / "draws").glob("[!.]*"))
    stored = [path.joinpath("draw.json").read_bytes() for path in draws]
    assert public_files(chained) == {}
    assert len(known) == (DRAW_POINTS.index(point) >= DRAW_POINTS.index("charge_reserved"))
    assert len(stored) == (DRAW_POINTS.index(point) >= DRAW_POINTS.index("draw_stored"))

    receipt = release(chained)
    assert [charge.release_id for charge in known] in ([], [receipt.charge.release_id])
    assert receipt.charged is (known == [])
    (draw,) = (chained / "private" / "draws").glob("[!.]*")
    assert stored in ([], [draw.joinpath("draw.json").read_bytes()])
    assert_whole(chained)


@pytest.mark.parametrize("point", PUBLISH_POINTS)
def test_killed_while_publishing_the_same_bytes_are_public_afterwards(
    another: Callable[[str], Path], point: str
) -> None:
    undisturbed, disturbed = another("drawn"), another("drawn")
    release(undisturbed)
    assert in_child(die_releasing, disturbed, point).killed
    seen = public_files(disturbed)
    assert len(charges(disturbed)) == 1
    # A reader saw nothing, or the whole release: what points at it may be a moment behind it.
    assert seen == {} or {**seen, **_pointing(undisturbed)} == public_files(undisturbed)

    assert release(disturbed).charged is False
    assert public_files(disturbed) == public_files(undisturbed)
    assert_whole(disturbed)


def _pointing(home: Path) -> dict[str, bytes]:
    """The month's pointer and the lists of all releases."""
    return {name: text for name, text in public_files(home).items() if name.rpartition("/")[2] in (LATEST, *PAGES)}


def test_what_was_staged_and_recorded_is_what_is_published_even_without_the_draw(drawn: Path) -> None:
    """A later version of the software might stage other bytes: it does not have to, the staged ones are there."""
    assert in_child(die_releasing, drawn, "publication_recorded").killed
    shutil.rmtree(drawn / "private" / "draws")
    receipt = release(drawn)
    assert receipt.charge.state == "published" and audit_warehouse(warehouse_at(drawn)).ok


@pytest.mark.parametrize("milliseconds", range(20, 500, 40))
def test_killed_at_any_moment_the_next_run_finishes_the_release(chained: Path, milliseconds: int) -> None:
    child = Child(released_id, chained)
    time.sleep(milliseconds / 1000)
    child.process.kill()
    child.end()
    release(chained)
    assert_whole(chained)


def _die_withdrawing(home: Path, release_id: str, point: str) -> None:
    die_at(point)
    door_at(home).withdraw(release_id, "wrong month")


@pytest.mark.parametrize("point", WITHDRAW_POINTS)
def test_killed_while_withdrawing_the_next_withdrawal_removes_the_rest(released: Path, point: str) -> None:
    (charge,) = charges(released)
    assert in_child(_die_withdrawing, released, charge.release_id, point).killed
    assert charges(released)[0].state == "withdrawn"
    # The auditor is told while anything is still public, or is listed as if it were.
    finished = WITHDRAW_POINTS.index(point) >= WITHDRAW_POINTS.index("withdrawal_listed")
    assert audit_warehouse(warehouse_at(released)).ok is finished

    withdrawn = door_at(released).withdraw(charge.release_id, "wrong month")
    assert (withdrawn.state, withdrawn.epsilon) == ("withdrawn", charge.epsilon)
    folder = released / "released" / "safelog" / MARCH
    assert [path.name for path in folder.iterdir()] == [f"{charge.release_id}.withdrawn.json"]
    assert list((released / "private" / "draws").iterdir()) == [] and leftovers(released) == []
    assert audit_warehouse(warehouse_at(released)).ok


def _forget(home: Path, point: str | None) -> dict[str, object]:
    if point is not None:
        die_at(point)
    door = door_at(home)
    door.open_account()
    return forget_before(door.warehouse, door.policy, door.ledger, Month("2006-05"), delete_landing=True)


@pytest.mark.parametrize("point", FORGET_POINTS)
def test_killed_while_forgetting_the_next_run_forgets_the_rest(released: Path, point: str) -> None:
    public = public_files(released)
    assert in_child(_forget, released, point).killed
    _forget(released, None)
    private = {path.relative_to(released / "private").parts[0] for path in (released / "private").rglob("*.parquet")}
    # The log spans two months and April was never released: its rows stay, March's are gone.
    assert private == {"raw_log", "landing_batch", "pool", "public_lists"}
    assert not list((released / "private").rglob(f"*{MARCH}*/**/*.parquet"))
    assert public_files(released) == public and leftovers(released) == []
    assert audit_warehouse(warehouse_at(released)).ok
