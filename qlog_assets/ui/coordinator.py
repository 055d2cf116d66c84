"""Dagster's run queue, which also writes on each run who asked for it. Named in the warehouse's dagster.yaml.

Dagster makes it in the web server and in the daemon, and in a plain `dagster dev` on the same warehouse, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.ui.asked import NAME_HEADER, NAME_TAG, PROOF_HEADER, PROOF_TAG, Seal

BACKFILL_TAG = "dagster/backfill"


class AskedByCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Queues runs as Dagster does, with a proof of who asked where there is one."""

    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        run = context.dagster_run
        seal = Seal.found(Warehouse(Settings.from_environment()).private)
        name = None if seal is None else self._asker(seal, context)
        if seal is not None and name is not None:
            # Whatever a client sent under these names is overwritten.
            self._instance.add_run_tags(run.run_id, seal.run_tags(run.run_id, name))
        return super().submit_run(context)

    def _asker(self, seal: Seal, context: dg.SubmitRunContext) -> str | None:
        headers = {key: context.get_request_header(key) for key in (NAME_HEADER, PROOF_HEADER)}
        # A request proves itself or nothing. Without one the daemon submits: perhaps for a backfill.
        if getattr(context.workspace, "source", None) is not None:
            return seal.requester(headers)
        return self._backfiller(seal, context.dagster_run.tags)

    def _backfiller(self, seal: Seal, tags: Mapping[str, str]) -> str | None:
        """Who asked for the backfill that a run belongs to. Tags can be copied: the first backfill with them is it."""
        name, backfill_id = seal.backfiller(tags), tags.get(BACKFILL_TAG)
        if name is None or backfill_id is None:
            return None
        marks = {key: tags[key] for key in (NAME_TAG, PROOF_TAG)}
        same = [fill for fill in self._instance.get_backfills() if marks.items() <= fill.tags.items()]
        first = min(same, key=lambda fill: fill.backfill_timestamp, default=None)
        return name if first is not None and first.backfill_id == backfill_id else None
