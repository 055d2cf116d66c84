"""The privacy ledger: which release cost what, and whether another may be made. The only authority on the budget."""

from qlog_assets.ledger.ledger import (
    Amount,
    Balance,
    Budget,
    BudgetError,
    Charge,
    Dataset,
    DrawConflictError,
    Event,
    Ledger,
    LedgerError,
    LiveReleaseError,
    MissingLedgerError,
    SaltedHead,
    UnknownReleaseError,
    WithdrawnError,
)

__all__ = [
    "Amount",
    "Balance",
    "Budget",
    "BudgetError",
    "Charge",
    "Dataset",
    "DrawConflictError",
    "Event",
    "Ledger",
    "LedgerError",
    "LiveReleaseError",
    "MissingLedgerError",
    "SaltedHead",
    "UnknownReleaseError",
    "WithdrawnError",
]
