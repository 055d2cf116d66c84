"""Whether a release was steered by the one that it had to be: by the ledger's own order, whatever anybody says.

A draw is steered by the live release of the latest earlier month, as it was when the draw was charged. The ledger's
events have an order, so this can be decided again at any time, also after releases were withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qlog_assets.ledger import Charge, Ledger
from qlog_assets.ledger.records import STEERING
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.privacy.parameters import Parameters


def steering_findings(ledger: Ledger, mechanism: Mechanism, charge: Charge, parameters: Parameters | None) -> list[str]:
    """In what the pin of a release differs from what the ledger's order demands; empty if it does not.

    Parameters and variants that this version cannot read are findings about the guarantee.
    """
    if parameters is None or charge.variant not in mechanism.variants:
        return []
    pinned = charge.request.steered_by
    if not mechanism.is_steered(charge.variant, parameters):
        return [] if pinned is None else [f"steering: {pinned} is named to steer a draw that nothing steers"]
    wanted = steering_at(ledger, charge)
    if pinned is None:
        return [] if wanted is None else [f"steering: {wanted.release_id} had to steer it, and nothing did"]
    trouble = wrong_pin(ledger, charge, pinned, wanted)
    return [] if trouble is None else [f"steering: {trouble}"]


def wrong_pin(ledger: Ledger, charge: Charge, pinned: str, wanted: Charge | None) -> str | None:
    """What is wrong with the release that a charge says steered it; None where nothing is."""
    if len(charge.request.pins) > 1:
        return "it names more than one release that steered it"
    known = {each.release_id: each for each in ledger.charges()}.get(pinned)
    if known is None:
        return f"it names {pinned}, which the ledger does not know"
    if (known.dataset, known.mechanism) != (charge.dataset, charge.mechanism) or known.month >= charge.month:
        return f"{pinned} is no release of an earlier month of the same data set and mechanism"
    if known.manifest_digest != charge.request.pins[pinned]:
        return f"{pinned} was published with another manifest than the one that is pinned"
    if wanted is None or wanted.release_id != pinned:
        better = "none had to" if wanted is None else f"{wanted.release_id} had to"
        return f"{pinned} steered it, and {better}, by what was public when it was charged"
    return None


def names_other_pin(manifest: Mapping[str, Any], charge: Charge) -> bool:
    """Whether a manifest says of what steered its release something else than the ledger."""
    told = {pool["name"]: pool["sha256"] for pool in manifest["pools"] if pool["kind"] == STEERING}
    return told != charge.request.pins


def steering_at(ledger: Ledger, charge: Charge) -> Charge | None:
    """The release that had to steer a draw: of the latest earlier month, published and not withdrawn by then."""
    ended = {
        str(event.facts["release_id"]): event.seq
        for event in ledger.events()
        if event.kind in ("withdrawn", "abandoned")
    }
    there = [
        each
        for each in ledger.charges(charge.dataset)
        if each.mechanism == charge.mechanism
        and each.month < charge.month
        and each.published_seq is not None
        and each.published_seq < charge.seq
        and ended.get(each.release_id, charge.seq + 1) > charge.seq
    ]
    return max(there, key=lambda each: (each.month, each.draw_number), default=None)
