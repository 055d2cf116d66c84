"""What a mechanism did to the data, in sentences for somebody who does not read formulas. One account a mechanism.

Everything is derived from the manifest, which is public: limits, noise scales, thresholds, and how many rows the noise
alone is expected to put into a table. A mechanism without an account of its own is told in general terms. No HTML here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qlog_assets.mechanisms.safelog.account import _safelog
from qlog_assets.mechanisms.zealous.account import _zealous
from qlog_assets.report.account import Account, _suppression


def account(manifest: Mapping[str, Any]) -> Account:
    """The account of the manifest's mechanism."""
    known = {"safelog": _safelog, "zealous": _zealous}
    if manifest["mechanism"] in known:
        return known[manifest["mechanism"]](manifest)
    return Account(
        steps=(
            "What one user adds to the statistics was limited before anything was counted.",
            *(f"{part['name'].capitalize()}: {part['sentence']}" for part in manifest["guarantee"]["parts"]),
            "Random noise was added once to the counts, and what stayed below a threshold was left out.",
            _suppression(manifest),
        )
    )
