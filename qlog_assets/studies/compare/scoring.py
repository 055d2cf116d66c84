"""Scores a log of any system on people whose searches are in none of the logs. One judge for all systems.

Whatever a log does not answer counts as zero, so that a log that knows little cannot score well on the little it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.mechanisms.sessions import draw as sessions
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.studies.compare.systems import CompareSettings
from qlog_assets.studies.measures.caching import fill_slots, hit_rate
from qlog_assets.studies.measures.clusters import cluster_sites, purity, synthetic_topics
from qlog_assets.studies.measures.retrieval import TestedClicks, score_retrieval
from qlog_assets.studies.measures.suggestion import Suggester, number
from qlog_assets.studies.measures.suggestion_scores import Prefixes, answer, prefixes_of
from qlog_assets.studies.search_log import QUERY, URL, SearchLog
from qlog_assets.studies.session_logs import ALL_SESSIONS, LONGEST_SESSION

FEW = 2
"""A query of fewer users is one person's own."""
RETRIEVAL = {"ndcg_walk": "random_walk", "ndcg_feedback": "implicit_feedback"}
"""Columns, and how urls are found for them."""


@dataclass(frozen=True)
class Judge:
    """What a fold's logs are held against."""

    settings: CompareSettings
    truth: SearchLog
    """The log that releases are drawn from, with its numbers of users."""
    truth_events: np.ndarray
    """How often each of its queries was typed."""
    searches: pa.Table
    """Held-out searches: query and count."""
    tested: TestedClicks
    prefixes: Prefixes
    public: pa.Array
    """The queries and urls that were public before anything was drawn: pool and url list."""

    @classmethod
    def of_fold(
        cls, engine: Engine, trained: Partition, tested: Partition, public: pa.Array, settings: CompareSettings
    ) -> Judge:
        clicks = TestedClicks.of_log(engine, tested, trained)
        searches = SearchLog.of_log(engine, tested, "events").queries
        truth = SearchLog.of_log(engine, trained)
        events = SearchLog.of_log(engine, trained, "events")
        assert texts(events.queries, QUERY).equals(texts(truth.queries, QUERY))
        prefixes = held_out_prefixes(engine, tested, settings)
        return cls(settings, truth, events.queries["count"].to_numpy(), searches, clicks, prefixes, public)

    def score(self, log: SearchLog) -> dict[str, float | int | None]:
        """Every figure of the comparison that a log's content decides."""
        return {
            "queries": log.queries.num_rows,
            "clicks": log.clicks.num_rows,
            "transitions": log.transitions.num_rows,
            "impressions_share": self._impressions(log),
            **self._retrieval(log),
            **self._suggestions(log),
            "cache_hits": self._cache_hits(log),
            **self._clusters(log),
            **self._counts(log),
            "one_persons_clicks": self._own_clicks(log),
        }

    def _impressions(self, log: SearchLog) -> float:
        """The share of held-out searches whose query the log holds."""
        counts, held = self.searches["count"].to_numpy(), pc.is_in(self.searches[QUERY], texts(log.queries, QUERY))
        return float(counts[held.to_numpy()].sum() / counts.sum()) if counts.sum() else 0.0

    def _retrieval(self, log: SearchLog) -> dict[str, float | int | None]:
        found: dict[str, float | int | None] = {"tested_queries": len(self.tested.queries)}
        for column, algorithm in RETRIEVAL.items():
            scores = score_retrieval(log, self.tested, algorithm, feedback_rank="train")
            found |= {column: scores.with_zeros("ndcg"), "answered_queries": scores.evaluated}
        return found

    def _suggestions(self, log: SearchLog) -> dict[str, float | int | None]:
        """P@5 over every prefix of the tested sessions, zero where nothing is suggested."""
        pairs, clicks = (
            table.rename_columns({"count": "users"}) if table.num_rows else None
            for table in (log.transitions, log.clicks)
        )
        # With one of the two alone, it counts in full: λ would only scale all scores.
        weight = self.settings.suggestion_weight if pairs is not None and clicks is not None else float(pairs is None)
        asked = len(self.prefixes.sessions)
        told = {"tested_prefixes": asked}
        if pairs is None and clicks is None:
            return {"precision_at_5": 0.0 if asked else None, "answered_prefixes": 0, **told}
        answers = answer(Suggester.from_counts(pairs, clicks), self.prefixes, weight)
        precision = float(answers.hits.sum() / (5 * asked)) if asked else None
        return {"precision_at_5": precision, "answered_prefixes": int(answers.answered.sum()), **told}

    def _cache_hits(self, log: SearchLog) -> float:
        """The share of held-out searches that a cache answers which holds the results of the most frequent queries."""
        ordered = log.queries.sort_by([("count", "descending"), (QUERY, "ascending")])
        kept = ordered.take(pa.array(fill_slots(ordered["count"].to_numpy(), self.settings.cached_queries)))
        places = number(texts(kept, QUERY), self.searches[QUERY])
        return hit_rate(np.flatnonzero(places >= 0), self.searches["count"].to_numpy())

    def _clusters(self, log: SearchLog) -> dict[str, float | int | None]:
        """Of clusters of two sites or more: a site alone is pure by construction."""
        found = cluster_sites(log.clicks)
        told = purity(found, synthetic_topics(found))
        return {"purity": told.linked_purity, "clustered_sites": told.linked_sites}

    def _counts(self, log: SearchLog) -> dict[str, float | int | None]:
        """Printed counts of queries beside the users who typed them, and what should not have been printed at all."""
        places = number(texts(self.truth.queries, QUERY), log.queries[QUERY])
        users = np.where(places >= 0, self.truth.queries["count"].to_numpy()[places], 0.0)
        few = log.queries.filter(pa.array(users < FEW))
        known = pc.is_in(few[QUERY], value_set=self.public)
        return {
            **self._errors(log, places, users),
            "nobodys": int((users == 0).sum()),
            "one_persons": int(len(few) - pc.sum(known).as_py()) if len(few) else 0,
        }

    def _errors(self, log: SearchLog, places: np.ndarray, users: np.ndarray) -> dict[str, float | int | None]:
        """Printed counts beside the truth that they are counts of; none where they are of something else."""
        if log.counted is None:
            return {"median_error": None, "median_relative_error": None}
        truth = users if log.counted == "users" else np.where(places >= 0, self.truth_events[places], 0.0)
        errors = np.abs(log.queries["count"].to_numpy() - truth)
        return {"median_error": median(errors), "median_relative_error": median(errors / np.maximum(truth, 1))}

    def _own_clicks(self, log: SearchLog) -> int:
        """Printed clicks of which one person made all: that this page was opened for that query was theirs alone, even
        where page and query are public."""
        known = self.truth.clicks.rename_columns({"count": "users"})
        found = log.clicks.join(known, [QUERY, URL], join_type="inner")
        return int(pc.sum(pc.less(found["users"], FEW)).as_py() or 0)


def held_out_prefixes(engine: Engine, tested: Partition, settings: CompareSettings) -> Prefixes:
    """The prefixes of held-out sessions; a query right after itself is mostly a next page, and is left out."""
    view_cleaned(engine, tested)
    limits = {"sessions_per_user": ALL_SESSIONS, "queries_per_session": LONGEST_SESSION}
    sessions.keep_sessions(engine, SessionParameters(), collapse=True, **limits)
    found = engine.arrow("studies/test_sessions", sessions=settings.test_sessions)
    return prefixes_of(found["session_number"].to_numpy(), found["query"])


def median(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None


def texts(table: pa.Table, column: str) -> pa.Array:
    return table[column].combine_chunks().cast(pa.string())
