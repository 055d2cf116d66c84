"""How session logs are drawn: kept sessions and clicks counted by SQL, noise from `noise.py`, texts put back.

What one user can change here: at most items_per_user counts of sequences and clicks_per_user counts of clicks, each by
one. Nothing that the noise decides makes a draw fail, and what the parameters decide was asked before
(`noise.check_draw`); decision 12 lists the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.contributions import (
    count_items,
    draw_counted,
    item_holders,
    name_items,
    view_items,
)
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.sessions import noise, paper
from qlog_assets.mechanisms.sessions.noise import Kind
from qlog_assets.mechanisms.sessions.numbering import item_matrix, name_sessions
from qlog_assets.mechanisms.sessions.parameters import LONGEST_SESSION, SessionParameters
from qlog_assets.mechanisms.sessions.stages import session_limits
from qlog_assets.mechanisms.sessions.steered import draw_steered_clicks, draw_steered_sequences
from qlog_assets.mechanisms.sessions.tables import CLICKS, SESSIONS
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.zero_domain import decode_pairs, encode_pairs
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine

ITEMS_AT_ONCE = 10_000_000
"""How many subsequences are counted and noised in one go: what memory holds. Parts tell nothing: noise is drawn item by
item."""


def draw(
    engine: Engine,
    inputs: Inputs,
    variant: str,
    chosen: SessionParameters,
    source: RandomSource,
    steering: Steering | None = None,
) -> Drawn:
    """Sequences and clicks, each unless it is switched off. Nothing in them was public before, but for the queries of
    the release that pairs are counted over."""
    kept = inputs["kept_sessions"]
    for view, table in (("kept_sessions", "sessions"), ("kept_clicks", "clicks"), ("domain_queries", "domain")):
        engine.view(view, kept.files(table))
    return draw_kept(engine, variant, chosen, source, steering)


def draw_kept(
    engine: Engine, variant: str, chosen: SessionParameters, source: RandomSource, steering: Steering | None = None
) -> Drawn:
    """The same of the tables `kept_sessions` and `kept_clicks`, as a study may have made them, and `domain_queries`."""
    tables, public = {}, pa.array([], pa.string())
    for name, kind in noise.kinds(chosen).items():
        if name == "sessions":
            number_sessions(engine, chosen, pairs_only=chosen.items == "pairs")
            if noise.is_over_release(variant, chosen):
                public = engine.arrow("sessions/domain_texts")["query"].combine_chunks()
                tables[name] = _draw_pairs(engine, public, chosen, source)
                continue
            if noise.is_steered(variant, chosen):
                tables[name] = draw_steered_sequences(engine, source, kind.part, chosen, steering)
                continue
            layout, (rows, deviation) = SESSIONS, _draw_sessions(engine, variant, kind, chosen, source)
        else:
            if noise.is_steered(variant, chosen):
                tables[name] = draw_steered_clicks(engine, source, kind.part, chosen, steering)
                continue
            view_items(engine, "kept_clicks")
            count_items(engine)
            layout, (rows, deviation) = CLICKS, _draw_clicks(engine, variant, kind, chosen, source)
        known = noise.known_noise(variant, kind, chosen, deviation)
        tables[name] = DrawnTable(in_public_order(rows, layout), noise.least_count(variant, kind, chosen), noise=known)
    return Drawn(tables, public)


def _draw_sessions(
    engine: Engine, variant: str, kind: Kind, chosen: SessionParameters, source: RandomSource
) -> tuple[pa.Table, float | None]:
    """The rows, and the deviation of their noise where items were chosen before they were counted."""
    if noise.takes_rows(variant, chosen):
        engine.statement_table("sessions/held_subsequences")
        view_items(engine, "held_subsequences")
        count_items(engine)
        drawn = noise.draw_rows(source, *item_holders(engine), kind, chosen)
        named = name_items(engine, drawn.indices, drawn.users)
        return name_sessions(engine, item_matrix(named), named["users"].to_numpy()), drawn.deviation
    parts = []
    for users in count_parts(engine, ordered=not source.secure):
        counted = noise.draw_counts(source, users, variant, kind, chosen)
        parts.append((counted_items(engine, counted.indices), counted.users))
    return name_sessions(engine, *(np.concatenate(each) for each in zip(*parts, strict=True))), None


def _draw_pairs(engine: Engine, public: pa.Array, chosen: SessionParameters, source: RandomSource) -> DrawnTable:
    """Pairs of different queries of the domain; every one of them is noised, whether anybody holds it or not."""
    engine.statement_table("sessions/held_subsequences")
    counts = engine.arrays("sessions/pair_counts")
    before, after = counts["before_id"].astype(np.int64), counts["after_id"].astype(np.int64)
    cells = encode_pairs(before, after, len(public))
    drawn = noise.draw_pairs(source, cells, counts["held_by"].astype(np.int64), len(public), chosen)
    zero_before, zero_after = decode_pairs(drawn.cells, len(public))
    first = public.take(pa.array(np.concatenate([before[drawn.support.indices], zero_before])))
    second = public.take(pa.array(np.concatenate([after[drawn.support.indices], zero_after])))
    users = np.concatenate([drawn.support.users, drawn.cell_users])
    return DrawnTable(
        in_public_order(pa.table({"queries": paired(first, second), "users": users}), SESSIONS),
        noise.pair_threshold(len(public), chosen),
        only_public=True,
        noise=noise.known_pair_noise(chosen),
    )


def paired(first: pa.Array, second: pa.Array) -> pa.ListArray:
    """Lists of two texts."""
    places = np.arange(2 * len(first)).reshape(2, -1).T.ravel()
    offsets = np.arange(0, 2 * len(first) + 1, 2, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.concat_arrays([first, second]).take(pa.array(places)))


def _draw_clicks(
    engine: Engine, variant: str, kind: Kind, chosen: SessionParameters, source: RandomSource
) -> tuple[pa.Table, float | None]:
    if noise.takes_rows(variant, chosen):
        drawn = noise.draw_rows(source, *item_holders(engine), kind, chosen)
        return name_items(engine, drawn.indices, drawn.users), drawn.deviation
    counted = draw_counted(engine, lambda users: noise.draw_counts(source, users, variant, kind, chosen))
    return name_items(engine, counted.indices, counted.users), None


# Counting sequences -------------------------------------------------------------------------------------------------


def keep_sessions(engine: Engine, chosen: SessionParameters, *, collapse: bool, **limits: int) -> None:
    """Make the table `kept_sessions` of the view cleaned_log, for studies: a release reads its stage.

    `limits` are others than those of the parameters, for whoever looks at all sessions.
    """
    no_queries = pa.table({"query_id": pa.array([], pa.int64()), "query": pa.array([], pa.string())})
    with engine.table("domain_queries", no_queries):
        given = {**session_limits(chosen, collapse=collapse, in_domain=False), **limits}
        engine.statement_table("sessions/kept_sessions", **given)


def keep_clicks(engine: Engine, chosen: SessionParameters) -> None:
    """Make the table `kept_clicks` of the view cleaned_clicks, for studies."""
    engine.statement_table("log/first_clicks", clicks_per_user=chosen.clicks_per_user)
    engine.statement_table("sessions/kept_clicks")


def number_sessions(engine: Engine, chosen: SessionParameters, *, pairs_only: bool) -> None:
    """From `kept_sessions` to numbers: tables `session_queries` and `numbered_sessions`, and view `subsequences`."""
    engine.statement_table("sessions/session_queries")
    engine.statement_table("sessions/numbered_sessions")
    choices = noise.places_of_items(chosen.queries_per_session, pairs_only)
    padded = [[*(place + 1 for place in places), *[None] * (LONGEST_SESSION - len(places))] for places in choices]
    columns = dict(
        zip((f"p{place}" for place in range(1, LONGEST_SESSION + 1)), zip(*padded, strict=True), strict=True)
    )
    schema = pa.schema([(name, pa.int32()) for name in (*columns, "last_place")])
    last = [places[-1] + 1 for places in choices]
    with engine.table("chosen_places", pa.table({**columns, "last_place": last}, schema)):
        engine.statement_table("sessions/places")
    engine.statement_view("sessions/session_starts")
    engine.statement_view("sessions/subsequences")


def count_parts(engine: Engine, *, ordered: bool, with_repeats: bool = False) -> Iterator[np.ndarray]:
    """How many users hold each item of `subsequences`, a part of the items at a time: those of `counted_subsequences`.

    `ordered`: by the items' numbers, so that a seeded draw can be repeated. `with_repeats`: how often each is held, as
    the paper counts.
    """
    held = int(engine.row("sessions/count_subsequences")["held"])
    parts = max(1, -(-held // ITEMS_AT_ONCE))
    for part in range(parts):
        engine.statement_table("sessions/counted_subsequences", with_repeats=with_repeats, parts=parts, part=part)
        if ordered:
            engine.statement_table("sessions/ordered_subsequences", "counted_subsequences")
        rows = engine.arrays("sessions/subsequence_counts")
        counts = np.empty(len(rows["held_by"]), np.int64)
        counts[rows["row_number"]] = rows["held_by"]
        yield counts


def counted_items(engine: Engine, rows: np.ndarray) -> np.ndarray:
    """Some items of `counted_subsequences`, by their rows: query numbers, padded with NO_QUERY."""
    with engine.table("chosen_rows", pa.table({"row_number": rows})):
        return item_matrix(engine.arrow("sessions/chosen_subsequences"))


def count_sessions(engine: Engine, *, with_repeats: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All items and their counts, a part at a time, in an order that can be repeated: for studies."""
    for counts in count_parts(engine, ordered=True, with_repeats=with_repeats):
        yield counted_items(engine, np.arange(len(counts))), counts


# As the paper prints it: for studies alone --------------------------------------------------------------------------


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: SessionParameters, source: RandomSource) -> Drawn:
    """Steps 1 to 6 to the letter: repeats stay, subsequences and click records count as often as they occur."""
    view_cleaned(engine, inputs["cleaned_log"])
    return Drawn(
        {name: DrawnTable(rows) for name, rows in paper_tables(engine, chosen, source, collapse=False).items()}
    )


def paper_tables(
    engine: Engine, chosen: SessionParameters, source: RandomSource, *, collapse: bool
) -> dict[str, pa.Table]:
    """A_Session and A_Click of the view cleaned_log; a study may collapse repeats first."""
    tables = {}
    if chosen.session_scale is not None:
        keep_sessions(engine, chosen, collapse=collapse)
        number_sessions(engine, chosen, pairs_only=False)
        parts = []
        for items, events in count_sessions(engine, with_repeats=True):
            drawn = paper.release_items_paper(source, events, float(chosen.session_scale), chosen.threshold)
            parts.append((items[drawn.indices], drawn.counts))
        tables["sessions"] = name_sessions(engine, *(np.concatenate(each) for each in zip(*parts, strict=True)))
    if chosen.click_scale is not None:
        pairs = engine.arrow("sessions/paper_clicks", clicks_per_user=chosen.clicks_per_user)
        drawn = paper.release_items_paper(
            source, pairs["events"].to_numpy(), float(chosen.click_scale), chosen.threshold
        )
        kept = pairs.take(pa.array(drawn.indices))
        tables["clicks"] = pa.table({"query": kept["query"], "url": kept["url"], "users": drawn.counts})
    return tables
