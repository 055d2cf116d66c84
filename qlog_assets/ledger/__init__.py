"""The privacy ledger: which release cost what, and whether another may be made. The only authority on the budget."""

from qlog_assets.ledger.book import Book
from qlog_assets.ledger.budget import Amount, Budget
from qlog_assets.ledger.chain import Event, SaltedHead
from qlog_assets.ledger.history import Balance
from qlog_assets.ledger.ledger import Ledger
from qlog_assets.ledger.records import BatchWithdrawal, Charge, Dataset, Made
from qlog_assets.ledger.rules import (
    BudgetError,
    DrawConflictError,
    LiveReleaseError,
    UnknownReleaseError,
    WithdrawnError,
)
from qlog_assets.ledger.skips import Skip
from qlog_assets.ledger.store import DamagedLedgerError, LedgerError, MissingLedgerError
from qlog_assets.ledger.witness import Witness, WitnessError

__all__ = [
    "Amount",
    "Balance",
    "BatchWithdrawal",
    "Book",
    "Budget",
    "BudgetError",
    "Charge",
    "DamagedLedgerError",
    "Dataset",
    "DrawConflictError",
    "Event",
    "Ledger",
    "LedgerError",
    "LiveReleaseError",
    "Made",
    "MissingLedgerError",
    "SaltedHead",
    "Skip",
    "UnknownReleaseError",
    "WithdrawnError",
    "Witness",
    "WitnessError",
]
