"""Every variant of k-anonymity on one month: what it prints at each k, whom it covers, and what it gives away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from qlog_assets.mechanisms.baselines.draw import NumberedSearches, print_histories, print_queries, print_sessions
from qlog_assets.mechanisms.baselines.inference import infer
from qlog_assets.mechanisms.baselines.parameters import BaselineParameters
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.parts import change_people
from qlog_assets.studies.search_log import HISTORY, QUERY, WHOLE_SESSION
from qlog_assets.studies.study import Row, StudyWork, Tables, cleaned_month

MECHANISM = "baselines"
HELD = {QUERY: "studies/held_queries", HISTORY: "studies/held_histories", WHOLE_SESSION: "studies/held_sessions"}
"""Who holds what, by the column in which items are printed."""
WHOLE = {"histories": print_histories, "sessions": print_sessions}
"""Variants that print items of several queries."""
KNOWN, SENSITIVE = "a query that k planted people typed", "a sensitive query that all of them typed"


class AnonymitySettings(Parameters):
    """Which k are tried."""

    thresholds: tuple[int, ...] = Field((2, 3, 5, 10, 20, 50, 100), min_length=1)
    """k. The session logs' paper has 20, the CrowdLogging paper 2 to 200."""
    seed: int = Field(1, ge=0)
    """Nothing is drawn at random here; every study has one."""


def variants() -> list[str]:
    return list(mechanism(MECHANISM).variants)


def compare(work: StudyWork, variant: str) -> Tables:
    """A row per k: what a variant prints of the month, of how much of it, and which printed items betray a query."""
    settings: AnonymitySettings = work.settings
    rows = []
    with Engine.open(work.warehouse) as engine:
        view_cleaned(engine, cleaned_month(work))
        print_at = prepare_print(engine, variant, min(settings.thresholds))
        hold_items(engine, print_at(min(settings.thresholds)))
        for k in settings.thresholds:
            printed = print_at(k)
            rows.append({"variant": variant, "k": k, **covered(engine, printed), **inferred(engine, printed)})
    return {"anonymity": rows}


def attack(work: StudyWork) -> Tables:
    """Planted people in the month, at the policy's k: what k - 1 accounts learn of one more, and what k betray."""
    assert work.month is not None
    section = work.policy.section(MECHANISM)
    assert isinstance(section, BaselineParameters)
    k = section.k
    outcome = {}
    for people in (k, k - 1):
        changed = change_people(work, None, planted_rows(work.month), people)
        with changed as part, Engine.open(part.warehouse) as engine:
            view_cleaned(engine, part.cleaned)
            searches = NumberedSearches.read(engine)
            for variant in variants():
                printed = prepare_print(engine, variant, k, searches)(k)
                outcome[variant, people] = is_printed(printed), is_betrayed(engine, printed)
    return {
        "attacks": [
            {
                "variant": variant,
                "k": k,
                "printed_with": outcome[variant, k][0],
                "printed_without": outcome[variant, k - 1][0],
                "accounts_are_certain": outcome[variant, k][0] != outcome[variant, k - 1][0],
                "sensitive_query_inferred": outcome[variant, k][1],
            }
            for variant in variants()
        ]
    }


def prepare_print(
    engine: Engine, variant: str, least: int, searches: NumberedSearches | None = None
) -> Callable[[int], pa.Table]:
    """What a variant prints of queries, histories or sessions at any k from `least` on; the month is read once."""
    if variant in WHOLE:
        # What is compared with k is what is printed.
        whole = WHOLE[variant](engine, least)
        return lambda k: whole.filter(pc.greater_equal(whole["printed"], k))
    known = searches or NumberedSearches.read(engine)
    return lambda k: print_queries(known, variant, k)


def planted_rows(month: Month) -> pa.Table:
    """One session that every planted person has: two queries that nobody else types."""
    at = month.start + timedelta(days=9)
    times = pa.array([at, at + timedelta(minutes=1)], pa.timestamp("us"))
    nothing = {"rank": pa.nulls(2, pa.int32()), "url": pa.nulls(2, pa.string())}
    return pa.table({"user": ["", ""], "query": [KNOWN, SENSITIVE], "time": times, **nothing})


def hold_items(engine: Engine, printed: pa.Table) -> None:
    """Keep who holds what, of the kind of items that are printed, as the table held_items."""
    engine.statement_table(HELD[item_column(printed)], "held_items")


def covered(engine: Engine, printed: pa.Table) -> Row:
    """How many items are printed, and how many users and searches of held_items stand behind them."""
    with engine.table("printed_items", printed.select([item_column(printed)]).rename_columns(["item"])):
        found = engine.row("studies/covered_by_print")
    return {
        "items": printed.num_rows,
        "impressions_share": found["searches"] / max(1, found["all_searches"]),
        "users": found["users"],
        "users_share": found["users"] / max(1, found["all_users"]),
    }


def item_column(printed: pa.Table) -> str:
    return next(name for name in HELD if name in printed.column_names)


def inferred(engine: Engine, printed: pa.Table) -> Row:
    """Of the items of several queries, how many hold a query that betrays another one; none where items are single."""
    if QUERY in printed.column_names:
        return {"of_several_queries": 0, "homogeneous": 0, "known_queries": printed.num_rows, "betraying": 0}
    found = infer(engine, printed)
    return {
        "of_several_queries": found.items,
        "homogeneous": found.homogeneous,
        "known_queries": found.known,
        "betraying": found.betraying,
    }


def is_printed(printed: pa.Table) -> bool:
    """Whether the sensitive query is in print."""
    if QUERY in printed.column_names:
        return bool(pc.any(pc.equal(printed[QUERY], SENSITIVE)).as_py())
    lists = next(printed[name] for name in (HISTORY, WHOLE_SESSION) if name in printed.column_names)
    return bool(pc.any(pc.equal(pc.list_flatten(lists), SENSITIVE)).as_py())


def is_betrayed(engine: Engine, printed: pa.Table) -> bool:
    """Whether whoever knows that somebody typed the one query learns with certainty that they typed the other."""
    return QUERY not in printed.column_names and infer(engine, printed).betrayed_by.get(KNOWN, 0) > 0
