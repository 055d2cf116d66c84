"""The study `sanitized`: what the register finds. The solvers are imported when a step is measured."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.studies.sanitized import plots
from qlog_assets.studies.sanitized.settings import MADE_UP, MONTH, StudySettings
from qlog_assets.studies.study import Step, Study, StudyWork, Tables, cleaned_month

QUESTION = (
    "How large, how faithful and how diverse can the sanitized log of Hong, Vaidya, Lu and Wu be under its own "
    "constraints, which allow n·B events for n users? Its Tables 4 to 7 print more; they stand beside as infeasible. "
    "Only the sampling of users has an (ε, δ), and only for counts that were known beforehand."
)
TABLES = ("output_size", "supports", "supports_by_budget", "diversity", "runtime", "difference")
"""One sweep each, for the month and for the made-up log."""


def steps(work: StudyWork) -> Sequence[Step]:
    def measure(table: str, of_month: bool) -> Step:
        def measured(at: StudyWork) -> Tables:
            from qlog_assets.mechanisms.sanitized.draw import count_shared_pairs
            from qlog_assets.studies.sanitized.sweeps import SWEEPS, Clicks, made_up_clicks, take_users

            if of_month:
                view_cleaned(at.engine, cleaned_month(at), transitions=False)
                whole = Clicks(MONTH, *count_shared_pairs(at.engine))
                clicks = take_users(whole, at.settings.pairs, at.settings.seed)
            else:
                clicks = made_up_clicks()
            return {table: list(SWEEPS[table](clicks, at.settings)) if clicks.queries.size else []}

        return Step(f"{table} of {MONTH if of_month else MADE_UP}", measured)

    logs = (True, False) if work.settings.made_up else (True,)
    return [measure(table, of_month) for of_month in logs for table in TABLES]


def pictures(tables: Tables) -> dict[str, bytes]:
    return plots.draw_all(tables)


def words(tables: Tables, settings: StudySettings) -> str:
    """What came out at ln 2, beside the bound, and that the paper's values do not fit."""
    sentences = []
    for log in dict.fromkeys(row["log"] for row in tables["output_size"]):
        at = max(
            (row for row in tables["output_size"] if row["log"] == log and row["B"] <= 0.7), key=lambda row: row["B"]
        )
        sentences.append(
            f"From {log}, with B = {at['B']:g}: at most n·B = {at['bound']:,.0f} events, the optimum is "
            f"{at['relaxed']:,.0f} relaxed, {at['printed']:,} rounded down as printed and {at['filled']:,} filled."
        )
    beside = [row for row in tables["output_size"] if row["paper"] is not None]
    if beside:
        above = sum(row["paper"] > row["bound"] for row in beside)
        sentences.append(f"{above} of {len(beside)} output sizes of the paper's Table 4 are above n·B.")
    free = [row for row in tables["supports"] if not row["infrequent_stay"] and row["precision"] is not None]
    if free:
        sentences.append(
            f"Precision, which the paper reports as 1, is {min(row['precision'] for row in free):.2f} to "
            f"{max(row['precision'] for row in free):.2f}; it is 1 where infrequent pairs are held down."
        )
    if not sentences:
        sentences.append("No two users of this month clicked the same pair: there is nothing to optimise.")
    return " ".join(sentences)


STUDY = Study(
    name="sanitized",
    title="The sanitized log under its own constraints",
    question=QUESTION,
    settings=StudySettings,
    steps=steps,
    mechanism="sanitized",
    columns={
        "output_size": ("log", "B", "bound", "relaxed", "printed", "filled", "paper"),
        "supports": (
            "log", "B", "support", "asked", "infrequent_stay", "size", "precision", "recall", "distance_sum",
            "distance_mean",
        ),
        "supports_by_budget": ("log", "B", "bound", "asked", "size", "precision", "recall", "distance_sum"),
        "diversity": (
            "log", "B", "bound", "relaxed", "eliminated", "eliminated_tested_first", "filled", "queries_by_query",
            "paper",
        ),
        "runtime": ("log", "method", "bound", "kept", "seconds"),
        "difference": ("log", "B", "bound", "asked", "size", "below_40%"),
    },
    pictures=pictures,
    words=words,
    reads=lambda work: {"raw_log": work.warehouse.current("raw_log", str(work.month)).provenance.shape},
)  # fmt: skip
