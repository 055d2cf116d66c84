"""docs/tutorial.md, run as it stands: every command is taken, and what the page shows of its answer is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Answer, qlog
from support.walked_pages import Step, blocks, pattern_of, steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


@pytest.mark.study
def test_the_tutorial_is_walked_as_it_stands(tmp_path: Path) -> None:
    home = tmp_path / "warehouse"
    home.mkdir()
    (policy,) = blocks(PAGE, "toml")
    (home / "policy.toml").write_text(policy, encoding="utf-8")
    walked = steps(PAGE)
    for step in walked:
        answer = answer_of(step, home)
        assert answer.code == (2 if step.refused else 0), (step.command, answer)
        for line in step.shown:
            assert pattern_of(line).search(answer.out + answer.err), (step.command, line, answer)
    assert len(walked) > 10 and all(step.shown for step in walked)
    (program,) = blocks(PAGE, "python")
    loaded = run([sys.executable, "-c", program], home)
    rows, columns = loaded.success.split(maxsplit=1)
    assert int(rows) > 5 and "standard_error" in columns


def answer_of(step: Step, home: Path) -> Answer:
    """`qlog` as everywhere in these tests, and anything else by a shell."""
    program, *words = step.words
    return qlog(home, *words) if program == "qlog" else run(["bash", "-c", step.command], home)


def run(command: list[str], home: Path) -> Answer:
    given = {**os.environ, "QLOG_HOME": str(home)}
    done = subprocess.run(command, env=given, cwd=home, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)
