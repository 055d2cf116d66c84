"""What the guarantee stands on: a user's rows decide that user's contributions, in number and in kind, and no others'.

Deterministic tests of the statements behind `capped_log` and `zealous_items`, run as the pipeline runs them, on small
random logs with everything that makes ties: equal times, repeated rows, several clicks on a search, next pages,
spellings that normalise to one text. A second account of the rules, in plain Python, says what they must select.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.stages import Stages

from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.settings import Settings
from qlog_assets.sources.normalise import normalise_text, normalise_url
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, describe
from qlog_assets.storage.warehouse import Warehouse

Row = tuple[str, str, datetime, int | None, str | None]
Tables = dict[str, set[tuple[str, ...]]]

MARCH = Month("2006-03")
START = datetime(2006, 3, 5, 12)
QUERIES = (
    "weather",
    "Weather ",
    "news",
    "chess",
    "größe",
    "GRÖSSE",
    "東京 天気",
    "fish  and\tchips",
    "ﬁsh and chips",
    "-",
    " ",
)
URLS = (None, "http://a.example", "http://A.example/", "http://b.example/x", "", "http://c.example")
RAW_SCHEMA = pa.schema(
    [
        ("user", pa.string()),
        ("query", pa.string()),
        ("time", pa.timestamp("us")),
        ("rank", pa.int32()),
        ("url", pa.string()),
    ]
)
LIMITS = SafelogParameters(queries_per_user=3, clicks_per_user=2)


class Pipeline:
    """The stages from raw rows to contributions, on a warehouse of its own."""

    def __init__(self, warehouse: Warehouse, engine: Engine) -> None:
        self.warehouse, self.chain, self.made = warehouse, Stages(warehouse, engine), 0

    def clean(self, rows: Sequence[Row], files: int = 1) -> Partition:
        """The rows as a cleaned partition, spread over some files in the order given."""
        self.made += 1
        provenance = describe("raw_log", MARCH, code_version="1", parameters={}, upstream={"test": f"log {self.made}"})

        def write(directory: Path) -> dict[str, TableFacts]:
            names = {}
            for number in range(files):
                columns = list(zip(*rows[number::files], strict=True)) or [[]] * len(RAW_SCHEMA)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, RAW_SCHEMA, strict=True)]
                path = directory / f"{number}.parquet"
                pq.write_table(pa.Table.from_arrays(arrays, schema=RAW_SCHEMA), path)
                names[path.name] = file_checksum(path)
            return {"log": TableFacts(len(rows), names)}

        raw, _ = self.warehouse.write_partition(provenance, write)
        return self.chain.clean(MARCH, raw)[0]

    def cap(self, rows: Sequence[Row], limits: SafelogParameters = LIMITS, files: int = 1) -> Partition:
        return self.chain.cap(MARCH, self.clean(rows, files), limits)[0]

    def choose(self, rows: Sequence[Row], items_per_user: int = 2, files: int = 1) -> Partition:
        return self.chain.choose_items(MARCH, self.clean(rows, files), items_per_user)[0]


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    warehouse = Warehouse(Settings(home=tmp_path / "warehouse", threads=2)).make()
    with Engine.open(warehouse) as engine:
        yield Pipeline(warehouse, engine)


def tables(partition: Partition) -> Tables:
    """A partition's rows without their times, each once: a row that is there twice is a failure of its own."""
    found: Tables = {}
    for name in partition.provenance.tables:
        read = [row for path in partition.files(name) for row in pq.read_table(path).to_pylist()]
        rows = [tuple(value for column, value in row.items() if column != "time") for row in read]
        assert len(rows) == len(set(rows)) == partition.rows(name)
        found[name] = set(rows)
    return found


def random_log(seed: int, users: int = 6) -> list[Row]:
    """Users who search at few distinct times, so that ties are the rule, and repeat themselves in every way."""
    choose = random.Random(seed)
    rows: list[Row] = []
    for user in range(users):
        at = START
        for _ in range(choose.randrange(12)):
            at += choose.choice([timedelta(0), timedelta(seconds=1), timedelta(minutes=30), timedelta(hours=2)])
            query = choose.choice(QUERIES)
            for _ in range(choose.choice([1, 1, 2, 3])):
                rows.append((f"user {user}", query, at, choose.choice([None, 1, 2, 2]), choose.choice(URLS)))
    choose.shuffle(rows)
    return rows


def without(rows: Sequence[Row], user: str) -> list[Row]:
    return [row for row in rows if row[0] != user]


def users_of(rows: Sequence[Row]) -> list[str]:
    return sorted({row[0] for row in rows})


# The rules once more -------------------------------------------------------------------------------------------------


def first_distinct(items: Sequence[tuple], limit: int) -> list[tuple]:
    """The first so many different values of (order, value) pairs."""
    return list(dict.fromkeys(value for _, value in sorted(items)))[:limit]


def expected_contributions(rows: Sequence[Row], limits: SafelogParameters) -> Tables:
    expected: Tables = {"queries": set(), "clicks": set(), "transitions": set()}
    for user in users_of(rows):
        events, clicks = set(), []
        for _, raw_query, time, rank, raw_url in (row for row in rows if row[0] == user):
            query = normalise_text(raw_query)
            if query in ("", "-"):
                continue
            events.add((time, query.encode()))
            url = normalise_url(raw_url) if raw_url else ""
            if url:
                # A click without a rank comes after those of the same time that have one.
                order = (time, rank is None, rank or 0, query.encode(), url.encode())
                clicks.append((order, (user, query, url)))
        searches = sorted(events)
        typed = [((time, query), (user, query.decode())) for time, query in searches]
        moves = [
            ((after[0], before[1], after[1]), (user, before[1].decode(), after[1].decode()))
            for before, after in itertools.pairwise(searches)
            if before[1] != after[1] and after[0] - before[0] <= timedelta(minutes=30)
        ]
        expected["queries"].update(first_distinct(typed, limits.queries_per_user))
        expected["clicks"].update(first_distinct(clicks, limits.clicks_per_user))
        expected["transitions"].update(first_distinct(moves, limits.queries_per_user - 1))
    return expected


@pytest.mark.parametrize("seed", range(12))
def test_the_statements_select_what_the_rules_say(pipeline: Pipeline, seed: int) -> None:
    rows = random_log(seed)
    limits = SafelogParameters(queries_per_user=1 + seed % 4, clicks_per_user=1 + seed % 3)
    assert tables(pipeline.cap(rows, limits)) == expected_contributions(rows, limits)


# One user's influence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stage", ["cap", "choose"])
def test_removing_a_user_changes_that_users_rows_and_no_others(pipeline: Pipeline, stage: str, seed: int) -> None:
    make: Callable[[Sequence[Row]], Partition] = getattr(pipeline, stage)
    rows = random_log(100 + seed)
    everybody = tables(make(rows))
    for user in users_of(rows):
        others = {name: {row for row in held if row[0] != user} for name, held in everybody.items()}
        assert tables(make(without(rows, user))) == others


@pytest.mark.parametrize("seed", range(6))
def test_one_user_moves_so_many_counts_and_each_by_one(pipeline: Pipeline, seed: int) -> None:
    """L1 ≤ q_f, c_f and q_f - 1, L∞ = 1: what the noise scales are priced for."""
    rows = random_log(200 + seed, users=9)
    bounds = {"queries": LIMITS.queries_per_user, "clicks": LIMITS.clicks_per_user, "transitions": 2}
    for name, held in tables(pipeline.cap(rows)).items():
        counts = Counter(row[1:] for row in held)
        for user in users_of(rows):
            change = counts - Counter(row[1:] for row in held if row[0] != user)
            assert sum(change.values()) <= bounds[name] and set(change.values()) <= {1}


@pytest.mark.parametrize("seed", range(4))
def test_a_user_holds_at_most_so_many_items_of_each_kind(pipeline: Pipeline, seed: int) -> None:
    held = tables(pipeline.choose(random_log(300 + seed), items_per_user=2))
    assert set(held) == {"keywords", "queries", "pairs", "clicks"}
    for name, rows in held.items():
        assert max(Counter(row[0] for row in rows).values(), default=0) <= 2, name
    assert all(before != after for _, before, after in held["pairs"])


def test_one_query_per_user_means_no_transitions(pipeline: Pipeline) -> None:
    limits = SafelogParameters(queries_per_user=1)
    assert tables(pipeline.cap(random_log(7), limits))["transitions"] == set()


# Order of the input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["cap", "choose"])
def test_neither_the_order_of_rows_nor_their_files_matter(pipeline: Pipeline, stage: str) -> None:
    """A file order that somebody sorted by popularity would couple users."""
    make = getattr(pipeline, stage)
    rows = random_log(11)
    one = make(rows)
    for files, order in ((1, sorted(rows, key=repr)), (3, rows[::-1]), (4, random.Random(3).sample(rows, len(rows)))):
        other = make(order, files=files)
        assert tables(other) == tables(one)
        assert other.provenance.content_digest == one.provenance.content_digest
        assert other.provenance.shape != one.provenance.shape


def test_repeated_rows_change_nothing(pipeline: Pipeline) -> None:
    rows = random_log(12)
    assert pipeline.cap(rows * 2).provenance.content_digest == pipeline.cap(rows).provenance.content_digest


def test_the_content_digest_tells_any_two_contents_apart(pipeline: Pipeline) -> None:
    rows = random_log(13)
    digests = {pipeline.cap(without(rows, user)).provenance.content_digest for user in users_of(rows)}
    assert len(digests) == len(users_of(rows))
    # Texts that run into each other when they are put side by side.
    near = [[("u", "ab c", START, 1, "d")], [("u", "ab", START, 1, "c d")], [("ua", "b c", START, 1, "d")]]
    assert len({pipeline.cap(log).provenance.content_digest for log in near}) == 3


# What a search, a click and a transition are -------------------------------------------------------------------------


def search(query: str, minutes: float = 0, rank: int | None = None, url: str | None = None, user: str = "u") -> Row:
    return (user, query, START + timedelta(minutes=minutes), rank, url)


def transitions(pipeline: Pipeline, *rows: Row) -> set[tuple[str, ...]]:
    limits = SafelogParameters(queries_per_user=10)
    return {row[1:] for row in tables(pipeline.cap(rows, limits))["transitions"]}


def test_half_an_hour_between_two_searches_is_one_session_and_a_microsecond_more_is_two(pipeline: Pipeline) -> None:
    assert transitions(pipeline, search("a"), search("b", 30)) == {("a", "b")}
    assert (
        transitions(pipeline, search("a"), ("u", "b", START + timedelta(minutes=30, microseconds=1), None, None))
        == set()
    )


def test_a_session_goes_on_over_midnight(pipeline: Pipeline) -> None:
    late = datetime(2006, 3, 5, 23, 50)
    assert transitions(
        pipeline, ("u", "a", late, None, None), ("u", "b", late + timedelta(minutes=20), None, None)
    ) == {("a", "b")}


def test_a_repeated_query_is_no_transition_and_hides_none(pipeline: Pipeline) -> None:
    """A next page repeats the query: a a b moves from a to b, once."""
    assert transitions(pipeline, search("a"), search("A ", 1), search("b", 2)) == {("a", "b")}
    assert transitions(pipeline, search("a"), search("a", 1)) == set()


def test_a_transition_is_between_neighbours_of_one_user_only(pipeline: Pipeline) -> None:
    assert transitions(pipeline, search("a"), search("b", 1), search("c", 2)) == {("a", "b"), ("b", "c")}
    assert transitions(pipeline, search("a"), search("b", 1, user="v")) == set()


def test_searches_of_one_instant_follow_each_other_by_their_bytes(pipeline: Pipeline) -> None:
    """Any rule that reads the user's rows alone would do; this one is written down."""
    assert transitions(pipeline, search("é"), search("z"), search("a")) == {("a", "z"), ("z", "é")}


def test_the_first_queries_are_those_typed_first_and_of_one_instant_those_with_smaller_bytes(
    pipeline: Pipeline,
) -> None:
    rows = [search("b", 5), search("late", 6), search("z"), search("a", 5), search("b", 1)]
    two, three = (SafelogParameters(queries_per_user=number) for number in (2, 3))
    assert {row[1] for row in tables(pipeline.cap(rows, two))["queries"]} == {"z", "b"}
    assert {row[1] for row in tables(pipeline.cap(rows, three))["queries"]} == {"z", "b", "a"}


def test_clicks_are_taken_by_time_then_rank_and_one_without_a_rank_comes_last(pipeline: Pipeline) -> None:
    rows = [search("q", 0, None, "http://x"), search("q", 0, 9, "http://y"), search("q", 0, 2, "http://z")]
    for limit, urls in ((1, {"http://z"}), (2, {"http://z", "http://y"}), (3, {"http://z", "http://y", "http://x"})):
        chosen = SafelogParameters(clicks_per_user=limit)
        assert {row[2] for row in tables(pipeline.cap(rows, chosen))["clicks"]} == urls


def test_several_clicks_on_one_search_are_one_search_and_a_next_page_is_another(pipeline: Pipeline) -> None:
    """AOL repeats the row for each click with the same time, and for a next page with a later time and no click."""
    rows = [search("q", 0, 1, "http://x"), search("q", 0, 3, "http://y"), search("q", 4), search("-", 5)]
    view_cleaned(pipeline.chain.engine, pipeline.clean(rows))
    count = {table: f"SELECT count(*) FROM {table}" for table in ("cleaned_log", "cleaned_queries", "cleaned_clicks")}
    counted = [pipeline.chain.engine.connection.execute(text).fetchall()[0][0] for text in count.values()]
    assert counted == [3, 2, 2]
    capped = tables(pipeline.cap(rows))
    assert capped["queries"] == {("u", "q")} and len(capped["clicks"]) == 2


def test_spellings_that_normalise_to_one_text_are_one_query_before_anything_is_counted(pipeline: Pipeline) -> None:
    """Normalising after the cap would let one user hold one query twice."""
    rows = [search("Straße"), search("STRASSE ", 1), search("strasse", 2), search("ﬁsh", 3), search("fish", 4)]
    assert {row[1] for row in tables(pipeline.cap(rows))["queries"]} == {"strasse", "fish"}
    clicks = [search("q", 0, 1, "HTTP://A.Example/"), search("q", 1, 1, "http://a.example")]
    assert {row[2] for row in tables(pipeline.cap(clicks))["clicks"]} == {"http://a.example"}


def test_a_month_without_a_single_query_left_is_an_empty_table_and_not_an_error(pipeline: Pipeline) -> None:
    capped = tables(pipeline.cap([search("-"), search("   ", 1)]))
    assert capped == {"queries": set(), "clicks": set(), "transitions": set()}
