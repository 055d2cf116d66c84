"""How a sanitized log is drawn: pairs counted by SQL, noise from `noise.py`, users made up, texts put back.

What one user can change here: at most pairs_per_user counts of pairs, one count of users by pairs, and at most
m(m-1)/2 counts of pairs of pairs, each by one. Nothing that the noise decides makes a draw fail, and what the
parameters decide was asked before (`noise.check_draw`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from qlog_assets.mechanisms.contributions import count_items, draw_counted, item_holders, view_partition
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.mechanisms.planned_noise import steered_noise, weighted_noise
from qlog_assets.mechanisms.sanitized import noise
from qlog_assets.mechanisms.sanitized.aims import aim
from qlog_assets.mechanisms.sanitized.guarantee import pair_budget
from qlog_assets.mechanisms.sanitized.noise import PairCounts
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sanitized.people import Associations, deal, draw_activity
from qlog_assets.mechanisms.sanitized.tables import LOG
from qlog_assets.mechanisms.steered_tables import KnownRows, draw_steered_items
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.histogram import Released
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.privacy.steered import plan_part
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import in_public_order
from qlog_assets.storage.engine import Engine


def draw(
    engine: Engine,
    inputs: Inputs,
    variant: str,
    chosen: SanitizedParameters,
    source: RandomSource,
    steering: Steering | None = None,
) -> Drawn:
    """A log of made-up users. Nothing in it was public before, but for the pairs of an earlier release."""
    held = inputs["sanitized_pairs"]
    view_partition(engine, held, "pairs")
    named, known = _draw_pairs(engine, chosen, source, steering)
    lengths = noise.release_lengths(source, count_lengths(engine, chosen), chosen.activity_scale)
    places = pa.table({"place": np.arange(named.indices.size), "item_id": named.indices})
    with engine.table("named_pairs", places):
        linked = _draw_associations(engine, chosen, source)
        # From here on nothing reads the log but for the texts of what was named.
        queries = engine.arrays("sanitized/named_queries")["query_id"]
        output = _make_up(source, named, queries, lengths, linked, chosen)
        rows = pa.table({"user_id": output.users, "place": output.pairs, "events": output.events})
        with engine.table("made_up", rows):
            log = engine.arrow("sanitized/made_up_log", month=str(held.provenance.month))
    return Drawn({LOG.name: DrawnTable(in_public_order(log, LOG), noise=known)})


def _draw_pairs(
    engine: Engine, chosen: SanitizedParameters, source: RandomSource, steering: Steering | None
) -> tuple[Released, TableNoise]:
    """The named pairs with noisy numbers of users, and what is publicly known of that noise."""
    if noise.is_steered(chosen):
        known, budget = _known_pairs(engine, steering), pair_budget(chosen)
        drawn, _ = draw_steered_items(engine, source, budget, known=known)
        plan = plan_part(budget, with_known=known is not None)
        return Released(drawn.items, drawn.users), steered_noise(plan, drawn.deviations)
    count_items(engine)
    if noise.takes_rows(chosen):
        named, deviation = noise.draw_rows(source, *item_holders(engine), chosen)
        return named, weighted_noise(noise.plan_rows(chosen), deviation)
    named = draw_counted(engine, lambda users: noise.draw_counts(source, users, chosen))
    return named, noise.known_noise(chosen)


def _known_pairs(engine: Engine, steering: Steering | None) -> KnownRows | None:
    """The pairs of an earlier made-up log. How often it has a pair stands for the pair's size: both are public."""
    rows = None if steering is None else steering.rows(LOG.name)
    if rows is None:
        return None
    with engine.table("earlier_rows", rows):
        return KnownRows.of(engine.arrow("sanitized/known_pairs"), ("query", "url"))


def _draw_associations(engine: Engine, chosen: SanitizedParameters, source: RandomSource) -> Associations | None:
    if chosen.association_share is None:
        return None
    counted = count_associations(engine)
    drawn = noise.release_associations(source, counted.users, chosen)
    return Associations(counted.first[drawn.indices], counted.second[drawn.indices], drawn.users)


def _make_up(
    source: RandomSource,
    named: Released,
    queries: np.ndarray,
    lengths: np.ndarray,
    linked: Associations | None,
    chosen: SanitizedParameters,
) -> PairCounts:
    """Post-processing: how often each named pair occurs, then whose it is."""
    activity = draw_activity(source, lengths, chosen.synthetic_users)
    counts = aim(
        named.users,
        chosen.objective,
        chosen.asked_size or int(activity.sum()),
        chosen.minimum_support,
        queries if chosen.diversity_of == "queries" else None,
    )
    return deal(source, counts, named.users, activity, linked)


def count_lengths(engine: Engine, chosen: SanitizedParameters) -> np.ndarray:
    """How many users hold 1, 2, 3 ... pairs of the view contributions."""
    return engine.arrays("sanitized/users_by_pairs", pairs_per_user=chosen.pairs_per_user)["users"].astype(np.int64)


def count_associations(engine: Engine) -> Associations:
    """How many users hold two pairs of the table named_pairs together."""
    found = engine.arrays("sanitized/association_counts")
    return Associations(*(np.asarray(found[name], np.int64) for name in ("first_place", "second_place", "held_by")))


def draw_paper(
    engine: Engine, inputs: Inputs, variant: str, chosen: SanitizedParameters, source: RandomSource
) -> Drawn:
    """The paper's log, with real users in it: for studies alone. Only the sampling of users has an (ε, δ)."""
    from qlog_assets.mechanisms.sanitized.paper import sanitize  # SciPy's solvers take most of a second to load

    view_cleaned(engine, inputs["cleaned_log"], transitions=False)
    rows, queries = count_shared_pairs(engine)
    output = sanitize(source, rows, queries, chosen)
    sampled = pa.table({"user_id": output.users, "pair_id": output.pairs, "events": output.events})
    with engine.table("sampled", sampled):
        return Drawn({"log": DrawnTable(engine.arrow("sanitized/paper_log"))})


def count_shared_pairs(engine: Engine) -> tuple[PairCounts, np.ndarray]:
    """The clicks of cleaned_clicks on pairs that two users or more hold, and the query of each pair, all as numbers."""
    engine.statement_table("sanitized/paper_pair_counts")
    found = {name: np.asarray(column, np.int64) for name, column in engine.arrays("sanitized/paper_numbered").items()}
    queries = np.zeros(int(found["pair_id"].max(initial=-1)) + 1, np.int64)
    queries[found["pair_id"]] = found["query_id"]
    return PairCounts(found["user_id"], found["pair_id"], found["events"]), queries
