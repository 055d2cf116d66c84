"""Stages as tests make them: one at a time, on a warehouse and an engine of the test's own, or of a later version."""

from __future__ import annotations

from dataclasses import replace

from qlog_assets.ledger import Book
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.mechanisms.safelog.stages import CAPPED_LOG, POOL_AUGMENTED
from qlog_assets.mechanisms.zealous.stages import ZEALOUS_ITEMS
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.stage import Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse

Made = tuple[Partition, bool]


def with_later_stage(name: str, stage: str) -> Mechanism:
    """A mechanism whose named stage is of a later version of the software; for `register.adding`."""
    known = mechanism(name)
    assert stage in known.inputs
    stages = tuple(replace(each, version=each.version + 1) if each.name == stage else each for each in known.stages)
    return replace(known, stages=stages)


class Stages:
    """Makes the stages of a month, each from the partition that is given."""

    def __init__(
        self, warehouse: Warehouse, engine: Engine, make_current: bool = True, book: Book | None = None
    ) -> None:
        self.warehouse, self.engine, self.make_current, self.book = warehouse, engine, make_current, book

    def clean(self, month: Month, raw: Partition) -> Made:
        return CLEANED_LOG.make(self._work(month), {"raw_log": raw})

    def cap(self, month: Month, cleaned: Partition, chosen: Parameters) -> Made:
        return CAPPED_LOG.make(self._work(month, chosen), {"cleaned_log": cleaned})

    def augment(self, month: Month, capped: Partition, policy: Policy) -> Made:
        work = Work(
            self.warehouse,
            self.engine,
            month,
            policy.section("safelog"),
            policy.lists,
            make_current=self.make_current,
            book=self.book,
        )
        return POOL_AUGMENTED.make(work, {"capped_log": capped})

    def choose_items(self, month: Month, cleaned: Partition, items_per_user: int) -> Made:
        chosen = Policy().section("zealous").with_changes(items_per_user=items_per_user)
        return ZEALOUS_ITEMS.make(self._work(month, chosen), {"cleaned_log": cleaned})

    def _work(self, month: Month, chosen: Parameters | None = None) -> Work:
        return Work(self.warehouse, self.engine, month, chosen, make_current=self.make_current, book=self.book)
