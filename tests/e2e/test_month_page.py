"""docs/month.md, run as it stands: each command is taken, and what the page shows of its answer is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import qlog
from support.library import write_library_log
from support.walked_pages import blocks, pattern_of, steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "month.md"


@pytest.mark.slow
def test_the_page_is_walked_as_it_stands(tmp_path: Path) -> None:
    home = tmp_path / "warehouse"
    home.mkdir()
    policy, columns = blocks(PAGE, "toml")
    (home / "policy.toml").write_text(policy, encoding="utf-8")
    files = {"columns.toml": tmp_path / "columns.toml", "searches.csv": tmp_path / "searches.csv"}
    files["columns.toml"].write_text(columns, encoding="utf-8")
    write_library_log(files["searches.csv"])
    release, shown = "", 0
    for step in steps(PAGE):
        program, *words = step.words
        assert program == "qlog"
        withdraws = words[:2] == ["ingest", "withdraw"]
        given = [word if withdraws else str(files.get(word, word)) for word in words]
        answer = qlog(home, *(word.replace("RELEASE", release) for word in given))
        assert answer.code == (2 if step.refused else 0), (words, answer)
        said = answer.out + answer.err
        for line in step.shown:
            assert pattern_of(line, RELEASE=release).search(said), (words, line, said)
            shown += 1
        release = release or next(iter(re.findall(r"safelog-2024-05-[0-9a-f]{12}", said)), "")
    assert shown > 12 and release
