"""The Python API: what the commands do, with typed answers. One process works on one warehouse, the one of QLOG_HOME.

A refusal is a `QlogError` with the line that the command would print. What reads public files is `public_functions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.api.operations import ingest_files, release_months, simulate_month
from qlog_assets.api.planning import explain_guarantee
from qlog_assets.api.runs import ignore
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from qlog_assets.verify.audit import AuditReport

Paths = Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Ingested:
    """What was read: rows by outcome, and which files were known already."""

    read: int
    accepted: int
    rejected: dict[str, int]
    """Rows by the reason for which they were rejected."""
    months: dict[str, int]
    """Accepted rows by month."""
    already_ingested: list[str]
    warnings: list[str]
    """Files of which more rows were rejected than the policy expects; their other rows are used all the same."""
    batches: list[str]
    """The keys of what was read now: what `qlog ingest withdraw` takes."""
    left_out: dict[str, int]
    """Good rows of forgotten months, which were not kept."""
    notes: list[str]
    """What the rows do to months that were released or forgotten before."""


@dataclass(frozen=True)
class Release:
    """A month's release: what it cost, what is left of the budget, and where its files are."""

    release_id: str
    month: str
    mechanism: str
    variant: str
    epsilon: float
    delta: float
    charged: bool
    """Whether this very call was charged for it; a release that was there already is served."""
    rows: dict[str, int]
    path: Path
    epsilon_left: float
    delta_left: float


@dataclass(frozen=True)
class Simulation:
    """A seeded draw: private, never charged."""

    mechanism: str
    variant: str
    month: str
    seed: int
    rows: dict[str, int]
    path: Path
    warning: str | None = None
    """What must be said of a month that has no release yet."""


def ingest(
    paths: Paths,
    format: str,
    columns: str | PathLike[str] | None = None,
    *,
    again_because: str | None = None,
    bring_back_forgotten: bool = False,
) -> Ingested:
    """Read log files once each and write all their months.

    `again_because` is why files that were withdrawn are used again. Rows of forgotten months are counted and left out,
    unless they are to be brought back.
    """
    warehouse, policy = _open()
    facts = ingest_files(
        warehouse,
        policy,
        [Path(path) for path in paths],
        format,
        None if columns is None else Path(columns),
        ignore,
        again_because=again_because,
        bring_back=bring_back_forgotten,
    )
    return Ingested(**facts)


def release(
    mechanism: str, month: str, *, settings: Mapping[str, str] | None = None, again: str | None = None
) -> Release:
    """Release a month: checked, charged and published. One that has this release already is served, not charged.

    `settings` are those of the command's --set: parameters of the mechanism, within the policy's limits. `again` is why
    a released month is drawn once more, at one more charge.
    """
    warehouse, policy = _open()
    (facts,) = release_months(warehouse, policy, settings or {}, mechanism, [Month(month)], again, ignore)
    left = facts.pop("left")
    path = Path(facts.pop("path"))
    return Release(**facts, path=path, epsilon_left=left["epsilon"], delta_left=left["delta"])


def simulate(
    mechanism: str,
    month: str,
    *,
    variant: str | None = None,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Simulation:
    """Draw a month with seeded noise into private/studies. `settings` may name any key of the policy but files."""
    warehouse, policy = _open()
    facts = simulate_month(warehouse, policy, settings or {}, mechanism, Month(month), variant, seed, ignore)
    told = {name: facts[name] for name in ("mechanism", "variant", "month", "seed", "rows", "warning")}
    return Simulation(**told, path=Path(facts["path"]))


def guarantee(
    mechanism: str, *, variant: str | None = None, settings: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a release would cost and promise, before anything is spent."""
    return explain_guarantee(mechanism, variant, settings or {})


def audit(releases: Sequence[str] = (), *, deep: bool = False, witness: bool = False) -> AuditReport:
    """Verify the named releases, or all of them; `report.ok` says whether nothing was found and nothing was left out.

    With `deep` every private table is computed again, from its landing file on. With `witness`, the ledger is compared
    with its witness, event by event.
    """
    from qlog_assets.verify.audit import audit_warehouse
    from qlog_assets.verify.witness import audit_witness

    warehouse, policy = _open()
    report = audit_warehouse(warehouse, policy.dataset, releases, deep=policy.lists if deep else None)
    audit_witness(warehouse, policy, report, asked=witness)
    return report


def _open() -> tuple[Warehouse, Policy]:
    warehouse = Warehouse(Settings.from_environment())
    return warehouse, Policy.load(warehouse.settings.policy_file)
