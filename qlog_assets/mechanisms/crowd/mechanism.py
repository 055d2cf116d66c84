"""CrowdLogging as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.crowd import guarantee
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.mechanism import Mechanism, Variant


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.crowd.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.crowd.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="crowd",
    title="CrowdLogging",
    summary="Artifacts that enough people sent from their own machines.",
    version=1,
    parameters=CrowdParameters,
    variants={
        "sound": Variant(guarantee.sound),
        "ft_a": Variant(guarantee.artifact_frequency),
        "ft_u": Variant(guarantee.user_frequency),
        "dp_a": Variant(guarantee.artifact_differential),
        "dp_u": Variant(guarantee.user_differential),
    },
    attacks=attacks,
    examples=examples,
)
