"""World 3 of the synthetic log: words of two topics, portals, and clusters of sites that are no longer pure."""

import hashlib
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from qlog_assets.studies.measures.clusters import cluster_sites, purity, synthetic_topics
from qlog_assets.synthetic import (
    PORTAL_TOPIC,
    SyntheticFacts,
    public_queries,
    site_directory,
    topic_of_query,
    topic_of_url,
    topics,
    topics_of_query,
    write_log,
)
from qlog_assets.synthetic.world import misspellings, world

ROWS = 60_000
WORDS = {word.text: word.topics for word in world().ambiguous}
Row = list[str]


def read_rows(path: Path) -> list[Row]:
    _, *lines = path.read_text(encoding="ascii").removesuffix("\n").split("\n")
    return [line.split("\t") for line in lines]


def clicks_of(rows: list[Row]) -> pa.Table:
    """How many users clicked each pair."""
    people = defaultdict(set)
    for user, query, _, _, url in rows:
        if url:
            people[query, url].add(user)
    queries, urls = zip(*people, strict=True)
    return pa.table({"query": queries, "url": urls, "count": [float(len(each)) for each in people.values()]})


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> SyntheticFacts:
    return write_log(tmp_path_factory.mktemp("world") / "log.txt", ROWS, seed=5, world_version=3)


@pytest.fixture(scope="module")
def rows(facts: SyntheticFacts) -> list[Row]:
    return read_rows(facts.path)


@pytest.fixture(scope="module")
def first_world(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return read_rows(write_log(tmp_path_factory.mktemp("world") / "log.txt", ROWS, seed=5).path)


def test_a_seed_means_the_same_log_of_world_3_as_when_it_was_pinned(tmp_path: Path) -> None:
    one = write_log(tmp_path / "one.txt", 5_000, seed=1, world_version=3)
    assert hashlib.sha256(one.path.read_bytes()).hexdigest()[:16] == "319505d46683eed9"


def test_people_times_and_ranks_are_those_of_world_1(rows: list[Row], first_world: list[Row]) -> None:
    """What is added is drawn last, so a figure of both worlds differs by it alone."""
    assert [(row[0], row[2], row[3]) for row in rows] == [(row[0], row[2], row[3]) for row in first_world]
    kept = [(row, before) for row, before in zip(rows, first_world, strict=True) if row[1] not in WORDS]
    assert all(row[1] == before[1] for row, before in kept)
    assert all(row[4] == before[4] or topic_of_url(row[4]) == PORTAL_TOPIC for row, before in kept)


def test_an_ambiguous_word_has_two_topics_and_is_nothing_else() -> None:
    assert len({topic for pair in WORDS.values() for topic in pair}) == 2 * len(WORDS), "a topic has one word at most"
    searches = {search for topic in topics() for search in topic.searches}
    names = {form for topic in topics() for forms in topic.name_forms for form in forms}
    assert not WORDS.keys() & (searches | names | {slip for search in searches for slip in misspellings(search)})
    for word, pair in WORDS.items():
        assert topics_of_query(word) == pair and topic_of_query(word) == pair[0]
        assert topics_of_query(f"{word} of nothing") == ()


def test_a_query_of_one_topic_has_one_and_a_query_of_none_has_none() -> None:
    assert topics_of_query(topics()[9].searches[2]) == (9,)
    assert topics_of_query("-") == ()


def test_people_who_type_an_ambiguous_word_click_sites_of_both_topics_and_their_portals(rows: list[Row]) -> None:
    clicked = defaultdict(Counter)
    for _, query, _, _, url in rows:
        if query in WORDS and url:
            clicked[query][topic_of_url(url)] += 1
    assert clicked.keys() == WORDS.keys()
    for word, found in clicked.items():
        assert set(WORDS[word]) <= found.keys() <= {*WORDS[word], PORTAL_TOPIC}


def test_two_of_three_searches_of_an_ambiguous_topic_are_its_word(rows: list[Row], first_world: list[Row]) -> None:
    ambiguous = {topic for pair in WORDS.values() for topic in pair}
    asked = [row[1] for row, before in zip(rows, first_world, strict=True) if topic_of_query(before[1]) in ambiguous]
    assert 0.6 < sum(query in WORDS for query in asked) / len(asked) < 0.7


def test_a_portal_answers_all_topics_of_its_category(rows: list[Row]) -> None:
    clicks = [row for row in rows if row[4]]
    portals = [row for row in clicks if topic_of_url(row[4]) == PORTAL_TOPIC]
    assert 0.05 < len(portals) / len(clicks) < 0.07
    assert len({row[4] for row in portals}) == 32
    asked = defaultdict(set)
    for row in portals:
        asked[row[4]].update(topics_of_query(row[1]))
    assert min(map(len, asked.values())) >= 8


def test_the_public_lists_of_world_3_have_its_portals_and_words_and_those_of_world_1_have_not() -> None:
    portals = set(site_directory(3)) - set(site_directory())
    assert {topic_of_url(url) for url in portals} == {PORTAL_TOPIC} and len(portals) == 32
    more = set(public_queries(3)) - set(public_queries())
    assert more <= WORDS.keys() and len(more) > len(WORDS) / 2
    assert not set(public_queries()) & WORDS.keys()


def test_clusters_of_sites_mix_topics_in_world_3_and_not_in_world_1(rows: list[Row], first_world: list[Row]) -> None:
    found = [cluster_sites(clicks_of(each), least_count=2) for each in (first_world, rows)]
    pure, mixed = (purity(clusters, synthetic_topics(clusters)) for clusters in found)
    assert pure.linked_purity is not None and mixed.linked_purity is not None
    assert pure.linked_purity > 0.98
    assert 0.7 < mixed.linked_purity < 0.9
