"""The cap broken on purpose: the Dagster check fails, and a later run that selects only the release is refused too.

A blocking check stops what is downstream of it inside one run. The door stops every run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from support.door import MARCH, charges, in_child, materialize, public_files, warehouse_at
from support.tampering import break_the_cap

from qlog_assets.api.runs import dagster_instance
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
pytestmark = pytest.mark.faults

LIMITS = "capped_log breaks the contribution limits (safelog/capped_log: "
CHANGED = "capped_log 2006-03: queries.parquet was changed after it was written (checksum differs)"


def _evaluate_check(home: Path) -> list[tuple[str, bool, str | None]]:
    """A child's task: the check alone, on the partition that lies there, as the UI's button runs it."""
    with dagster_instance(warehouse_at(home)) as instance:
        from qlog_assets.definitions import defs

        key = dg.AssetCheckKey(dg.AssetKey("capped_log"), "contribution_limits")
        whole = defs.resolve_job_def("safelog_release")
        job = whole.get_subset(asset_selection=frozenset(), asset_check_selection=frozenset({key}))
        result = job.execute_in_process(instance=instance, partition_key=MARCH, raise_on_error=False)
    return [(each.check_name, each.passed, each.description) for each in result.get_asset_check_evaluations()]


@pytest.mark.parametrize("state", ["chained", "drawn"])
@pytest.mark.parametrize("vouched", [False, True], ids=["file alone", "file and checksums"])
def test_a_broken_cap_fails_the_check_and_the_door_refuses_a_run_of_the_release_alone(
    copied: Callable[[str], Path], state: str, vouched: bool
) -> None:
    home = copied(state)
    break_the_cap(home, vouched=vouched, entered=vouched)
    ((name, passed, reason),) = in_child(_evaluate_check, home).answer
    assert (name, passed) == ("contribution_limits", False)
    assert "queries.max_per_user" in reason and "at most 4" in reason

    ended = materialize(home, "released_queries")
    assert ended.code == 1
    assert "the door refuses safelog 2006-03: " in ended.answer
    assert (LIMITS if vouched else CHANGED) in ended.answer
    assert "one more" not in ended.answer  # what the rows say stays out of every message
    assert public_files(home) == {}
    assert [charge.state for charge in charges(home)] == (["drawn"] if state == "drawn" else [])

    # And the draw itself is refused while nothing else was asked.
    ended = materialize(home, "selected")
    if vouched and state == "drawn":
        # Somebody entered the broken rows in the ledger, which says that others were drawn from.
        assert ended.code == 0 and "differs in input data (capped_log)" in ended.answer
    else:
        assert ended.code == 1 and "the door refuses safelog 2006-03: " in ended.answer
    assert public_files(home) == {}


@pytest.mark.parametrize("vouched", [False, True], ids=["file alone", "file and checksums"])
def test_materializing_the_capped_log_again_is_all_it_takes_to_mend_it(drawn: Path, vouched: bool) -> None:
    break_the_cap(drawn, vouched=vouched)
    assert materialize(drawn, "capped_log", "pool_augmented").code == 0
    assert materialize(drawn, "released_queries").code == 0
    assert [charge.state for charge in charges(drawn)] == ["published"]
    assert audit_warehouse(warehouse_at(drawn)).ok


def test_a_release_that_is_public_already_is_not_served_over_a_broken_cap(released: Path) -> None:
    break_the_cap(released, vouched=True)
    ended = materialize(released, "released_queries")
    assert ended.code == 1 and LIMITS in ended.answer
    report = audit_warehouse(warehouse_at(released))
    assert "lineage: capped_log 2006-03 is not what was released from: its rows differ" in report.releases[0].findings


def test_the_installed_dagster_command_is_refused_as_well(drawn: Path) -> None:
    """The same in a process that nothing was prepared for."""
    break_the_cap(drawn, vouched=True)
    command = [
        Path(sys.executable).with_name("dagster"), "asset", "materialize", "--select", "released_queries",
        "--partition", MARCH, "-m", "qlog_assets.definitions",
    ]  # fmt: skip
    environment = {"QLOG_HOME": str(drawn), "DAGSTER_HOME": str(drawn / "dagster"), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and LIMITS in ended.stdout + ended.stderr
    assert public_files(drawn) == {}
