"""What is protected over one month, a year and for ever, where a budget is for a window of months. Words and numbers.

Made of the manifest alone. A data set whose budget is for ever has no such part: its datasheet says that months add up
until the budget is spent. Why a budget per window protects what it says is proven in `ledger/windows.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from qlog_assets.privacy.activity import activity_losses
from qlog_assets.privacy.bounds import at_most, exact_value
from qlog_assets.privacy.guarantee import PrivacyLoss, factor

LENGTHS = {1: "one month", 3: "three months", 12: "one year", 36: "three years"}


@dataclass(frozen=True)
class OverTime:
    """The sentences and the table of the datasheet's part on time."""

    promise: str
    """What the budget protects, in one sentence."""
    further: tuple[str, ...]
    rows: list[tuple[str, str, str, str]]
    """For somebody who searched for so long: the most by the budget; at this release's cost, plain and by zCDP."""


def describe_window(window: int) -> str:
    return "any one month" if window == 1 else f"any {window} consecutive months"


def tell_over_time(manifest: Mapping[str, Any]) -> OverTime | None:
    """What a manifest promises over time; None where its budget is for ever and always was."""
    budget = manifest.get("budget")
    if budget is None:
        return None
    epsilon, delta, window = Fraction(budget["epsilon"]), Fraction(budget["delta"]), budget["window_months"]
    loss = factor(PrivacyLoss(epsilon, delta))
    exception = f", but for a probability of at most {at_most(delta)}" if delta else ""
    whatever = (
        "Whatever one user ever searched"
        if window is None
        else f"Whatever one user searched in {describe_window(window)}"
    )
    promise = (
        f"{whatever} shares one budget. When this was drawn, all releases made from these searches by then, this one, "
        f"those withdrawn and those of every other mechanism among them, changed the odds of anything at all by at "
        f"most {loss}{exception}."
    )
    return OverTime(promise, tuple(further_words(budget)), loss_rows(manifest, (epsilon, delta), window))


def further_words(budget: Mapping[str, Any]) -> list[str]:
    """What a window leaves open, how terms can change, and what they were before."""
    window = budget["window_months"]
    words = [
        "The publisher's ledger refuses every further release that would pass it, unless its keeper raises the budget "
        "or shortens the window for months to come. That takes a recorded reason, and every later datasheet names it.",
    ]
    if window is not None:
        words += [
            "This holds for every such window at once, also for those that begin and end between two releases. A "
            "release reads searches of its own month only.",
            "The budget renews as months pass. Nothing bounds the loss of somebody who goes on searching for ever: for "
            f"each further {'month' if window == 1 else f'{window} months'} one more budget may be spent. The table "
            "says what that comes to.",
        ]
    for earlier in budget["earlier"]:
        before, length = earlier["before"], earlier["window_months"]
        searched = (
            f"in the months before {before}"
            if length is None
            else (f"in {describe_window(length)} that begin before {before}")
        )
        words.append(f"What one user searched {searched} goes on sharing one such budget, as was promised by then.")
    for past in budget["past"]:
        length = past["window_months"]
        words.append(
            f"Until {past['until']} the terms were ε = {at_most(Fraction(past['epsilon']))}, δ = "
            f"{at_most(Fraction(past['delta']))}, {'for ever' if length is None else f'for {describe_window(length)}'}."
        )
    return words


def loss_rows(
    manifest: Mapping[str, Any], budget: tuple[Fraction, Fraction], window: int | None
) -> list[tuple[str, str, str, str]]:
    guarantee = manifest["guarantee"]
    rho = guarantee["rho"]
    month = (
        Fraction(guarantee["epsilon_exact"] or exact_value(guarantee["epsilon"])),
        Fraction(guarantee["delta_exact"] or exact_value(guarantee["delta"])),
        None if rho is None else exact_value(rho),
    )
    return [
        (
            LENGTHS[loss.months],
            pair(loss.most_epsilon, loss.most_delta),
            pair(loss.epsilon, loss.delta),
            pair(loss.zcdp_epsilon, loss.zcdp_delta),
        )
        for loss in activity_losses(budget, window, month, tuple(LENGTHS))
    ]


def pair(epsilon: Fraction | float, delta: Fraction) -> str:
    return f"ε = {at_most(epsilon)}, δ = {at_most(delta)}"
