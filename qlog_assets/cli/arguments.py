"""What several commands take: mechanisms by name, months, settings, and the warehouse they work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.names import folder_names

if TYPE_CHECKING:
    from qlog_assets.ledger import Ledger
    from qlog_assets.months import Month
    from qlog_assets.policy import Policy
    from qlog_assets.storage.warehouse import Warehouse

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value; a parameter by its name, others as section.key, but no files; none = off"),
]
ReleaseSets = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value; a parameter of the mechanism, within the policy's limits; none = off"),
]
Months = Annotated[
    list[str], typer.Option("--month", help="YYYY-MM; repeat for several months, which run side by side")
]


def name_argument(having: str, *further: str, more: str = "") -> Any:
    """A mechanism by name: listed in the help and completed by the shell, from the folders there are."""
    names = (*folder_names(having), *further)
    return typer.Argument(help=f"{', '.join(names[:-1])} or {names[-1]}{more}", autocompletion=lambda: list(names))


Released = Annotated[str, name_argument("stages.py")]
Simulated = Annotated[str, name_argument("draw.py")]
Known = Annotated[str, name_argument("mechanism.py")]
Attacked = Annotated[str, name_argument("attacks.py", "noise", "all")]


def format_names() -> list[str]:
    """The formats of logs, for the shell's completion."""
    from qlog_assets.sources.readers import FORMATS

    return list(FORMATS)


def opened() -> tuple[Warehouse, Policy]:
    """The warehouse of QLOG_HOME and its policy file."""
    from qlog_assets.policy import Policy
    from qlog_assets.settings import Settings
    from qlog_assets.storage.warehouse import Warehouse

    warehouse = Warehouse(Settings.from_environment())
    return warehouse, Policy.load(warehouse.settings.policy_file)


def open_ledger() -> tuple[Warehouse, Policy, Ledger]:
    from qlog_assets.door.ledgers import open_ledger as open_for_writing

    warehouse, policy = opened()
    return warehouse, policy, open_for_writing(warehouse, policy)


def open_account() -> tuple[Warehouse, Policy, Ledger]:
    """The same, with an account for the policy's data set: opened if there is none yet."""
    from qlog_assets.door.door import Door

    warehouse, policy, ledger = open_ledger()
    if not any(dataset.name == policy.dataset for dataset in ledger.datasets()):
        Door(warehouse, policy, ledger).open_account()
    return warehouse, policy, ledger


def parse_settings(assignments: list[str] | None) -> dict[str, str]:
    """The `key=value` words of --set."""
    values = {}
    for assignment in assignments or []:
        key, sign, value = assignment.partition("=")
        if not sign or not key.strip():
            raise QlogError(f"--set {assignment!r}: write it as key=value")
        values[key.strip()] = value.strip()
    return values


def parsed(assignments: list[str] | None, mechanism: str) -> dict[str, str]:
    """The same by full name: a bare key is a parameter of the mechanism."""
    from qlog_assets.policy import qualify_names

    return qualify_names(parse_settings(assignments), mechanism)


def parse_month(text: str) -> Month:
    from qlog_assets.months import Month

    return Month(text)
