"""Session logs as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.expectations import NO_URLS
from qlog_assets.mechanisms.mechanism import Mechanism, Variant, refusal
from qlog_assets.mechanisms.sessions import guarantee
from qlog_assets.mechanisms.sessions.account import account
from qlog_assets.mechanisms.sessions.draw import draw, draw_paper
from qlog_assets.mechanisms.sessions.expectations import expects_modern, expects_sound
from qlog_assets.mechanisms.sessions.noise import check_draw, is_steered, takes_rows
from qlog_assets.mechanisms.sessions.parameters import SessionParameters, SessionPolicy
from qlog_assets.mechanisms.sessions.stages import STAGES
from qlog_assets.mechanisms.sessions.tables import TABLES
from qlog_assets.pipeline.public_material import PublicLists

SCALES = {"session_scale", "click_scale"}
BY_WEIGHT = {"set_share", "counted_items_per_user"}
MODERN_ONLY = {"epsilon", "click_share", "method", "domain", *BY_WEIGHT}


def resolve(chosen: SessionPolicy, lists: PublicLists) -> SessionPolicy:
    """The policy's parameters without clicks where the log has no urls: nothing is paid for them."""
    if is_steered(chosen.variant, chosen):
        chosen.refuse_said(BY_WEIGHT, 'method = "weighted_gaussian"')
    if lists.has_urls or not chosen.has_clicks:
        return chosen
    if not chosen.has_sessions:
        raise ParameterError("session_scale: has_urls = false says that the log has no urls, and only clicks are left")
    return chosen.with_changes(click_scale=None)


def switched_off(chosen: SessionPolicy, lists: PublicLists) -> list[str]:
    return [] if lists.has_urls or not chosen.has_clicks else [NO_URLS]


def at_cost(chosen: SessionPolicy, epsilon: Fraction, delta: Fraction) -> SessionPolicy:
    """ε and δ for `modern`; for `sound` both scales by one factor."""
    if chosen.variant == "modern":
        return chosen.with_changes(epsilon=epsilon, delta=delta or chosen.delta)
    proven = guarantee.sound(chosen).proven
    assert proven is not None
    factor = Fraction(proven.epsilon) / epsilon
    scales = {name: None if (scale := getattr(chosen, name)) is None else factor * scale for name in SCALES}
    return chosen.with_changes(delta=delta, **scales)


def unread(chosen: SessionParameters) -> set[str]:
    """What says nothing where a table is not released."""
    found = set()
    if not chosen.has_clicks:
        found |= {"clicks_per_user"}
    if not chosen.has_sessions:
        found |= {"sessions_per_user", "queries_per_session", "items", "collapse_repeats", "session_gap_minutes"}
    if not (chosen.has_clicks and chosen.has_sessions):
        found |= {"click_share", "delta_share_clicks"}
    return found


def sound_ignores(chosen: SessionParameters) -> set[str]:
    return unread(chosen) | MODERN_ONLY


def modern_ignores(chosen: SessionParameters) -> set[str]:
    """The scales, but for those that say that a part is off; and what only the weighted method reads."""
    found = unread(chosen) | {"threshold", "delta_share_clicks"}
    found |= {name for name in SCALES if getattr(chosen, name) is not None}
    if chosen.over_release and not chosen.has_clicks:
        found |= {"method", "delta"}
    return found if takes_rows("modern", chosen) and "method" not in found else found | BY_WEIGHT


def sound_refuses(chosen: SessionParameters, list_rows: Mapping[str, int]) -> str | None:
    if chosen.over_release:
        return f'domain = {chosen.domain} is drawn by variant = "modern" alone: choose it, or leave domain out'
    return refusal(partial(check_draw, "sound", chosen))


def modern_refuses(chosen: SessionParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(check_draw, "modern", chosen))


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.sessions.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.sessions.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="sessions",
    title="Session logs",
    summary="Sequences of queries that many users typed in one order, and clicks, with noisy numbers of users.",
    version=1,
    parameters=SessionParameters,
    variants={
        "sound": Variant(guarantee.sound, draw, ignores=sound_ignores, refuses=sound_refuses, expects=expects_sound),
        "modern": Variant(
            guarantee.modern,
            draw,
            steered=partial(is_steered, "modern"),
            ignores=modern_ignores,
            refuses=modern_refuses,
            expects=expects_modern,
        ),
        "paper": Variant(guarantee.paper, draw_paper, reads=("cleaned_log",)),
    },
    stages=STAGES,
    tables=TABLES,
    account=account,
    section=SessionPolicy,
    resolve=resolve,
    switched_off=switched_off,
    at_cost=at_cost,
    attacks=attacks,
    examples=examples,
)
