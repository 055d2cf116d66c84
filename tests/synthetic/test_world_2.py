"""World 2 of the synthetic log: raw spellings, urls with paths, and the planted person's published numbers."""

import hashlib
import re
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.sources.normalise import normalise_text, normalise_url
from qlog_assets.synthetic import (
    PERSONS_OWN_QUERY,
    SyntheticFacts,
    public_queries,
    site_directory,
    topic_of_query,
    topic_of_url,
    write_log,
)
from qlog_assets.synthetic.typing_styles import STYLES

Row = list[str]
ROWS = 60_000


def read_rows(path: Path) -> list[Row]:
    _, *lines = path.read_text(encoding="ascii").removesuffix("\n").split("\n")
    return [line.split("\t") for line in lines]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> SyntheticFacts:
    return write_log(tmp_path_factory.mktemp("world") / "log.txt", ROWS, seed=5, world_version=2)


@pytest.fixture(scope="module")
def rows(facts: SyntheticFacts) -> list[Row]:
    return read_rows(facts.path)


def persons_rows(rows: list[Row]) -> list[Row]:
    (user,) = {row[0] for row in rows if normalise_text(row[1]) == PERSONS_OWN_QUERY}
    return [row for row in rows if row[0] == user]


def test_the_log_has_the_rows_and_users_asked_for_with_the_person_among_them(
    facts: SyntheticFacts, rows: list[Row]
) -> None:
    assert len(rows) == facts.rows == ROWS and facts.world_version == 2
    assert len({row[0] for row in rows}) == facts.users == round(ROWS * 657_426 / 36_389_567)
    assert sum(row[4] != "" for row in rows) == facts.clicks
    keys = [(int(row[0]), row[2]) for row in rows]
    assert keys == sorted(keys)
    people = sorted({row[0] for row in rows}, key=int)
    assert 0 < people.index(persons_rows(rows)[0][0]) < len(people) - 1


def test_a_seed_means_the_same_log_of_world_2_as_when_it_was_pinned(tmp_path: Path) -> None:
    one = write_log(tmp_path / "one.txt", 5_000, seed=1, world_version=2)
    assert digest(one.path)[:16] == "6513913ec688aa2b"
    assert digest(one.path) != digest(write_log(tmp_path / "other.txt", 5_000, seed=2, world_version=2).path)


def test_the_default_is_still_world_1(tmp_path: Path) -> None:
    """The digest is that of test_synthetic.py: what figures in docs were measured on."""
    default = write_log(tmp_path / "default.txt", 5_000, seed=1)
    assert default.world_version == 1 and digest(default.path)[:16] == "4c7468777ea14ce8"
    assert digest(write_log(tmp_path / "first.txt", 5_000, seed=1, world_version=1).path) == digest(default.path)


def test_a_world_that_is_not_there_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="versions 1, 2, 3, not 4"):
        write_log(tmp_path / "log.txt", 5_000, seed=1, world_version=4)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(20))
def test_the_persons_numbers_are_the_published_ones_for_every_seed(tmp_path: Path, seed: int) -> None:
    typed = persons_rows(read_rows(write_log(tmp_path / "log.txt", 1_000, seed, world_version=2).path))
    searches = list(dict.fromkeys((normalise_text(row[1]), row[2]) for row in typed))
    queries = [query for query, _ in searches]
    assert (len(queries), len(set(queries))) == (239, 224)
    kept = [query for query, _ in groupby(queries)]
    reformulations = list(pairwise(kept))
    assert len(reformulations) == len(set(reformulations)) == 237
    clicks = [(normalise_text(row[1]), normalise_url(row[4])) for row in typed if row[4]]
    assert (len(clicks), len(set(clicks))) == (136, 132)
    assert {row[2][:7] for row in typed} == {"2006-03"}, "a study of the first month sees all of her"


@pytest.mark.parametrize("month", ["2006-02", "2006-03"])
def test_the_persons_sessions_are_sixty_with_silence_between_them(tmp_path: Path, month: str) -> None:
    typed = persons_rows(read_rows(write_log(tmp_path / "log.txt", 1_000, 3, month, month, world_version=2).path))
    times = [datetime.fromisoformat(row[2]) for row in typed]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert min(gaps) >= 0 and 1 + sum(gap > 1800 for gap in gaps) == 60
    assert not any(100 < gap <= 1800 for gap in gaps)


def test_nobody_else_types_what_is_the_persons_own(rows: list[Row]) -> None:
    hers = persons_rows(rows)
    own = {row[1] for row in hers if "arnsdotter" in normalise_text(row[1])}
    assert len(own) == 92
    assert all("arnsdotter" not in f"{row[1]} {row[4]}".lower() for row in rows if row[0] != hers[0][0])
    assert not any("arnsdotter" in text for text in (*public_queries(), *site_directory()))


def test_queries_are_typed_with_capitals_and_spaces(rows: list[Row]) -> None:
    share = {
        name: sum(bool(re.search(pattern, row[1])) for row in rows) / len(rows)
        for name, pattern in {"capital": "^[A-Z][a-z]", "all": "^[A-Z][A-Z]", "wide": r"\S  \S", "end": " $"}.items()
    }
    assert 0.08 < share["capital"] < 0.20 and 0.02 < share["all"] < 0.09
    assert 0.01 < share["wide"] < 0.06 and 0.01 < share["end"] < 0.04
    raw, normalised = {row[1] for row in rows}, {normalise_text(row[1]) for row in rows}
    assert 1.02 * len(normalised) < len(raw)


def test_the_rows_of_one_search_are_typed_alike(rows: list[Row]) -> None:
    for before, row in pairwise(rows):
        if row[0] == before[0] and row[2] == before[2]:
            assert row[1] == before[1]


@pytest.mark.parametrize("style", STYLES)
def test_every_style_of_a_query_is_the_same_one_normalised(style: object) -> None:
    assert callable(style)
    for query in public_queries()[::97]:
        assert normalise_text(style(query)) == query


def test_clicked_pages_belong_to_a_site_of_their_topic(rows: list[Row]) -> None:
    pages = [row for row in rows if re.fullmatch(r"http://[^/]+/.+", row[4])]
    clicks = [row for row in rows if row[4]]
    assert 0.3 < len(pages) / len(clicks) < 0.7
    assert any(row[4].endswith("/") for row in clicks)
    ordinary = [row for row in pages if topic_of_url(row[4]) is not None]
    assert len(ordinary) > 0.95 * len(pages)
    for row in ordinary[::11]:
        page = row[4].split("/")[3].replace("-", " ")
        assert topic_of_query(page) == topic_of_url(row[4]) or row[1] == "-"
    assert {normalise_url(row[4]).count("/") for row in clicks} == {2, 3}
