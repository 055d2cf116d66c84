"""What is said to somebody who looks at a month before its release: later choices are made from the log."""

from __future__ import annotations

from qlog_assets.ledger import Ledger, LedgerError
from qlog_assets.mechanisms.register import releasable
from qlog_assets.months import Month
from qlog_assets.storage.warehouse import Warehouse


def unreleased_warning(warehouse: Warehouse, dataset: str, month: Month, mechanism: str | None = None) -> str | None:
    """One line where the month has no release; None where it has one.

    Of the mechanism, if it can be released; otherwise of any, since what is learned here may shape any.
    A ledger that cannot be asked knows of none: the cautious answer.
    """
    if mechanism not in {each.name for each in releasable()}:
        mechanism = None
    try:
        charges = Ledger.read(warehouse.ledger_url).charges(dataset)
    except LedgerError:
        charges = []
    wanted = [charge for charge in charges if charge.month == month and mechanism in (None, charge.mechanism)]
    if any(charge.published_seq is not None for charge in wanted):
        return None
    release = "release" if mechanism is None else f"{mechanism} release"
    return (
        f"{month} has no {release} yet: parameters chosen after looking at this are chosen from private data, and a "
        "release's guarantee does not cover that choice; choose them on a synthetic twin instead "
        "(qlog plan, qlog synth)"
    )
