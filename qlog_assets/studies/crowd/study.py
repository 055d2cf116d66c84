"""The study `crowd`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qlog_assets.crowd.jobs import Application
from qlog_assets.studies.crowd import plots
from qlog_assets.studies.crowd.comparison import FIGURE, Comparison, CrowdStudySettings
from qlog_assets.studies.crowd.printed import APPLICATIONS, FIGURE_3_END
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "What do CrowdLogging's policies release of a log as k grows: of its queries with users as users (Figure 3) and "
    "with sessions as users (Figure 4), of one person's queries (Figure 5, the planted person of a synthetic log), of "
    "reformulations and clicks, and of a pilot of a few users (Table 1)? And what can be released at the same (ε, δ)?"
)
SHOWN_THRESHOLDS = frozenset({1, 2, 5, 7, 10, 20, 50, 100, 160, 200})
SHOWN_LIMITS = frozenset({1, 2, 3, 5, 10, 15, 20, 25, 30})


def steps(work: StudyWork) -> Sequence[Step]:
    comparison = Comparison(work)

    def measure(application: Application) -> Step:
        return Step(application, lambda at: comparison.application(at, application))

    return [
        Step("figure-3", comparison.figure_3),
        Step("figure-4", comparison.figure_4),
        *(measure(application) for application in APPLICATIONS),
        Step("pilot", comparison.pilot),
    ]


def pictures(tables: Tables) -> dict[str, bytes]:
    drawn = {f"{name}.png": plots.shares(tables[name]) for name in ("figure_3", "figure_4")}
    if tables["figure_5"]:
        drawn["figure_5.png"] = plots.person(tables["figure_5"])
    return drawn


def is_shown(row: dict[str, Any]) -> bool:
    """Which rows of a figure a terminal shows."""
    return row["d"] in SHOWN_LIMITS if row["policy"] in ("sound", "gaussian") else row["k"] in SHOWN_THRESHOLDS


def words(tables: Tables, settings: CrowdStudySettings) -> str:
    """Where each policy begins and ends, which way DP goes by either measure, and what is seen of one person."""
    sentences = []
    for number, whose in ((3, "users"), (4, "sessions")):
        rows = tables[f"figure_{number}"]
        end = min(FIGURE_3_END[0], settings.largest_threshold)
        ft_u = next(row for row in rows if row["policy"] == "ft_u" and row["k"] == end)
        sentences.append(
            f"With {whose} as users, FT_u at k = {end} releases queries that make "
            f"{100 * ft_u['impressions_share']:.1f} % of the impressions."
        )
        sentences += [told for policy in ("dp_a", "dp_u") if (told := direction(rows, policy))]
    if tables["figure_5"]:
        private = [row for row in tables["figure_5"] if row["policy"] in ("dp_a", "dp_u")]
        most = max(private, key=lambda row: row["share"])
        sentences.append(
            f"Of the planted person's distinct queries, DP_a and DP_u release at most {100 * most['share']:.1f} % "
            f"({most['policy']} at k = {most['k']})."
        )
    else:
        sentences.append("The log has no planted person (qlog synth --world 2 writes one): there is no Figure 5.")
    return " ".join(sentences)


def direction(rows: Sequence[dict[str, Any]], policy: str) -> str:
    """From the least k that allows anything to the largest: both measures of what a policy releases."""
    line = [row for row in sorted(rows, key=lambda row: row["k"]) if row["policy"] == policy and row["d"]]
    if not line:
        return f"{policy} allows no k here: nothing is sent."
    first, last = line[0], line[-1]
    told = [
        f"{words} go from {100 * first[column]:.2f} % to {100 * last[column]:.2f} %"
        for words, column in (
            ("impressions in the log of what it releases", "impressions_share"),
            ("impressions that were sent of it", "sent_impressions_share"),
        )
    ]
    return (
        f"{policy} from k = {first['k']} (d = {first['d']}) to k = {last['k']} (d = {last['d']}): {' and '.join(told)}."
    )


STUDY = Study(
    name="crowd",
    title="CrowdLogging's policies on a log",
    question=QUESTION,
    settings=CrowdStudySettings,
    steps=steps,
    columns={
        "figure_3": ("policy", "k", "d", *FIGURE),
        "figure_4": ("policy", "k", "d", *FIGURE),
        "figure_5": ("policy", "k", "d", "share"),
    },
    shown_rows={"figure_3": is_shown, "figure_4": is_shown, "figure_5": is_shown},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
