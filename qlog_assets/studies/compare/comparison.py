"""Runs the comparison: settings chosen on the twin, then every system drawn from a part of the month and judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.pipeline.public_material import load_public_list
from qlog_assets.studies.compare.choosing import choose, make_twin, one_digit
from qlog_assets.studies.compare.drawing import draw_apart
from qlog_assets.studies.compare.same_law import check_same_law
from qlog_assets.studies.compare.scoring import Judge
from qlog_assets.studies.compare.systems import ORIGINAL, CompareSettings, System, systems_of
from qlog_assets.studies.parts import PARTS, Fold, hold_out
from qlog_assets.studies.planning.population import Population
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import Row, StudyWork, Tables

NOTHING_PROMISED: dict[str, Any] = {
    "claimed_epsilon": None,
    "claimed_delta": None,
    "proven_epsilon": None,
    "proven_delta": None,
    "note": "",
}


class Comparison:
    """The steps of the study. The twin is made once for all mechanisms, and is gone when the drawing begins."""

    def __init__(self, work: StudyWork) -> None:
        self.settings: CompareSettings = work.settings
        self._twin: Population | None = None

    # On the twin ------------------------------------------------------------------------------------------------------

    def choose(self, work: StudyWork, drawn: Mechanism) -> Tables:
        """The settings of a mechanism."""
        rows = drawn_rows(work)
        if self._twin is None:
            self._twin = make_twin(self.settings, rows)
        return {"choices": choose(work, drawn, self._twin, users_like(self._twin, one_digit(rows)))}

    # On the month -----------------------------------------------------------------------------------------------------

    def original(self, work: StudyWork) -> Tables:
        """The log that the systems draw from, as it is: nothing that is drawn from it can be better."""
        self._twin = None
        rows = []
        for fold in range(self.settings.folds):
            with judged_fold(work, fold) as (_, judge):
                rows.append(judge.score(judge.truth))
        facts = {"system": ORIGINAL, "kind": ORIGINAL, **NOTHING_PROMISED}
        spent = {"seconds": None, "megabytes": None, "trust": "Everybody who gets it."}
        return {"comparison": [{**facts, "folds": len(rows), **averaged(rows), **spent}]}

    def compare(self, work: StudyWork, drawn: Mechanism) -> Tables:
        """Every system of a mechanism, over all folds."""
        self._twin = None
        chosen = work.found.get("choices", [])
        users = next((row["users"] for row in chosen), 1_000)
        systems = list(systems_of(drawn, work.policy, chosen, users))
        scored: dict[str, list[Row]] = {each.name: [] for each in systems}
        promised: dict[str, Row] = {}
        for number in range(self.settings.folds):
            with judged_fold(work, number) as (fold, judge):
                for each in systems:
                    row, promised[each.name] = measure(each, fold, judge, self.settings.seed + number)
                    scored[each.name].append(row)
        rows = [
            {
                "system": each.name,
                "kind": each.kind,
                **promised[each.name],
                "folds": self.settings.folds,
                **averaged(scored[each.name]),
                "trust": drawn.trust,
            }
            for each in systems
        ]
        return {"comparison": rows}

    def check(self, work: StudyWork) -> Tables:
        """CrowdLogging and ZEALOUS, on the user counts of the log's queries."""
        with judged_fold(work, 0) as (_, judge):
            users = judge.truth.queries["count"].to_numpy().astype(np.int64)
        return {"same_law": check_same_law(users, self.settings.epsilon, self.settings.delta, self.settings.seed)}


def measure(system: System, fold: Fold, judge: Judge, seed: int) -> tuple[Row, Row]:
    """The figures of one draw, and what is claimed and proven of it."""
    drawn = draw_apart(system, fold.trained, seed)
    promised = {
        f"{whose}_{what}": None if loss is None else loss[what]
        for whose, loss in (("claimed", drawn.claimed), ("proven", drawn.proven))
        for what in ("epsilon", "delta")
    }
    scores = judge.score(SearchLog.of_tables(drawn.tables))
    return {**scores, "seconds": drawn.seconds, "megabytes": drawn.megabytes}, {**promised, "note": drawn.note}


@contextmanager
def judged_fold(work: StudyWork, number: int) -> Iterator[tuple[Fold, Judge]]:
    """One fifth of the month's users held out, and a judge that knows their searches."""
    settings: CompareSettings = work.settings
    with hold_out(work, number, settings.split) as fold:
        yield fold, Judge.of_fold(work.engine, fold.trained.cleaned, fold.tested.cleaned, public_texts(work), settings)


def public_texts(work: StudyWork) -> pa.Array:
    """The queries and urls of the public lists that the policy names."""
    texts = [pa.array([], pa.string())]
    for name, column in (("pool", "query"), ("url_list", "url")):
        loaded = load_public_list(name, work.warehouse, work.policy.lists, work.month)
        if loaded is not None:
            texts.append(pq.read_table(loaded.path, columns=[column])[column].combine_chunks().cast(pa.string()))
    return pa.concat_arrays(texts)


def averaged(rows: list[Row]) -> Row:
    """The mean of every figure over the folds; None where a figure is None in all of them."""
    found: Row = {}
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        whole = all(isinstance(value, int) for value in values)
        mean = sum(values) / len(values) if values else None
        found[name] = int(mean) if whole and mean is not None and mean == int(mean) else mean
    return found


def drawn_rows(work: StudyWork) -> int:
    """About how many rows a system draws from: the month without those that are held out."""
    assert work.month is not None
    rows = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"]).rows("log")
    return rows * (PARTS - 1) // PARTS


def users_like(twin: Population, rows: int) -> int:
    """About how many users a month of so many rows has, if it is like the twin."""
    return max(1, round(twin.users * rows / len(twin.rows["queries"][0])))
