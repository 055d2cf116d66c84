"""What a stage is: a private table per month, made from other tables by statements, with its provenance and its check.

The log's own stages and those of the mechanisms are of this one kind. An asset makes a stage for a release; a study
makes the same stage beside it. What a stage depends on is what its provenance says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from qlog_assets.checks.memory import Inspection
from qlog_assets.ledger.book import Book
from qlog_assets.months import Month
from qlog_assets.pipeline.entered import refuse_unentered, write_entered
from qlog_assets.pipeline.public_material import PUBLIC_LISTS, PublicLists, build_public_list
from qlog_assets.pipeline.released_domain import ReleasedDomain, find_domain
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, Provenance, TableFacts, describe
from qlog_assets.storage.statements import statement_version
from qlog_assets.storage.warehouse import Warehouse

ORIGIN = "origin"
"""How provenance marks what a stage was made from that is no partition: `origin:<name>`, with a digest."""


@dataclass(frozen=True)
class Work:
    """On whose behalf stages are made: which warehouse, engine, month and run, and what the policy chose."""

    warehouse: Warehouse
    engine: Engine
    month: Month
    parameters: Any = None
    """The policy's section of the mechanism whose stages are made; None for the log's own."""
    lists: PublicLists = field(default_factory=PublicLists)
    run_id: str | None = None
    make_current: bool = True
    """Whether `current` moves to what is made. A study makes its tables beside those that releases are made from."""
    book: Book | None = None
    """Where what is made is entered. None: nothing that is made can be released."""
    domain: ReleasedDomain | None = None
    """The release of the same month whose queries the stage reads, if it reads one."""


Inputs = Mapping[str, Partition]
"""What a stage reads, by name. A public list that the policy does not use is not in it."""


@dataclass(frozen=True)
class Stage:
    """One private table: what it reads, what shapes it, how it is written and inspected, and its version."""

    name: str
    """The asset's name; its partitions lie in `private/<name>/<month>/`."""
    description: str
    reads: tuple[str, ...]
    """Other stages of the same month, and public lists. Empty for a stage with an origin of its own."""
    write: Callable[[Work, Inputs, Path], dict[str, TableFacts]]
    """Writes its tables into a directory."""
    version: int = 1
    """Raised by hand where other code than its statements changes what it holds."""
    statements: tuple[str, ...] = ()
    """The statements that decide what it holds; its code version follows their text."""
    shaped_by: Callable[[Any, PublicLists], dict[str, Any]] = lambda parameters, lists: {}
    """From the policy's section and public lists to the parameters that shape it. They travel with it, and the door
    compares them with a request's."""
    inspect: Inspection | None = None
    """Looks at a partition through the stage's suite."""
    check: str = "contribution_limits"
    """What the check is called that inspects it."""
    limits_users: bool = False
    """Whether it bounds what one user adds: the door inspects it before every draw, and what a hand changed is made
    again."""
    count_rows_from_nowhere: Callable[[Engine, Partition, Partition], int] | None = None
    """For the audit, while the cleaned log is still there: how many rows of a partition it does not account for."""
    domain_for: Callable[[Any], str | None] = lambda parameters: None
    """The id of the release of the same month whose queries it reads, by the policy's section; None: it reads none."""
    origin: Callable[[Warehouse, Month], dict[str, str]] | None = None
    """For a stage that reads no other one: digests, by name, of what it is made from instead."""

    @cached_property
    def code_version(self) -> str:
        return f"{self.version}.{statement_version(*self.statements)}" if self.statements else str(self.version)

    @property
    def months_read(self) -> tuple[str, ...]:
        """What it reads of the same month."""
        return tuple(name for name in self.reads if name not in PUBLIC_LISTS)

    @property
    def lists_read(self) -> tuple[str, ...]:
        return tuple(name for name in self.reads if name in PUBLIC_LISTS)

    def make(self, work: Work, given: Inputs) -> tuple[Partition, bool]:
        """Write the stage for a month, or keep what is there; returns it and whether it was written anew.

        `given` holds the stages it reads; public lists are found here. What a release is made from must be what the
        ledger says was written; a study may read anything, and then what it makes is not entered.
        """
        inputs = {name: given[name] for name in self.months_read}
        for name in self.lists_read:
            found = build_public_list(
                name, work.warehouse, work.lists, work.month, work.run_id, work.make_current, work.book
            )
            if found is not None:
                inputs[name] = found
        work = replace(work, domain=self.find_domain(work.warehouse, work.month, work.parameters))
        book = work.book
        if book is not None and work.make_current:
            refuse_unentered(book, inputs.values())
        elif book is not None and not all(book.knows(partition) for partition in inputs.values()):
            book = None
        provenance = self.describe(work.warehouse, work.month, work.parameters, work.lists, inputs, work.run_id)
        return write_entered(
            work.warehouse,
            provenance,
            lambda directory: self.write(work, inputs, directory),
            book,
            make_current=work.make_current,
            usable=lambda partition: self._keeps_limits(work.engine, partition),
        )

    def describe(
        self,
        warehouse: Warehouse,
        month: Month,
        parameters: Any,
        lists: PublicLists,
        inputs: Mapping[str, Partition | str],
        run_id: str | None = None,
    ) -> Provenance:
        """The provenance of what would be made from these inputs, partitions or their shapes."""
        upstream: dict[str, Partition | str] = {**inputs}
        if self.origin is not None:
            digests = self.origin(warehouse, month)
            upstream |= {f"{ORIGIN}:{name}": digest for name, digest in digests.items()}
        domain = self.find_domain(warehouse, month, parameters)
        upstream |= {} if domain is None else domain.upstream
        return describe(
            self.name,
            month,
            code_version=self.code_version,
            parameters=self.shaped_by(parameters, lists),
            upstream=upstream,
            run_id=run_id,
        )

    def find_domain(self, warehouse: Warehouse, month: Month, parameters: Any) -> ReleasedDomain | None:
        """The release of the month whose queries it reads; None where it reads none."""
        release_id = self.domain_for(parameters)
        return None if release_id is None else find_domain(warehouse, month, release_id)

    def make_current_month(self, work: Work) -> tuple[Partition, bool]:
        """The same from the partitions that are current."""
        return self.make(work, {name: work.warehouse.current(name, work.month) for name in self.months_read})

    def _keeps_limits(self, engine: Engine, partition: Partition) -> bool:
        """Whether a partition that is there keeps the limits: one changed by hand, checksums and all, is made again."""
        return not self.limits_users or self.inspect is None or self.inspect(engine, partition).passed


def make_stages(stages: tuple[Stage, ...], work: Work, inputs: Inputs) -> dict[str, Partition]:
    """Make stages one after the other, each from those before it and from what is given."""
    made = dict(inputs)
    for stage in stages:
        made[stage.name], _ = stage.make(work, made)
    return made
