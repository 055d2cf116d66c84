"""Seeded draws of one month, into `private/studies/`: the sound variants without the door, and the papers' own.

Nothing here is publishable: the noise can be computed again from its seed, and `paper` variants keep no promise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book
from qlog_assets.mechanisms.inputs import public_inputs
from qlog_assets.mechanisms.mechanism import Drawn, Mechanism
from qlog_assets.mechanisms.register import mechanism, simulated
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.public_material import PUBLIC_LISTS, build_public_list
from qlog_assets.pipeline.stage import Inputs, Work, make_stages
from qlog_assets.pipeline.steering import Steering, published_before
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.digests import canonical_json
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.private_files import seal
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.unreleased import unreleased_warning

FACTS = "study.json"


def simulated_mechanism(name: str) -> Mechanism:
    """A mechanism that can be drawn, or an error that lists those that can."""
    if name not in {each.name for each in simulated()}:
        raise QlogError(f"no simulation of {name!r}: choose one of {', '.join(each.name for each in simulated())}")
    return mechanism(name)


@dataclass(frozen=True)
class Simulated:
    """A seeded draw: what was drawn, with which parameters, what steered it, and what is claimed and proven of it."""

    drawn: Drawn
    parameters: Parameters
    guarantee: Guarantee
    steering: Steering | None = None

    @property
    def tables(self) -> dict[str, pa.Table]:
        return {name: each.rows for name, each in self.drawn.tables.items()}


@dataclass(frozen=True)
class Prepared:
    """A month that a variant can draw as often as it is asked to: what it reads was made once."""

    engine: Engine
    drawn_by: Mechanism
    variant: str
    parameters: Parameters
    guarantee: Guarantee
    inputs: Inputs
    steering: Steering | None

    def draw(self, seed: int) -> Simulated:
        """One seeded draw."""
        drawn = self.drawn_by.draw(
            self.engine, self.inputs, self.variant, self.parameters, SeededRandom(seed), self.steering, in_study=True
        )
        return Simulated(drawn, self.parameters, self.guarantee, self.steering)


def prepare_draws(
    name: str,
    warehouse: Warehouse,
    engine: Engine,
    policy: Policy,
    month: Month,
    variant: str,
    run_id: str | None = None,
    book: Book | None = None,
) -> Prepared:
    """Make what a variant draws from, beside what releases are made from."""
    drawn_by = simulated_mechanism(name)
    policy = policy.for_variant(drawn_by, variant)
    # What public lists decide is decided for a release; a paper is drawn with the parameters as they were set.
    as_released = drawn_by.variant(variant).reads is None
    chosen = policy.parameters(drawn_by) if as_released else drawn_by.plain_parameters(policy.section(name))
    drawn_by.refuse_unusable(variant, chosen)
    guarantee = drawn_by.guarantee(variant, chosen)
    work = Work(
        warehouse, engine, month, policy.section(name), policy.lists, run_id=run_id, make_current=False, book=book
    )
    inputs = simulation_inputs(drawn_by, variant, work)
    steering = None
    if drawn_by.is_steered(variant, chosen) and book is not None:
        steering = published_before(warehouse, book.ledger, policy.dataset, name, month)
    return Prepared(engine, drawn_by, variant, chosen, guarantee, inputs, steering)


def draw_simulated(
    name: str,
    warehouse: Warehouse,
    engine: Engine,
    policy: Policy,
    month: Month,
    variant: str,
    seed: int,
    run_id: str | None = None,
    book: Book | None = None,
) -> Simulated:
    """Draw a month with seeded noise, from tables made beside what releases are made from."""
    return prepare_draws(name, warehouse, engine, policy, month, variant, run_id, book).draw(seed)


def simulate(
    name: str,
    warehouse: Warehouse,
    engine: Engine,
    policy: Policy,
    month: Month,
    variant: str,
    seed: int,
    run_id: str,
    book: Book | None = None,
) -> dict[str, Any]:
    """Draw a month with seeded noise and store it; returns what was drawn and where it lies."""
    found = draw_simulated(name, warehouse, engine, policy, month, variant, seed, run_id, book)
    facts = {
        "mechanism": name,
        "variant": variant,
        "month": str(month),
        "seed": seed,
        "rows": {table: rows.num_rows for table, rows in found.tables.items()},
        "parameters": found.parameters.as_public(),
        "steered_by": None if found.steering is None else found.steering.charge.release_id,
        "charged": False,
        "warning": unreleased_warning(warehouse, policy.dataset, month, name),
        **{key: found.guarantee.as_json()[key] for key in ("label", "claimed", "proven", "gaps")},
    }
    return store_simulation(warehouse, f"{name}-{month}-{variant}-{seed}", run_id, facts, found.tables)


def simulation_inputs(drawn_by: Mechanism, variant: str, work: Work) -> dict[str, Partition]:
    """What a variant reads, made beside what releases are made from."""
    reads = drawn_by.variant(variant).in_study.reads
    inputs: dict[str, Partition] = {}
    if reads is not None:
        for name in set(reads) & set(PUBLIC_LISTS):
            found = build_public_list(
                name, work.warehouse, work.lists, work.month, work.run_id, make_current=False, book=work.book
            )
            if found is not None:
                inputs[name] = found
    if "cleaned_log" in (reads or {name for stage in drawn_by.stages for name in stage.reads}):
        inputs["raw_log"] = work.warehouse.current("raw_log", work.month)
        inputs = make_stages((CLEANED_LOG,), work, inputs)
    if reads is None:
        inputs = make_stages(drawn_by.stages, work, inputs)
        inputs |= public_inputs(work.warehouse, {name: inputs[name] for name in drawn_by.inputs})
    return inputs


def store_simulation(
    warehouse: Warehouse, name: str, run_id: str, facts: dict[str, Any], tables: dict[str, pa.Table]
) -> dict[str, Any]:
    """Write a draw's tables and facts, whole, under private/studies."""
    target = warehouse.studies / f"{name}-{run_id[:8]}"
    facts = {**facts, "path": str(target)}
    with temporary_directory(warehouse.studies) as scratch:
        for table_name, table in tables.items():
            pq.write_table(table, scratch / f"{table_name}.parquet")
        (scratch / FACTS).write_text(canonical_json(facts), encoding="utf-8")
        seal(scratch)
        scratch.rename(target)
    return facts


def read_simulation(warehouse: Warehouse, run_id: str) -> dict[str, Any]:
    """The facts of the simulation that a run made."""
    (path,) = warehouse.studies.glob(f"*-{run_id[:8]}/{FACTS}")
    facts: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return facts
