"""One draw of a charge: asking the mechanism for its tables, and what is stored with them. For the door alone."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qlog_assets.door.draws import DrawnRelease
from qlog_assets.ledger import Charge, Ledger
from qlog_assets.mechanisms.mechanism import Drawn, Mechanism
from qlog_assets.pipeline.public_material import public_facts
from qlog_assets.pipeline.released_domain import domain_facts
from qlog_assets.pipeline.steering import Steering
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import WORDS
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.manifest import software_versions
from qlog_assets.sources.column_map import USER_IDS
from qlog_assets.storage.engine import MACHINE_ERRORS, Engine, quoting_no_value
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse


def draw_tables(
    engine: Engine,
    mechanism: Mechanism,
    charge: Charge,
    chosen: Any,
    inputs: Mapping[str, Partition],
    steering: Steering | None,
    source: RandomSource,
) -> tuple[Drawn, str | None]:
    """Every table of a release, or no table and where the mechanism failed.

    A mechanism that fails after it took random bits is not asked again: its failure is stored as the draw. What the
    machine lacks (a full disk, memory, a kill) is no fault of the draw: nothing was seen, and the next run draws anew.
    What can fail, and why it does not, is in docs/decisions/0012.
    """
    try:
        with quoting_no_value("a statement of the draw failed", "it is a fault of qlog's"):
            return mechanism.draw(engine, inputs, charge.variant, chosen, source, steering), None
    except MACHINE_ERRORS:
        raise
    except Exception as error:
        if not source.used:
            raise
        return Drawn({}), where_failed(error)


def describe_draw(
    warehouse: Warehouse,
    mechanism: Mechanism,
    charge: Charge,
    inputs: Mapping[str, Partition],
    steering: Steering | None,
    policy: Policy,
    ledger: Ledger,
    failure: str | None,
) -> DrawnRelease:
    """What a draw is of, and what its publication will say that depends on the day and the machine."""
    return DrawnRelease(
        fingerprint=charge.fingerprint,
        dataset=charge.dataset,
        month=charge.month,
        mechanism=charge.mechanism,
        variant=charge.variant,
        mechanism_version=charge.mechanism_version,
        draw_number=charge.draw_number,
        parameters=dict(charge.parameters),
        inputs={name: partition.provenance.shape for name, partition in inputs.items()},
        salt=secrets.token_hex(16),
        software=software_versions(),
        about=policy.about.as_public(),
        public_material=(
            *(public_facts(inputs[name]) for name in mechanism.public_inputs if name in inputs),
            *domain_facts(warehouse, inputs[mechanism.limited_stage.name]),
            *(() if steering is None else (steering.facts(),)),
        ),
        words=WORDS,
        budget=ledger.dataset(charge.dataset).public_terms(),
        failure=failure,
        witnessed=ledger.witnessed,
        one_user=None if policy.unit.one_user == USER_IDS else policy.unit.one_user,
    )


def where_failed(error: Exception) -> str:
    """The kind of an error and the line that raised it: its words may quote a value of the log."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


def list_rows(public_list: Partition) -> int:
    """How many entries a public list has."""
    return sum(facts.rows for facts in public_list.provenance.tables.values())
