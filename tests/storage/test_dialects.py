"""The statements of `sql/` keep to what Spark can be told in its own words; no Spark is needed to see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import duckdb
import pytest
from sqlglot import exp, parse_one
from sqlglot.errors import UnsupportedError
from support.small_tables import base_tables

from qlog_assets.settings import CHECKOUT, shipped_file
from qlog_assets.sources.normalise import MACROS
from qlog_assets.storage.dialects import (
    REFUSED,
    UntranslatableError,
    as_text,
    parse_macro,
    to_spark,
)
from qlog_assets.storage.engine import DuckDBEngine
from qlog_assets.storage.java_patterns import java_pattern
from qlog_assets.storage.statements import statement

SQL = CHECKOUT / "sql"
NAMES = sorted(str(path.relative_to(SQL).with_suffix("")) for path in SQL.rglob("*.sql"))
STATEMENTS = [name for name in NAMES if name not in MACROS and not name.endswith(".spark")]
SECOND_FILES = [name for name in NAMES if name.endswith(".spark")]
TIMES = ("month_start", "month_end")
KNOWN = {name: dict.fromkeys(table.column_names, "VARCHAR") for name, table in base_tables().items()}
ONLY_DUCKDBS = re.compile(r"COLUMNS\s*\(|\bQUALIFY\b|\bEXCLUDE\b|duckdb_|md5_number|INT128|\$[a-z]|::", re.IGNORECASE)
"""What no statement may have kept."""


def columns(table: str) -> Mapping[str, str]:
    return KNOWN.get(table, {"user": "VARCHAR", "query": "VARCHAR", "time": "TIMESTAMP"})


def translated(name: str) -> str:
    return to_spark(name, columns, macros=MACROS, times=TIMES).text


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_translated_or_refused_by_the_construct_that_spark_lacks(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(UntranslatableError, match=rf"^sql/{name}\.sql: spark: .*{REFUSED[name]}"):
            translated(name)
        return
    text = translated(name)
    assert not ONLY_DUCKDBS.search(re.sub(r"'(?:[^'\\]|\\.)*'", "''", text)), text
    # What was written can be read again as Spark's.
    assert parse_one(text, read="spark").find(exp.Select) is not None


def test_what_is_refused_is_a_statement() -> None:
    assert set(REFUSED) <= set(STATEMENTS)


@pytest.mark.parametrize("name", MACROS)
def test_a_macro_has_one_parameter_and_goes_where_it_is_called(name: str) -> None:
    assert [each.name for each in parse_macro(name).this.expressions] == ["raw"]
    assert "normalise" not in translated("log/cleaned_log").lower().replace("normalised", "")


@pytest.mark.parametrize("name", SECOND_FILES)
def test_a_second_file_stands_beside_a_first_one(name: str) -> None:
    assert shipped_file("sql", f"{name.removesuffix('.spark')}.sql").is_file()


def test_second_files_say_what_the_first_ones_say() -> None:
    """DuckDB numbers rows as they lie, Spark by what they say: in a sorted table that is one."""
    engine = DuckDBEngine(duckdb.connect())
    places = ", ".join(f"(i * {7 + n}) % 5 AS q{n}" for n in range(1, 11))
    engine.connection.execute(
        f"CREATE TEMP TABLE counted_subsequences AS SELECT DISTINCT ON (q1, q2) *, 3 AS held_by "
        f"FROM (SELECT {places} FROM range(40) AS t (i)) ORDER BY ALL"
    )
    engine.statement_table("sessions/ordered_subsequences", "counted_subsequences")
    engine.connection.execute("CREATE TEMP TABLE chosen_rows AS SELECT unnest([3, 0, 4]) AS row_number")
    for name in ("sessions/subsequence_counts", "sessions/chosen_subsequences"):
        first, second = engine.run(name).fetchall(), engine.run(f"{name}.spark").fetchall()
        assert sorted(first) == sorted(second) and first, name


@pytest.mark.parametrize("rows", [0, 1, 5_000])
def test_a_digest_in_registers_is_the_digest_of_md5_as_a_number(rows: int) -> None:
    engine = DuckDBEngine(duckdb.connect())
    engine.connection.execute(
        "CREATE TEMP TABLE written AS SELECT i AS number, 'ü' || i AS text, nullif('x', 'x') AS nothing, "
        f'now() AS "time" FROM range({rows}) AS t (i)'
    )
    first, second = engine.row("storage/digest_rows"), engine.row("storage/digest_rows.spark")
    assert first == second and str(first["digest"]).startswith(f"{rows}-")


def test_all_rows_of_a_query_are_numbered_elsewhere_and_read_back_with_their_places() -> None:
    asked: list[str] = []

    def number(ordered: exp.Expr) -> str:
        asked.append(as_text(ordered))
        return "numbered_1"

    items = to_spark("contributions/counted_items", columns, number=number)
    users = to_spark("contributions/numbered_contributions", columns, number=number)
    assert [text.rpartition(" ORDER BY ")[2] for text in asked] == ["item_text NULLS LAST", "`user` NULLS LAST"]
    assert items.only_renames and not users.only_renames
    assert all(
        "ROW_NUMBER" not in each.text and "row_place" in each.text and "FROM numbered_1" in each.text
        for each in (items, users)
    )


def test_rows_that_are_numbered_for_each_user_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT x, row_number() OVER (PARTITION BY y ORDER BY x) AS n FROM t"
    monkeypatch.setattr("qlog_assets.storage.dialects.spark_source", lambda name: text)
    assert "PARTITION BY y" in to_spark("room/name", columns, number=lambda ordered: "nowhere").text


def test_a_numbering_takes_along_what_its_rows_are_selected_by(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "WITH a AS (SELECT x FROM t) SELECT b.x, row_number() OVER (ORDER BY b.x) AS n FROM a AS b WHERE b.x > 1"
    monkeypatch.setattr("qlog_assets.storage.dialects.spark_source", lambda name: text)
    asked = []
    to_spark("room/name", columns, number=lambda ordered: asked.append(as_text(ordered)) or "somewhere")
    assert asked == ["WITH a AS (SELECT x FROM t) SELECT * FROM a AS b WHERE b.x > 1 ORDER BY b.x NULLS LAST"]


@pytest.mark.parametrize("kind", ["ANTI", "SEMI", "NATURAL ANTI"])
def test_no_word_before_a_join_can_be_taken_for_a_tables_name(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Where reserved words are enforced, Spark reads `t ANTI JOIN u` as `t AS anti JOIN u`: the opposite."""
    text = f"SELECT query FROM t {kind} JOIN u" + ("" if "NATURAL" in kind else " USING (query)")
    monkeypatch.setattr("qlog_assets.storage.dialects.spark_source", lambda name: text)
    assert f"FROM t LEFT {kind.rsplit(maxsplit=1)[-1]} JOIN u USING (" in to_spark("room/name", columns).text


def test_the_end_of_a_text_is_the_same_in_both_kinds_of_patterns() -> None:
    assert java_pattern(r"a$|[$b]\$c$") == r"(?d)a\z|[$b]\$c\z"


@pytest.mark.parametrize(
    ("pattern", "java"),
    [
        (r"[\t/]+$", r"(?d)(?:\G|(?<![\t/]))[\t/]++\z"),
        (r"^[\]|(]+|[\]|(]+$|b", r"(?d)^[\]|(]+|(?:\G|(?<![\]|(]))[\]|(]++\z|b"),
        (r"/+$", r"(?d)(?:\G|(?<!/))/++\z"),
        (r"\.+$", r"(?d)(?:\G|(?<!\.))\.++\z"),
        # A run that does not begin its alternative begins behind something: it may be its own sign.
        (r"/[/]+$", r"(?d)/[/]+\z"),
        (r"/(?:a|[/]+$)", r"(?d)/(?:a|[/]+\z)"),
        (r"[a]+\$", r"(?d)[a]+\$"),
    ],
)
def test_a_run_at_the_end_of_a_text_is_tried_once(pattern: str, java: str) -> None:
    """Java would try it at each of its places: the square of a url's length."""
    assert java_pattern(pattern) == java


@pytest.mark.parametrize("beside", ["^a*", "^", "(?:a|)", r"\b", "a?", "a{0,2}", ""])
def test_a_run_at_the_end_beside_what_may_match_nothing_is_refused(beside: str) -> None:
    with pytest.raises(UnsupportedError, match="beside what may match nothing"):
        java_pattern(f"{beside}|[ab]+$")


def test_no_url_takes_the_square_of_its_length() -> None:
    assert r"(?:\\G|(?<![\\t-\\r\\x1c-\\x20/]))[\\t-\\r\\x1c-\\x20/]++\\z" in translated("log/cleaned_log")


@pytest.mark.parametrize("pattern", [r"[[:alpha:]]", r"a\s", r"(?i)a", r"[a-z&&b]", r"[]$]", r"[^]$]"])
def test_a_pattern_that_java_reads_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    text = f"SELECT regexp_matches(query, '{pattern}') AS found FROM t"
    monkeypatch.setattr("qlog_assets.storage.dialects.spark_source", lambda name: text)
    with pytest.raises(UntranslatableError, match=r"^sql/room/name\.sql: spark: .* a pattern with "):
        to_spark("room/name", columns)


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("SELECT md5_number_upper(x) FROM t", "md5_number_upper"),
        ("SELECT rowid FROM t", "rowid"),
        ("SELECT sum(x) FILTER (WHERE y) OVER (ORDER BY z) FROM t", "FILTER on another window function"),
        ("SELECT regexp_replace(x, 'a', 'b') FROM t", "regexp_replace without 'g'"),
        ("INSERT INTO t SELECT 1", "INSERT"),
    ],
)
def test_what_spark_lacks_is_named_with_the_engine(text: str, construct: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qlog_assets.storage.dialects.spark_source", lambda name: text)
    with pytest.raises(UntranslatableError, match="spark: has no counterpart of") as caught:
        to_spark("room/name", columns)
    assert construct in str(caught.value)


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_time_is_counted_by_boundaries_and_no_hash_is_an_engines_own(name: str) -> None:
    """`date_diff` counts the boundaries that were passed; what `hash` says is another number in every engine."""
    calls = re.sub(r"--.*", "", statement(name).lower())
    assert "date_diff" not in calls and not re.search(r"(?<!\w)hash\(", calls)


@pytest.mark.parametrize("name", [*STATEMENTS, *SECOND_FILES])
def test_sums_that_leave_a_statement_are_cast(name: str) -> None:
    """DuckDB's are HUGEINT, which Parquet has as a float. A sum within a text is none."""
    tree = parse_one(statement(name), read="duckdb")
    passed_on = {each.alias for select in tree.find_all(exp.Select) for each in select.expressions if is_bare_sum(each)}
    for told in (each for select in outermost(tree) for each in select.expressions):
        assert not is_bare_sum(told), told.sql()
        assert not (isinstance(told.unalias(), exp.Column) and told.unalias().name in passed_on), told.sql()


@pytest.mark.parametrize("name", [*STATEMENTS, *SECOND_FILES])
def test_no_alias_stands_for_a_column_that_a_later_clause_means(name: str) -> None:
    """`QUALIFY` and the like read the alias in one engine and the column in another, and neither says so."""
    for select in parse_one(statement(name), read="duckdb").find_all(exp.Select):
        later = [select.args.get(clause) or [] for clause in ("group", "having", "qualify", "windows", "order")]
        clauses = [each for found in later for each in (found if isinstance(found, list) else [found])]
        meant = {column.name for each in clauses for column in each.find_all(exp.Column) if not column.table}
        for alias in (each for each in select.expressions if isinstance(each, exp.Alias)):
            renamed = isinstance(alias.this, exp.Column) and alias.this.name == alias.alias
            shadows = alias.alias in {column.name for column in alias.this.find_all(exp.Column)}
            assert renamed or not shadows or alias.alias not in meant, alias.sql()


def outermost(tree: exp.Expr) -> Iterator[exp.Select]:
    """The selections whose columns a statement answers."""
    if isinstance(tree, exp.SetOperation):
        yield from outermost(tree.left)
        yield from outermost(tree.right)
    elif isinstance(tree, exp.Subquery):
        yield from outermost(tree.this)
    elif isinstance(tree, exp.Select):
        yield tree


def is_bare_sum(told: exp.Expr) -> bool:
    """Whether a column is, or is computed from, a sum that nothing casts or puts into a text."""
    return any(
        not any(isinstance(above, exp.Cast | exp.DPipe) for above in ancestors(each, told))
        for each in told.find_all(exp.Sum)
    )


def ancestors(inner: exp.Expr, outer: exp.Expr) -> Iterator[exp.Expr]:
    while inner is not outer and inner.parent is not None:
        inner = inner.parent
        yield inner


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("SELECT sum(n) AS n FROM t", test_sums_that_leave_a_statement_are_cast),
        ("SELECT s FROM (SELECT sum(n) AS s FROM t)", test_sums_that_leave_a_statement_are_cast),
        (
            "SELECT lower(q) AS q FROM t QUALIFY row_number() OVER (PARTITION BY q) = 1",
            test_no_alias_stands_for_a_column_that_a_later_clause_means,
        ),
        (
            "SELECT date_diff('day', a, b) FROM t",
            test_no_time_is_counted_by_boundaries_and_no_hash_is_an_engines_own,
        ),
    ],
)
def test_the_subset_is_kept_by_tests_that_can_fail(
    text: str, broken: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.statement", lambda name: text)
    with pytest.raises(AssertionError):
        broken("any")
