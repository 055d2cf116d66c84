"""What the suite of a released table reads. Counts what no expectation can; decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qlog_assets.checks.suites import CheckError

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from qlog_assets.report.tables import TableLayout

NEVER = 2**53
"""A threshold no count reaches: what a suite is given where rows of a kind may not appear at all."""

ERRORS_SUITE = "released/standard_errors"
"""What must hold of a column of standard errors, whatever the table."""


def released_frames(
    table: pyarrow.Table, layout: TableLayout, public: pyarrow.Array | pyarrow.ChunkedArray | None
) -> dict[str, pandas.DataFrame]:
    """What the suites of a released table read: the table, its texts that no public list holds, and two counts.

    `public` holds every text that was public before the release: the pool, and the url list where there is one. A list
    of texts is one JSON text in the table, and its texts are looked at one by one. Order and card numbers are counted
    here because no expectation can: order is between rows, and a card number is told from other long numbers by its
    check digit. A column of standard errors is a table of its own: it is in a table or not, and has its own suite.
    """
    import numpy as np
    import pandas as pd

    from qlog_assets.checks.personal_data import card_mask, folded, outside
    from qlog_assets.report.tables import flatten_lists, rows_out_of_order, texts_of

    missing = {column.name for column in layout.columns} - set(table.column_names)
    if missing:
        raise CheckError(f"{layout.name}: the released table has no column {', '.join(sorted(missing))}")
    found, places = [np.empty(0, dtype=object)], [np.empty(0, dtype=np.int64)]
    for name in layout.text_columns:
        texts, rows = texts_of(table.column(name))
        private = outside(texts, public)
        found.append(folded(texts).to_numpy(zero_copy_only=False)[private])
        places.append(rows[private])
    outside_pool = {"text": np.concatenate(found)}
    if layout.count is not None:
        outside_pool[layout.count] = table.column(layout.count).to_numpy()[np.concatenate(places)]
    frame = flatten_lists(table, layout).to_pandas()
    error_columns = [] if layout.error is None else [layout.error]
    return {
        "table": frame.drop(columns=error_columns),
        "errors": frame[error_columns],
        "outside_pool": pd.DataFrame(outside_pool),
        "counts": pd.DataFrame(
            {
                "rows_out_of_order": [rows_out_of_order(table, layout)],
                "card_numbers_outside_pool": [int(card_mask(outside_pool["text"]).sum())],
            }
        ),
    }
