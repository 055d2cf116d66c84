"""The synthetic world and the signal in its log: queries tell their topic, clicks and sessions follow it."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from qlog_assets.synthetic import public_queries, site_directory, topic_of_query, topic_of_url, topics, write_log
from qlog_assets.synthetic.world import misspellings, world

Row = tuple[str, str, datetime, int | None, str]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    path: Path = tmp_path_factory.mktemp("signal") / "log.txt"
    write_log(path, 60_000, seed=21, canaries=0)
    found: list[Row] = []
    for line in path.read_text(encoding="ascii").splitlines()[1:]:
        user, query, time, rank, url = line.split("\t")
        found.append((user, query, datetime.fromisoformat(time), int(rank) if rank else None, url))
    return found


def test_the_world_has_its_topics_searches_and_sites_once_each() -> None:
    known = topics()
    assert [topic.number for topic in known] == list(range(256))
    assert len({search for topic in known for search in topic.searches}) == 256 * 8
    assert len(set(site_directory())) == 256 * 16
    assert all(topic_of_url(url) == topic.number for topic in known for url in topic.sites)
    assert sorted(world().popularity) == list(range(256))


def test_no_site_is_under_a_name_that_could_be_real() -> None:
    assert all(url.startswith("http://www.") and url.endswith(".example") for url in site_directory())


def test_every_wording_of_a_search_tells_its_topic() -> None:
    facts = world()
    # A word after a search can only mislead if some longer search has it.
    in_searches = {word for topic in topics() for search in topic.searches for word in search.split()}
    after_words = [[word for word in words if in_searches & set(word.split())] for words in facts.after]
    assert all(len(words) > 20 for words in after_words)
    for topic in topics():
        for search in topic.searches:
            spellings = (search, *misspellings(search))
            assert len(set(spellings)) == 4
            for typed in spellings:
                for before in facts.before[topic.before]:
                    assert topic_of_query(f"{before} {typed}".strip()) == topic.number, typed
            for after in after_words[topic.after]:
                assert topic_of_query(f"{search} {after}") == topic.number, search
        for forms in topic.name_forms:
            assert {topic_of_query(form) for form in forms} == {topic.number}


def test_what_belongs_to_no_topic_is_said_to_belong_to_none() -> None:
    assert topic_of_query("-") is None
    assert topic_of_query("tamsin vorhaldsen") is None
    assert topic_of_url("http://www.elsewhere.example") is None


def test_all_queries_of_a_log_have_a_topic(rows: list[Row]) -> None:
    assert {query for _, query, _, _, _ in rows if topic_of_query(query) is None} <= {"-"}


def test_clicks_go_to_sites_of_the_querys_topic(rows: list[Row]) -> None:
    clicks = [(topic_of_query(query), topic_of_url(url)) for _, query, _, _, url in rows if url and query != "-"]
    assert all(site is not None for _, site in clicks)
    share = sum(asked == site for asked, site in clicks) / len(clicks)
    assert 0.93 < share < 0.97


def test_clicks_become_rarer_down_the_ranks(rows: list[Row]) -> None:
    ranks = Counter(rank for _, _, _, rank, _ in rows if rank)
    assert all(ranks[rank] > ranks[rank + 1] for rank in range(1, 7))
    assert ranks[1] > 4 * ranks[5] > 0


def test_a_search_has_its_own_best_site(rows: list[Row]) -> None:
    """Top clicks of two searches of one topic go to different sites: retrieval has something to learn per query."""
    first, second = topics()[world().popularity[0]].searches[:2]
    best = [
        Counter(url for _, query, _, rank, url in rows if rank == 1 and query == search).most_common(1)[0][0]
        for search in (first, second)
    ]
    assert best[0] != best[1]


def test_people_reformulate_within_a_topic(rows: list[Row]) -> None:
    same = changed = corrected = 0
    for before, after in pairwise(rows):
        if before[0] != after[0] or before[1] == after[1] or after[2] - before[2] > timedelta(minutes=30):
            continue
        if "-" in (before[1], after[1]):
            continue
        changed += 1
        same += topic_of_query(before[1]) == topic_of_query(after[1])
        corrected += any(slip == before[1] for slip in misspellings(after[1]))
    assert 0.6 < same / changed < 0.85
    assert corrected > 10


def test_people_have_interests(rows: list[Row]) -> None:
    """A busy user's commonest topic takes more of their searches than the commonest topic of all does."""
    overall: Counter[int | None] = Counter()
    by_user: dict[str, Counter[int | None]] = {}
    for user, query, _, _, _ in rows:
        topic = topic_of_query(query)
        overall[topic] += 1
        by_user.setdefault(user, Counter())[topic] += 1
    busy = [counts for counts in by_user.values() if counts.total() >= 100]
    shares = sorted(max(counts.values()) / counts.total() for counts in busy)
    assert shares[len(shares) // 2] > 1.8 * max(overall.values()) / overall.total()


def test_the_public_query_list_covers_most_of_the_head_and_never_the_tail(rows: list[Row]) -> None:
    pool = set(public_queries())
    assert 100_000 < len(pool) < 200_000
    popular = [query for query, _ in Counter(query for _, query, _, _, _ in rows).most_common(100)]
    assert 70 <= sum(query in pool for query in popular) < 100, "some popular queries must lie outside the pool"
    assert sum(query in pool for _, query, _, _, _ in rows) / len(rows) < 0.6
    assert public_queries() == sorted(pool)
