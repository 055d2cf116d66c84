"""ZEALOUS beside its paper and k-anonymity: frequent items and an attack, at one (ε, δ) over m.

What two applications get from it is in `applications`. Everything here is private and made with seeded noise; nothing
passes the door. What a measure means is in `measures/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from qlog_assets.mechanisms.baselines.paper import BASELINES, print_baseline
from qlog_assets.mechanisms.zealous import guarantee
from qlog_assets.mechanisms.zealous import noise as zealous
from qlog_assets.mechanisms.zealous.draw import release_as_printed
from qlog_assets.mechanisms.zealous.parameters import SelectionMethod, ZealousParameters
from qlog_assets.mechanisms.zealous.stages import EVENTS, event_parameters
from qlog_assets.privacy.parameters import Listed, Parameters
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures import frequent
from qlog_assets.studies.parts import PARTS
from qlog_assets.studies.study import Tables

METHODS: tuple[SelectionMethod, ...] = ("truncated_geometric", "gaussian_counts", "weighted_gaussian", "sips")


class StudySettings(Parameters):
    """What the comparison varies."""

    seed: int = Field(1, ge=0)
    """Seed of the noise."""
    k: int = Field(50, ge=2)
    """k of the k-anonymity baselines."""
    frequent: int = Field(50, ge=1)
    """τ: users from which an item counts as frequent."""
    items_per_user: Annotated[tuple[int, ...], Listed] = (2, 5, 10, 20, 50, 100)
    """m: the limits that are tried."""
    tested_part: int = Field(0, ge=0, lt=PARTS)
    """Which fifth of the users judges the applications; their caches and substitutes are drawn from the others."""

    @property
    def slack(self) -> int:
        """ζ of the inaccuracy, in users."""
        return self.frequent // 5


@dataclass(frozen=True)
class Items:
    """One kind of items of a log: the truth, each event as (user, item), and what a draw is made from."""

    kind: str
    texts: pa.Table
    truth: frequent.Truth
    event_users: np.ndarray
    event_items: np.ndarray


def measure_kind(engine: Engine, kind: str, chosen: ZealousParameters, plan: StudySettings) -> Tables:
    """One kind of items of the whole month: how well every method tells the frequent ones."""
    items = read_items(engine, kind)
    measured = []
    for label, drawn, counts in draws_of(items, chosen, plan):
        result = frequent.compare(items.truth, drawn, counts, plan.frequent, plan.slack)
        measured.append({"kind": kind, **label, **asdict(result)})
    return {"frequent_items": measured}


def read_items(engine: Engine, kind: str) -> Items:
    """All items of a kind with their numbers of users and events, and every event by number."""
    engine.statement_table(EVENTS[kind], "events", **event_parameters(kind))
    engine.statement_table("studies/items", "counted_items")
    texts = engine.arrow("studies/texts")
    truth = frequent.Truth(texts["held_by"].to_numpy(), texts["happened"].to_numpy())
    return Items(kind, texts, truth, *number_events(engine))


def draws_of(
    items: Items, chosen: ZealousParameters, plan: StudySettings
) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """One draw of every method, labelled: the baselines on all events, the others on m chosen items per user."""
    domain = items.texts.num_rows
    for name in BASELINES:
        printed = print_baseline(name, items.event_users, items.event_items, domain, plan.k)
        # All three print exact counts, two of them of events: as counts of users they are taken to be exact, too.
        yield {"method": f"k-anonymity: {name}", "m": None}, printed.indices, items.truth.users[printed.indices]
    held = hold(items, plan.seed)
    for per_user in plan.items_per_user:
        users, numbers = held.limited(per_user)
        counts = np.bincount(numbers, minlength=domain)
        settings = chosen.with_changes(items_per_user=per_user)
        paper = release_as_printed(SeededRandom(plan.seed), counts, settings)
        yield {"method": "paper", "m": per_user}, paper.indices, paper.counts
        drawn = zealous.draw_counts(SeededRandom(plan.seed), counts, "sound", settings)
        yield {"method": "sound", "m": per_user}, drawn.items, drawn.users
        for method in METHODS:
            modern = settings.with_changes(method=method)
            source = SeededRandom(plan.seed)
            if zealous.takes_rows("modern", modern):
                drawn = zealous.draw_rows(source, users, numbers, modern)
            else:
                drawn = zealous.draw_counts(source, counts, "modern", modern)
            yield {"method": f"modern: {method}", "m": per_user}, drawn.items, drawn.users


class Held(NamedTuple):
    """Who holds which item, each once, and which of the user's items it is in an order that chance decides."""

    users: np.ndarray
    items: np.ndarray
    places: np.ndarray

    def limited(self, per_user: int) -> tuple[np.ndarray, np.ndarray]:
        """Users and items where each user gives at most so many, chosen evenly."""
        kept = self.places < per_user
        return self.users[kept], self.items[kept]


def hold(items: Items, seed: int) -> Held:
    """Each user's items in an order of chance.

    A release orders them by a keyed md5 of their texts, which is as even. Numbers are ordered here once for every m,
    instead of texts for each.
    """
    domain = items.texts.num_rows
    pairs = np.unique(items.event_users * domain + items.event_items)
    users, held = np.divmod(pairs, domain)
    order = np.lexsort((np.random.default_rng(seed).random(len(users)), users))
    starts = np.searchsorted(users, users)
    places = np.empty(len(users), np.int64)
    places[order] = np.arange(len(users)) - starts
    return Held(users, held, places)


def number_events(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """The events as numbers, by user and item."""
    engine.view_as("contributions", "events")
    rows = engine.arrays("contributions/numbered_contributions")
    users, items = rows["user_id"].astype(np.int64), rows["item_id"].astype(np.int64)
    order = np.lexsort((items, users))
    return users[order], items[order]


# The attack -----------------------------------------------------------------------------------------------------------


def attack(chosen: ZealousParameters, plan: StudySettings, runs: int = 100_000) -> Iterator[dict[str, Any]]:
    """k - 1 fake accounts type a guessed query. How much more often is it printed if the victim typed it, too?

    Baselines print it exactly then. Under ZEALOUS the attacker takes as many accounts as the threshold asks for,
    which is where one user more matters most.
    """
    for name in BASELINES:
        printed = []
        for people in (plan.k, plan.k - 1):
            one_query = np.zeros(people, np.int64)
            printed.append(len(print_baseline(name, np.arange(people), one_query, 1, plan.k).indices))
        yield {
            "method": f"k-anonymity: {name}",
            "accounts": plan.k - 1,
            "with_victim": printed[0],
            "without": printed[1],
        }
    least = guarantee.sound(chosen).thresholds[chosen.kinds[0]]
    for accounts in sorted({plan.k - 1, least - 1}):
        shares = [
            len(zealous.draw_counts(SeededRandom(plan.seed), np.full(runs, people), "sound", chosen).items) / runs
            for people in (accounts + 1, accounts)
        ]
        yield {"method": "sound", "accounts": accounts, "with_victim": shares[0], "without": shares[1]}
