"""ZEALOUS as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.expectations import NO_URLS
from qlog_assets.mechanisms.mechanism import Mechanism, Variant, refusal
from qlog_assets.mechanisms.zealous import guarantee, noise
from qlog_assets.mechanisms.zealous.account import account
from qlog_assets.mechanisms.zealous.draw import draw, draw_paper
from qlog_assets.mechanisms.zealous.earlier_words import modern_in_earlier_words, sound_in_earlier_words
from qlog_assets.mechanisms.zealous.expectations import expects_modern, expects_sound
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters, ZealousPolicy
from qlog_assets.mechanisms.zealous.stages import STAGES
from qlog_assets.mechanisms.zealous.tables import TABLES
from qlog_assets.pipeline.public_material import PublicLists

SECOND_STEP = {"set_share", "counted_items_per_user"}
"""What only the methods read that count in a second step what they chose in one look."""


def resolve(chosen: ZealousPolicy, lists: PublicLists) -> ZealousPolicy:
    """The policy's parameters without the kind that a log without urls has no item of: the others share ε and δ."""
    if noise.is_steered(chosen.variant, chosen):
        chosen.refuse_said(SECOND_STEP, 'method = "weighted_gaussian" or "sips"')
    if lists.has_urls or "clicks" not in chosen.kinds:
        return chosen
    others = tuple(kind for kind in chosen.kinds if kind != "clicks")
    if not others:
        raise ParameterError("kinds: has_urls = false says that the log has no urls, and clicks is the only kind")
    return chosen.with_changes(kinds=others)


def switched_off(chosen: ZealousPolicy, lists: PublicLists) -> list[str]:
    return [] if lists.has_urls or "clicks" not in chosen.kinds else [NO_URLS]


def sound_ignores(chosen: ZealousParameters) -> set[str]:
    return {"method", "set_share", "counted_items_per_user"}


def modern_ignores(chosen: ZealousParameters) -> set[str]:
    """A minimum of users, which `modern` cannot keep, and what only methods that count in a second step read."""
    return {"min_users"} | (set() if noise.takes_rows("modern", chosen) else SECOND_STEP)


def sound_refuses(chosen: ZealousParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(noise.check_draw, "sound", chosen))


def modern_refuses(chosen: ZealousParameters, list_rows: Mapping[str, int]) -> str | None:
    if chosen.min_users != 1:
        # Weights are no counts: leaving out what few users hold would look at other users before the noise.
        return f'min_users = {chosen.min_users} is kept by variant = "sound" alone: choose it, or leave min_users out'
    return refusal(partial(noise.check_draw, "modern", chosen))


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
        "sound": Variant(
            guarantee.sound,
            draw,
            ignores=sound_ignores,
            refuses=sound_refuses,
            expects=expects_sound,
            earlier_words=sound_in_earlier_words,
        ),
        "modern": Variant(
            guarantee.modern,
            draw,
            steered=partial(noise.is_steered, "modern"),
            ignores=modern_ignores,
            refuses=modern_refuses,
            expects=expects_modern,
            earlier_words=modern_in_earlier_words,
        ),
        "paper": Variant(guarantee.paper, draw_paper),
    },
    stages=STAGES,
    tables=TABLES,
    account=account,
    section=ZealousPolicy,
    resolve=resolve,
    switched_off=switched_off,
    attacks=attacks,
    examples=examples,
)
