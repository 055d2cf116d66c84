"""The steps of the study: which log is counted, under which limits, and what becomes a row of which table.

Private, seeded, never charged. ε is the paper's; δ is the paper's 1/(n+1), with the n of the log at hand, which only a
study may look at. `sound` and `gaussian` have the same (ε, δ), and the d that DP_u has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from pydantic import Field

from qlog_assets.crowd.jobs import Application
from qlog_assets.mechanisms.crowd.central_log import Counted, count_sent
from qlog_assets.mechanisms.crowd.parameters import LN_10, CrowdParameters
from qlog_assets.privacy.parameters import Epsilon, Parameters
from qlog_assets.studies.crowd.counting import Mined, Sent, view_pilot, view_sessions, view_users
from qlog_assets.studies.crowd.policies import (
    DifferentialPolicy,
    Row,
    Truth,
    differential_rows,
    frequency_rows,
    limits_by_threshold,
    releasable_rows,
)
from qlog_assets.studies.crowd.printed import APPLICATIONS, PILOT
from qlog_assets.studies.study import StudyWork, Tables, cleaned_month

COUNTED: dict[DifferentialPolicy, Counted] = {"dp_a": "instances", "dp_u": "users"}
FIGURE = ("released", "distinct_share", "impressions_share", "sent_impressions_share", "sent_share")


class CrowdStudySettings(Parameters):
    """What the comparison varies."""

    seed: int = Field(1, ge=0)
    """Seed of the noise."""
    epsilon: Epsilon = Field(LN_10, validate_default=True)
    """ε of one application, as the paper has it."""
    largest_threshold: int = Field(200, ge=1, le=10_000)
    """k runs from 1 to this in Figures 3, 4 and 5."""
    threshold: int = Field(100, ge=1, le=10_000)
    """k at which all applications are counted."""
    share_threshold: int = Field(5, ge=1, le=1000)
    """t_c of `sound` and `gaussian`: users whose shares decrypt an artifact. Their counts are shifted by it."""
    pilot_users: int = Field(16, ge=1, le=10_000)
    """Participants of the pilot,"""
    pilot_queries: int = Field(300, ge=0, le=10**6)
    """and how many searches each should have. The paper's had 523 each on average, in two weeks."""


class Comparison:
    """What the steps share: the settings and the month's cleaned log."""

    def __init__(self, work: StudyWork) -> None:
        self.settings: CrowdStudySettings = work.settings

    def figure_3(self, work: StudyWork) -> Tables:
        """Every policy at every k, on queries with users as users; and the planted person's part of it."""
        view_users(work.engine, self._files(work))
        mined = Mined(work.engine, "queries")
        rows = self._sweep(mined, range(1, self.settings.largest_threshold + 1))
        distinct = len(mined.person.artifacts)
        return {
            "figure_3": figure_columns(rows),
            "figure_5": [
                {"policy": row["policy"], "k": row["k"], "d": row["d"], "share": row["of_person"] / distinct}
                for row in rows
                if distinct
            ],
        }

    def figure_4(self, work: StudyWork) -> Tables:
        """The same with each session as a user: what a log without ids of users would give."""
        view_sessions(work.engine, self._files(work))
        rows = self._sweep(Mined(work.engine, "queries"), range(1, self.settings.largest_threshold + 1))
        return {"figure_4": figure_columns(rows)}

    def application(self, work: StudyWork, application: Application) -> Tables:
        """One application at k = 2 and at the threshold, and how much of it is the planted person's."""
        view_users(work.engine, self._files(work))
        mined = Mined(work.engine, application)
        truth, hers = truth_of(mined), mined.person
        whole = {"policy": "the log", "k": None, "d": None, "released": len(truth.instances)}
        whole |= {"impressions": truth.impressions, "sent_impressions": truth.impressions}
        whole |= {"of_person": len(hers.artifacts) or None}
        rows = [whole, *self._sweep(mined, sorted({2, self.settings.threshold}))]
        return {
            "applications": [{"application": application} | {name: row[name] for name in whole} for row in rows],
            "person": [{"application": application, "instances": hers.instances, "distinct": len(hers.artifacts)}]
            if len(hers.artifacts)
            else [],
        }

    def pilot(self, work: StudyWork) -> Tables:
        """Table 1: what a handful of users who search a lot would release, at k = 1 to 5."""
        view_pilot(work.engine, self._files(work), self.settings.pilot_users, self.settings.pilot_queries)
        rows: list[Row] = []
        for application in APPLICATIONS:
            count_sent(work.engine, application, None, "instances")
            counts = work.engine.arrays("crowd/counts_in_order")
            for place, printed in enumerate(PILOT[application]):
                ft_a, ft_u = (int((counts[counted] > place).sum()) for counted in ("instances", "users"))
                told = {"ft_a": ft_a, "ft_u": ft_u, "paper_ft_a": printed[0], "paper_ft_u": printed[1]}
                instances = int(counts["instances"].sum())
                rows.append({"application": application, "instances": instances, "k": place + 1, **told})
        return {"pilot": rows}

    def _files(self, work: StudyWork) -> Sequence[Path]:
        return cleaned_month(work).files("log")

    def _sweep(self, mined: Mined, thresholds: Sequence[int]) -> list[Row]:
        """All policies at these thresholds."""
        settings, truth = self.settings, truth_of(mined)
        delta = Fraction(1, mined.users + 1)
        rows = list(frequency_rows(truth, {"ft_a": mined.instances, "ft_u": mined.held_by}, thresholds))
        released: list[Row] = []

        def releasing(sent: Iterator[Sent]) -> Iterator[Sent]:
            for each in sent:
                chosen = CrowdParameters(
                    artifacts_per_user=each.limit,
                    epsilon=settings.epsilon,
                    delta=delta,
                    share_threshold=settings.share_threshold,
                )
                released.extend(releasable_rows(truth, each, chosen, settings.seed))
                yield each

        for policy, counted in COUNTED.items():
            limits = limits_by_threshold(policy, thresholds, settings.epsilon, delta)
            sent = mined.sent(counted, [limit for limit in limits if limit])
            sent = releasing(sent) if counted == "users" else sent
            rows += differential_rows(truth, policy, limits, sent, settings.epsilon, settings.seed)
        return sorted([*rows, *released], key=lambda row: (ORDER.index(row["policy"]), row["d"] or 0, row["k"]))


ORDER = ("ft_a", "ft_u", "dp_a", "dp_u", "sound", "gaussian")


def truth_of(mined: Mined) -> Truth:
    return Truth(mined.instances, mined.person.artifacts)


def figure_columns(rows: Sequence[Row]) -> list[Row]:
    """The columns of Figures 3 and 4. Without a limit, all impressions are sent."""
    return [
        {name: row[name] for name in ("policy", "k", "d")} | {name: row.get(name, 1.0) for name in FIGURE}
        for row in rows
    ]
