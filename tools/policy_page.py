"""Writes docs/policy.md: every key of the policy file with its default and meaning, from the models themselves.

Run `python -m tools.policy_page` to write the page, with `--check` to fail when it is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.settings import FrozenModel, Settings
from tools.pages import DOCS, main

PAGE = DOCS / "policy.md"

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
    fields = [name for name in Policy.model_fields if name != "mechanisms"]
    sections = {name: getattr(policy, name) for name in fields if isinstance(getattr(policy, name), Parameters)}
    text = INTRODUCTION + "\n## Top level\n\n" + table(policy, [name for name in fields if name not in sections])
    for name, section in {**sections, **policy.mechanisms}.items():
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


def described(model: type[FrozenModel], name: str) -> str:
    return " ".join((model.model_fields[name].description or "").split())


if __name__ == "__main__":
    sys.exit(main(PAGE, page, "python -m tools.policy_page"))
