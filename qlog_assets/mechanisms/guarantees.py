"""What each mechanism promises: one function a mechanism and variant, from parameters to a `Guarantee`.

This module is the register; the formulas and their proofs are in one module a mechanism, the types in `statement`.
Nothing here draws noise or spends budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.crowd.paper import guarantee as crowd
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.safelog.noise import guarantee as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.sanitized.paper import guarantee as sanitized
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sessions.noise import guarantee as sessions
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.zealous.noise import guarantee as zealous
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.guarantee import Guarantee, Part, PrivacyLoss
from qlog_assets.privacy.parameters import Parameters

__all__ = ["Guarantee", "Part", "PrivacyLoss", "guarantee", "mechanisms", "parameter_model", "variants"]


@dataclass(frozen=True)
class Entry:
    """One mechanism: the model of its parameters and its variants, the one to publish with first."""

    parameters: type[Parameters]
    variants: dict[str, Callable[[Any], Guarantee]]


REGISTER: dict[str, Entry] = {
    "safelog": Entry(SafelogParameters, {"sound": safelog.sound, "paper": safelog.paper}),
    "zealous": Entry(ZealousParameters, {"sound": zealous.sound, "modern": zealous.modern, "paper": zealous.paper}),
    "sessions": Entry(SessionParameters, {"sound": sessions.sound, "paper": sessions.paper}),
    "crowd": Entry(
        CrowdParameters,
        {
            "sound": crowd.sound,
            "ft_a": crowd.artifact_frequency,
            "ft_u": crowd.user_frequency,
            "dp_a": crowd.artifact_differential,
            "dp_u": crowd.user_differential,
        },
    ),
    "sanitized": Entry(SanitizedParameters, {"synth": sanitized.synth, "paper": sanitized.paper}),
}


def mechanisms() -> tuple[str, ...]:
    """The names of the mechanisms that have guarantees."""
    return tuple(REGISTER)


def variants(mechanism: str) -> tuple[str, ...]:
    """The variants of a mechanism; the first is the one a release uses unless told otherwise."""
    return tuple(entry(mechanism).variants)


def parameter_model(mechanism: str) -> type[Parameters]:
    """The parameter model of a mechanism, the same for all its variants."""
    return entry(mechanism).parameters


def guarantee(mechanism: str, variant: str, parameters: Parameters) -> Guarantee:
    """What `mechanism` in `variant` promises with `parameters`: before anything is drawn or spent."""
    known = entry(mechanism)
    if variant not in known.variants:
        raise ParameterError(f"{mechanism} has no variant {variant!r}: choose one of {', '.join(known.variants)}")
    if not isinstance(parameters, known.parameters):
        raise ParameterError(f"{mechanism} takes {known.parameters.__name__}, not {type(parameters).__name__}")
    return known.variants[variant](parameters)


def entry(mechanism: str) -> Entry:
    """The register's entry for a mechanism, or an error that lists the known ones."""
    if mechanism not in REGISTER:
        raise ParameterError(f"unknown mechanism {mechanism!r}: choose one of {', '.join(REGISTER)}")
    return REGISTER[mechanism]
