"""Run by the validators' own Python on a `released/` folder: other people's programs read what we publish.

.cache/validators/bin/python tests/support/validate_public.py RELEASED

Prints one JSON object: what was validated, and every complaint. Knows nothing of this package.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from pathlib import Path


def validate_package(released: Path) -> dict:
    """The data package and every row of every table in it."""
    import frictionless

    report = frictionless.Package(str(released / "datapackage.json")).validate()
    complaints = [f"{error.type}: {error.note}" for error in report.errors]
    complaints += [f"{task.name}: {error.type}: {error.note}" for task in report.tasks for error in task.errors]
    return {"tables": len(report.tasks), "rows": sum(task.stats["rows"] for task in report.tasks), "errors": complaints}


def validate_citations(released: Path) -> dict:
    """Every citation file, and what it becomes in BibTeX."""
    from cffconvert import Citation

    errors, printed = [], []
    files = sorted(released.glob("*/*/*/CITATION.cff"))
    for path in files:
        citation = Citation(path.read_text(encoding="utf-8"))
        try:
            citation.validate()
            printed.append(citation.as_bibtex())
        except Exception as error:  # noqa: BLE001 - whatever it says is the complaint
            errors.append(f"{path.parent.name}: {type(error).__name__}: {error}")
    return {"files": len(files), "errors": errors, "bibtex": printed}


def run_polars(released: Path) -> dict[str, dict]:
    """The README's Polars snippet in every release: rows read, and months found."""
    found = {}
    for path in sorted(released.glob("*/*/*/README.md")):
        codes = re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.S | re.M)
        (code,) = (code for code in codes if "polars" in code)
        os.chdir(path.parent)
        names: dict = {}
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(code, str(path), "exec"), names)
        frames = {name: value for name, value in names.items() if type(value).__name__ == "DataFrame"}
        found[path.parent.name] = {name: [frame.height, *frame["month"].unique()] for name, frame in frames.items()}
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    answer = {
        "package": validate_package(folder),
        "citations": validate_citations(folder),
        "polars": run_polars(folder),
    }
    print(json.dumps(answer))
