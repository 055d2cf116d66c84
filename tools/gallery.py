"""Writes docs/gallery.md and docs/pictures/studies/: every study's pictures, drawn from one made-up log.

Run by `make plots`, or `python -m tools.gallery STUDY …` for some studies alone. The warehouse stays in .cache/gallery:
a study that is done there is not done again, so that an interrupted run goes on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from qlog_assets.studies.register import names, study
from tools.pages import DOCS
from tools.pictures import save

PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures" / "studies"
HOME = DOCS.parent / ".cache" / "gallery"
ROWS, WORLD, MONTH = 100_000, 2, "2006-03"
WIDEST = 1200
INTRODUCTION = f"""\
# Gallery

This page is generated: `make plots` writes it. Every study draws pictures; these are of one month of a made-up log of
{ROWS:,} rows, so nobody's searches are in them:

```
qlog synth {ROWS} --world {WORLD} --first {MONTH} --last {MONTH}
```

That is a small log: it shows what the pictures are, not what a large log can release. Figures of larger logs are on the
studies' own pages. Pictures of your own log are private, and lie under `private/studies/`.

## All systems, and steered selection

![Every system on one month of 3 million rows at ε = 2](pictures/compare.png)

[Which system should I use?](studies/compare.md)

![Safelog on the demo's log, three months](pictures/steered-months.png)

[Steered selection](selection.md)
"""


def main() -> None:
    asked = sys.argv[1:] or [name for name in names() if name != "compare"]
    HOME.mkdir(parents=True, exist_ok=True)
    if not (HOME / "landing").exists():
        run("synth", str(ROWS), "--world", str(WORLD), "--first", MONTH, "--last", MONTH)
    for name in asked:
        told = json.loads(run("study", name, "--month", MONTH, "--json"))
        for old in PICTURES.glob(f"{name}.*.png"):
            old.unlink()
        for picture in sorted(Path(told["path"]).glob("*.png")):
            save(picture.read_bytes(), PICTURES / f"{name}.{picture.name}", WIDEST)
    PAGE.write_text(page(), encoding="utf-8")


def run(*words: str) -> str:
    """What a command answers, on the gallery's own warehouse."""
    command = [str(Path(sys.executable).with_name("qlog")), *words]
    given = {**os.environ, "QLOG_HOME": str(HOME)}
    return subprocess.run(command, env=given, check=True, stdout=subprocess.PIPE, text=True).stdout


def page() -> str:
    """The whole page: every study that has pictures here, in the order of their names."""
    text, linked = INTRODUCTION, pages_of_studies()
    for name in names():
        pictures = sorted(PICTURES.glob(f"{name}.*.png"))
        if not pictures:
            continue
        told = study(name)
        text += f"\n## {told.title}\n\n{told.question}\n\n```\nqlog study {name} --month {MONTH}\n```\n"
        for picture in pictures:
            shown = picture.name.removeprefix(f"{name}.").removesuffix(".png").replace("_", " ").replace("-", " ")
            text += f"\n![{told.title}: {shown}](pictures/studies/{picture.name})\n"
        if name in linked:
            text += f"\n[What was measured]({linked[name]})\n"
    return text


def pages_of_studies() -> dict[str, str]:
    """Where the list of studies says that each is described, from this page."""
    listed = (DOCS / "studies" / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"\[`(?:qlog )?([a-z-]+)`\]\(([^)]+)\)", listed)
    return {name: os.path.normpath(f"studies/{link}") for name, link in found}


if __name__ == "__main__":
    main()
