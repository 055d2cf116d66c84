"""Clusters of sites of a month's log and of every release of it that has clicks, with a click threshold and without.

Everything here is private and made with seeded noise; nothing passes the door. What a cluster and its purity are is in
`measures/clusters.py`. Purity is measured against the topics of the synthetic world; a log of real people has none, and
then only sizes are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.parameters import Listed, Parameters, Scale
from qlog_assets.studies.measures.clusters import cluster_sites, purity, synthetic_topics, without_stray_clicks
from qlog_assets.studies.parts import Part
from qlog_assets.studies.safelog_clusters import printed
from qlog_assets.studies.search_log import QUERY, URL, SearchLog
from qlog_assets.studies.simulation import Simulated
from qlog_assets.studies.study import Row, StudyWork, Tables, cleaned_month

SAFELOG, PAPER = "safelog", "paper"
ORIGINAL, AS_PRINTED = "original", f"{SAFELOG} {PAPER}"
SAME_QUERIES = f"original, queries of {AS_PRINTED}"
"""The same queries with their true clicks: what is lost by leaving out rare queries, before any noise on clicks."""
NO_STRAYS = f"{SAME_QUERIES}, no stray clicks"
"""And those without clicks on sites of another topic than the query's: what such clicks do to clusters."""


class ClusterSettings(Parameters):
    """What the study varies. The defaults are the paper's; it has no click threshold."""

    seed: int = Field(1, ge=0)
    """Seed of the noise."""
    most_sites: int = Field(printed.SITES_CLUSTERED, ge=1)
    """How many sites are clustered, those with most clicks; the same is said of all sites."""
    least_clicks: Annotated[tuple[int, ...], Listed] = (10, 50)
    """Click thresholds that are tried beside none: pairs of a query and a site with a smaller count are left out. At
    b = 10 noise alone passes 10 in a fifth of the pairs, and 50 in one of three hundred."""
    threshold: int = Field(printed.THRESHOLD, ge=1)
    """K of Safelog as printed."""
    queries_per_user: int = Field(printed.LIMIT, ge=1, le=10_000)
    """q_f of Safelog as printed."""
    clicks_per_user: int = Field(printed.LIMIT, ge=1, le=10_000)
    """c_f of Safelog as printed."""
    scale: Scale = Field(Fraction(printed.SCALE), validate_default=True)
    """b of all noise of Safelog as printed."""

    def as_printed(self, policy: Policy) -> Policy:
        """The policy with the paper's parameters. Those of other draws are the policy's own."""
        section = mechanism(SAFELOG).as_variant(policy.section(SAFELOG), PAPER)
        scales = dict.fromkeys(("selection_scale", "query_scale", "click_scale", "transition_scale"), self.scale)
        changed = section.with_changes(
            threshold=self.threshold,
            queries_per_user=self.queries_per_user,
            clicks_per_user=self.clicks_per_user,
            **scales,
        )
        return policy.with_changes(mechanisms={**policy.mechanisms, SAFELOG: changed})


def released_variants(policy: Policy) -> Iterator[tuple[str, str]]:
    """Every mechanism and variant whose release may be published, as the register and the policy have them."""
    for each in releasable():
        for name, variant in each.variants.items():
            applied = policy.for_variant(each, name)
            if variant.in_study.draw is not None and each.guarantee(name, applied.parameters(each)).publishable:
                yield each.name, name


def measure_original(work: StudyWork) -> Tables:
    """The log itself, and how many sites it has a known topic for."""
    clicks = original_clicks(work)
    if not clicks.num_rows:
        raise QlogError(f"the log of {work.month} has no clicks, and sites are clustered by clicks")
    return {"clusters": cluster_rows(work.settings, ORIGINAL, clicks)}


def measure_paper(work: StudyWork) -> Tables:
    """Safelog as printed, and the true clicks of the queries that it released, with and without stray ones."""
    settings: ClusterSettings = work.settings
    drawn = draw(work, SAFELOG, PAPER, settings.as_printed(work.policy))
    released = SearchLog.of_tables(drawn.tables)
    clicks = original_clicks(work)
    same = clicks.filter(pc.is_in(clicks[QUERY], value_set=released.queries[QUERY].combine_chunks()))
    strayed = cluster_rows(settings, NO_STRAYS, without_stray_clicks(same))
    return {
        "clusters": [
            *cluster_rows(settings, SAME_QUERIES, same),
            # Nothing is stray where no topic is known.
            *(row for row in strayed if row["known_topics"]),
            *cluster_rows(settings, AS_PRINTED, released.clicks, drawn.guarantee),
        ]
    }


def measure_variant(work: StudyWork, name: str, variant: str) -> Tables:
    """What may be released, at the policy's parameters; nothing where it has no table of clicks."""
    drawn = draw(work, name, variant, work.policy)
    if not has_clicks(drawn.tables):
        return {"clusters": []}
    clicks = SearchLog.of_tables(drawn.tables).clicks
    return {"clusters": cluster_rows(work.settings, f"{name} {variant}", clicks, drawn.guarantee)}


def has_clicks(tables: Mapping[str, pa.Table]) -> bool:
    return any({QUERY, URL} <= set(table.column_names) for table in tables.values())


def original_clicks(work: StudyWork) -> pa.Table:
    """The clicks of the log, which the paper counts as events."""
    return SearchLog.of_log(work.engine, cleaned_month(work), "events").clicks


def draw(work: StudyWork, name: str, variant: str, policy: Policy) -> Simulated:
    """A draw of the whole month: nobody is held out, for topics are known without a test."""
    assert work.month is not None
    if work.warehouse.current("raw_log", work.month).provenance.shape != work.reads["raw_log"]:
        raise QlogError(f"the log of {work.month} was changed while the study ran: ask it again")
    part = Part(work.warehouse, work.engine, policy, work.month)
    return part.draw(name, variant, work.settings.seed)


def cluster_rows(
    settings: ClusterSettings, log: str, clicks: pa.Table, guarantee: Guarantee | None = None
) -> list[Row]:
    """One row for each number of sites and each click threshold."""
    proven = None if guarantee is None else guarantee.proven
    claimed = None if guarantee is None else guarantee.claimed
    asked = [(most, least) for most in (None, settings.most_sites) for least in (0, *settings.least_clicks)]
    rows = []
    for most, least in asked:
        found = cluster_sites(clicks, least, most)
        judged = purity(found, synthetic_topics(found))
        linked = found.sizes[found.sizes >= 2]
        rows.append(
            {
                "log": log,
                "epsilon": None if proven is None else float(proven.epsilon),
                "claimed_epsilon": None if claimed is None else float(claimed.epsilon),
                "most_sites": most,
                "least_clicks": least,
                "sites": len(found.sites),
                "clusters": len(found.sizes),
                "largest": judged.largest,
                "linked_sites": int(linked.sum()),
                "linked_clusters": len(linked),
                "known_topics": judged.sites,
                "purity": judged.purity,
                "linked_purity": judged.linked_purity,
            }
        )
    return rows
