"""What the suite of a released table reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from qlog_assets.report.tables import TableLayout

NEVER = 2**53
"""A threshold no count reaches: what a suite is given where rows of a kind may not appear at all."""


def released_frames(
    table: pyarrow.Table, layout: TableLayout, public: pyarrow.Array | pyarrow.ChunkedArray | None
) -> dict[str, pandas.DataFrame]:
    """What the suite of a released table reads: the table, its texts that no public list holds, and two counts.

    `public` holds every text that was public before the release: the pool, and the url list where there is one.
    Order and card numbers are counted here because no expectation can: order is between rows, and a card number is
    told from other long numbers by its check digit.
    """
    import numpy as np
    import pandas as pd

    from qlog_assets.checks.personal_data import card_mask, folded, outside
    from qlog_assets.report.tables import rows_out_of_order

    missing = {*layout.keys, layout.count} - set(table.column_names)
    if missing:
        raise CheckError(f"{layout.name}: the released table has no column {', '.join(sorted(missing))}")
    private = {key: outside(table.column(key), public) for key in layout.keys}
    texts = np.concatenate([folded(table.column(key)).to_numpy(False)[mask] for key, mask in private.items()])
    users = np.concatenate([table.column(layout.count).to_numpy()[mask] for mask in private.values()])
    return {
        "table": table.to_pandas(),
        "outside_pool": pd.DataFrame({"text": texts, layout.count: users}),
        "counts": pd.DataFrame(
            {
                "rows_out_of_order": [rows_out_of_order(table, layout)],
                "card_numbers_outside_pool": [int(card_mask(texts).sum())],
            }
        ),
    }
