"""Pages that are walked by tests: their commands in order, and what they show of the answers."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """A command of a page, and the lines that the page shows of its answer."""

    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def refused(self) -> bool:
        return any(line.startswith("qlog: ") for line in self.shown)


def blocks(page: Path, *languages: str) -> list[str]:
    """The page's code blocks of some languages, in order."""
    named = "|".join(languages)
    found = re.findall(rf"^```(?:{named})\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, languages
    return found


def steps(page: Path) -> list[Step]:
    """The commands of the page, in order, each with the lines that the page shows of its answer."""
    found: list[Step] = []
    for line in "".join(blocks(page, "console")).splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ ")))
        else:
            found[-1].shown.append(line)
    return found


def pattern_of(shown: str, **meant: str) -> re.Pattern[str]:
    """What a shown line stands for: … is anything, blanks may be more or fewer, and words that are meant are put in."""
    for word, meaning in meant.items():
        shown = shown.replace(word, meaning)
    text = re.escape(" ".join(shown.split())).replace("…", ".*").replace(r"\ ", r"\s+")
    return re.compile(text)
