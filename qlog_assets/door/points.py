"""The named points of the door's work, in order. Faults are tested at each: a process may die at any of them."""

from __future__ import annotations

DRAW_POINTS = (
    "asked",
    "inputs_validated",
    "limits_checked",
    "guarantee_computed",
    "charge_reserved",
    "tables_drawn",
    "draw_stored",
    "draw_recorded",
)
PUBLISH_POINTS = (
    "draw_loaded",
    "personal_data_suppressed",
    "outputs_checked",
    "release_staged",
    "publication_recorded",
    "release_renamed",
    "latest_pointed",
    "catalogue_written",
)
WITHDRAW_POINTS = (
    "withdrawal_recorded",
    "files_removed",
    "tombstone_written",
    "withdrawal_listed",
    "withdrawn_draw_removed",
)
