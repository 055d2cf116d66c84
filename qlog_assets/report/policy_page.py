"""Writes docs/policy.md: every key of the policy file with its default and meaning, from the models themselves.

Run `python -m qlog_assets.report.policy_page` to write the page, with `--check` to fail when it is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.settings import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "policy.md"

INTRODUCTION = """\
# The policy file

This page is generated: `make docs` writes it, and a test fails when it is out of date.

`policy.toml` in the warehouse (or the file that `QLOG_POLICY` names) says what a data set's owner allows. Every key
has a default, an unknown key is an error that names it, and decimals are read exactly as they are written. The same
names work in Dagster's launchpad (resource `policy`), on the command line (`--set queries_per_user=5`,
`--set pool.kind=default`) and in manifests. The word `none` (in the file: `"none"`) switches an optional part off.
File names are relative to the policy file.

```toml
dataset = "library"
first = "2024-01"

[budget]
epsilon = 12
delta = 1e-5

[pool]
kind = "query_list"
path = "titles.txt"
description = "Titles of the public catalogue"

[safelog]
queries_per_user = 2
selection_scale = 2
transition_scale = 2
```
"""

ENVIRONMENT = """\
## The machine

What belongs to the machine and not to the data set is read from the environment.

"""


def page() -> str:
    """The whole page as Markdown."""
    policy = Policy()
    sections = [name for name in Policy.model_fields if isinstance(getattr(policy, name), Parameters)]
    plain = [name for name in Policy.model_fields if name not in sections]
    text = INTRODUCTION + "\n## Top level\n\n" + table(policy, plain)
    for name in sections:
        section: Parameters = getattr(policy, name)
        summary = (type(section).__doc__ or "").strip().split("\n\n", maxsplit=1)[0]
        text += f"\n## `[{name}]`\n\n{summary}\n\n{table(section, list(type(section).model_fields))}"
    machine = [name for name in Settings.model_fields if name != "threads"]
    return text + "\n" + ENVIRONMENT + "".join(f"- {described(Settings, name)}\n" for name in machine)


def table(model: Parameters, names: Sequence[str]) -> str:
    """Keys, defaults and meanings of one section."""
    defaults = model.as_public()
    rows = [f"| `{name}` | {shown(defaults[name])} | {described(type(model), name)} |" for name in names]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows]) + "\n"


def shown(value: object) -> str:
    return "none" if value is None or value in ([], ()) else f"`{value}`" if value != "" else "empty"


def described(model: type[Parameters], name: str) -> str:
    return " ".join((model.model_fields[name].description or "").split())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with `--check` compare it: 0 if current, 1 if not."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--check"]:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
        if not current:
            print("docs/policy.md is out of date: run make docs", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
