"""The study `safelog-clusters`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.studies.safelog_clusters import plots
from qlog_assets.studies.safelog_clusters.comparison import (
    AS_PRINTED,
    NO_STRAYS,
    ORIGINAL,
    SAME_QUERIES,
    ClusterSettings,
    measure_original,
    measure_paper,
    measure_variant,
    released_variants,
)
from qlog_assets.studies.safelog_clusters.printed import CLUSTERS_LABELLED, PURITY, SITES_LABELLED
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "Do sites that are clicked for the same queries still cluster by topic in a release (Safelog, Table 4)? Single "
    "link at a similarity of one half; purity against the topics of a synthetic log."
)


def steps(work: StudyWork) -> Sequence[Step]:
    def measure(name: str, variant: str) -> Step:
        return Step(f"{name}-{variant}", lambda at: measure_variant(at, name, variant))

    return [
        Step("original", measure_original),
        Step("as-printed", measure_paper),
        *(measure(name, variant) for name, variant in released_variants(work.policy)),
    ]


def pictures(tables: Tables) -> dict[str, bytes]:
    return {"clusters.png": plots.bars([row for row in tables["clusters"] if row["most_sites"] is not None])}


def words(tables: Tables, settings: ClusterSettings) -> str:
    """The log, the paper's release of it, what noise did to that, and what can be released."""
    most = settings.most_sites
    rows = [row for row in tables["clusters"] if row["most_sites"] == most]
    plain = {row["log"]: row for row in rows if row["least_clicks"] == 0}
    sentences = [f"The {most:,} most clicked sites, all pairs: {'; '.join(map(told, plain.values()))}."]
    original = plain[ORIGINAL]
    if not original["known_topics"]:
        return " ".join([*sentences, "The topics of these sites are not known: there is no purity, only sizes."])
    everywhere = {row["log"]: row for row in tables["clusters"] if not (row["most_sites"] or row["least_clicks"])}
    compared = [everywhere.get(log, {}).get("linked_purity") for log in (AS_PRINTED, SAME_QUERIES, NO_STRAYS)]
    if None not in compared:
        noisy, true, without = compared
        sentences.append(
            f"Over all sites, Safelog as printed has a purity of {noisy:.3f} in clusters of two sites or more (the "
            f"paper: {PURITY} on {SITES_LABELLED} sites in {CLUSTERS_LABELLED} clusters). The true clicks of the same "
            f"queries have {true:.3f}, and without clicks on sites of another topic {without:.3f}: one click on each "
            f"of two sites makes a query common to them, and popular queries have stray clicks on many sites."
        )
    for least in settings.least_clicks:
        row = next(row for row in rows if row["log"] == AS_PRINTED and row["least_clicks"] == least)
        sentences.append(f"With {least} clicks or more it is {told(row)}.")
    return " ".join(sentences)


def told(row: Row) -> str:
    """A log's clusters of two sites or more, in a few words."""
    pure = "" if row["linked_purity"] is None else f", {row['linked_purity']:.3f} pure"
    return f"{row['log']} {row['linked_sites']:,} sites in {row['linked_clusters']:,} clusters{pure}"


STUDY = Study(
    name="safelog-clusters",
    title="Clusters of sites",
    question=QUESTION,
    settings=ClusterSettings,
    steps=steps,
    columns={
        "clusters": (
            "log",
            "epsilon",
            "least_clicks",
            "sites",
            "clusters",
            "largest",
            "purity",
            "linked_sites",
            "linked_clusters",
            "linked_purity",
        )
    },
    shown_rows={"clusters": lambda row: row["most_sites"] is not None},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
