"""The study `zealous`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.studies.parts import hold_out
from qlog_assets.studies.study import Step, Study, StudyWork, Tables, cleaned_month
from qlog_assets.studies.zealous import plots
from qlog_assets.studies.zealous.applications import APPLICATIONS, measure_application
from qlog_assets.studies.zealous.comparison import StudySettings, attack, measure_kind

QUESTION = (
    "At one (ε, δ), which method tells the frequent items of a month best: k-anonymity, ZEALOUS as its paper prints "
    "it, or what can be released? Baselines have no (ε, δ) at all; they are the comparison people ask for."
)


def steps(work: StudyWork) -> Sequence[Step]:
    chosen = work.policy.parameters(mechanism("zealous"))
    assert isinstance(chosen, ZealousParameters)

    def measure(kind: str) -> Step:
        def measured(at: StudyWork) -> Tables:
            view_cleaned(at.engine, cleaned_month(at))
            return measure_kind(at.engine, kind, chosen, at.settings)

        return Step(kind, measured)

    def apply(kind: str) -> Step:
        def measured(at: StudyWork) -> Tables:
            with hold_out(at, at.settings.tested_part) as fold:
                return measure_application(at.engine, kind, fold, chosen, at.settings)

        return Step(APPLICATIONS[kind][0], measured)

    return [
        *(measure(kind) for kind in chosen.kinds),
        *(apply(kind) for kind in chosen.kinds if kind in APPLICATIONS),
        Step("attack", lambda at: {"attack": list(attack(chosen, at.settings))}),
    ]


def pictures(tables: Tables) -> dict[str, bytes]:
    drawn = {"frequent_items.png": plots.frequent_items(tables["frequent_items"])}
    caching, substitution = (tables.get(name, []) for name in ("caching", "substitution"))
    if caching or substitution:
        drawn["applications.png"] = plots.applications(caching, substitution)
    return drawn


def words(tables: Tables, settings: StudySettings) -> str:
    """Which method released most of the frequent items, by kind, and what k - 1 fake accounts learn."""
    sentences = []
    for kind in dict.fromkeys(row["kind"] for row in tables["frequent_items"]):
        private = [row for row in tables["frequent_items"] if row["kind"] == kind and row["m"] is not None]
        best = max(private, key=lambda row: row["recall"])
        if best["recall"] == 0:
            sentences.append(f"No method with an (ε, δ) prints any frequent {kind} of this month.")
            continue
        sentences.append(
            f"Of the frequent {kind} (at least {settings.frequent} users), {best['method']} with m = {best['m']} "
            f"prints most: {100 * best['recall']:.0f} %."
        )
    broken = [row for row in tables["attack"] if row["method"].startswith("k-anonymity")]
    told = sum(row["with_victim"] != row["without"] for row in broken)
    sentences.append(f"{told} of {len(broken)} baselines tell k - 1 fake accounts whether one more user typed a query.")
    return " ".join(sentences)


STUDY = Study(
    name="zealous",
    title="ZEALOUS beside its paper and k-anonymity",
    question=QUESTION,
    settings=StudySettings,
    steps=steps,
    version=3,  # 2: users are held out of caches and substitutes; 3: a user's items are chosen by number, not by text.
    mechanism="zealous",
    columns={
        "frequent_items": (
            "kind", "method", "m", "released", "inaccuracy", "precision", "recall", "impressions_share", "count_error",
        ),
        "caching": ("method", "m", "hit_rate", "best"),
        "substitution": ("method", "m", "queries", "coverage", "precision", "average_precision", "ndcg", "best"),
        "attack": ("method", "accounts", "with_victim", "without"),
    },
    pictures=pictures,
    words=words,
    reads=lambda work: {"raw_log": work.warehouse.current("raw_log", str(work.month)).provenance.shape},
)  # fmt: skip
