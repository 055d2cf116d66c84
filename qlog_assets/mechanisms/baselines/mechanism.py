"""The k-anonymity baselines as one thing: what the register finds. They can be simulated and never released."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.baselines import guarantee
from qlog_assets.mechanisms.baselines.draw import draw, draw_histories, draw_sessions
from qlog_assets.mechanisms.baselines.parameters import BaselineParameters
from qlog_assets.mechanisms.mechanism import Mechanism, Variant

READS = ("cleaned_log",)


TRUST = (
    "Whoever runs it holds the whole log, and every reader must be trusted too: not to have made accounts, not to know "
    "what others typed, and not to guess."
)


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.baselines.attacks import CASES

    return CASES


MECHANISM = Mechanism(
    name="baselines",
    title="k-anonymity",
    summary="Queries, histories or sessions that k users have, with exact counts: no (ε, δ) holds, for studies alone.",
    version=1,
    parameters=BaselineParameters,
    variants={
        "users": Variant(guarantee.by_users, draw, READS),
        "frequency": Variant(guarantee.by_frequency, draw, READS),
        "secret_sharing": Variant(guarantee.by_secret_sharing, draw, READS),
        "histories": Variant(guarantee.by_histories, draw_histories, READS),
        "sessions": Variant(guarantee.by_sessions, draw_sessions, READS),
    },
    trust=TRUST,
    attacks=attacks,
)
