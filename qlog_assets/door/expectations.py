"""What is said of a release before it is charged: its cost, its thresholds, what is off, and the rows noise makes.

Computed from mechanism and policy alone: no log, no ledger, no file. So it may be said before anything is decided.
"""

from __future__ import annotations

import math

from qlog_assets.mechanisms.expectations import KNOWN_FAKES, Expectation, noise_words, threshold_words
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.policy import Policy
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.sources.pool_files import DEFAULT_ROWS


def public_expectations(mechanism: Mechanism, policy: Policy) -> str:
    """One line: what a release under this policy costs, and what is known in public about its result."""
    variant, parameters = policy.variant(mechanism), policy.parameters(mechanism)
    loss = mechanism.guarantee(variant, parameters).proven
    expected = expected_rows(mechanism, policy)
    parts = [f"{mechanism.name} {variant} costs {cost_words(loss)}"]
    if expected:
        parts += [f"users that a row needs, after noise: {threshold_words(expected)}", noise_words(expected)]
    if mechanism.is_steered(variant, parameters):
        parts.append(f"in a later month {KNOWN_FAKES} of the rows of the month before that nobody holds any more, too")
    return "; ".join([*parts, *policy.switched_off(mechanism)])


def expected_rows(mechanism: Mechanism, policy: Policy) -> tuple[Expectation, ...]:
    """What is known in public of the rows of a release under this policy."""
    return mechanism.expectations(policy.variant(mechanism), policy.parameters(mechanism), known_list_rows(policy))


def known_list_rows(policy: Policy) -> dict[str, int]:
    """The sizes of public lists that are known without reading a file: that of the pool which ships with qlog."""
    return {"pool": math.ceil(DEFAULT_ROWS * policy.pool.probability)} if policy.pool.kind == "default" else {}


def cost_words(loss: PrivacyLoss | None) -> str:
    return "nothing finite" if loss is None else f"ε = {at_most(loss.epsilon, 6)}, δ = {at_most(loss.delta)}"
