"""Seeded ZEALOUS draws for studies: the publishable variants without the door, and the paper's two thresholds."""

from __future__ import annotations

import pyarrow as pa

from qlog_assets.chain import Chain
from qlog_assets.drawing import mechanism
from qlog_assets.drawing.zealous import count_items, item_counts, name_items
from qlog_assets.mechanisms.zealous import release_paper
from qlog_assets.months import Month
from qlog_assets.privacy.guarantees import guarantee
from qlog_assets.privacy.parameters_others import ZealousParameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.settings import Policy
from qlog_assets.warehouse import Partition


def draw_zealous(
    chain: Chain, month: Month, cleaned: Partition, policy: Policy, variant: str, source: SeededRandom
) -> dict[str, pa.Table]:
    """One seeded draw of a month."""
    chosen = policy.zealous.parameters
    items, _ = chain.choose_items(month, cleaned, chosen.items_per_user)
    if variant == "paper":
        return draw_paper(chain, items, chosen, source)
    drawn = mechanism("zealous").draw(chain.engine, {"zealous_items": items}, variant, chosen, source)
    return {name: table.rows for name, table in drawn.tables.items()}


def draw_paper(chain: Chain, items: Partition, chosen: ZealousParameters, source: SeededRandom) -> dict[str, pa.Table]:
    """The two thresholds of the theorem, on float noise."""
    promise = guarantee("zealous", "paper", chosen)
    tables: dict[str, pa.Table] = {}
    for kind in chosen.kinds:
        count_items(chain.engine, items, kind)
        drawn = release_paper(
            source,
            item_counts(chain.engine),
            promise.thresholds["before_noise"],
            promise.figures["noise_scale"],
            promise.figures["noisy_threshold"],
        )
        tables[kind] = name_items(chain.engine, drawn.indices, drawn.counts)
    return tables
