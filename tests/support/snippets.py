"""The code in a Markdown file, by language."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path


def snippets_of(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.S | re.M):
        found[language].append(code)
    return found
