"""How ZEALOUS draws: each kind's chosen items counted by SQL, noise from `noise.py`, texts put back.

What one user can change here: at most items_per_user counts of each kind, each by one. Nothing that the noise decides
makes a draw fail, and what the parameters decide was asked before (`noise.check_draw`); decision 12 lists the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qlog_assets.mechanisms.contributions import (
    count_items,
    draw_counted,
    item_counts,
    item_holders,
    name_items,
    view_partition,
)
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.steered_tables import KnownRows, draw_steered_table
from qlog_assets.mechanisms.zealous import guarantee, noise, paper
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.mechanisms.zealous.tables import TABLES
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.histogram import Released
from qlog_assets.privacy.paper_selection import PaperReleased
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine

LAYOUTS = {layout.name: layout for layout in TABLES}


def draw(
    engine: Engine,
    inputs: Inputs,
    variant: str,
    chosen: ZealousParameters,
    source: RandomSource,
    steering: Steering | None = None,
) -> Drawn:
    """One table per kind. Nothing in them was public before, but for what an earlier release printed."""
    tables: dict[str, DrawnTable] = {}
    for kind in chosen.kinds:
        view_partition(engine, inputs["zealous_items"], kind)
        if noise.is_steered(variant, chosen):
            tables[kind] = _draw_steered(engine, kind, chosen, source, steering)
            continue
        count_items(engine)
        if noise.takes_rows(variant, chosen):
            drawn = noise.draw_rows(source, *item_holders(engine), chosen)
        else:
            drawn = _draw_counts(engine, variant, chosen, source)
        named = name_items(engine, drawn.items, drawn.users)
        tables[kind] = DrawnTable(in_public_order(named, LAYOUTS[kind]), drawn.threshold, noise=drawn.noise)
    return Drawn(tables)


def _draw_counts(engine: Engine, variant: str, chosen: ZealousParameters, source: RandomSource) -> noise.KindDraw:
    """One kind from counts, in as many parts as they come in: all parts have one threshold and one noise."""

    def draw_part(users: np.ndarray) -> Released:
        drawn = noise.draw_counts(source, users, variant, chosen)
        return Released(drawn.items, drawn.users)

    printed = draw_counted(engine, draw_part)
    # What is the same of all parts. A draw of nothing takes no random bit.
    stated = noise.draw_counts(source, np.empty(0, dtype=np.int64), variant, chosen)
    return replace(stated, items=printed.indices, users=printed.users)


def _draw_steered(
    engine: Engine, kind: str, chosen: ZealousParameters, source: RandomSource, steering: Steering | None
) -> DrawnTable:
    layout = LAYOUTS[kind]
    known = None if steering is None else KnownRows.of(steering.rows(kind), layout.keys)
    budget, part = guarantee.modern_budget(chosen), noise.kind_part(chosen)
    return draw_steered_table(engine, source, layout, budget, part, known)


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: ZealousParameters, source: RandomSource) -> Drawn:
    """The two thresholds of the theorem, on float noise: for studies alone."""
    tables: dict[str, DrawnTable] = {}
    for kind in chosen.kinds:
        view_partition(engine, inputs["zealous_items"], kind)
        count_items(engine)
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
