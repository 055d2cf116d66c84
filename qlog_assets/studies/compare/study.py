"""The study `compare`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.studies.compare.comparison import Comparison
from qlog_assets.studies.compare.page import write_page
from qlog_assets.studies.compare.plots import draw_pictures
from qlog_assets.studies.compare.same_law import is_same
from qlog_assets.studies.compare.systems import ORIGINAL, PURE, SAME, CompareSettings, compared_mechanisms
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "Which system tells most of this log at one (ε, δ)? Every registered mechanism with settings chosen on a synthetic "
    "twin, the papers as printed, k-anonymity and pure ε, all scored on people whose searches are in none of the logs."
)


def steps(work: StudyWork) -> Sequence[Step]:
    comparison = Comparison(work)

    def choose(drawn: Mechanism) -> Step:
        return Step(f"choose-{drawn.name}", lambda at: comparison.choose(at, drawn))

    def compare(drawn: Mechanism) -> Step:
        return Step(drawn.name, lambda at: comparison.compare(at, drawn))

    mechanisms = compared_mechanisms()
    return [
        *(choose(each) for each in mechanisms if each.is_releasable),
        Step("original", comparison.original),
        *(compare(each) for each in mechanisms),
        Step("same-law", comparison.check),
    ]


def words(tables: Tables, settings: CompareSettings) -> str:
    """Who tells most, what the papers claim, who prints what is one person's own, and whether the check holds."""
    rows = tables["comparison"]
    original = next(row for row in rows if row["kind"] == ORIGINAL)
    private = [row for row in rows if row["kind"] in (SAME, PURE)]
    sentences = []
    for column, told in {"ndcg_walk": "nDCG@10 of the random walk", "impressions_share": "share of searches"}.items():
        best = max(private, key=lambda row: row[column] or 0)
        sentences.append(
            f"{best['system']} has the highest {told} of what may be published: {best[column] or 0:.3f}, where the log "
            f"itself has {original[column] or 0:.3f}."
        )
    sentences.append(
        f"Scores are over all {original['tested_queries']:,} tested queries, zero where a log does not know one."
    )
    for column, what in {"one_persons": "queries", "one_persons_clicks": "clicks"}.items():
        leaky = [f"{row['system']} ({row[column]:,.0f})" for row in rows if row[column] and row["kind"] != ORIGINAL]
        told = f"are printed by {', '.join(leaky)}" if leaky else "are printed by no system"
        sentences.append(f"Of what one person alone did and nobody published before, {what} {told}.")
    sentences.append(
        "With equal parameters CrowdLogging and ZEALOUS have the same law in their variant sound, as they must."
        if is_same(tables["same_law"])
        else "With equal parameters CrowdLogging and ZEALOUS differ in their variant sound: that is a fault."
    )
    return " ".join(sentences)


SHOWN = ("system", "kind", "claimed_epsilon", "proven_epsilon", "queries", "clicks", "transitions", "impressions_share",
         "ndcg_walk", "ndcg_feedback", "answered_queries", "precision_at_5", "cache_hits", "purity", "median_error",
         "median_relative_error", "one_persons", "one_persons_clicks",
         "seconds", "megabytes")  # fmt: skip
STUDY = Study(
    name="compare",
    title="All systems on one log",
    question=QUESTION,
    settings=CompareSettings,
    steps=steps,
    columns={"choices": ("mechanism", "variant", "kind", "tried", "twin_holds", "settings"), "comparison": SHOWN},
    pictures=draw_pictures,
    pages=write_page,
    words=words,
    reads=raw_log_of,
)
