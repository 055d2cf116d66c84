"""Every step of a release asks first: what is refused ends the run without work and without failure, and says why.

A button on one asset starts a run of that asset alone, so no first step could ask for all of them. What is served or
new goes on. What was asked by a command is asked before the run; here it only meets races.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from qlog_assets.door.asking import ask
from qlog_assets.errors import RefusedError
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import releasable
from qlog_assets.months import Month
from qlog_assets.orchestration.resources import RunPolicy, WarehouseResource

INTERFACE = "qlog/interface"
COMMAND = "command"
"""What a run's tag says where a command started it: then remedies are options of commands."""
REFUSED = "refused"
"""The metadata of an observation that says why a request was refused. The command line listens for it."""
PARTITION = "dagster/partition"
_SAID: set[tuple[str, str]] = set()
"""The runs and mechanisms of which this process has said so: several steps of a run ask the same at its start."""


def draws_in_run(context: dg.AssetExecutionContext) -> list[Mechanism]:
    """The mechanisms that this run is to draw."""
    return [each for each in releasable() if context.job_def.has_node_named(each.draw_asset)]


def asked_again(context: dg.AssetExecutionContext, mechanism: Mechanism) -> str | None:
    """The reason for one more draw that the run's configuration gives."""
    said: Any = context.run.run_config
    for key in ("ops", mechanism.draw_asset, "config", "again"):
        said = (said or {}).get(key)
    return said


def is_refused(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    policy: RunPolicy,
    mechanism: Mechanism | None = None,
) -> bool:
    """Whether all that this step would be done for is refused. Says why, in the run and on the draws' pages.

    For a step of one mechanism that is this one's request. A step of the log or of a public list is done for every
    mechanism that the run draws; where it draws none, nothing is asked.
    """
    month = context.run.tags.get(PARTITION)
    asked = draws_in_run(context) if mechanism is None else [mechanism]
    if month is None or not asked:
        return False
    refusals: list[tuple[Mechanism, RefusedError]] = []
    for each in asked:
        try:
            ask(
                warehouse.open(),
                policy.chosen(),
                warehouse.read_ledger(),
                each,
                Month(month),
                asked_again(context, each),
            )
        except RefusedError as refusal:
            refusals.append((each, refusal))
    if len(refusals) < len(asked):
        return False
    for each, reason in refusals:
        say_refused(context, each, reason)
    return True


@contextmanager
def saying_refused(context: dg.AssetExecutionContext, mechanism: Mechanism) -> Iterator[None]:
    """End a step without output, and without failure, where the door refuses what was asked."""
    try:
        yield
    except RefusedError as refusal:
        say_refused(context, mechanism, refusal)


def say_refused(context: dg.AssetExecutionContext, mechanism: Mechanism, refusal: RefusedError) -> None:
    reason = str(refusal) if context.run.tags.get(INTERFACE) == COMMAND else refusal.in_run
    if (said := (context.run_id, mechanism.name)) in _SAID:
        return
    _SAID.add(said)
    context.log.warning(f"refused, nothing was done: {reason}")
    context.log_event(
        dg.AssetObservation(
            mechanism.draw_asset,
            partition=context.run.tags.get(PARTITION),
            description=f"Refused: {reason}",
            metadata={REFUSED: reason},
        )
    )
