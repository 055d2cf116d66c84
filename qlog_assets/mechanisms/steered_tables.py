"""Draws one table by steered selection from the contributions that an engine holds: shared by all that select.

What is public of the items comes in as rows: those of an earlier release (known) and those of a public list (listed).
What one user can change is bounded by the stage that wrote the contributions; what the draw costs is `privacy/steered`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.contributions import name_items
from qlog_assets.mechanisms.mechanism import DrawnTable
from qlog_assets.mechanisms.planned_noise import steered_noise
from qlog_assets.privacy.gaussian import WHOLE, GaussianBudget
from qlog_assets.privacy.holdings import weights_of
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.steered import PublicItems, SteeredDraw, SteeredPlan, plan_part, release_held
from qlog_assets.privacy.weighted import Contributions
from qlog_assets.report.tables import ERROR_COLUMN, TableLayout, in_public_order
from qlog_assets.storage.answers import whole_runs
from qlog_assets.storage.engine import Engine

DEVIATION = "deviation"
"""The column of drawn rows with the standard deviation of the noise in their counts, in users."""
WEIGHED_ITEMS = "contributions/weighed_items"
"""The statement that adds up weights by item and numbers the items in an order that nobody's data decides."""
UNHELD = -1
"""Stands for the number of an item that nobody holds."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of an earlier release that are items of a table: the items' own columns, and the numbers printed of them."""

    items: pa.Table
    users: np.ndarray

    @classmethod
    def of(cls, rows: pa.Table | None, columns: Sequence[str]) -> KnownRows | None:
        """The rows of a published table with a count; None where there are none."""
        if rows is None or rows.num_rows == 0:
            return None
        return cls(rows.select(columns), rows["users"].to_numpy())


@dataclass(frozen=True)
class ListedRows:
    """The rows of a public list that are not known, by their numbers as items, and where they stand in its file."""

    ids: np.ndarray
    list_rows: np.ndarray


def draw_steered_table(
    engine: Engine,
    source: RandomSource,
    layout: TableLayout,
    budget: GaussianBudget,
    part: Fraction = WHOLE,
    known: KnownRows | None = None,
    listed: Sequence[Path] = (),
) -> DrawnTable:
    """A table of the items of the view `contributions`, by a part of a budget.

    `listed` is the file of a public list, with the items' own column.
    """
    rows, plan = draw_steered_rows(engine, source, budget, part, known, listed)
    return tell_errors(rows, layout, plan, with_list=bool(listed))


def tell_errors(rows: pa.Table, layout: TableLayout, plan: SteeredPlan, *, with_list: bool = False) -> DrawnTable:
    """Drawn rows as a table whose errors are published, rounded up to whole users.

    A deviation follows from parameters, from sizes that are public or were paid for, and from noisy sums.
    """
    deviations = rows[DEVIATION].to_numpy()
    errors = pa.array(np.ceil(deviations).astype(np.int64))
    told = rows.drop_columns([DEVIATION]).append_column(ERROR_COLUMN, errors)
    return DrawnTable(in_public_order(told, layout), 1, noise=steered_noise(plan, deviations, with_list=with_list))


def draw_steered_rows(
    engine: Engine,
    source: RandomSource,
    budget: GaussianBudget,
    part: Fraction = WHOLE,
    known: KnownRows | None = None,
    listed: Sequence[Path] = (),
    weighed: str = WEIGHED_ITEMS,
) -> tuple[pa.Table, SteeredPlan]:
    """The rows of such a table: the items' own columns, `users` and DEVIATION; and the plan that they were drawn by."""
    drawn, lists = draw_steered_items(engine, source, budget, part, known, listed, weighed)
    plan = plan_part(budget, part, len(lists.ids), with_known=known is not None and len(known.users) > 0)
    return name_drawn(engine, drawn, lists), plan


def draw_steered_items(
    engine: Engine,
    source: RandomSource,
    budget: GaussianBudget,
    part: Fraction = WHOLE,
    known: KnownRows | None = None,
    listed: Sequence[Path] = (),
    weighed: str = WEIGHED_ITEMS,
) -> tuple[SteeredDraw, ListedRows]:
    """The same as numbers of `counted_items`, which is made here and has known items that nobody holds, too; listed
    ones that nobody holds are numbered behind them all."""
    known = known or no_known_rows(engine)
    weigh_items(engine, known, weighed)
    known_ids = number_known(engine, known)
    size = int(engine.row("contributions/count_counted_items")["items"])
    lists = number_listed(engine, known, listed, size)
    public = PublicItems(known_ids, np.maximum(known.users, 1), lists.ids)
    size += int((lists.ids >= size).sum())
    return release_held(source, CountedHoldings(engine, size), public, budget, part), lists


def no_known_rows(engine: Engine) -> KnownRows:
    """No row, with the columns that items have."""
    return KnownRows(engine.arrow("contributions/item_columns"), np.empty(0, dtype=np.int64))


def weigh_items(engine: Engine, known: KnownRows, weighed: str) -> None:
    """Make the table `counted_items` of the view `contributions`, with the sums of even weights that the first look of
    steered selection takes. A user's weight follows from how many items that are not known the user holds.

    Nothing here sorts out repeated rows, which would add up to more than one weight: the stage that wrote the
    contributions has none, and the door has counted that before it draws.
    """
    with engine.table("known_items", placed(known)):
        engine.statement_table("contributions/user_degrees")
    degrees = engine.arrays("contributions/distinct_degrees")["degree"].astype(np.int64)
    with engine.table("degree_weights", pa.table({"degree": degrees, "user_weight": weights_of(degrees)})):
        engine.statement_view("contributions/weighed_contributions")
        engine.statement_table(weighed, "counted_items")


@dataclass(frozen=True)
class CountedHoldings:
    """Who holds which item of `counted_items`, as an engine knows it; nobody holds items behind those that it has.

    Only sums come over for all items, and pairs of the few items that the draw asks about: both a part at a time.
    """

    engine: Engine
    size: int

    def even_sums(self) -> Generator[np.ndarray, None, None]:
        seen, last = 0, np.empty(0, dtype=np.int64)
        with self.engine.parts("contributions/item_weights") as parts:
            for rows in parts:
                if len(last):
                    yield last
                last = rows["weight"].astype(np.int64)
                seen += len(last)
        yield np.concatenate([last, np.zeros(self.size - seen, dtype=np.int64)])

    def holders(self, items: np.ndarray) -> Generator[Contributions, None, None]:
        places = np.arange(len(items))
        with (
            self.engine.table("wanted_items", pa.table({"item_id": items, "place": places})),
            self.engine.parts("contributions/wanted_holders") as parts,
        ):
            for rows in whole_runs(parts, by="user_id"):
                yield Contributions.numbered_in(places, rows["user_id"], rows["place"])


def number_known(engine: Engine, known: KnownRows) -> np.ndarray:
    """The numbers of known items; those that nobody holds are added to `counted_items` behind all others."""
    held = int(engine.row("contributions/count_counted_items")["items"])
    with engine.table("known_items", placed(known)):
        ids = numbers_or_unheld(engine.arrays("contributions/known_items")["item_id"])
    unheld = np.flatnonzero(ids == UNHELD)
    ids[unheld] = held + np.arange(len(unheld))
    rows = known.items.take(pa.array(unheld)).append_column("item_id", pa.array(ids[unheld]))
    with engine.table("unheld_items", rows):
        engine.add_rows("contributions/add_unheld", "counted_items")
    return ids


def number_listed(engine: Engine, known: KnownRows, listed: Sequence[Path], first: int) -> ListedRows:
    """The numbers of listed items that are not known; those that nobody holds are numbered from `first` on."""
    nothing = np.empty(0, dtype=np.int64)
    if not listed:
        return ListedRows(nothing, nothing)
    engine.numbered_view("listed_items", listed)
    with engine.table("known_items", placed(known)):
        found = engine.arrays("contributions/listed_items")
    ids = numbers_or_unheld(found["item_id"])
    unheld = np.flatnonzero(ids == UNHELD)
    ids[unheld] = first + np.arange(len(unheld))
    return ListedRows(ids, found["list_row"].astype(np.int64))


def placed(known: KnownRows) -> pa.Table:
    """Known rows with their places, as statements read them."""
    return known.items.append_column("position", pa.array(np.arange(len(known.users))))


def numbers_or_unheld(ids: np.ndarray) -> np.ndarray:
    """Item numbers as DuckDB gives them, with UNHELD for NULL."""
    return np.ma.filled(np.ma.asarray(ids).astype(np.int64), UNHELD)


def name_drawn(engine: Engine, drawn: SteeredDraw, lists: ListedRows) -> pa.Table:
    """Put the texts back: from `counted_items`, and of listed items that nobody holds from their list."""
    counted = int(engine.row("contributions/count_counted_items")["items"])
    untouched = drawn.items >= counted
    inside = ~untouched
    named = name_items(engine, drawn.items[inside], drawn.users[inside], deviation=drawn.deviations[inside])
    if not untouched.any():
        return named
    places = np.argsort(lists.ids)
    rows = lists.list_rows[places[np.searchsorted(lists.ids, drawn.items[untouched], sorter=places)]]
    with engine.table("chosen_rows", pa.table({"place": np.arange(len(rows)), "list_row": rows})):
        texts = engine.arrow("contributions/listed_texts").select(named.column_names[:-2])
    texts = texts.append_column("users", pa.array(drawn.users[untouched]))
    texts = texts.append_column(DEVIATION, pa.array(drawn.deviations[untouched]))
    return pa.concat_tables([named, texts.cast(named.schema)])
