"""What is known in public of a Safelog release before it is drawn: its thresholds and the rows that noise makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qlog_assets.mechanisms.expectations import Expectation, Origin
from qlog_assets.mechanisms.safelog import noise
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.steered_words import expect_steered
from qlog_assets.privacy.gaussian import WEIGHT_UNIT
from qlog_assets.privacy.steered import LISTED_FAKES
from qlog_assets.report.account import survival

SHOWN_QUERIES = (2, 20, 200)
"""For how many released queries a threshold is shown that depends on their number."""
SHOWN_POOL = 1_000_000
"""The same of a pool whose size is not known. However large it is, about as many of its queries come from noise."""


def expects(chosen: SafelogParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """The thresholds of `sound`. `list_rows` are the sizes of public lists, as far as they are known."""
    return (*_queries(chosen, list_rows.get("pool")), *_clicks(chosen), *_transitions(chosen))


def expects_modern(chosen: SafelogParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """How many users' weights reach the thresholds of `modern` in a first month; a later one asks for a little more."""
    pool = list_rows.get("pool")
    plans = noise.plan_modern(SHOWN_POOL if pool is None else pool, chosen)
    listed = -(-plans["queries"].listed_threshold // WEIGHT_UNIT)
    size = f"with a pool of {SHOWN_POOL:,}" if pool is None else f"the pool has {pool:,}"
    return (
        Expectation("queries of the pool", listed, "derived", LISTED_FAKES, f"who hope for nothing else; {size}"),
        *(expect_steered("other queries" if table == "queries" else table, plan) for table, plan in plans.items()),
    )


def _queries(chosen: SafelogParameters, pool: int | None) -> Iterator[Expectation]:
    shift = chosen.min_users - 1
    share = survival(float(chosen.selection_scale), chosen.threshold)
    fakes = None if pool is None else pool * share
    size = (
        f"noise alone makes at most about {share * 1e6:.2g} per million" if pool is None else f"the pool has {pool:,}"
    )
    yield Expectation("queries of the pool", chosen.threshold + shift, "set", fakes, size)
    outside = noise.out_of_pool_threshold(chosen)
    if outside is not None:
        origin: Origin = "derived" if outside >= chosen.threshold else "set"
        yield Expectation("other queries", max(chosen.threshold, outside) + shift, origin)


def _clicks(chosen: SafelogParameters) -> Iterator[Expectation]:
    if chosen.click_scale is None:
        return
    if chosen.click_support == "public_list":
        if chosen.click_threshold is not None:
            yield Expectation("clicks", chosen.click_threshold, "set", None)
        else:
            least = noise.effective_listed_threshold(2, chosen)
            yield Expectation("clicks", least, "derived", 1, "more, the more queries are released and urls are listed")
        return
    outside = noise.click_stability_threshold(chosen)
    if outside is not None:
        wanted = chosen.click_threshold or 1
        yield Expectation("clicks", max(outside, wanted), "derived" if outside >= wanted else "set")


def _transitions(chosen: SafelogParameters) -> Iterator[Expectation]:
    if chosen.transition_scale is None or chosen.transitions_per_user == 0:
        return
    if chosen.transition_threshold is not None:
        yield Expectation("transitions", chosen.transition_threshold, "set", None)
        return
    steps = {queries: noise.effective_transition_threshold(queries, chosen) for queries in SHOWN_QUERIES}
    least, *later = steps.items()
    note = ", ".join(f"{threshold} for {queries} released queries" for queries, threshold in later)
    yield Expectation("transitions", least[1], "derived", 1, note)
