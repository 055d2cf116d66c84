"""Safelog as one thing: what the register finds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.expectations import NO_URLS
from qlog_assets.mechanisms.mechanism import Mechanism, Variant, refusal
from qlog_assets.mechanisms.safelog import guarantee
from qlog_assets.mechanisms.safelog.account import account
from qlog_assets.mechanisms.safelog.draw import draw, draw_paper
from qlog_assets.mechanisms.safelog.draw_modern import draw_modern
from qlog_assets.mechanisms.safelog.earlier_words import sound_in_earlier_words
from qlog_assets.mechanisms.safelog.expectations import expects, expects_modern
from qlog_assets.mechanisms.safelog.noise import check_draw, check_modern
from qlog_assets.mechanisms.safelog.parameters import (
    MODERN_ONLY,
    SOUND_ONLY,
    PaperParameters,
    SafelogParameters,
    SafelogPolicy,
)
from qlog_assets.mechanisms.safelog.stages import STAGES
from qlog_assets.mechanisms.safelog.tables import TABLES
from qlog_assets.pipeline.public_material import PublicLists


def resolve(chosen: SafelogPolicy, lists: PublicLists) -> SafelogPolicy:
    """The policy's parameters with what it says of urls: which clicks may appear, and whether any may."""
    chosen.refuse_unread()
    if not lists.has_urls:
        return chosen.with_changes(**without_clicks(chosen), click_support="stability")
    if lists.url_list is not None:
        return chosen.with_changes(click_support="public_list")
    if chosen.click_support == "public_list":
        raise ParameterError("click_support: public_list needs the policy's url_list")
    # Without a list and without delta no clicked pair can appear, so nothing may be charged for any.
    return chosen.with_changes(**without_clicks(chosen)) if chosen.delta == 0 else chosen


def as_variant(chosen: SafelogPolicy, variant: str) -> SafelogPolicy:
    """The section for a study of a variant: `paper` reads what `sound` does."""
    return chosen.with_changes(variant="modern" if variant == "modern" else "sound")


def with_pool(chosen: SafelogParameters, lists: PublicLists) -> PaperParameters:
    """What `paper` is priced by: the share of the list that the pool keeps is the p_g of Theorem 1."""
    return PaperParameters(**chosen.said, pool_probability=lists.pool.probability)


def without_clicks(chosen: SafelogPolicy) -> dict[str, None]:
    """What switches clicks off in the variant that is chosen."""
    return {"click_share" if chosen.variant == "modern" else "click_scale": None}


def switched_off(chosen: SafelogPolicy, lists: PublicLists) -> list[str]:
    (part,) = without_clicks(chosen)
    if getattr(chosen, part) is None or getattr(resolve(chosen, lists), part) is not None:
        return []
    return [NO_URLS if not lists.has_urls else "clicks are off: without delta and without a url_list none can appear"]


def at_cost(chosen: SafelogPolicy, epsilon: Fraction, delta: Fraction) -> SafelogPolicy:
    """`sound`: all scales by one factor, and with them the threshold that keeps fakes out."""
    if chosen.variant == "modern":
        return chosen.with_changes(epsilon=epsilon, delta=delta)
    proven = guarantee.sound(chosen).proven
    assert proven is not None
    factor = Fraction(proven.epsilon) / epsilon
    scales = ("selection_scale", "click_scale", "transition_scale")
    return chosen.with_changes(
        **{name: None if (scale := getattr(chosen, name)) is None else factor * scale for name in scales},
        threshold=max(1, math.ceil(factor * chosen.threshold)),
        delta=chosen.delta if chosen.delta == 0 else delta,
    )


def ignores(chosen: SafelogParameters) -> set[str]:
    """What says nothing where a table is not released, or takes no share of δ."""
    unread = set()
    if chosen.click_scale is None:
        unread |= {"clicks_per_user", "click_threshold", "click_support"}
    if chosen.click_delta == 0:
        unread.add("delta_share_clicks")
    if chosen.transition_scale is None:
        unread.add("transition_threshold")
    return unread


def modern_ignores(chosen: SafelogParameters) -> set[str]:
    return {"clicks_per_user", "click_support"} if chosen.click_share is None else set()


def modern_refuses(chosen: SafelogParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(check_modern, list_rows.get("pool", 0), chosen))


def refuses(chosen: SafelogParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(check_draw, list_rows.get("pool", 0), chosen))


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.safelog.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.safelog.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="safelog",
    title="Safelog",
    summary="Queries, clicked pairs and transitions with noisy numbers of users, beside a public pool.",
    # 2: the derived threshold of transitions has a floor. Costs and promises are those of 1.
    version=2,
    stands_for=frozenset({1}),
    parameters=SafelogParameters,
    variants={
        "modern": Variant(
            guarantee.modern,
            draw_modern,
            leaves_out=SOUND_ONLY,
            steered=lambda chosen: True,
            ignores=modern_ignores,
            refuses=modern_refuses,
            expects=expects_modern,
        ),
        "sound": Variant(
            guarantee.sound,
            draw,
            leaves_out=MODERN_ONLY,
            ignores=ignores,
            refuses=refuses,
            expects=expects,
            earlier_words=sound_in_earlier_words,
        ),
        "paper": Variant(guarantee.paper, draw_paper, reads=("cleaned_log", "pool"), as_studied=with_pool),
    },
    stages=STAGES,
    tables=TABLES,
    account=account,
    section=SafelogPolicy,
    attacks=attacks,
    examples=examples,
    resolve=resolve,
    as_variant=as_variant,
    switched_off=switched_off,
    at_cost=at_cost,
    # Safelog was here first, and its assets have the plain names that people know.
    draw_asset="selected",
    released_prefix="released_",
)
