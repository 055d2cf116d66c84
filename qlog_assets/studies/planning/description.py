"""A log as its owner may describe it in public: how many users, how busy, how alike. And presets of such descriptions.

Numbers that anybody may know, or that become public by being said. No log is read for them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from qlog_assets.errors import ParameterError
from qlog_assets.privacy.parameters import Parameters

Share = Annotated[float, Field(ge=0, le=1)]


class Description(Parameters):
    """One month of a log in a few numbers.

    Queries are drawn from `distinct_queries` possible ones, the i-th of them with probability proportional to
    (i + 5)^-exponent.
    """

    users: int = Field(ge=1, le=2_000_000)
    """Users of a month."""
    queries_per_user: float = Field(ge=1, le=1000)
    """Searches per user, on average; most users make fewer and some many more."""
    exponent: float = Field(ge=0, le=3)
    """How much alike people search: the larger, the more of all searches are for the most popular queries."""
    distinct_queries: int = Field(ge=1, le=10_000_000)
    """How many different queries there are to be typed."""
    click_rate: Share
    """The share of searches after which something is clicked."""
    follow_rate: Share
    """The share of searches that follow another one in the same session and are about the same."""
    listed_share: Share
    """The share of queries that the default pool, a list of words and pairs of words, has."""
    titles: int = Field(ge=0, le=10_000_000)
    """How many entries a public list has that its owner could name as the pool: titles, products, articles."""
    titles_share: Share
    """The share of queries that are in that list."""


_LIBRARY = Description(
    users=20_000,
    queries_per_user=5,
    exponent=0.75,
    distinct_queries=60_000,
    click_rate=0.4,
    follow_rate=0.2,
    listed_share=0.3,
    titles=50_000,
    titles_share=0.6,
)

PRESETS = {
    # The shape of a catalogue's log with the users of a small house: the preset that `small.toml` was chosen on.
    "small": _LIBRARY.with_changes(users=5_000),
    "library": _LIBRARY,
    "shop": _LIBRARY.with_changes(
        users=100_000, exponent=0.85, distinct_queries=100_000, click_rate=0.6, titles=40_000, titles_share=0.3
    ),
    "wiki": _LIBRARY.with_changes(
        users=200_000, queries_per_user=3, exponent=0.75, distinct_queries=1_000_000, titles=500_000, titles_share=0.7
    ),
    "engine": _LIBRARY.with_changes(
        users=200_000,
        queries_per_user=20,
        exponent=0.8,
        distinct_queries=3_000_000,
        click_rate=0.5,
        titles=0,
        titles_share=0,
    ),
}
"""Shapes of logs: assumptions, measured on nobody's log. Those of `small` and `library` were fitted, so that Safelog's
default parameters give 5,000 users at ε = 2 about five queries. Whoever knows better says so."""
PLAIN = "library"
"""The shape of a log of which only its size is told."""


def describe(preset: str | None, users: int | None, queries_per_user: float | None) -> Description:
    """A preset, with the sizes that were told."""
    name = preset or PLAIN
    if name not in PRESETS:
        raise ParameterError(f"no preset {name!r}: choose one of {', '.join(PRESETS)}")
    told = {"users": users, "queries_per_user": queries_per_user}
    return PRESETS[name].with_changes(**{key: value for key, value in told.items() if value is not None})
