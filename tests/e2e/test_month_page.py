"""docs/month.md, run as it stands: each command is taken, and what the page shows of its answer is in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.cli import qlog
from support.library import write_library_log

PAGE = Path(__file__).resolve().parents[2] / "docs" / "month.md"


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, language
    return found


def steps() -> list[tuple[list[str], list[str]]]:
    """The commands of the page, in order, each with the lines that the page shows of its answer."""
    found: list[tuple[list[str], list[str]]] = []
    for line in "".join(blocks("console")).splitlines():
        if line.startswith("$ qlog "):
            found.append((shlex.split(line)[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern_of(shown: str, release: str) -> re.Pattern[str]:
    """What a shown line stands for: … is anything, and blanks may be more or fewer."""
    text = re.escape(" ".join(shown.replace("RELEASE", release).split())).replace("…", ".*").replace(r"\ ", r"\s+")
    return re.compile(text)


@pytest.mark.slow
def test_the_page_is_walked_as_it_stands(tmp_path: Path) -> None:
    home = tmp_path / "warehouse"
    home.mkdir()
    policy, columns = blocks("toml")
    (home / "policy.toml").write_text(policy, encoding="utf-8")
    files = {"columns.toml": tmp_path / "columns.toml", "searches.csv": tmp_path / "searches.csv"}
    files["columns.toml"].write_text(columns, encoding="utf-8")
    write_library_log(files["searches.csv"])
    release, shown = "", 0
    for words, lines in steps():
        withdraws = words[:2] == ["ingest", "withdraw"]
        given = [word if withdraws else str(files.get(word, word)) for word in words]
        answer = qlog(home, *(word.replace("RELEASE", release) for word in given))
        refused = any(line.startswith("qlog: ") for line in lines)
        assert answer.code == (2 if refused else 0), (words, answer)
        said = answer.out + answer.err
        for line in lines:
            assert pattern_of(line, release).search(said), (words, line, said)
            shown += 1
        release = release or next(iter(re.findall(r"safelog-2024-05-[0-9a-f]{12}", said)), "")
    assert shown > 12 and release
