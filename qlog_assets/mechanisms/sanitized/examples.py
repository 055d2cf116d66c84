"""Worked numbers of sanitized for the page of guarantees."""

from __future__ import annotations

import math

from qlog_assets.mechanisms.sanitized.guarantee import largest_output, user_budget
from qlog_assets.report.markdown import bound, number, table


def examples() -> str:
    """The paper's output sizes beside what its constraints allow."""
    rows = [
        (
            number(ratio),
            number(delta),
            bound(user_budget(math.log(ratio), delta)),
            bound(largest_output(1980, math.log(ratio), delta)),
            f"{size:,}",
        )
        for ratio, delta, size in (
            (1.001, 1e-4, 3759),
            (1.01, 1e-2, 4879),
            (1.1, 0.1, 8382),
            (1.4, 0.5, 11419),
            (2.0, 0.5, 13088),
            (2.3, 0.8, 13901),
        )
    ]
    heads = ("e^ε", "δ", "B", "most tuples, n·B", "printed in Table 4")
    return "**Examples.** The paper's log has n = 1,980 users:\n\n" + table(heads, rows)
