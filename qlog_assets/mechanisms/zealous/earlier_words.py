"""What ZEALOUS' guarantees said in earlier versions of the public words. Never edited, only added to."""

from __future__ import annotations

from dataclasses import replace

from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.earlier_words import approximate_words_1
from qlog_assets.privacy.guarantee import Guarantee

COMMON_ASSUMPTIONS_1 = (
    "each user's items are chosen by a rule that reads that user's records only (a keyed hash, or the first m)",
    "items are distinct within a user, so one user moves a count by at most 1",
    "noise is exact and integer, from a secure source, drawn once",
)
MODERN_ASSUMPTIONS_1 = (
    *COMMON_ASSUMPTIONS_1,
    "Gaussian weights are integers rounded down, so that one user's L2 contribution stays within its bound",
    "the method, the split and m were chosen from public information only",
)
TRUNCATED_FORMULA_1 = "a kind: (ε/kinds, δ/kinds), an item: a further 1/m of both;  optimal selection, truncated noise"


def sound_in_earlier_words(guarantee: Guarantee, parameters: ZealousParameters, words: int) -> Guarantee:
    """The guarantee of `sound` as a version before today's said it."""
    if words > 1:  # of guarantees only the first words were other ones
        return guarantee
    assert guarantee.proven is not None
    return replace(guarantee, assumptions=COMMON_ASSUMPTIONS_1, sentence=approximate_words_1(guarantee.proven))


def modern_in_earlier_words(guarantee: Guarantee, parameters: ZealousParameters, words: int) -> Guarantee:
    """The guarantee of `modern` as a version before today's said it."""
    if words > 1:  # of guarantees only the first words were other ones
        return guarantee
    assert guarantee.proven is not None
    truncated = parameters.method == "truncated_geometric"
    return replace(
        guarantee,
        assumptions=MODERN_ASSUMPTIONS_1,
        sentence=approximate_words_1(guarantee.proven),
        formula=TRUNCATED_FORMULA_1 if truncated else guarantee.formula,
    )
