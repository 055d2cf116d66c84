"""Public pools: what is in them, that they are the same every time, and what is refused as a pool."""

from __future__ import annotations

import gzip
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month
from qlog_assets.sources.pool_files import DEFAULT_ROWS
from qlog_assets.sources.pools import PoolSpec, PublicList, ReleasedPool, load_pool, load_url_list


def texts(loaded: PublicList, column: str = "query") -> list[str]:
    table = pq.read_table(loaded.path)
    assert table.column(0).to_pylist() == list(range(loaded.rows))
    return table.column(column).to_pylist()


@pytest.fixture
def pool(tmp_path: Path) -> Any:
    def load(content: str | bytes, kind: str, **changes: Any) -> list[str]:
        path = tmp_path / changes.pop("name", "list.txt")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return texts(load_pool(PoolSpec(kind=kind, path=path, **changes), tmp_path / "cache"))

    return load


def test_a_query_list_is_normalised_made_distinct_and_sorted(pool: Any) -> None:
    content = "\ufeffWeather\r\n\n  new   york \nNEW YORK\n straße\nSTRASSE\nline\u2028separator\n-"
    assert pool(content, "query_list") == ["-", "line separator", "new york", "strasse", "weather"]


@pytest.mark.parametrize(
    "content",
    [
        "12\tnew york\n7\tice cream\n",
        "new york\t12\nice cream\t7\n",
        "new\tyork\nice\tcream\n",
        "12\tnew\tyork\n7\tice\tcream\n",
        "new york\nice cream\n",
    ],
    ids=["count first", "count last", "words between tabs", "count and tabs", "words alone"],
)
def test_n_grams_are_read_with_and_without_counts(pool: Any, content: str) -> None:
    assert pool(content, "ngram_file") == ["ice cream", "new york"]


def test_an_n_gram_that_is_a_number_is_not_taken_for_a_count(pool: Any) -> None:
    assert pool("2006\tworld cup\nice\tcream\n", "ngram_file") == ["2006 world cup", "ice cream"]


def test_a_list_longer_than_its_detection_loses_no_line(pool: Any) -> None:
    lines = [f"{count}\tword {count}" for count in range(1, 3001)]
    assert len(pool("\n".join(lines), "ngram_file")) == 3000


def test_coca_n_grams_are_kept_if_they_end_with_a_noun(pool: Any) -> None:
    content = (
        "N-grams from a corpus\nsee the notice\n\n"
        "22\tfilled\twith\tfluid\tvvn\tiw\tnn1\n"
        "6\tfilled\twith\tflying\tvvn\tiw\tjj\n"
        "9\tthe\tWhite\tHouse\tat\tnp1\tNP1\n"
        "5\tice\tcream\tnn1\tnn1\n"
    )
    assert pool(content, "coca_file") == ["filled with fluid", "ice cream", "the white house"]


@pytest.mark.parametrize(
    ("content", "kind", "line"),
    [
        ("3\tprivate words\nprivate words\n", "ngram_file", None),
        ("\n".join(["3\tprivate words"] * 1500 + ["private words"]), "ngram_file", 1501),
        ("3\tsome\tprivate\tjj\tnn1\n3\tprivate\twords\tnn1\n", "coca_file", 2),
        ("3\tsome\tprivate\tjj\tnn1\nprivate\n", "coca_file", 2),
        (b"fine\nprivate caf\xe9\n", "query_list", 2),
    ],
)
def test_a_bad_line_is_named_by_its_number_and_not_by_its_words(
    pool: Any, content: str | bytes, kind: str, line: int | None
) -> None:
    if line is None:
        assert pool(content, kind) == ["3 private words", "private words"]
        return
    with pytest.raises(QlogError, match=f"list.txt, line {line}:") as raised:
        pool(content, kind)
    assert "private" not in str(raised.value)


def test_a_list_in_another_encoding_and_a_gzip_list_are_read(pool: Any) -> None:
    assert pool("café\n".encode("latin-1"), "query_list", encoding="latin-1") == ["café"]
    assert pool(gzip.compress(b"Tea\n"), "query_list", name="list.gz") == ["tea"]
    assert pool(pa.compress(b"Tea\n", "zstd", asbytes=True), "query_list", name="list.zst") == ["tea"]


@pytest.mark.parametrize(
    ("content", "queries"),
    [
        ("1048585\tparis hotels\n2\ttea\n", ["paris hotels", "tea"]),
        ("q-1\tParis  Hotels\r\nq-2\t2006\r\n", ["2006", "paris hotels"]),
        # Words between tabs, a list of which only a part has ids, and numbers behind the tab are texts as they stand.
        ("ice\tcream\nnew\tyork\n", ["ice cream", "new york"]),
        ("1\ttea\ncake\n", ["1 tea", "cake"]),
        ("tea\t12\ncake\t7\n", ["cake 7", "tea 12"]),
        ("1\ttea\tgreen\n", ["1 tea green"]),
    ],
)
def test_ids_before_a_tab_are_no_part_of_a_query(pool: Any, content: str, queries: list[str]) -> None:
    assert pool(content, "query_list") == queries


def test_a_list_of_ids_says_which_line_has_none(pool: Any) -> None:
    with pytest.raises(QlogError, match=r"list\.txt, line 1501: is not an id, a tab and a text") as raised:
        pool("".join(f"{row}\ttea {row}\n" for row in range(1500)) + "private words\n", "query_list")
    assert "private" not in str(raised.value)


def test_the_default_pool_is_built_once_and_found_again(tmp_path: Path) -> None:
    first = load_pool(PoolSpec(), tmp_path / "cache")
    written = first.path.stat().st_mtime_ns
    queries = texts(first)
    assert {"weather", "new york", "real estate"} <= set(queries)
    assert not any("<" in query for query in queries)
    assert queries == sorted(queries)
    assert first.rows == DEFAULT_ROWS
    assert first.provenance["kind"] == "default" and "wordsegment" in first.provenance["description"]
    assert set(first.provenance["sources"]) == {"unigrams.txt", "bigrams.txt"}
    again = load_pool(PoolSpec(), tmp_path / "cache")
    assert again == first and again.path.stat().st_mtime_ns == written


def test_a_damaged_cache_is_built_anew(tmp_path: Path) -> None:
    source = tmp_path / "list.txt"
    source.write_text("tea\n")
    spec = PoolSpec(kind="query_list", path=source)
    first = load_pool(spec, tmp_path / "cache")
    first.path.write_bytes(b"damaged")
    assert texts(load_pool(spec, tmp_path / "cache")) == ["tea"]


def test_a_list_is_told_apart_by_its_texts_and_by_nothing_else(tmp_path: Path) -> None:
    source, renamed, urls = tmp_path / "list.txt", tmp_path / "renamed.txt", tmp_path / "urls.txt"
    source.write_text("tea\ncake\n")
    renamed.write_text("Cake\r\nTea\r\ntea\r\n")
    urls.write_text("cake\ntea\n")
    spec = PoolSpec(kind="query_list", path=source)
    loaded = [
        load_pool(spec, tmp_path / "cache"),
        load_pool(spec, tmp_path / "cache"),
        load_pool(spec.with_changes(description="corrected", licence="CC0"), tmp_path / "cache"),
        load_pool(spec.with_changes(path=renamed), tmp_path / "cache"),
        load_pool(spec.with_changes(kind="ngram_file"), tmp_path / "cache"),
        load_pool(spec.with_changes(seed="other"), tmp_path / "cache"),
        load_url_list(urls, tmp_path / "cache"),
    ]
    assert len({found.content_digest for found in loaded}) == 1
    assert loaded[2].provenance["description"] == "corrected" and loaded[3].provenance["name"] == "renamed.txt"
    assert len({found.path for found in loaded}) == 6
    others = {loaded[0].content_digest}
    for number, content in enumerate(("tea\n", "tea\ncakes\n", "teac\nake\n", "tea cake\n", "c\nake\ntea\n"), start=2):
        source.write_text(content)
        others.add(load_pool(spec, tmp_path / "cache").content_digest)
        assert len(others) == number


def test_the_content_digest_is_the_one_that_anybody_can_compute(tmp_path: Path) -> None:
    source = tmp_path / "list.txt"
    source.write_text("thé\ncake\n")
    said = b"".join(len(text).to_bytes(8, "big") + text for text in (b"cake", "thé".encode()))
    loaded = load_pool(PoolSpec(kind="query_list", path=source), tmp_path / "cache")
    assert loaded.content_digest == hashlib.sha256(said).hexdigest()


def test_another_content_or_sample_is_another_pool(tmp_path: Path) -> None:
    source = tmp_path / "list.txt"
    source.write_text("tea\n")
    spec = PoolSpec(kind="query_list", path=source)
    first = load_pool(spec, tmp_path / "cache")
    source.write_text("tea\ncake\n")
    second = load_pool(spec, tmp_path / "cache")
    third = load_pool(spec.with_changes(seed="other"), tmp_path / "cache")
    assert len({first.path, second.path, third.path}) == 3
    assert (first.rows, second.rows, third.rows) == (1, 2, 2)


def test_sampling_keeps_its_share_and_always_the_same_queries(tmp_path: Path) -> None:
    """20,000 draws at one quarter: the bounds are eight standard deviations wide, and the hash is fixed anyway."""
    source = tmp_path / "list.txt"
    source.write_text("\n".join(f"query {number}" for number in range(20_000)))
    spec = PoolSpec(kind="query_list", path=source, probability="0.25")
    kept = texts(load_pool(spec, tmp_path / "a"))
    assert kept == texts(load_pool(spec, tmp_path / "b"))
    assert 4_500 < len(kept) < 5_500
    other = set(texts(load_pool(spec.with_changes(seed="other"), tmp_path / "a")))
    assert 1_000 < len(other & set(kept)) < 1_500
    more = set(texts(load_pool(spec.with_changes(probability="0.5"), tmp_path / "a")))
    assert set(kept) <= more
    assert spec.probability == Fraction(1, 4)


def test_a_pool_from_the_raw_logs_zones_is_refused(tmp_path: Path) -> None:
    landing = tmp_path / "home" / "landing"
    landing.mkdir(parents=True)
    (landing / "list.txt").write_text("typed by somebody\n")
    link = tmp_path / "looks-public.txt"
    link.symlink_to(landing / "list.txt")
    around = tmp_path / "home" / "released" / ".." / "landing" / "list.txt"
    (tmp_path / "home" / "released").mkdir()
    for path in (landing / "list.txt", link, around):
        with pytest.raises(QlogError, match="lies in the raw log's zone landing/"):
            load_pool(PoolSpec(kind="query_list", path=path), tmp_path / "cache", private_zones=[landing])
        with pytest.raises(QlogError, match="lies in the raw log's zone landing/"):
            load_url_list(path, tmp_path / "cache", private_zones=[landing])
    assert not (tmp_path / "cache").exists()


def test_a_pool_that_declares_itself_from_the_log_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "list.txt"
    source.write_text("typed by somebody\n")
    declaration = tmp_path / "list.txt.provenance.json"
    spec = PoolSpec(kind="query_list", path=source)
    with pytest.raises(QlogError, match="made from the log is not public"):
        load_pool(spec.with_changes(origin="log"), tmp_path / "cache")
    for content in ({"origin": "log"}, {"origin": "raw_log 2006-03"}, {}, ["public"]):
        declaration.write_text(json.dumps(content))
        with pytest.raises(QlogError, match="does not declare its origin as public"):
            load_pool(spec, tmp_path / "cache")
    declaration.write_text("not json")
    with pytest.raises(QlogError, match="is not JSON"):
        load_pool(spec, tmp_path / "cache")
    declaration.write_text(json.dumps({"origin": "public"}))
    assert load_pool(spec, tmp_path / "cache").rows == 1


def test_a_private_partition_or_a_log_in_parquet_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user": ["u"], "query": ["typed by somebody"]}), log)
    with pytest.raises(QlogError, match="has a user column") as raised:
        load_pool(PoolSpec(kind="query_list", path=log), tmp_path / "cache")
    assert "somebody" not in str(raised.value)
    copied = tmp_path / "copied"
    copied.mkdir()
    pq.write_table(pa.table({"query": ["typed by somebody"]}), copied / "queries.parquet")
    (copied / "provenance.json").write_text("{}")
    with pytest.raises(QlogError, match="partition of a private table"):
        load_pool(PoolSpec(kind="query_list", path=copied / "queries.parquet"), tmp_path / "cache")


def test_earlier_releases_are_a_pool_and_later_ones_are_not(tmp_path: Path) -> None:
    releases = []
    for month, queries in (("2006-03", ["tea", "cake"]), ("2006-04", ["cake", "rain"])):
        path = tmp_path / month / "queries.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"query": queries, "users": [200, 150]}), path)
        releases.append(ReleasedPool(release_id=f"safelog-{month}", month=Month(month), path=path))
    spec = PoolSpec(kind="releases", releases=tuple(releases))
    loaded = load_pool(spec, tmp_path / "cache", before=Month("2006-05"))
    assert texts(loaded) == ["cake", "rain", "tea"]
    assert list(loaded.provenance["sources"]) == ["safelog-2006-03", "safelog-2006-04"]
    with pytest.raises(QlogError, match="safelog-2006-04 is of 2006-04: a pool for 2006-04 needs earlier months"):
        load_pool(spec, tmp_path / "cache", before=Month("2006-04"))


def test_a_url_list_is_normalised_and_numbered(tmp_path: Path) -> None:
    source = tmp_path / "urls.txt"
    source.write_text("HTTP://B.example/\nhttp://a.example/Path\nhttp://b.example\n/\n")
    loaded = load_url_list(source, tmp_path / "cache", description="the open directory")
    assert texts(loaded, "url") == ["http://a.example/Path", "http://b.example"]
    assert loaded.provenance["description"] == "the open directory"


@pytest.mark.parametrize(
    ("content", "kind", "says"),
    [("", "query_list", "has no query in it"), ("5\tvery\tjj\trr\n", "coca_file", "has no query in it")],
)
def test_a_list_without_a_query_is_an_error(pool: Any, content: str, kind: str, says: str) -> None:
    with pytest.raises(QlogError, match=says):
        pool(content, kind)


def test_a_missing_file_and_an_incomplete_wish_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(QlogError, match="no such file"):
        load_pool(PoolSpec(kind="query_list", path=tmp_path / "absent"), tmp_path / "cache")
    with pytest.raises(QlogError, match="no such file"):
        load_url_list(tmp_path / "absent", tmp_path / "cache")
    with pytest.raises(ParameterError, match="needs the file's path"):
        PoolSpec(kind="coca_file")
    with pytest.raises(ParameterError, match="needs releases of earlier months"):
        PoolSpec(kind="releases")
    for probability in ("0", "1.5", 0.5):
        with pytest.raises(ParameterError, match="probability"):
            PoolSpec(probability=probability)
