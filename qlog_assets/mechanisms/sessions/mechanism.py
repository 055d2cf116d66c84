"""Session logs as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.mechanism import Mechanism, Variant
from qlog_assets.mechanisms.sessions import guarantee
from qlog_assets.mechanisms.sessions.parameters import SessionParameters


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.sessions.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.sessions.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="sessions",
    title="Session logs",
    summary="Frequent ordered sequences of queries, and clicks.",
    version=1,
    parameters=SessionParameters,
    variants={
        "sound": Variant(guarantee.sound),
        "paper": Variant(guarantee.paper),
    },
    attacks=attacks,
    examples=examples,
)
