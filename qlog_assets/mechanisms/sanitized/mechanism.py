"""Sanitized logs as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.expectations import NO_URLS
from qlog_assets.mechanisms.mechanism import Mechanism, Variant, refusal
from qlog_assets.mechanisms.sanitized import guarantee, noise
from qlog_assets.mechanisms.sanitized.account import account
from qlog_assets.mechanisms.sanitized.draw import draw, draw_paper
from qlog_assets.mechanisms.sanitized.expectations import expects_sound
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters, SanitizedPolicy
from qlog_assets.mechanisms.sanitized.stages import STAGES
from qlog_assets.mechanisms.sanitized.tables import TABLES
from qlog_assets.pipeline.public_material import PublicLists


def resolve(chosen: SanitizedPolicy, lists: PublicLists) -> SanitizedPolicy:
    """The policy's parameters; where the log has no urls they say so, and a release is refused."""
    if noise.is_steered(chosen):
        chosen.refuse_said({"set_share", "counted_pairs_per_user"}, 'method = "weighted_gaussian"')
    return chosen if lists.has_urls else chosen.with_changes(clicks=False)


def switched_off(chosen: SanitizedPolicy, lists: PublicLists) -> list[str]:
    return [] if lists.has_urls else [NO_URLS]


def sound_ignores(chosen: SanitizedParameters) -> set[str]:
    """What says nothing with this method and this objective; and that there are clicks, or nothing would be drawn."""
    found = {"clicks"}
    if not noise.takes_rows(chosen):
        found |= {"set_share", "counted_pairs_per_user"}
    if chosen.association_share is None:
        found |= {"delta_share_associations"}
    if chosen.objective != "frequent_pairs":
        found |= {"minimum_support"}
    if chosen.objective != "diversity":
        found |= {"diversity_of"}
    return found


def sound_refuses(chosen: SanitizedParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(noise.check_draw, chosen))


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
        "sound": Variant(
            guarantee.sound,
            draw,
            steered=noise.is_steered,
            ignores=sound_ignores,
            refuses=sound_refuses,
            expects=expects_sound,
        ),
        "paper": Variant(guarantee.paper, draw_paper, reads=("cleaned_log",)),
    },
    stages=STAGES,
    tables=TABLES,
    account=account,
    section=SanitizedPolicy,
    resolve=resolve,
    switched_off=switched_off,
    attacks=attacks,
    examples=examples,
)
