"""What is public, as a list: releases, withdrawals, skipped months, and what they cost. Facts only, no page.

A function of the ledger and of the manifests under `released/`. Reasons are private and are not here; what the public
is told of a withdrawal or a skip is a text of its own. Nobody has seen a draw that was not published: it is not listed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.ledger import Charge, Ledger
from qlog_assets.ledger.skips import Skip
from qlog_assets.months import Month, months_between
from qlog_assets.report.public_zone import pointed_at, release_path, withdrawal_text
from qlog_assets.storage.digests import bytes_digest, line_digest
from qlog_assets.storage.warehouse import Warehouse

SKIPPED_TEXT = "No release was made of this month."
FACTS_FORM = 1
"""Raised by hand when `Catalogue.digest` is made of other facts: digests of two forms cannot be compared."""


@dataclass(frozen=True)
class ListedRelease:
    """One release that is or was public."""

    charge: Charge
    folder: str
    """Its directory, from `released/` on."""
    manifest: Mapping[str, Any] | None
    """None where it was withdrawn, or where its files are not there as they were published."""
    newest: bool
    """Whether the month's pointer names it."""

    @property
    def withdrawn(self) -> bool:
        return self.charge.state == "withdrawn"

    @property
    def text(self) -> str:
        """What the public is told of its withdrawal."""
        return withdrawal_text(self.charge)


@dataclass(frozen=True)
class ListedSkip:
    """A month that was left out, by some mechanisms, with what the public is told of it."""

    month: str
    mechanisms: tuple[str, ...]
    public_text: str | None
    """None: no more than that it was left out."""

    @property
    def text(self) -> str:
        """What the page says of it."""
        return self.public_text or SKIPPED_TEXT


@dataclass(frozen=True)
class Spent:
    """What the listed releases of a month cost, and all up to it."""

    month: Month
    epsilon: Fraction
    delta: Fraction
    epsilon_so_far: Fraction
    delta_so_far: Fraction


@dataclass(frozen=True)
class Catalogue:
    """Everything public of one data set. Releases and skips by month, newest first."""

    dataset: str
    releases: tuple[ListedRelease, ...]
    skips: tuple[ListedSkip, ...]

    @property
    def live(self) -> list[ListedRelease]:
        return [release for release in self.releases if release.manifest is not None]

    @property
    def is_whole(self) -> bool:
        """Whether every release that should be there is there as it was published."""
        return all(release.withdrawn or release.manifest is not None for release in self.releases)

    @property
    def about(self) -> Mapping[str, Any]:
        """What the owner says of the data set, as the newest release has it."""
        newest = max(self.live, key=lambda release: release.charge.drawn_seq or 0, default=None)
        return {} if newest is None or newest.manifest is None else newest.manifest["about"]

    @property
    def digest(self) -> str:
        """A digest of all that pages are made of, whatever a version of the software writes into them.

        A release's name stands for its charge and the manifest's digest for the manifest: neither ever changes.
        """
        releases = [
            {
                "release_id": release.charge.release_id,
                "manifest": release.charge.manifest_digest,
                "is_here": release.manifest is not None,
                "is_withdrawn": release.withdrawn,
                "is_newest": release.newest,
                "public_text": release.charge.public_text,
            }
            for release in self.releases
        ]
        skips = [[skip.month, list(skip.mechanisms), skip.public_text] for skip in self.skips]
        return line_digest({"dataset": self.dataset, "releases": releases, "skips": skips})

    def spending(self) -> list[Spent]:
        """From the first month to the last: losses add up, also those of what was withdrawn."""
        if not self.releases:
            return []
        epsilons: dict[str, Fraction] = defaultdict(Fraction)
        deltas: dict[str, Fraction] = defaultdict(Fraction)
        for release in self.releases:
            epsilons[release.charge.month] += Fraction(release.charge.epsilon)
            deltas[release.charge.month] += Fraction(release.charge.delta)
        rows, epsilon, delta = [], Fraction(0), Fraction(0)
        for month in months_between(Month(min(epsilons)), Month(max(epsilons))):
            epsilon, delta = epsilon + epsilons[month], delta + deltas[month]
            rows.append(Spent(month, epsilons[month], deltas[month], epsilon, delta))
        return rows


def read_catalogue(warehouse: Warehouse, ledger: Ledger, dataset: str) -> Catalogue:
    """What is public now."""
    charges = [charge for charge in ledger.charges(dataset) if charge.manifest_digest is not None]
    order = sorted(charges, key=lambda charge: (charge.mechanism, charge.seq))
    order.sort(key=lambda charge: charge.month, reverse=True)
    return Catalogue(
        dataset,
        tuple(list_release(warehouse, charge) for charge in order),
        tuple(list_skips(ledger.skips(dataset), {(charge.month, charge.mechanism) for charge in charges})),
    )


def list_release(warehouse: Warehouse, charge: Charge) -> ListedRelease:
    path = release_path(warehouse, charge)
    return ListedRelease(
        charge,
        path.relative_to(warehouse.released).as_posix(),
        None if charge.state == "withdrawn" else read_recorded(path / "manifest.json", charge),
        pointed_at(path.with_name("latest")) == charge.release_id,
    )


def read_recorded(path: Path, charge: Charge) -> dict[str, Any] | None:
    """A manifest that is the one the ledger recorded, which was held against its schema then; None if it is not."""
    try:
        # Read once: somebody may take it away between two looks, and the release that is served is public already.
        text = None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None
    if text is None or bytes_digest(text) != charge.manifest_digest:
        return None
    return dict(json.loads(text))


def list_skips(skips: Iterable[Skip], listed: set[tuple[str, str]]) -> list[ListedSkip]:
    """Skips of months without a release of the mechanism; those of a month that say the same are one."""
    grouped: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for skip in skips:
        if (skip.month, skip.mechanism) not in listed:
            grouped[skip.month, skip.public_text].append(skip.mechanism)
    found = [ListedSkip(month, tuple(sorted(names)), text) for (month, text), names in grouped.items()]
    return sorted(found, key=lambda skip: (skip.month, skip.mechanisms), reverse=True)
