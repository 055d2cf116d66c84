"""How ZEALOUS draws: each kind's chosen items counted by SQL, noise from `noise.py`, texts put back.

What one user can change here: at most items_per_user counts of each kind, each by one. Nothing that the noise decides
makes a draw fail, and what the parameters decide was asked before (`noise.check_draw`); decision 12 lists the rest.
"""

from __future__ import annotations

import numpy as np

from qlog_assets.mechanisms.contributions import count_items, item_counts, item_holders, name_items
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.zealous import guarantee, noise, paper
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.mechanisms.zealous.tables import TABLES
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.paper_selection import PaperReleased
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine

LAYOUTS = {layout.name: layout for layout in TABLES}


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: ZealousParameters, source: RandomSource) -> Drawn:
    """One table per kind. Nothing in them was public before."""
    tables: dict[str, DrawnTable] = {}
    for kind in chosen.kinds:
        count_items(engine, inputs["zealous_items"], kind)
        if noise.takes_rows(variant, chosen):
            drawn = noise.draw_rows(source, *item_holders(engine), chosen)
        else:
            drawn = noise.draw_counts(source, item_counts(engine), variant, chosen)
        named = name_items(engine, drawn.items, drawn.users)
        tables[kind] = DrawnTable(in_public_order(named, LAYOUTS[kind]), drawn.threshold)
    return Drawn(tables)


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: ZealousParameters, source: RandomSource) -> Drawn:
    """The two thresholds of the theorem, on float noise: for studies alone."""
    tables: dict[str, DrawnTable] = {}
    for kind in chosen.kinds:
        count_items(engine, inputs["zealous_items"], kind)
        drawn = release_as_printed(source, item_counts(engine), chosen)
        tables[kind] = DrawnTable(name_items(engine, drawn.indices, drawn.counts))
    return Drawn(tables)


def release_as_printed(source: RandomSource, counts: np.ndarray, chosen: ZealousParameters) -> PaperReleased:
    """One kind by the paper's algorithm, with the thresholds that its theorem gives for these parameters."""
    claimed = guarantee.paper(chosen)
    return paper.release_paper(
        source,
        counts,
        claimed.thresholds["before_noise"],
        claimed.figures["noise_scale"],
        claimed.figures["noisy_threshold"],
    )
