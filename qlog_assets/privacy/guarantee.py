"""The words and numbers a guarantee is made of. Types only: which mechanism promises what lives in its own module.

Sentences of a guarantee get into manifests, so each has a version: `WORDS` is today's, and what a draw of an earlier
version says is in `earlier_words` and in the mechanisms' own modules of that name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.bounds import at_most, exp_at_most
from qlog_assets.privacy.composition import Noise, release_loss

WORDS = 4
"""The version of the public words. A draw stores the one it was made with and keeps it for ever."""
FIRST_WORDS = 1
"""The version of draws and manifests that name none."""

RELEASE_ASSUMPTIONS = (
    "one person is one user id; a person with g ids has (g·ε, g·e^((g-1)·ε)·δ)",
    "computing power is bounded: nobody breaks AES-256, which makes the random bits, or SHA-256, which hides the "
    "ledger's state in the manifest",
    "the parameters were chosen from public information only, not by trying them on this log",
    "whether and when a month is released is the operator's decision, made without looking at what any one user's "
    "rows do to it; no user's bad rows stop a release, and only a month without a single good row has none",
)
"""What every published release rests on, whatever its mechanism."""

USER = "user"
ADD_REMOVE = "add-or-remove-one-user"
REPLACE = "replace-one-user"

Number = Fraction | float


@dataclass(frozen=True)
class PrivacyLoss:
    """What one release costs: (ε, δ), and ρ where it is δ-approximately ρ-zCDP. Rationals stay exact."""

    epsilon: Number
    delta: Number
    rho: Number | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ParameterError("epsilon must be finite and not negative")
        if not self.delta >= 0:
            raise ParameterError("delta must not be negative")
        if self.rho is not None and not (math.isfinite(self.rho) and self.rho >= 0):
            raise ParameterError("rho must be finite and not negative")

    def as_json(self) -> dict[str, float]:
        """ε, δ and, where there is one, ρ as plain numbers, rounded up where a double cannot hold them."""
        numbers = {"epsilon": printed(self.epsilon), "delta": printed(self.delta)}
        if self.rho is not None:
            numbers["rho"] = printed(self.rho)
        return numbers


def printed(value: Number) -> float:
    """The nearest double if it reads as the value itself (0.1 is one tenth), otherwise never below the value.

    A decimal of at most 15 digits survives the way to a double and back, so the nearest double is its faithful
    name; any other rational is rounded upwards: a printed loss must not be smaller than the proven one.
    """
    number = float(value)
    if isinstance(value, float) or Fraction(repr(number)) == value or Fraction(number) >= value:
        return number
    return math.nextafter(number, math.inf)


@dataclass(frozen=True)
class Part:
    """One table or sub-mechanism of a release and what it costs by itself."""

    name: str
    claimed: PrivacyLoss | None
    proven: PrivacyLoss | None
    sentence: str

    def as_json(self) -> dict[str, Any]:
        """The part under the same keys as the whole."""
        return {
            "name": self.name,
            "claimed": None if self.claimed is None else self.claimed.as_json(),
            "proven": None if self.proven is None else self.proven.as_json(),
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Guarantee:
    """What a mechanism promises with these parameters, who claims it, and what is known to be wrong with the claim.

    `claimed` is what the variant's own theorem says; `proven` is what holds end to end for the algorithm as described,
    None where nothing finite does. Only a `publishable` variant may pass the door; it is charged with `proven`.
    """

    mechanism: str
    variant: str
    claimed: PrivacyLoss | None
    proven: PrivacyLoss | None
    parts: tuple[Part, ...]
    assumptions: tuple[str, ...]
    gaps: tuple[str, ...]
    paper: str
    sentence: str
    formula: str
    unit: str = USER
    relation: str = ADD_REMOVE
    publishable: bool = False
    """Whether the door may draw it. A paper's variant never is, whatever is proven of it: it uses float noise."""
    label: str = "differential privacy"
    """What kind of promise `claimed` is, in the paper's own terms."""
    thresholds: dict[str, int] = field(default_factory=dict)
    """Least noisy counts the mechanism computes from its parameters."""
    figures: dict[str, float] = field(default_factory=dict)
    """Other numbers the formulas give on the way, by name."""
    noise: tuple[Noise, ...] = ()
    """The two-sided geometric counts of a sound release, for the exact accountant. Empty where it does not apply."""

    def accounted(self, accounting_delta: Fraction | None = None) -> PrivacyLoss | None:
        """The same release by exact accounting of its noise: a smaller ε for more δ. None where it gains below 1 %.

        Valid inside one release, whose parameters are fixed; across releases the ledger adds `proven` or ρ instead.
        By default the accountant takes as much δ as the release has, or a billionth where it has none.
        """
        if self.proven is None or not self.noise:
            return None
        stability = Fraction(self.proven.delta)
        epsilon, delta = release_loss(self.noise, stability, accounting_delta or stability or Fraction(1, 10**9))
        return PrivacyLoss(epsilon, delta, self.proven.rho) if epsilon < 0.99 * self.proven.epsilon else None

    def as_json(self) -> dict[str, Any]:
        """The contract of `qlog guarantee --json`; scripts rely on these keys."""
        accounted = self.accounted()
        return {
            "mechanism": self.mechanism,
            "variant": self.variant,
            "claimed": None if self.claimed is None else self.claimed.as_json(),
            "proven": None if self.proven is None else self.proven.as_json(),
            "accounted": None if accounted is None else accounted.as_json(),
            "parts": [part.as_json() for part in self.parts],
            "gaps": list(self.gaps),
            "assumptions": list(self.assumptions),
            "unit": self.unit,
            "relation": self.relation,
            "publishable": self.publishable,
            "label": self.label,
            "paper": self.paper,
            "sentence": self.sentence,
            "formula": self.formula,
            "thresholds": dict(self.thresholds),
            "figures": dict(self.figures),
        }


def add_losses(losses: list[PrivacyLoss]) -> PrivacyLoss:
    """Basic composition of the parts of one release: ε, δ and ρ each add up. Exact while all of them are rationals."""
    rho: Number | None = Fraction(0)
    for loss in losses:
        rho = None if rho is None or loss.rho is None else rho + loss.rho
    return PrivacyLoss(
        epsilon=sum((loss.epsilon for loss in losses), Fraction(0)),
        delta=sum((loss.delta for loss in losses), Fraction(0)),
        rho=rho,
    )


def counting_loss(counts: int, scale: Fraction, delta: Fraction = Fraction(0)) -> PrivacyLoss:
    """The loss of a histogram in which one user moves at most `counts` counts by 1, with two-sided geometric noise.

    ε = counts/scale. Each count alone is (1/scale)-DP, hence 1/(2·scale²)-zCDP, and the counts add up. With a
    stability threshold the user's brand-new items stay unprinted but with probability δ; given that, only the
    other counts differ: that is δ-approximate ρ-zCDP with the same ρ.
    """
    return PrivacyLoss(epsilon=counts / scale, delta=delta, rho=counts / (2 * scale * scale))


def factor(loss: PrivacyLoss) -> str:
    """e^ε in words, such as `a factor of 12.19 (e^2.5)`; beyond what a person can picture only the exponent."""
    exponent = f"e^{at_most(loss.epsilon)}"
    if loss.epsilon >= 20:
        return f"a factor of {exponent}"
    return f"a factor of {at_most(exp_at_most(loss.epsilon))} ({exponent})"


def approximate_words(loss: PrivacyLoss) -> str:
    """An (ε, δ) guarantee as a sentence for somebody who does not read formulas."""
    return (
        f"Whether any one user is in the log changes the odds of any published result by at most {factor(loss)}, "
        f"but for a probability of at most {at_most(loss.delta)}."
    )
