"""How a release whose tables share one budget of Gaussian noise states what each of them costs. Words and sums only."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from qlog_assets.privacy.composition import zcdp_epsilon
from qlog_assets.privacy.gaussian import GaussianBudget
from qlog_assets.privacy.guarantee import Part, PrivacyLoss

SHARED_FORMULA = "μ² = Σ Δ²/(σ² - r²);  δ/2 = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ);  the thresholds share the other δ/2"
WEIGHTS_ASSUMPTION = (
    "Gaussian weights are integers rounded down, so that one user's L2 contribution stays within its bound"
)
STEERING_ASSUMPTION = (
    "the earlier release that steers the draw was charged for, is public, and is named in the manifest"
)


def gaussian_assumptions(method: str) -> tuple[str, ...]:
    """What a method by Gaussian noise takes for given besides what every release does."""
    return (WEIGHTS_ASSUMPTION, STEERING_ASSUMPTION) if method == "steered" else (WEIGHTS_ASSUMPTION,)


def shared_parts(budget: GaussianBudget, shares: Mapping[str, Fraction], method: str) -> list[Part]:
    """What each table would cost alone, by its share of μ² and of the δ of new items. A share of 0: no such table."""
    converting = budget.delta - budget.new_item_delta
    parts = []
    for name, share in shares.items():
        if share == 0:
            continue
        rho = budget.rho * share
        epsilon = min(budget.epsilon, Fraction(zcdp_epsilon(rho, converting)))
        loss = PrivacyLoss(epsilon, converting + budget.new_item_delta * share, rho)
        by = "steered selection" if method == "steered" else method.replace("_", " ")
        words = f"{name.capitalize()} alone, by {by}; ρ adds up, this ε does not."
        parts.append(Part(name, loss, loss, words))
    return parts
