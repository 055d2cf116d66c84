"""What the studies of session logs share: people held out, the logs that are compared, and how each of them is made.

Users are held out, never rows: a person in both parts would be predicted from their own searches. Logs are made from
nine tenths of the users and tested on the sessions of the last tenth. λ is chosen before that, on the sessions of one
of the nine tenths with logs made from the other eight. Nothing here may be published: noise is seeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.sessions import draw
from qlog_assets.mechanisms.sessions.paper import release_items_paper
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG, view_searches
from qlog_assets.pipeline.stage import Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.paper_selection import PaperReleased
from qlog_assets.privacy.parameters import Parameters, Scale
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures.suggestion import Reading, Suggester
from qlog_assets.studies.measures.suggestion_scores import Prefixes, Questions, prefixes_of
from qlog_assets.studies.study import StudyWork

Tenths = tuple[int, int]
TESTED: Tenths = (0, 0)
TRAINED: Tenths = (1, 9)
TRIED: Tenths = (1, 1)
"""On whose sessions λ is chosen,"""
TRIED_FROM: Tenths = (2, 9)
"""and whose make the logs that it is chosen for."""
WEIGHTS = tuple(step / 10 for step in range(11))
"""The λ that are tried."""
ALL_SESSIONS = 1_000_000_000
ANY_K = 1
"""K changes nothing in what is counted."""
LONGEST_SESSION = 100
"""A longer session is cut: it has 5,000 pairs already, and pairs grow with the square."""


class SessionStudySettings(Parameters):
    """What all studies of session logs vary. The defaults are the paper's; it collapses no repeats."""

    seed: int = Field(1, ge=0)
    """Seed of the noise."""
    collapse_repeats: bool = True
    """Whether a query right after itself, mostly a next page, is left out of tests and of every log."""
    sessions_per_user: int = Field(1, ge=1, le=100)
    """l_s of the paper's draws."""
    queries_per_session: int = Field(3, ge=2, le=10)
    """l_q of the paper's draws."""
    clicks_per_user: int = Field(4, ge=1, le=10_000)
    """l of the paper's draws."""
    scale: Scale = Field(Fraction(1), validate_default=True)
    """b of the paper's draws."""

    def paper(self, threshold: int) -> SessionParameters:
        """The parameters of DP_S as printed. Those of sound and modern draws are the policy's."""
        return SessionParameters(
            sessions_per_user=self.sessions_per_user,
            queries_per_session=self.queries_per_session,
            clicks_per_user=self.clicks_per_user,
            session_scale=self.scale,
            click_scale=self.scale,
            threshold=threshold,
            items="subsequences",
            collapse_repeats=self.collapse_repeats,
        )


@dataclass(frozen=True)
class Log:
    """A log that suggestions are made from: its sessions, as sequences or as counted pairs, and its clicks."""

    clicks: pa.Table | None
    sessions: pa.Table | None = None
    pairs: pa.Table | None = None

    def suggester(self, reading: Reading = "all") -> Suggester:
        if self.pairs is not None:
            return Suggester.from_counts(self.pairs, self.clicks)
        return Suggester.from_release(self.sessions, self.clicks, reading)

    @property
    def sequences(self) -> int:
        """How many sequences of queries it holds."""
        table = self.sessions if self.pairs is None else self.pairs
        return 0 if table is None else table.num_rows

    @property
    def clicked_pairs(self) -> int:
        return 0 if self.clicks is None else self.clicks.num_rows

    def choose_weight(self, prefixes: Prefixes, reading: Reading = "all") -> float:
        """The λ that hits most; a log without sessions has only one."""
        if not self.sequences:
            return 1.0
        return Questions.put(self.suggester(reading), prefixes).choose_weight(WEIGHTS)


class HeldOutMonth:
    """A month's cleaned log, read by tenths of its users. One part at a time is the view cleaned_log."""

    def __init__(self, work: StudyWork) -> None:
        assert work.month is not None
        self.engine = work.engine
        self.settings: SessionStudySettings = work.settings
        self._part: Tenths | None = None
        made_by = Work(work.warehouse, work.engine, work.month, run_id=work.run_id, make_current=False, book=work.book)
        raw = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"])
        self._cleaned = CLEANED_LOG.make(made_by, {"raw_log": raw})[0]

    def read(self, part: Tenths) -> Engine:
        """Make the rows of some tenths of the users what statements read as cleaned_log."""
        if self._part != part:
            self.engine.view("whole_log", self._cleaned.files("log"))
            self.engine.statement_table("studies/part_of_log", first_tenth=part[0], last_tenth=part[1])
            self.engine.statement_view("studies/cleaned_log")
            view_searches(self.engine)
            self._part = part
        return self.engine

    def prefixes(self, part: Tenths, sessions: int) -> Prefixes:
        """The prefixes of so many sessions of these users."""
        engine = self.read(part)
        self._keep_all_sessions()
        found = engine.arrow("studies/test_sessions", sessions=sessions)
        return prefixes_of(found["session_number"].to_numpy(), found["query"])

    def original(self, part: Tenths) -> Log:
        """The log as it is: all sessions and all clicks."""
        engine = self.read(part)
        self._keep_all_sessions()
        return Log(self.click_users(part), pairs=engine.arrow("studies/session_pairs"))

    def click_users(self, part: Tenths) -> pa.Table:
        """Every clicked pair, and how many users clicked it."""
        return self.read(part).arrow("studies/click_users")

    def printed(self, part: Tenths) -> PrintedCounts:
        """What A_Session and A_Click count."""
        engine, chosen = self.read(part), self.settings.paper(ANY_K)
        draw.keep_sessions(engine, chosen, collapse=self.settings.collapse_repeats)
        draw.number_sessions(engine, chosen, pairs_only=False)
        items = list(draw.count_sessions(engine, with_repeats=True))
        clicks = engine.arrow("sessions/paper_clicks", clicks_per_user=chosen.clicks_per_user)
        return PrintedCounts(engine, self.settings, items, clicks)

    def _keep_all_sessions(self) -> None:
        settings = self.settings
        limits = {"sessions_per_user": ALL_SESSIONS, "queries_per_session": LONGEST_SESSION}
        draw.keep_sessions(self.engine, settings.paper(ANY_K), collapse=settings.collapse_repeats, **limits)


@dataclass(frozen=True)
class PrintedCounts:
    """What the paper's two algorithms count, to be drawn with one K after the other. Valid until others are counted."""

    engine: Engine
    settings: SessionStudySettings
    items: list[tuple[np.ndarray, np.ndarray]]
    clicks: pa.Table

    def chosen_clicks(self, threshold: int) -> PaperReleased:
        """Which pairs A_Click prints, by number, and their counts."""
        events = self.clicks["events"].to_numpy()
        return release_items_paper(SeededRandom(self.settings.seed), events, float(self.settings.scale), threshold)

    def chosen_items(self, threshold: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which sequences A_Session prints, as numbers of queries, and their counts, a part at a time."""
        source = SeededRandom(self.settings.seed + 1)
        for items, events in self.items:
            drawn = release_items_paper(source, events, float(self.settings.scale), threshold)
            yield items[drawn.indices], drawn.counts

    def draw_clicks(self, threshold: int) -> pa.Table:
        """A_Click, and so DP_C."""
        drawn = self.chosen_clicks(threshold)
        kept = self.clicks.take(pa.array(drawn.indices))
        return pa.table({"query": kept["query"], "url": kept["url"], "users": drawn.counts})

    def draw_sessions(self, threshold: int) -> pa.Table:
        """A_Session; with a copy of DP_C it is DP_S."""
        parts = zip(*self.chosen_items(threshold), strict=True)
        return draw.name_sessions(self.engine, *(np.concatenate(part) for part in parts))


def frequent_clicks(clicks: pa.Table, threshold: int) -> Log:
    """KA: the pairs that more than K users clicked."""
    return Log(clicks.filter(pc.greater(clicks["users"], threshold)))


def draw_variant(engine: Engine, variant: str, chosen: SessionParameters, seed: int) -> Log:
    """A seeded draw of a publishable variant from the view cleaned_log."""
    draw.keep_sessions(engine, chosen, collapse=chosen.collapse_repeats)
    draw.keep_clicks(engine, chosen)
    drawn = draw.draw_kept(engine, variant, chosen, SeededRandom(seed))
    tables = {name: each.rows for name, each in drawn.tables.items()}
    return Log(tables.get("clicks"), tables.get("sessions"))


def modern_parameters(policy: Policy) -> SessionParameters:
    """What the policy's releases of sessions are drawn with; over a release of the same month, no study draws."""
    chosen = mechanism("sessions").plain_parameters(policy.section("sessions"))
    assert isinstance(chosen, SessionParameters)
    return chosen.with_changes(domain="open")


def sound_parameters(policy: Policy, settings: SessionStudySettings) -> SessionParameters:
    """`sound` at the ε and δ of `modern`, one half each for sessions and clicks, under the paper's limits per user.

    The policy's own limits are made for `modern`: a threshold grows faster with what one user may hold than a Gaussian
    does.
    """
    chosen = modern_parameters(policy).with_changes(
        sessions_per_user=settings.sessions_per_user,
        queries_per_session=settings.queries_per_session,
        clicks_per_user=settings.clicks_per_user,
        collapse_repeats=settings.collapse_repeats,
    )
    return chosen.with_changes(
        session_scale=2 * chosen.items_per_user / chosen.epsilon,
        click_scale=2 * chosen.clicks_per_user / chosen.epsilon,
    )


def cost(variant: str, chosen: SessionParameters) -> dict[str, Any]:
    """ε and δ that are proven of a draw; None where nothing is."""
    proven = mechanism("sessions").guarantee(variant, chosen).proven
    told = {} if proven is None else proven.as_json()
    return {key: told.get(key) for key in ("epsilon", "delta")}


def raw_log_of(work: StudyWork) -> dict[str, str]:
    """What these studies are made from."""
    return {"raw_log": work.warehouse.current("raw_log", str(work.month)).provenance.shape}
