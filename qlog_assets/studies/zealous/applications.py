"""What a search engine gets from a release of ZEALOUS: an index cache and substitutes for queries.

Both are drawn from some people and judged by others, who were held out: a cache that is filled and asked by the same
people is flattered by what each of them alone looks up. What a measure means is in `measures/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures import caching, substitution
from qlog_assets.studies.parts import Fold
from qlog_assets.studies.study import Tables
from qlog_assets.studies.zealous.comparison import Items, StudySettings, draws_of, read_items

CACHE_SHARE = 0.1
"""The memory of the index cache, as a share of all posting lists."""
LEAST_SUBSTITUTE_USERS = 2
"""A pair that one user alone typed is nobody's idea of a substitute."""

Judge = Callable[[np.ndarray, np.ndarray], dict[str, Any]]
"""From released items, by number, and their counts to what the application makes of them."""


def measure_application(
    engine: Engine, kind: str, fold: Fold, chosen: ZealousParameters, plan: StudySettings
) -> Tables:
    """What each method's release of the people drawn from is worth to the people held out."""
    view_cleaned(engine, fold.tested.cleaned)
    tested = read_items(engine, kind)
    view_cleaned(engine, fold.trained.cleaned)
    trained = read_items(engine, kind)
    table, judge_by = APPLICATIONS[kind]
    judge = judge_by(engine, trained, tested)
    return {table: [{**label, **judge(*drawn)} for label, *drawn in draws_of(trained, chosen, plan)]}


def judge_caches(engine: Engine, trained: Items, tested: Items) -> Judge:
    """The hit rate of a cache filled by a release beside that of one filled by the log that the release is of.

    A word's posting list is taken to be as long as the number of different queries that hold it.
    """
    sizes = engine.arrays("studies/posting_lists")["queries"].astype(float)
    capacity, words = CACHE_SHARE * sizes.sum(), len(sizes)
    places = pc.index_in(tested.texts["keyword"], value_set=trained.texts["keyword"])
    # Words that nobody typed whom the cache was drawn from are looked up as well: they have the last place together.
    places = pc.fill_null(places, words).to_numpy()
    lookups = np.bincount(places, weights=tested.truth.events, minlength=words + 1)
    best = caching.hit_rate(caching.fill_cache(trained.truth.events, sizes, capacity), lookups)

    def judge(drawn: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
        released = np.zeros(words)
        released[drawn] = counts
        return {"hit_rate": caching.hit_rate(caching.fill_cache(released, sizes, capacity), lookups), "best": best}

    return judge


def judge_substitutes(engine: Engine, trained: Items, tested: Items) -> Judge:
    """Released substitutes against what two or more of the people held out typed next, beside the log's own."""
    wanted = shared_pairs(tested)
    best = substitution.compare(wanted, shared_pairs(trained)).ndcg

    def judge(drawn: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
        return {**asdict(substitution.compare(wanted, rankings(trained.texts, drawn, counts))), "best": best}

    return judge


def shared_pairs(items: Items) -> dict[str, list[tuple[str, float]]]:
    """A log's own substitutes: pairs of at least two users."""
    shared = np.flatnonzero(items.truth.users >= LEAST_SUBSTITUTE_USERS)
    return rankings(items.texts, shared, items.truth.users[shared])


def rankings(texts: pa.Table, numbers: np.ndarray, counts: np.ndarray) -> dict[str, list[tuple[str, float]]]:
    chosen = texts.take(pa.array(numbers))
    found: dict[str, list[tuple[str, float]]] = {}
    for query, following, count in zip(
        chosen["query"].to_pylist(), chosen["next_query"].to_pylist(), counts.tolist(), strict=True
    ):
        found.setdefault(query, []).append((following, float(count)))
    return found


APPLICATIONS: dict[str, tuple[str, Callable[[Engine, Items, Items], Judge]]] = {
    "keywords": ("caching", judge_caches),
    "pairs": ("substitution", judge_substitutes),
}
"""The table and the measure of each kind of items that has an application."""
