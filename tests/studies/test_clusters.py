"""Clusters of sites by Eq. 14, held against comparing all pairs of small logs, and their purity worked out by hand."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qlog_assets.studies.measures import clusters as measure
from qlog_assets.studies.measures.clusters import (
    Clusters,
    cluster_sites,
    purity,
    synthetic_topics,
    without_stray_clicks,
)
from qlog_assets.synthetic import topics
from qlog_assets.synthetic.world import world

Counted = dict[tuple[str, str], int]


def click_table(counted: Counted) -> pa.Table:
    queries, urls = [query for query, _ in counted], [url for _, url in counted]
    counts = pa.array(list(counted.values()), pa.float64())
    return pa.table({"query": pa.array(queries, pa.string()), "url": pa.array(urls, pa.string()), "count": counts})


def groups(found: Clusters) -> set[frozenset[str]]:
    members = defaultdict(set)
    for url, label in zip(found.sites.to_pylist(), found.labels.tolist(), strict=True):
        members[label].add(url)
    return {frozenset(each) for each in members.values()}


def compare_all_pairs(counted: Counted, least_count: float) -> set[frozenset[str]]:
    """Eq. 14 as it is printed, of every pair of sites, and merging until nothing is left to merge."""
    clicks: dict[str, dict[str, int]] = defaultdict(dict)
    for (query, url), count in counted.items():
        if count > 0 and count >= least_count:
            clicks[url][query] = count
    cluster = {url: frozenset([url]) for url in clicks}
    for one, other in combinations(clicks, 2):
        common = clicks[one].keys() & clicks[other].keys()
        shares = [
            Fraction(sum(clicks[url][query] for query in common), sum(clicks[url].values())) for url in (one, other)
        ]
        if min(shares) >= Fraction(1, 2):
            joined = cluster[one] | cluster[other]
            cluster |= dict.fromkeys(joined, joined)
    return set(cluster.values())


LOGS = st.dictionaries(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("stuvwxyz")), st.integers(-2, 6), max_size=30
)


@settings(max_examples=150, deadline=None)
@given(LOGS, st.sampled_from([0, 1, 3]))
def test_the_clusters_are_those_of_comparing_every_pair_of_sites(counted: Counted, least_count: int) -> None:
    assert groups(cluster_sites(click_table(counted), least_count)) == compare_all_pairs(counted, least_count)


@settings(max_examples=100, deadline=None)
@given(LOGS)
def test_work_that_is_cut_into_many_pieces_finds_the_same_clusters(counted: Counted) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "ENTRIES_AT_ONCE", 3)
        assert groups(cluster_sites(click_table(counted))) == compare_all_pairs(counted, 0)


def test_clusters_have_numbers_in_the_order_of_their_first_site() -> None:
    found = cluster_sites(click_table({("q", "b"): 1, ("q", "d"): 1, ("r", "a"): 1, ("s", "c"): 1}))
    assert found.sites.to_pylist() == ["a", "b", "c", "d"]
    assert found.labels.tolist() == [0, 1, 2, 1]


def test_half_of_the_clicks_from_common_queries_link_two_sites_and_less_than_half_do_not() -> None:
    enough = {("q", "s"): 5, ("q", "t"): 5, ("a", "s"): 5, ("b", "t"): 5}
    assert groups(cluster_sites(click_table(enough))) == {frozenset("st")}
    assert len(groups(cluster_sites(click_table(enough | {("b", "t"): 6})))) == 2


def test_a_click_threshold_takes_out_the_clicks_that_link_two_sites() -> None:
    counted = {("q", "s"): 2, ("q", "t"): 2, ("a", "s"): 1, ("b", "t"): 2, ("c", "u"): 1}
    assert groups(cluster_sites(click_table(counted))) == {frozenset("st"), frozenset("u")}
    assert groups(cluster_sites(click_table(counted | {("q", "t"): 1}), 2)) == {frozenset("s"), frozenset("t")}


def test_the_most_clicked_sites_are_clustered_by_all_of_their_clicks() -> None:
    counted = {("q", "s"): 2, ("q", "t"): 2, ("a", "s"): 9, ("a", "u"): 7, ("b", "t"): 3, ("b", "v"): 3, ("c", "w"): 5}
    assert groups(cluster_sites(click_table(counted), most_sites=3)) == {frozenset("su"), frozenset("t")}
    assert groups(cluster_sites(click_table(counted), most_sites=99)) == groups(cluster_sites(click_table(counted)))


def test_a_query_that_leads_to_a_hundred_thousand_sites_is_no_square_of_work() -> None:
    """Compared in pairs these are five thousand million; half of them have a query of their own beside it."""
    places = np.arange(100_000)
    counts = np.full(100_000, 3.0)
    shared = pa.table({"query": ["everything"] * 100_000, "url": places.astype(str), "count": counts})
    own = pa.table({"query": places[50_000:].astype(str), "url": places[50_000:].astype(str)})
    own = own.append_column("count", pa.array(np.full(50_000, 4.0)))
    assert np.sort(cluster_sites(pa.concat_tables([shared, own])).sizes)[-2:].tolist() == [1, 50_000]


def test_purity_counts_sites_of_the_most_frequent_topic_of_their_cluster() -> None:
    """Clusters abc (topics 1, 1, 2), de (3 and one unknown), f (4), g (unknown): 2 + 1 + 1 of 5 judged sites."""
    found = Clusters(pa.array(list("abcdefg")), np.array([0, 0, 0, 1, 1, 2, 3]))
    result = purity(found, {"a": 1, "b": 1, "c": 2, "d": 3, "f": 4})
    assert (result.purity, result.sites, result.clusters) == (pytest.approx(4 / 5), 5, 3)
    assert (result.linked_purity, result.linked_sites, result.linked_clusters) == (pytest.approx(2 / 3), 3, 1)
    assert result.largest == 3


def test_a_log_without_clicks_has_no_clusters_and_no_purity() -> None:
    result = purity(cluster_sites(click_table({})), {})
    assert (result.purity, result.linked_purity, result.sites, result.clusters, result.largest) == (None, None, 0, 0, 0)


def test_sites_of_the_synthetic_world_have_topics_and_others_have_none() -> None:
    url = topics()[7].sites[3]
    found = cluster_sites(click_table({("q", url): 1, ("q", "http://elsewhere.example"): 1}))
    assert synthetic_topics(found) == {url: 7}


def test_a_click_on_a_site_of_another_topic_is_stray_and_one_on_a_portal_or_of_the_other_meaning_is_not() -> None:
    word, portal = world().ambiguous[0], world().portals[0]
    first, second = (topics()[number].sites[0] for number in word.topics)
    plain = next(topic for topic in topics() if topic.number not in word.topics)
    kept = {
        (word.text, first): 1,
        (word.text, second): 2,
        (plain.searches[0], plain.sites[3]): 3,
        (plain.searches[0], portal): 4,
    }
    stray = {(word.text, plain.sites[3]): 5, (plain.searches[0], first): 6, ("-", first): 7, ("-", "elsewhere"): 8}
    assert without_stray_clicks(click_table(kept | stray)).equals(click_table(kept))
    assert without_stray_clicks(click_table({})).num_rows == 0


def test_a_release_with_the_true_links_is_purer_than_one_that_links_everything() -> None:
    """The measure orders a perfect release before a useless one."""
    truth = {url: topic.number for topic in topics()[:20] for url in topic.sites}
    perfect = {(f"search {topic}", url): 5 for url, topic in truth.items()}
    useless = {("search", url): 5 for url in truth}
    best, worst = (purity(cluster_sites(click_table(each)), truth) for each in (perfect, useless))
    assert (best.purity, best.clusters) == (1.0, 20)
    assert (worst.purity, worst.clusters) == (pytest.approx(1 / 20), 1)
