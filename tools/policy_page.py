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
has a default, an unknown key is an error that names it, and decimals are read exactly as they are written. The word
`none` (in the file: `"none"`) switches an optional part off. The file is read when a run starts: an edit counts from
the next run on.

**What a run may change.** A release may be asked for other parameters of its mechanism, on the command line
(`--set epsilon=1`) or in Dagster's launchpad (resource `policy`, under the same names; it opens empty, and
what is not written there is read from this file). It may cost less than the file's own parameters and never more,
unless `[limits]` allows it. Budget, data set, months, files and pools come from this file alone. What is never charged
(`qlog guarantee`, `plan`, `simulate`, `study`) may try any key but files, such as `--set pool.kind=default`.

**Files** that the policy names are relative to it. They must be regular files beside the policy file, below its
directory, or in one of `public_directories`; and never in the warehouse's `landing/`, `private/`, `dagster/` or
`released/`, nor its ledger. Symbolic links are followed first. A hard link cannot be told from the file itself.

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
epsilon = 2
click_share = 0.25
transition_share = 0.15
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
