"""What Safelog's guarantee said in earlier versions of the public words. Never edited, only added to."""

from __future__ import annotations

from dataclasses import replace

from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.privacy.earlier_words import approximate_words_1, factor_1
from qlog_assets.privacy.guarantee import Guarantee, PrivacyLoss

ASSUMPTIONS_1 = (
    "the pool, and the url list where there is one, are public and were fixed without looking at this log",
    "caps, tie-breaks, sessions and normalisation read one user's records only",
    "items are distinct within a user, so one user moves a count by at most 1",
    "noise is exact two-sided geometric from a secure source, drawn once; the printed count is the tested one",
    "one person is one user id; a person with g ids has (g·ε, g·e^((g-1)·ε)·δ)",
    "that there is a release at all is not protected: a month whose files fail their checks has none",
)


def sound_in_earlier_words(guarantee: Guarantee, parameters: SafelogParameters, words: int) -> Guarantee:
    """The guarantee of `sound` as a version before today's said it."""
    pure = parameters.delta == 0
    listed = pure or parameters.click_support == "public_list"
    sentences = {
        "queries": "Distinct queries a user: q_f/b."
        + (" Only pool queries can appear." if pure else " δ_q pays for queries outside the pool."),
        "clicks": "Distinct (query, url) pairs a user: c_f/b_c."
        + (" Urls from a public list only." if listed else " δ_c pays for pairs that only the user holds."),
        "transitions": "Distinct transitions a user over all pairs of released queries: (q_f - 1)/b_t.",
    }
    if words > 1:  # of guarantees only the first words were other ones
        return guarantee
    assert guarantee.proven is not None
    return replace(
        guarantee,
        parts=tuple(replace(part, sentence=sentences[part.name]) for part in guarantee.parts),
        assumptions=ASSUMPTIONS_1,
        sentence=pure_words_1(guarantee.proven) if pure else approximate_words_1(guarantee.proven),
    )


def pure_words_1(loss: PrivacyLoss) -> str:
    """A pure guarantee as version 1 told it."""
    return (
        f"Whether any one user is in the log changes the odds of any published result by at most {factor_1(loss)}, "
        "without exception; only queries and urls from public lists can appear."
    )
