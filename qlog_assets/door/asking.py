"""What a request would get, before any work is done for it: an answer from ledger, policy and what was ingested.

The door decides when it draws; this spares the work before a decision that is known already. It draws, charges and
writes nothing, and tells nobody more than the ledger's own answer does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from qlog_assets.door.choices import INTERFACES, charged_amount, offering_choices, opening_choices
from qlog_assets.door.expectations import known_list_rows
from qlog_assets.door.ledgers import opening_budget
from qlog_assets.door.preconditions import (
    refuse_lost_account,
    refuse_orphan_draws,
    refuse_second_dataset,
    refuse_superseded,
    refuse_unknown_releases,
)
from qlog_assets.door.release_limits import refuse_beyond_limits, refuse_beyond_promise, refuse_changed_policy
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.ledger import Book, BudgetError, Charge, Ledger
from qlog_assets.ledger.records import Request
from qlog_assets.ledger.rules import as_reason, in_words, refuse_other_terms, request_of
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batches_holding, in_use
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.public_material import (
    PUBLIC_LISTS,
    describe_public_list,
    load_public_list,
    refuse_unfit_files,
)
from qlog_assets.pipeline.raw_log import describe_raw_log, parts_of_month
from qlog_assets.pipeline.steering import Steering, find_steering
from qlog_assets.pipeline.user_key import one_user_of, refuse_other_users
from qlog_assets.policy import Policy
from qlog_assets.privacy.guarantee import Guarantee, PrivacyLoss
from qlog_assets.sources.pools import PublicList
from qlog_assets.storage.digests import digest_of
from qlog_assets.storage.partition import Partition, WarehouseError
from qlog_assets.storage.warehouse import Warehouse

FILES = "files of the month"
CHANGED = "changed"
"""Stands for a digest where a month is made up of other files than its release: no digest looks like this."""


def ask(
    warehouse: Warehouse,
    policy: Policy,
    ledger: Ledger | None,
    mechanism: Mechanism,
    month: Month,
    again: str | None = None,
) -> Charge | None:
    """The charge that a request has already, or None where it needs work; what it may not have is a `RefusedError`.

    None as well where only the work can tell, such as whether files that were read anew hold the same rows.
    """
    refuse_changed_policy(policy)
    guarantee = mechanism.guarantee(policy.variant(mechanism), policy.parameters(mechanism))
    loss = guarantee.proven
    assert loss is not None  # a policy's section can only choose among variants that may be published
    asked = Question(warehouse, policy, mechanism, month)
    known = None if ledger is None else next((each for each in ledger.datasets() if each.name == policy.dataset), None)
    book = None if ledger is None else Book(ledger, policy.dataset)
    history = [] if ledger is None else _history(ledger, policy, mechanism, month)
    if ledger is not None:
        refuse_unknown_releases(warehouse, ledger, policy.dataset)
        refuse_orphan_draws(warehouse, ledger)
        refuse_second_dataset(warehouse, policy.dataset)
        if known is None:
            refuse_lost_account(warehouse, ledger, policy.dataset)
        else:
            refuse_other_terms(known, guarantee.unit, guarantee.relation, policy.unit.window_months)
    if again is not None or not any(charge.live for charge in history):
        asked.refuse_new_draw(guarantee, book)
    if ledger is None or book is None or known is None:
        refuse_over_whole_budget(policy, mechanism, month, loss)
        return None
    inputs, certain = asked.inputs(history, book)
    variant = policy.variant(mechanism)
    request, _ = steered_request(warehouse, ledger, policy, mechanism, variant, month, inputs, again)
    refuse_beyond_promise(warehouse, ledger, mechanism, request, loss, again)
    with offering_choices(ledger, policy, mechanism, month):
        charge = ledger.answer(request, loss.epsilon, loss.delta, loss.rho, again)
    if charge is None or not certain:
        return None
    refuse_superseded(ledger, charge)
    return charge


def asked_version(ledger: Ledger, dataset: str, mechanism: Mechanism, month: Month, again: str | None) -> int:
    """The mechanism's version that a request names: that of the month's draw, where releases of it are served still."""
    live = ledger.live(dataset, month, mechanism.name)
    if again is not None:
        live = [charge for charge in live if charge.reason == as_reason(again)]
    drawn = live[-1].mechanism_version if live and live[-1].state != "reserved" else None
    return mechanism.version_asked(drawn)


def steered_request(
    warehouse: Warehouse,
    ledger: Ledger,
    policy: Policy,
    mechanism: Mechanism,
    variant: str,
    month: Month,
    inputs: Mapping[str, str],
    again: str | None,
) -> tuple[Request, Steering | None]:
    """A request for a month made from these inputs, and the release of an earlier month that steers it, if one does."""
    chosen = policy.parameters(mechanism)
    version = asked_version(ledger, policy.dataset, mechanism, month, again)
    parameters = mechanism.charged_parameters(variant, chosen)
    request = request_of(policy.dataset, month, mechanism.name, variant, version, parameters, inputs)
    if not mechanism.is_steered(variant, chosen):
        return request, None
    steering = find_steering(warehouse, ledger, request, None if again is None else as_reason(again))
    return request if steering is None else replace(request, inputs={**request.inputs, **steering.pin}), steering


def refuse_over_whole_budget(policy: Policy, mechanism: Mechanism, month: Month, loss: PrivacyLoss) -> None:
    """Refuse what costs more than the budget that an account would be opened with, and say what can be had instead."""
    asked, budget = charged_amount(loss), opening_budget(policy)
    if budget.holds(asked):
        return
    refusal = (
        f"over the budget of {policy.dataset}: {in_words(budget, asked)} asked of {in_words(budget, budget.limit)}, "
        "and nothing is spent yet"
    )
    by_command, in_run = (opening_choices(policy, mechanism, month, budget, each) for each in INTERFACES)
    raise BudgetError(f"{refusal}. {by_command}", f"{refusal}. {in_run}")


def _history(ledger: Ledger, policy: Policy, mechanism: Mechanism, month: Month) -> list[Charge]:
    """What was charged for a month, oldest first."""
    key = (policy.dataset, str(month), mechanism.name)
    return [charge for charge in ledger.charges(policy.dataset) if charge.request.key == key and charge.counted]


@dataclass(frozen=True)
class Question:
    """A release that is asked for, and what it would be made from, told by what lies there."""

    warehouse: Warehouse
    policy: Policy
    mechanism: Mechanism
    month: Month

    @property
    def limited(self) -> str:
        return self.mechanism.limited_stage.name

    @property
    def reads_log(self) -> bool:
        return self.mechanism.reads_log

    @property
    def named_lists(self) -> list[str]:
        """The public lists that the policy names and a release would be made with."""
        return [name for name in self.mechanism.public_inputs if name == "pool" or self.policy.url_list is not None]

    @cached_property
    def lists(self) -> dict[str, PublicList]:
        """The public lists that it would be made with."""
        loaded = {
            name: load_public_list(name, self.warehouse, self.policy.lists, self.month)
            for name in self.mechanism.public_inputs
        }
        return {name: found for name, found in loaded.items() if found is not None}

    def refuse_new_draw(self, guarantee: Guarantee, book: Book | None) -> None:
        """Refuse what a new draw may not have, and say what it lacks."""
        first, last = self.policy.first, self.policy.last
        if self.month < first or (last is not None and self.month > last):
            raise QlogError(f"{self.month} is outside the policy's months: change first or last in the policy")
        refuse_beyond_limits(self.policy, self.mechanism, guarantee)
        refuse_unfit_files(self.warehouse, self.policy.lists, self.mechanism.public_inputs)
        if self.reads_log:
            for part in parts_of_month(self.warehouse, self.month, book):  # which says so where there are none
                refuse_other_users(part.provenance.month, one_user_of(part), self.policy.unit.one_user)
        # The pool that ships with qlog is read by the run, beside the imports that it waits for: its size is known.
        known = known_list_rows(self.policy)
        sizes = {name: known[name] if name in known else self.lists[name].rows for name in self.named_lists}
        variant, parameters = self.policy.variant(self.mechanism), self.policy.parameters(self.mechanism)
        self.mechanism.refuse_unusable(variant, parameters, sizes)
        for stage in self.mechanism.stages:
            domain = stage.find_domain(self.warehouse, self.month, self.policy.stage_parameters(self.mechanism))
            if domain is not None and domain.trouble is not None:
                raise RefusedError(f"nothing can be counted over {domain.charge.release_id}: {domain.trouble}")

    def inputs(self, history: list[Charge], book: Book) -> tuple[dict[str, str], bool]:
        """The digests of a request's inputs, and whether they are known for certain.

        Where they are not, those of the newest release stand for them: a request that differs from it in something
        else is refused all the same. A month whose rows were forgotten has nothing that could differ.
        """
        newest = next(reversed(history), None)
        if newest is None:
            return {}, False
        holding = batches_holding(self.warehouse, self.month) if self.reads_log else []
        if self.reads_log and not holding:
            return dict(newest.request.unpinned.inputs), True
        if holding and not in_use(holding, book.withdrawals()):
            return {FILES: CHANGED}, True
        digests = {name: digest_of({PUBLIC_LISTS[name]: found.content_digest}) for name, found in self.lists.items()}
        made = self._made(self._planned_shape(book), book)
        if made is not None:
            return {self.limited: made.provenance.content_digest, **digests}, True
        before = {name: digest for name, digest in newest.request.inputs.items() if name == self.limited}
        if self._has_other_files(newest, book):
            return {**before, **digests, FILES: CHANGED}, True
        return {**before, **digests}, False

    def _planned_shape(self, book: Book) -> str:
        """The shape that the limited stage would have, made from what is ingested now."""
        shapes = {name: describe_public_list(name, found).shape for name, found in self.lists.items()}
        chosen = self.policy.stage_parameters(self.mechanism)
        if self.reads_log:
            parts = parts_of_month(self.warehouse, self.month, book)
            shapes["raw_log"] = describe_raw_log(self.month, parts).shape
        for stage in (CLEANED_LOG, *self.mechanism.stages):
            if not set(stage.reads) - set(PUBLIC_LISTS) <= set(shapes):
                continue
            read = {name: shapes[name] for name in stage.reads if name in shapes}
            parameters = None if stage is CLEANED_LOG else chosen
            described = stage.describe(self.warehouse, self.month, parameters, self.policy.lists, read)
            shapes[stage.name] = described.shape
            if stage.name == self.limited:
                break
        return shapes[self.limited]

    def _made(self, shape: str, book: Book) -> Partition | None:
        """The limited stage of this shape, if it lies there as the ledger says it was written."""
        try:
            found = self.warehouse.partition(self.limited, self.month, shape)
        except WarehouseError:
            return None
        return found if book.knows(found) else None

    def _has_other_files(self, release: Charge, book: Book) -> bool:
        """Whether the month is made up of other files now than when a release was drawn: late ones came, or some were
        withdrawn. Whether their rows would change anything is not looked at; files that were only read anew are the
        same files."""
        for drawn_from in self._partitions(release):
            try:
                cleaned = self._above(drawn_from, CLEANED_LOG.name)
                raw = self._above(cleaned, "raw_log")
            except (WarehouseError, KeyError):
                continue
            now = {part.provenance.month for part in parts_of_month(self.warehouse, self.month, book)}
            return now != {name.partition(":")[2] for name in raw.provenance.upstream}
        return False

    def _above(self, partition: Partition, asset: str) -> Partition:
        return self.warehouse.partition(asset, self.month, partition.provenance.upstream[asset])

    def _partitions(self, release: Charge) -> Iterator[Partition]:
        """The partitions of the limited stage that hold the rows a release was drawn from."""
        for path in sorted((self.warehouse.private / self.limited / self.month).glob("*/provenance.json")):
            try:
                found = self.warehouse.partition(self.limited, self.month, path.parent.name)
                if found.provenance.content_digest == release.request.inputs.get(self.limited):
                    yield found
            except WarehouseError:
                continue
