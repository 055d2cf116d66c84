"""Files that were read, by the command line: what a file would give, what became of it, and taking a bad one out."""

from __future__ import annotations

import gzip
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import charges, public_files, warehouse_at
from support.instances import AOL_HEADER, MONTHS, make_home, small_log

from qlog_assets.ledger import Ledger
from qlog_assets.verify.audit import audit_warehouse

MARCH, APRIL = MONTHS
LATE = AOL_HEADER + "".join(f"late{n}\tweather\t{MARCH}-09 10:00:00\t\t\n" for n in range(3)) + "x\ty\tno time\t\t\n"


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """Three more rows of March and a bad one."""
    path = tmp_path / "late.txt"
    path.write_text(LATE, encoding="utf-8")
    return path


def everything(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def raw_rows(home: Path, month: str = MARCH) -> int:
    return warehouse_at(home).current("raw_log", month).rows("log")


def test_a_check_says_what_a_file_would_give_and_keeps_nothing(ingested: Path, late: Path) -> None:
    before = everything(ingested)
    (said,) = qlog(ingested, "ingest", "--check", late, "--format", "aol", "--json").json["files"]
    assert (said["read"], said["accepted"], said["rejected"]) == (4, 3, {"bad_time": 1})
    assert said["months"] == {MARCH: 3} and said["read_as"]["delimiter"] == "\t"
    assert any("max_rejected_share = 0.2" in note for note in said["notes"])
    assert everything(ingested) == before
    out = qlog(ingested, "ingest", late, "--format", "aol", "--check").success
    assert "4 rows read, 3 accepted; rejected: bad_time 1" in out and out.endswith("nothing was kept\n")


def test_a_check_makes_no_warehouse_and_warns_once_of_what_ingesting_would_warn_of(home: Path, tmp_path: Path) -> None:
    logs = [tmp_path / name for name in ("one.log", "two.log")]
    for number, log in enumerate(logs):
        log.write_text(f"2A9EABFB35F5B95{number}\t970916105432\t+md+finance\n", encoding="latin-1")
    words = ("ingest", *logs, "--format", "excite", "--json")
    home.rmdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    answer = qlog(home, *words, "--check", environment={"TMPDIR": str(temporary)}).json
    assert [file["accepted"] for file in answer["files"]] == [1, 1] and not home.exists()
    (scratch,) = temporary.iterdir()
    assert list(scratch.iterdir()) == [] and scratch.stat().st_mode & 0o077 == 0
    (warning,) = answer["warnings"]
    assert warning.startswith("one.log and 1 more have no column of urls: ")
    said = qlog(home, *words[:-1], "--check").success
    assert "1 row read, 1 accepted" in said and f"warning: {warning}\n" in said
    assert qlog(home, *words).json["warnings"] == [warning]


def test_a_check_needs_what_an_ingest_needs(home: Path, late: Path) -> None:
    refusal = qlog(make_home(home), "ingest", "--check", late, "--format", "table").refusal
    assert "needs a column map" in refusal


def test_a_bad_file_among_several_is_refused_before_any_is_read_or_the_answer_names_what_is_in(
    ingested: Path, late: Path, tmp_path: Path
) -> None:
    cut, packed = tmp_path / "cut.gz", tmp_path / "packed.txt"
    cut.write_bytes(gzip.compress(os.urandom(1000))[:200])
    packed.write_bytes(b"BZh91AY&SY\n")
    before = everything(ingested)
    assert qlog(ingested, "ingest", late, cut, "--format", "aol").refusal.startswith("cut.gz: is damaged or cut short")
    batches = f"private{os.sep}landing_batch"
    assert {name for name in everything(ingested) if name.startswith((batches, "landing"))} <= before.keys()
    # Only its rows tell that this one is no log: by then the other one is in.
    refusal = qlog(ingested, "ingest", late, packed, "--format", "aol").refusal
    assert refusal.startswith("packed.txt: is compressed") and "; ingested before it: late.txt (4 rows)" in refusal
    assert "late.txt" in qlog(ingested, "ingest", "list").success
    # Nothing was ingested before it this time.
    assert "ingested before" not in qlog(ingested, "ingest", late, packed, "--format", "aol").refusal


def test_a_file_without_a_good_row_is_not_said_to_be_in_use(ingested: Path, tmp_path: Path) -> None:
    (tmp_path / "poor.txt").write_text(AOL_HEADER + "x\ty\tno time\t\t\n", encoding="utf-8")
    said = qlog(ingested, "ingest", tmp_path / "poor.txt", "--format", "aol").success
    assert "1 row read, 0 accepted" in said and "none of its rows is used" in said and "other rows" not in said
    states = {each["file"]: each["state"] for each in qlog(ingested, "ingest", "list", "--json").json["batches"]}
    assert states.pop("poor.txt") == "no rows to use, too many rejected" and set(states.values()) == {"in use"}


def test_a_log_called_like_a_command_is_read_by_its_path(home: Path, late: Path) -> None:
    log = late.rename(late.with_name("withdraw"))
    said = qlog(make_home(home), "ingest", "./withdraw", "--format", "aol", "--check", "--json", cwd=log.parent)
    assert said.json["files"][0]["accepted"] == 3


def test_a_withdrawn_file_enters_no_month_and_the_ledger_says_who_took_it_out_and_why(
    ingested: Path, late: Path
) -> None:
    rows = raw_rows(ingested)
    (key,) = qlog(ingested, "ingest", late, "--format", "aol", "--json").json["batches"]
    assert raw_rows(ingested) == rows + 3
    counted = Ledger.read(ingested / "ledger.db").salted_head(b"salt").seq
    # A copy under another name holds the same searches, and goes with it.
    shutil.copyfile(late, late.with_name("copy.txt"))
    shutil.copyfile(late, ingested / "landing" / "aol" / "copy.txt")
    answer = qlog(ingested, "ingest", "withdraw", "late.txt", "--reason", "  the test\nsystem's ", "--json").json
    assert (answer["batch"], answer["recorded"], answer["months"]) == (key, True, {MARCH: True})
    assert raw_rows(ingested) == rows
    (event,) = [each for each in Ledger.read(ingested / "ledger.db").events() if each.kind == "batch_withdrawn"]
    assert event.facts["reason"] == "the test system's" and event.run_id == answer["run_id"] is not None
    # A manifest says how many events there were: this one tells perhaps that rows were rejected, and is not counted.
    assert Ledger.read(ingested / "ledger.db").salted_head(b"salt").seq == counted
    listed = {each["batch"]: each for each in qlog(ingested, "ingest", "list", "--json").json["batches"]}
    assert listed[key]["state"] == "withdrawn" and listed[key]["reasons"] == {"bad_time": 1}
    for name in ("late.txt", "copy.txt"):
        refusal = qlog(ingested, "ingest", late.with_name(name), "--format", "aol").refusal
        assert "was withdrawn on" in refusal and "the test system's" in refusal and "--again-because" in refusal
    again = qlog(ingested, "ingest", "withdraw", key, "--reason", "once more").success
    assert "was withdrawn already" in again and "the test system's" in again
    # It was the right file after all.
    assert qlog(ingested, "ingest", late, "--format", "aol", "--again-because", "it was real").success
    assert raw_rows(ingested) == rows + 3
    assert Ledger.read(ingested / "ledger.db").verify_chain() == []


def test_withdrawing_needs_a_batch_that_there_is_and_a_reason(ingested: Path) -> None:
    before = Ledger.read(ingested / "ledger.db").head()
    assert "qlog ingest list" in qlog(ingested, "ingest", "withdraw", "nobody", "--reason", "no").refusal
    (listed,) = qlog(ingested, "ingest", "list", "--json").json["batches"]
    assert "a reason is needed" in qlog(ingested, "ingest", "withdraw", listed["batch"], "--reason", " ").refusal
    assert Ledger.read(ingested / "ledger.db").head() == before


@pytest.mark.slow
def test_a_release_outlives_the_file_it_was_made_from_and_the_audit_explains_it(released: Path) -> None:
    public, (charge,) = public_files(released), charges(released)
    (listed,) = qlog(released, "ingest", "list", "--json").json["batches"]
    said = qlog(released, "ingest", "withdraw", listed["batch"], "--reason", "of another site").success
    assert f"{charge.release_id} stays published as it is" in said and "charged once more" in said
    assert public_files(released) == public and len(charges(released)) == 1
    for words in (("audit",), ("audit", "--deep")):
        report = qlog(released, *words, "--json").json
        (verdict,) = report["releases"]
        assert report["ok"] and any("of another site" in note for note in report["notes"])
        assert any("of another site: released before, it stays" in note for note in verdict["notes"])
    # Nothing more is made of it, not even of tables that were made before.
    refusal = qlog(released, "release", "safelog", "--month", APRIL).refusal
    assert f"every file with rows of {APRIL} was withdrawn" in refusal
    assert len(charges(released)) == 1


@pytest.mark.slow
def test_a_late_file_says_what_it_does_to_a_released_month_and_withdrawing_it_undoes_that(
    released: Path, late: Path
) -> None:
    (charge,) = charges(released)
    (note,) = qlog(released, "ingest", late, "--format", "aol", "--json").json["notes"]
    assert note.startswith(f"late.txt: 3 of its rows are of {MARCH}, which was released before")
    assert charge.release_id in note and f"qlog release safelog --month {MARCH} --again REASON" in note
    assert "--again" in qlog(released, "release", "safelog", "--month", MARCH).refusal
    assert qlog(released, "ingest", "withdraw", "late.txt", "--reason", "too late").success
    served = qlog(released, "release", "safelog", "--month", MARCH, "--json").json
    assert (served["release_id"], served["charged"]) == (charge.release_id, False)
    assert audit_warehouse(warehouse_at(released)).ok


@pytest.mark.slow
def test_rows_of_a_forgotten_month_are_left_out_unless_they_are_asked_for(released: Path, tmp_path: Path) -> None:
    log = tmp_path / "small.txt"
    log.write_text(small_log(), encoding="utf-8")
    assert qlog(released, "forget", "--before", "2006-05").success
    answer = qlog(released, "ingest", log, "--format", "aol", "--json").json
    assert list(answer["months"]) == [APRIL] and answer["left_out"].keys() == {MARCH}
    assert "2006-03" in answer["notes"][0] and "--yes" in answer["notes"][0]
    assert not warehouse_at(released).has_current("raw_log", MARCH)
    assert qlog(released, "ingest", log, "--format", "aol", "--json").json["already_ingested"] == ["small.txt"]
    assert qlog(released, "audit", "--deep").success
    back = qlog(released, "ingest", log, "--format", "aol", "--yes", "--json").json
    assert back["months"].keys() == {MARCH, APRIL} and back["left_out"] == {}
    assert warehouse_at(released).has_current("raw_log", MARCH)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "comes_back"), [(b"n\n", False), (b"y\n", True)])
def test_on_a_terminal_somebody_is_asked_whether_a_forgotten_month_comes_back(
    released: Path, tmp_path: Path, answer: bytes, comes_back: bool
) -> None:
    log = tmp_path / "small.txt"
    log.write_text(small_log(), encoding="utf-8")
    assert qlog(released, "forget", "--before", "2006-05").success
    keyboard, terminal = pty.openpty()
    os.write(keyboard, answer)
    words = [sys.executable, "-m", "qlog_assets.cli", "ingest", str(log), "--format", "aol"]
    with subprocess.Popen(
        words,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "QLOG_HOME": str(released)},
        text=True,
    ) as command:
        out, err = command.communicate(timeout=120)
    os.close(keyboard)
    os.close(terminal)
    assert command.returncode == 0 and f"bring the forgotten rows of {MARCH} back?" in err, err
    assert "left out" in out and warehouse_at(released).has_current("raw_log", MARCH) is comes_back
