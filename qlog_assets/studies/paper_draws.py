"""Safelog's Algorithm 1 on a part of a month, counted once and drawn often: with other scales, thresholds and seeds.

The draws are those of `mechanisms/safelog`, to the last digit. What a query, a pair or a transition counts depends on
the limits per user alone, and counting takes most of a draw's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.safelog import paper
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.pipeline.public_material import build_public_list
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.studies.search_log import SearchLog
from qlog_assets.studies.study import StudyWork

SAFELOG, PAPER = "safelog", "paper"


def paper_policy(policy: Policy, **changes: Any) -> Policy:
    """A policy for the paper's variant with other parameters, whichever variant a release would use."""
    policy = policy.for_variant(mechanism(SAFELOG), PAPER)
    section = policy.section(SAFELOG).with_changes(**changes)
    return policy.with_changes(mechanisms={**policy.mechanisms, SAFELOG: section})


def paper_parameters(policy: Policy, **changes: Any) -> SafelogParameters:
    """The parameters of the paper's variant under a policy, with some of them changed."""
    section = paper_policy(policy, **changes).section(SAFELOG)
    return cast(SafelogParameters, mechanism(SAFELOG).parameters_of(PAPER, section, policy.lists))


def claimed_epsilon(chosen: SafelogParameters) -> dict[str, float]:
    """Theorem 1 with transitions, and as the paper's Table 3 has it, without."""
    priced = (chosen, chosen.with_changes(transition_scale=None))
    claimed = [mechanism(SAFELOG).guarantee(PAPER, each).claimed for each in priced]
    with_all, without = (float(each.epsilon) for each in claimed if each is not None)
    return {"epsilon": with_all, "epsilon_without_transitions": without}


def pool_of(work: StudyWork) -> Partition:
    """The policy's public pool."""
    found = build_public_list(
        "pool", work.warehouse, work.policy.lists, work.month, work.run_id, make_current=False, book=work.book
    )
    assert found is not None
    return found


@dataclass(frozen=True)
class PaperCounts:
    """What Algorithm 1 counts under some limits per user, before any noise."""

    queries: pa.Array
    """Those that somebody typed and those of the pool, sorted."""
    events: np.ndarray
    clicks: pa.Table
    """query_id (a place among the queries), url and events."""
    transitions: dict[str, np.ndarray]
    """query_id, next_query_id and events."""

    @classmethod
    def count(cls, engine: Engine, pool: Partition, chosen: SafelogParameters) -> PaperCounts:
        """Of the cleaned log that the engine names."""
        engine.view("pool", pool.files("queries"))
        limits = {"min_frequency": chosen.min_frequency, "queries_per_user": chosen.queries_per_user}
        counts = engine.arrow("safelog/paper_queries", **limits)
        events = counts["events"].to_numpy()
        typed = np.flatnonzero(events > 0)
        ids = pa.table({"query": counts["query"].take(pa.array(typed)), "query_id": typed})
        with engine.table("released_ids", ids):
            clicks = engine.arrow(
                "safelog/paper_clicks", clicks_per_user=chosen.clicks_per_user, min_frequency=chosen.min_frequency
            )
            transitions = engine.arrays("safelog/paper_transitions", **limits)
        return cls(
            counts["query"].combine_chunks(),
            events,
            clicks,
            {name: column.astype(np.int64) for name, column in transitions.items()},
        )

    def draw(self, chosen: SafelogParameters, seed: int) -> dict[str, pa.Table]:
        """The tables of one release. `chosen` has the limits that were counted with."""
        source = SeededRandom(seed)
        typed, untouched = np.flatnonzero(self.events > 0), np.flatnonzero(self.events == 0)
        real, fake = paper.draw_paper_queries(source, self.events[typed], len(untouched), chosen)
        rows = np.concatenate([typed[real.indices], untouched[fake.indices]])
        released = self.queries.take(pa.array(rows))
        places = np.full(len(self.queries), -1)
        places[rows] = np.arange(len(rows))
        return {
            "queries": pa.table({"query": released, "events": np.concatenate([real.counts, fake.counts])}),
            "clicks": self._draw_clicks(source, places, released, chosen),
            "transitions": self._draw_transitions(source, places, released, chosen),
        }

    def draw_log(self, chosen: SafelogParameters, seed: int) -> SearchLog:
        return SearchLog.of_tables(self.draw(chosen, seed))

    def _draw_clicks(
        self, source: SeededRandom, places: np.ndarray, released: pa.Array, chosen: SafelogParameters
    ) -> pa.Table:
        query_ids = places[self.clicks["query_id"].to_numpy()]
        pairs = self.clicks.filter(pa.array(query_ids >= 0))
        query_ids = query_ids[query_ids >= 0]
        drawn = paper.draw_paper_clicks(source, pairs["events"].to_numpy(), chosen)
        return pa.table(
            {
                "query": released.take(pa.array(query_ids[drawn.indices])),
                "url": pairs["url"].take(pa.array(drawn.indices)),
                "events": drawn.counts,
            }
        )

    def _draw_transitions(
        self, source: SeededRandom, places: np.ndarray, released: pa.Array, chosen: SafelogParameters
    ) -> pa.Table:
        befores, afters = (places[self.transitions[name]] for name in ("query_id", "next_query_id"))
        both = (befores >= 0) & (afters >= 0)
        drawn = paper.draw_paper_transitions(
            source, befores[both], afters[both], self.transitions["events"][both], len(released), chosen
        )
        return pa.table(
            {
                "query": released.take(pa.array(drawn.before)),
                "next_query": released.take(pa.array(drawn.after)),
                "events": drawn.counts,
            }
        )
