"""Suites evaluated in a process beside: the same answers, the same errors, and nothing passes where it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.instances import make_home, small_log

from qlog_assets.checks import suites
from qlog_assets.checks.beside import Checker, checking_beside

pytestmark = pytest.mark.slow
FRAMES = {"counts": pd.DataFrame({"rows_with_another_id": [0]})}
BAD = {"counts": pd.DataFrame({"rows_with_another_id": [3]})}


def test_it_answers_as_this_process_would_and_nothing_passes_once_it_is_gone() -> None:
    checker = Checker()
    try:
        for frames in (FRAMES, BAD):
            assert checker.evaluate("log/user_ids", frames, {}) == suites.evaluate("log/user_ids", frames, {})
        with pytest.raises(suites.CheckError, match="no such suite"):
            checker.evaluate("log/nothing_of_the_kind", FRAMES, {})
        os.kill(checker._process.pid, signal.SIGKILL)
        with pytest.raises(suites.CheckError, match="ended before it answered"):
            checker.evaluate("log/user_ids", FRAMES, {})
    finally:
        checker.end()


def test_a_process_that_has_the_library_needs_no_other() -> None:
    suites.load_library()
    with checking_beside():
        assert suites.evaluate_elsewhere.get() is None


def test_a_command_does_not_import_the_library_itself(tmp_path: Path) -> None:
    """Otherwise its seconds are spent twice."""
    home, log = make_home(tmp_path / "warehouse"), tmp_path / "small.txt"
    log.write_text(small_log(), encoding="utf-8")
    script = f"""
import sys
from pathlib import Path
from qlog_assets.api.operations import ingest_files
from qlog_assets.cli.arguments import opened
warehouse, policy = opened()
facts = ingest_files(warehouse, policy, [Path({str(log)!r})], "aol", None, lambda step: None)
assert facts["accepted"] == 400, facts
assert "great_expectations" not in sys.modules
"""
    environment = {**os.environ, "QLOG_HOME": str(home)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)


def test_nothing_is_imported_from_the_directory_that_a_command_is_called_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qlog_assets").mkdir()
    (tmp_path / "pandas.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    checker = Checker()
    try:
        assert (
            checker.evaluate("log/user_ids", FRAMES, {}).passed and not checker.evaluate("log/user_ids", BAD, {}).passed
        )
    finally:
        checker.end()


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one() -> None:
    checker = Checker()

    def interrupted(pipe: object) -> object:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qlog_assets.checks.beside.receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checker.evaluate("log/user_ids", FRAMES, {})
    with pytest.raises(suites.CheckError, match="ended before it answered"):
        checker.evaluate("log/user_ids", BAD, {})
