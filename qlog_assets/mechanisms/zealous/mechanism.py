"""ZEALOUS as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.mechanism import Mechanism, Variant
from qlog_assets.mechanisms.zealous import guarantee
from qlog_assets.mechanisms.zealous.account import account
from qlog_assets.mechanisms.zealous.draw import draw, draw_paper
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters, ZealousPolicy
from qlog_assets.mechanisms.zealous.stages import STAGES
from qlog_assets.mechanisms.zealous.tables import TABLES


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.zealous.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.zealous.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="zealous",
    title="ZEALOUS",
    summary="Keywords, queries, pairs of queries and clicks that many users share, each with a noisy number of users.",
    version=1,
    parameters=ZealousParameters,
    variants={
        "sound": Variant(guarantee.sound, draw),
        "modern": Variant(guarantee.modern, draw),
        "paper": Variant(guarantee.paper, draw_paper),
    },
    stages=STAGES,
    tables=TABLES,
    account=account,
    section=ZealousPolicy,
    attacks=attacks,
    examples=examples,
)
