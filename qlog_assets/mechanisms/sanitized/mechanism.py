"""Sanitized logs as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.mechanism import Mechanism, Variant
from qlog_assets.mechanisms.sanitized import guarantee
from qlog_assets.mechanisms.sanitized.draw import draw_paper
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.sanitized.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.sanitized.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="sanitized",
    title="Sanitized logs",
    summary="A log in the log's own schema, with made-up users.",
    version=1,
    parameters=SanitizedParameters,
    variants={
        "synth": Variant(guarantee.synth),
        "paper": Variant(guarantee.paper, draw_paper, reads=("cleaned_log",)),
    },
    attacks=attacks,
    examples=examples,
)
