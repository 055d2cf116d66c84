"""An audit that cannot be finished says so: exit code 3 and one line, told from a finding; read-only, it works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.cli import Answer, qlog
from support.door import MARCH, charges, in_child, materialize, warehouse_at
from support.instances import Prepared, copy_warehouse
from support.tampering import flip

from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.audit import audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)

UNFINISHED = 3
NOBODY = 65534


def failure(answer: Answer) -> str:
    """The one line of an audit that could not be finished."""
    assert answer.code == UNFINISHED, (answer.code, answer.out, answer.err)
    assert answer.err.count("\n") == 1 and "Traceback" not in answer.out, answer.err
    said = "qlog: the audit could not be finished: "
    assert answer.err.startswith(said)
    return answer.err.removeprefix(said).strip()


def break_history(home: Path) -> None:
    (home / "dagster" / "history" / "runs.db").write_bytes(b"no database at all" * 500)


def test_a_broken_run_database_is_a_failure_and_the_rest_is_verified(released: Path) -> None:
    break_history(released)
    answer = qlog(released, "audit", "--json")
    assert "Dagster's history in" in failure(answer)
    facts = json.loads(answer.out)
    (verdict,) = facts["releases"]
    assert (facts["ok"], facts["findings"], verdict["findings"]) == (False, [], [])
    assert facts["failures"] and any("were not looked at" in note for note in verdict["notes"])


def test_a_finding_outranks_a_failure_and_both_are_told(released: Path) -> None:
    break_history(released)
    flip(released / "released" / "safelog" / MARCH / charges(released)[0].release_id / "queries.csv")
    answer = qlog(released, "audit")
    assert answer.code == 1 and "queries.csv is not the file that was published" in answer.out
    assert answer.err.startswith("qlog: the audit could not be finished: Dagster's history in")


def test_a_ledger_that_cannot_be_reached_is_a_failure_and_no_finding(released: Path) -> None:
    elsewhere = {"QLOG_LEDGER_URL": "postgresql://somebody:hunter2@127.0.0.1:1/ledger?connect_timeout=2"}
    said = failure(qlog(released, "audit", environment=elsewhere))
    assert said.startswith("the ledger at postgresql") and "hunter2" not in said


@pytest.mark.slow
def test_the_asset_tells_its_own_failure_from_a_finding(released: Path) -> None:
    """A directory in the place of a file is something that cannot be read, whoever asks."""
    (path,) = warehouse_at(released).current("cleaned_log", MARCH).files("log")
    path.unlink()
    path.mkdir()
    ended = materialize(released, "release_audit", month=None)
    assert ended.code == 1 and "the audit could not be finished: " in ended.answer
    assert "finding(s) so far" in ended.answer


# Rights and mounts ----------------------------------------------------------------------------------------------------

root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and become somebody else")


@contextmanager
def mounted_read_only(home: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", home, home], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)
        yield
    finally:
        subprocess.run(["umount", home], check=True)


def can_mount(folder: Path) -> bool:
    """Whether this root may mount: in a container it often may not."""
    tried = subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False)
    if tried.returncode == 0:
        subprocess.run(["umount", folder], check=True)
    return tried.returncode == 0


@root
@pytest.mark.faults
@pytest.mark.parametrize("deep", [(), ("--deep",)], ids=["plain", "deep"])
def test_a_read_only_mount_is_audited_all_the_same(released: Path, tmp_path: Path, deep: tuple[str, ...]) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this root may not mount anything")
    with mounted_read_only(released):
        answer = qlog(released, "audit", *deep, "--json", environment={"TMPDIR": str(tmp_path)})
    facts = json.loads(answer.out)
    assert (answer.code, answer.err, facts["ok"]) == (0, "", True)
    (verdict,) = facts["releases"]
    assert verdict["notes"] == [], "Dagster's history was looked at, too"
    assert [path for path in tmp_path.iterdir() if path.name.startswith("qlog-")] == []


def _audit_as_nobody(home: Path) -> dict[str, Any]:
    """A child's task: the audit by somebody who owns nothing, who becomes root again to answer."""
    import dagster  # noqa: F401 - nobody may not read this Python's packages

    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        return audit_warehouse(Warehouse(Settings(home=home)), "small").as_json()
    finally:
        os.setresuid(0, 0, 0)


@root
@pytest.mark.faults
def test_files_that_this_user_may_not_read_are_a_failure(prepared: Prepared) -> None:
    """Nobody may read the private zones; that is no reason to say that what lies there is gone."""
    folder = Path("/tmp") / f"qlog-nobody-{os.getpid()}"
    copy_warehouse(prepared("released"), folder)
    try:
        folder.chmod(0o755)
        answer = in_child(_audit_as_nobody, folder).answer
        assert answer["findings"] == [] and "unable to open database file" in answer["failures"][0]
        # With a ledger that everybody may read, the zones are what cannot be looked into.
        (folder / "ledger.db").chmod(0o644)
        answer = in_child(_audit_as_nobody, folder).answer
        assert f"{folder / 'private'}: this user may not read it" in answer["failures"]
        assert any("Permission denied" in failure for failure in answer["failures"])
    finally:
        shutil.rmtree(folder)


@root
@pytest.mark.faults
def test_a_full_disk_for_the_scratch_is_a_failure(copied: Callable[[str], Path], tmp_path: Path) -> None:
    home = copied("released")
    if not can_mount(tmp_path):
        pytest.skip("this root may not mount anything")
    spill = home / "private" / "spill"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "qlog-full", spill], check=True)
    try:
        said = failure(qlog(home, "audit", "--deep"))
        assert "No space left on device" in said
    finally:
        subprocess.run(["umount", spill], check=True)
