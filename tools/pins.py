"""Writes requirements.txt and requirements-dev.txt: what pyproject.toml pins and everything that pulls in.

Run by `make pins` in an environment that has the wanted versions installed. The lines are plain `name==version`: a lock
file with download addresses would tie the project to one index.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
DEVELOPMENT = (
    "axe-playwright-python",
    "build",
    "dp-accounting",
    "hatchling",
    "hypothesis",
    "import-linter",
    "ir-measures",
    "mypy",
    "playwright",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "rbcl",
    "ruff",
    "sqlglot",
)
ELSEWHERE = ("spark",)
"""Extras that have an environment of their own; `python tools/pins.py spark` there writes its pins."""


def closure(names: list[str]) -> dict[str, str]:
    """The pins of some requirements and of all they need, by canonical name."""
    pins: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in seen:
            continue
        seen.add(key)
        installed = distribution(requirement.name)
        pins[key[0]] = f"{installed.metadata['Name']}=={installed.version}"
        for text in installed.requires or []:
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return pins


def write(name: str, comment: str, pins: dict[str, str]) -> None:
    lines = sorted(pins.values(), key=str.lower)
    (ROOT / name).write_text("\n".join([f"# {comment} `make pins` writes this file.", *lines]) + "\n", encoding="utf-8")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"]
    extras = [name for group, names in groups.items() if group not in ELSEWHERE for name in names]
    product = closure([*project["dependencies"], "hatchling", "editables"])
    development = closure([*extras, *DEVELOPMENT])
    write(
        "requirements.txt",
        "What `make demo` installs: the pins of pyproject.toml and what they pull in.",
        product,
    )
    only = {name: pin for name, pin in development.items() if name not in product}
    write("requirements-dev.txt", "What tests, lint and studies add to requirements.txt.", only)


def write_elsewhere(group: str) -> None:
    """The pins of an extra with an environment of its own, without those that the other files have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    pins = closure(project["optional-dependencies"][group])
    only = {name: pin for name, pin in pins.items() if pin not in known.splitlines()}
    write(f"requirements-{group}.txt", f"What the extra `{group}` adds to the other two.", only)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_elsewhere(sys.argv[1])
    else:
        main()
