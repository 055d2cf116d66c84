"""Spreads a window's budget over its months and mechanisms, and shows on a synthetic twin what each month then holds.

Public information only: the policy, and about how many rows a month has. The log itself is never read, and nothing is
charged. Where the budget is for ever it says how many months the policy's own parameters can be paid for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.door.choices import charged_amount
from qlog_assets.door.due import release_cost
from qlog_assets.door.ledgers import opening_budget
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger.budget import Amount, Budget
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable_mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import ingest_batch
from qlog_assets.pipeline.landing import batch_of
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.policy import Policy
from qlog_assets.privacy.bounds import double_at_least
from qlog_assets.privacy.guarantee import printed
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import Engine, open_duckdb
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import simulate
from qlog_assets.synthetic import write_log

MONTH = Month("2006-03")
STEPS = 100
"""ε per release is a whole multiple of a hundredth of the plain share: numbers that people can write down."""
MOST_MONTHS = 1200
"""A hundred years: nobody plans beyond."""

Tell = Callable[[str], None]


def spread_budget(
    policy: Policy, names: tuple[str, ...], rows: int, seed: int, tell: Tell = lambda step: None
) -> dict[str, Any]:
    """Equal shares for every month of the window and every mechanism: what each release costs and holds."""
    chosen = [releasable_mechanism(name) for name in names]
    budget, window = opening_budget(policy), policy.unit.window_months
    months = window or months_paid_for(policy, budget, chosen)
    if months == 0:
        raise QlogError("the budget pays for no release at the policy's own parameters: raise it, or lower their cost")
    shared = policy if window is None else within_budget(policy, budget, chosen, months)
    with tempfile.TemporaryDirectory(prefix="qlog-twin-") as folder:
        tell("writing the twin")
        warehouse, policy_of_twin = make_twin(Path(folder), shared, rows, seed)
        releases = []
        for each in chosen:
            tell(f"drawing {each.name} on the twin")
            with Engine.open(warehouse) as engine:
                variant = shared.variant(each)
                facts = simulate(
                    each.name, warehouse, engine, policy_of_twin, MONTH, variant, seed, f"plan-{each.name}"
                )
            section = shared.section(each.name).as_public()
            before = policy.section(each.name).as_public()
            releases.append(
                {
                    "mechanism": each.name,
                    "variant": variant,
                    **{key: facts["proven"][key] for key in ("epsilon", "delta")},
                    "rows": facts["rows"],
                    "changes": {key: value for key, value in section.items() if value != before[key]},
                }
            )
    total = months * sum((amount_of(shared, each) for each in chosen), start=Amount()).epsilon
    return {
        "window_months": window,
        "months": months,
        "budget": {"epsilon": double_at_least(budget.epsilon), "delta": double_at_least(budget.delta)},
        "releases": releases,
        "sum": printed(total),
    }


def amount_of(policy: Policy, mechanism: Mechanism) -> Amount:
    """What one release costs, as a budget adds it up."""
    return charged_amount(release_cost(policy, mechanism))


def months_paid_for(policy: Policy, budget: Budget, chosen: list[Mechanism]) -> int:
    """How many months of the policy's own releases a budget for ever holds."""
    month = sum((amount_of(policy, each) for each in chosen), start=Amount())
    months, total = 0, month
    while months < MOST_MONTHS and budget.holds(total):
        months, total = months + 1, total + month
    return months


def within_budget(policy: Policy, budget: Budget, chosen: list[Mechanism], months: int) -> Policy:
    """The policy with each mechanism at the largest equal ε whose releases over all months the budget holds."""
    releases = months * len(chosen)
    delta = budget.limit.delta / releases

    def at(step: int) -> Policy:
        epsilon = Fraction(step, STEPS) * budget.epsilon / releases
        sections = {each.name: each.at_cost(policy.section(each.name), epsilon, delta) for each in chosen}
        return policy.with_changes(mechanisms={**policy.mechanisms, **sections})

    def fits(step: int) -> bool:
        try:
            month = sum((amount_of(at(step), each) for each in chosen), start=Amount())
        except ParameterError:
            return True  # so little that no mechanism can be asked for it: it would not be too much
        return budget.holds(Amount(months * month.epsilon, months * month.delta, months * month.rho))

    low, high = 0, STEPS * releases
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    try:
        found = at(max(low, 1))
        for each in chosen:
            # A cost that can be written down may still ask for more noise than can be drawn.
            each.refuse_unusable(found.variant(each), found.parameters(each))
        return found
    except ParameterError as error:
        raise QlogError(f"the budget is too small for {months} months of {len(chosen)} mechanisms: {error}") from None


def make_twin(folder: Path, policy: Policy, rows: int, seed: int) -> tuple[Warehouse, Policy]:
    """A warehouse with one month of a synthetic log of so many rows, and the policy as it applies there."""
    warehouse = Warehouse(Settings(home=folder / "twin")).make()
    path = warehouse.landing / "aol" / "twin.txt"
    path.parent.mkdir()
    write_log(path, rows, seed, MONTH, MONTH)
    applied = policy.with_changes(first=MONTH, last=MONTH)
    with open_duckdb(warehouse) as engine:
        # The twin's users have ids, whoever is one user of the log that it stands for.
        ingest_batch(warehouse, engine, batch_of(path, "aol"), replace(applied.admission, one_user=None))
    assemble_raw_log(warehouse, MONTH)
    return warehouse, applied
