"""The study `anonymity`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.studies.anonymity import plots
from qlog_assets.studies.anonymity.comparison import MECHANISM, AnonymitySettings, attack, compare, variants
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "What does k-anonymity print of a month, of single queries, of whole histories and of whole sessions, and what "
    "does it give away: to k - 1 fake accounts, and to a reader who knows one query of somebody in a printed group?"
)


def steps(work: StudyWork) -> Sequence[Step]:
    def measure(variant: str) -> Step:
        return Step(variant, lambda at: compare(at, variant))

    return [*(measure(variant) for variant in variants()), Step("attacks", attack)]


def pictures(tables: Tables) -> dict[str, bytes]:
    return {"anonymity.png": plots.shares(tables["anonymity"])}


def words(tables: Tables, settings: AnonymitySettings) -> str:
    """Whom accounts find, where a sensitive query is inferred, and how many groups of this month are homogeneous."""
    attacks = tables["attacks"]
    certain = [row["variant"] for row in attacks if row["accounts_are_certain"]]
    inferred = [row["variant"] for row in attacks if row["sensitive_query_inferred"]]
    sentences = [
        f"k - 1 fake accounts are certain whether one more person typed their query under {len(certain)} of "
        f"{len(attacks)} variants.",
        f"Of k planted people who typed the same two queries, one query tells the other with certainty under: "
        f"{', '.join(inferred) or 'none'}.",
    ]
    for row in tables["anonymity"]:
        if row["of_several_queries"] and row["k"] == min(settings.thresholds):
            sentences.append(
                f"At k = {row['k']}, {row['homogeneous']:,} of {row['of_several_queries']:,} printed {row['variant']} "
                "of several queries hold a query that betrays another one of everybody behind them."
            )
    return " ".join(sentences)


STUDY = Study(
    name="anonymity",
    title="k-anonymity of queries, histories and sessions",
    question=QUESTION,
    settings=AnonymitySettings,
    steps=steps,
    mechanism=MECHANISM,
    columns={
        "anonymity": (
            *("variant", "k", "items", "impressions_share", "users", "users_share"),
            *("of_several_queries", "homogeneous", "known_queries", "betraying"),
        ),
        "attacks": (
            *("variant", "k", "printed_with", "printed_without", "accounts_are_certain"),
            "sensitive_query_inferred",
        ),
    },
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
