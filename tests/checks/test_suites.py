"""The adapter fails closed and prints no value; the suites catch what they are there for. Real DuckDB, real library."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from qlog_assets.checks import suites as checks
from qlog_assets.checks.personal_data import REGEX_PATTERNS
from qlog_assets.checks.released import NEVER, released_frames
from qlog_assets.checks.suites import CheckError, CheckResult, by_table, read_suite, run_suite
from qlog_assets.mechanisms.register import releasable
from qlog_assets.mechanisms.safelog.tables import QUERIES, TABLES
from qlog_assets.report.tables import in_public_order
from qlog_assets.settings import CHECKOUT

LAYOUTS = {layout.name: layout for layout in TABLES}
MONTH = {"month_start": datetime(2006, 3, 1), "month_end": datetime(2006, 4, 1)}
LIMITS = {"queries_per_user": 2, "clicks_per_user": 2, "transitions_per_user": 1}
SECRET = "very private query"
NOON = "TIMESTAMP '2006-03-15 12:00' AS \"time\""

LOG = {
    "raw_log": """SELECT * FROM (VALUES ('u', 'Cats', TIMESTAMP '2006-03-31 23:59:59', 1::INTEGER, 'http://x.example'),
        ('u', 'dogs', TIMESTAMP '2006-03-01', NULL, NULL)) AS t("user", query, "time", rank, url)""",
    "rejected_rows": "SELECT 'a.txt' AS file, 3::BIGINT AS line, 'bad time' AS reason",
    "cleaned_log": """SELECT * FROM (VALUES ('u', 'cats', TIMESTAMP '2006-03-01', 1::INTEGER, 'x.example'),
        ('u', 'dogs', TIMESTAMP '2006-03-02', NULL, NULL), ('v', 'cats', TIMESTAMP '2006-03-31 23:59:59', NULL, NULL))
        AS t("user", query, "time", rank, url)""",
    "capped_queries": """SELECT * FROM (VALUES ('u', 'cats', TIMESTAMP '2006-03-01'),
        ('u', 'dogs', TIMESTAMP '2006-03-02'), ('v', 'cats', TIMESTAMP '2006-03-31 23:59:59'))
        AS t("user", query, "time")""",
    "capped_clicks": f"SELECT 'u' AS \"user\", 'cats' AS query, 'x.example' AS url, {NOON}",
    "capped_transitions": f"SELECT 'u' AS \"user\", 'cats' AS query, 'dogs' AS next_query, {NOON}",
}


def counted(name: str, changes: dict[str, str] | None = None, **parameters: Any) -> pd.DataFrame:
    """What a statement of `sql/` counts in a small log, some of whose tables are replaced."""
    statement = (CHECKOUT / "sql" / f"{name}.sql").read_text()
    with duckdb.connect() as connection:
        for table, body in {**LOG, **(changes or {})}.items():
            connection.execute(f"CREATE TEMP VIEW {table} AS {body}")
        return connection.execute(statement, parameters).df()


def check_capped(changes: dict[str, str] | None = None) -> CheckResult:
    return run_suite(
        "safelog/capped_log", by_table(counted("safelog/check_capped_log", changes, **MONTH)), parameters=LIMITS
    )


def check_cleaned(changes: dict[str, str] | None = None) -> CheckResult:
    return run_suite("log/cleaned_log", {"counts": counted("log/check_cleaned_log", changes, **MONTH)})


def check_raw(changes: dict[str, str] | None = None) -> CheckResult:
    return run_suite("log/raw_log", {"counts": counted("log/check_raw_log", changes, **MONTH)})


def check_batch(changes: dict[str, str] | None = None, *, read: int = 5, accepted: int = 4) -> CheckResult:
    counts = counted("log/check_landing_batch", changes, rows_read=read, rows_accepted=accepted)
    return run_suite("log/landing_batch", {"counts": counts})


def check_rejected(changes: dict[str, str] | None = None, *, read: int = 5, accepted: int = 4) -> CheckResult:
    counts = counted("log/check_landing_batch", changes, rows_read=read, rows_accepted=accepted)
    return run_suite("log/rejected_rows", {"counts": counts}, parameters={"max_rejected_share": 0.2})


@pytest.fixture
def write_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a suite of the test's own and let the adapter find it."""
    monkeypatch.setattr(checks, "shipped_file", lambda kind, name: tmp_path / name)

    def write(*expectations: dict[str, Any], **meta: Any) -> str:
        suite = {"name": "mine", "meta": meta, "expectations": list(expectations)}
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "mine.json").write_text(json.dumps(suite))
        return "tests/mine"

    return write


def between(column: str = "x", **limits: Any) -> dict[str, Any]:
    return {"type": "expect_column_values_to_be_between", "kwargs": {"column": column, **(limits or {"min_value": 0})}}


# The suites --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [check_raw, check_cleaned, check_capped, check_batch, check_rejected])
def test_a_good_log_passes_every_suite(check: Callable[[], CheckResult]) -> None:
    result = check()
    assert result.passed, result.reason
    assert result.evaluated == len(result.expectations) > 0


@pytest.mark.parametrize(
    ("table", "body", "where"),
    [
        (
            "capped_queries",
            f"SELECT 'u' AS \"user\", 'q' || range AS query, {NOON} FROM range(3)",
            "queries.max_per_user",
        ),
        ("capped_queries", f"SELECT 'u' AS \"user\", 'q' AS query, {NOON} FROM range(2)", "queries.repeated_rows"),
        ("capped_queries", f"SELECT 'u' AS \"user\", NULL::VARCHAR AS query, {NOON}", "queries.incomplete_rows"),
        ("capped_queries", f"SELECT NULL::VARCHAR AS \"user\", 'q' AS query, {NOON}", "queries.incomplete_rows"),
        ("capped_queries", f"SELECT 'u' AS \"user\", 'q' AS query, {NOON}, 1 AS age", "queries.columns"),
        (
            "capped_clicks",
            f"SELECT 'u' AS \"user\", 'q' AS query, 'u' || range AS url, {NOON} FROM range(3)",
            "clicks.max_per_user",
        ),
        (
            "capped_clicks",
            f"SELECT 'u' AS \"user\", 'q' AS query, 'u' AS url, {NOON} FROM range(2)",
            "clicks.repeated_rows",
        ),
        ("capped_clicks", f"SELECT 'u' AS \"user\", 'q' AS query, '' AS url, {NOON}", "clicks.incomplete_rows"),
        (
            "capped_transitions",
            f"SELECT 'u' AS \"user\", 'q' AS query, 'p' || range AS next_query, {NOON} FROM range(2)",
            "transitions.max_per_user",
        ),
        (
            "capped_transitions",
            f"SELECT 'u' AS \"user\", 'q' AS query, 'q' AS next_query, {NOON}",
            "transitions.self_transitions",
        ),
    ],
)
def test_a_broken_cap_fails(table: str, body: str, where: str) -> None:
    result = check_capped({table: body})
    assert not result.passed
    assert where in result.reason


def test_clicks_and_transitions_of_a_month_may_be_empty() -> None:
    empty = {name: f"SELECT * FROM ({LOG[name]}) WHERE false" for name in ("capped_clicks", "capped_transitions")}
    assert check_capped(empty).passed


@pytest.mark.parametrize(
    ("check", "table", "change", "where"),
    [
        (check_raw, "raw_log", "REPLACE (TIMESTAMP '2006-04-01' AS \"time\")", "counts.rows_outside_month"),
        (check_raw, "raw_log", "REPLACE (TIMESTAMP '2006-02-28 23:59:59' AS \"time\")", "counts.rows_outside_month"),
        (check_raw, "raw_log", 'REPLACE (NULL::TIMESTAMP AS "time")', "counts.rows_outside_month"),
        (check_raw, "raw_log", "REPLACE ('' AS query)", "counts.rows_without_query"),
        (check_raw, "raw_log", 'REPLACE (NULL::VARCHAR AS "user")', "counts.rows_without_user"),
        (check_raw, "raw_log", "EXCLUDE (url)", "counts.columns"),
        (check_cleaned, "cleaned_log", "REPLACE ('Cats' AS query)", "counts.rows_not_normalised"),
        (check_cleaned, "cleaned_log", "REPLACE ('two  spaces' AS query)", "counts.rows_not_normalised"),
        (check_cleaned, "cleaned_log", "REPLACE ('' AS query)", "counts.rows_without_query"),
        (check_cleaned, "cleaned_log", "REPLACE (TIMESTAMP '2006-04-01' AS \"time\")", "counts.rows_outside_month"),
        (check_cleaned, "cleaned_log", "REPLACE ('' AS url)", "counts.rows_with_empty_url"),
        (check_cleaned, "cleaned_log", "EXCLUDE (rank)", "counts.columns"),
        (check_capped, "capped_queries", "REPLACE (TIMESTAMP '2006-04-01' AS \"time\")", "queries.rows_outside_month"),
        (check_capped, "capped_clicks", "REPLACE (TIMESTAMP '2006-02-28' AS \"time\")", "clicks.rows_outside_month"),
        (check_capped, "capped_transitions", 'REPLACE (NULL::TIMESTAMP AS "time")', "transitions.rows_outside_month"),
        (check_batch, "rejected_rows", "REPLACE ('Bad: jsmith@x.example' AS reason)", "rows_without_plain_reason"),
    ],
)
def test_a_broken_log_fails(check: Callable[..., CheckResult], table: str, change: str, where: str) -> None:
    result = check({table: f"SELECT * {change} FROM ({LOG[table]})"})
    assert not result.passed
    assert where in result.reason


def test_an_empty_month_fails() -> None:
    assert "counts.rows " in check_raw({"raw_log": f"SELECT * FROM ({LOG['raw_log']}) WHERE false"}).reason


def test_too_many_rejected_or_lost_rows_fail() -> None:
    assert check_batch(read=5, accepted=4).passed
    assert check_batch(read=4, accepted=3).passed
    assert "rejected_share" in check_rejected(read=4, accepted=3).reason
    assert "rows_unaccounted_for" in check_batch(read=10, accepted=4).reason


# Released tables ---------------------------------------------------------------------------------------------------


def check_released(
    rows: list[tuple[Any, ...]], *, public: list[str] | None = None, name: str = "queries"
) -> CheckResult:
    layout = LAYOUTS[name]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in layout.columns]
    table = in_public_order(pa.Table.from_arrays([pa.array(c) for c in columns], layout.schema.names), layout)
    return run_suite(f"safelog/released_{name}", released_frames(table, layout, _listed(public)), parameters=THRESHOLDS)


def _listed(public: list[str] | None) -> pa.Array | None:
    return None if public is None else pa.array(public, pa.string())


THRESHOLDS = {"threshold": 10, "threshold_outside_pool": 20}
GOOD = [("weather", 40), ("maps", 25)]


def test_a_good_release_passes() -> None:
    assert check_released(GOOD).passed
    assert check_released([*GOOD, ("dogs", 10)], public=["dogs"]).passed
    assert check_released([("weather", "http://x.example", 20)], name="clicks").passed
    assert check_released([("weather", "maps", 20)], name="transitions").passed


@pytest.mark.parametrize("layout", TABLES, ids=lambda layout: layout.name)
def test_an_empty_release_passes(layout: Any) -> None:
    frames = released_frames(layout.schema.empty_table(), layout, None)
    assert run_suite(f"safelog/released_{layout.name}", frames, parameters=THRESHOLDS).passed


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([("weather", 9)], "table.users"),
        ([("weather", 19)], "outside_pool.users"),
        ([("weather", 30.0)], "table.users"),
        ([("weather", 30), ("weather", 30)], "table.query"),
        ([("", 30)], "table.query"),
        ([("jsmith@mail.example", 30)], "outside_pool.text"),
        ([("call 212-555-0123", 30)], "outside_pool.text"),
        ([("078-05-1120", 30)], "outside_pool.text"),
        ([("4111 1111 1111 1111", 30)], "counts.card_numbers_outside_pool"),
    ],
)
def test_a_bad_release_fails(rows: list[tuple[Any, ...]], where: str) -> None:
    result = check_released(rows)
    assert not result.passed
    assert where in result.reason


def test_personal_data_in_the_second_key_fails() -> None:
    assert not check_released([("weather", "mailto:jsmith@mail.example", 30)], name="clicks").passed
    assert not check_released([("weather", "jsmith@mail.example", 30)], name="transitions").passed


def test_what_was_public_before_may_look_personal() -> None:
    assert check_released([("call 212-555-0123", 30)], public=["call 212-555-0123"]).passed


def test_a_row_outside_the_pool_fails_where_none_may_appear() -> None:
    frames = released_frames(pa.table({"query": ["cats"], "users": [10**6]}), QUERIES, pa.array(["dogs"]))
    limits = {"threshold": 10, "threshold_outside_pool": NEVER}
    assert "outside_pool.users" in run_suite("safelog/released_queries", frames, parameters=limits).reason


def test_a_user_column_fails() -> None:
    table = pa.table({"query": ["weather"], "users": [40], "user": ["u1"]})
    result = run_suite("safelog/released_queries", released_frames(table, QUERIES, None), parameters=THRESHOLDS)
    assert "expect_table_columns_to_match_ordered_list" in result.reason


def test_an_order_that_could_tell_something_fails() -> None:
    for rows in ([("b", 30), ("a", 30)], [("a", 30), ("b", 31)]):
        table = pa.table({"query": [row[0] for row in rows], "users": [row[1] for row in rows]})
        result = run_suite("safelog/released_queries", released_frames(table, QUERIES, None), parameters=THRESHOLDS)
        assert "counts.rows_out_of_order" in result.reason


def test_suites_look_for_the_patterns_that_are_suppressed() -> None:
    for name in (f"{each.name}/released_{layout.name}" for each in releasable() for layout in each.tables):
        kwargs = [expectation["kwargs"] for expectation in read_suite(name)["expectations"]]
        assert [given["regex_list"] for given in kwargs if "regex_list" in given] == [list(REGEX_PATTERNS)], name


# Failing closed ----------------------------------------------------------------------------------------------------


def test_a_misspelt_expectation_is_an_error(write_suite: Callable[..., str]) -> None:
    misspelt = {"type": "expect_column_values_to_be_betwen", "kwargs": {"column": "x", "min_value": 0}}
    with pytest.raises(CheckError, match="betwen"):
        run_suite(write_suite(between(), misspelt), {"table": pd.DataFrame({"x": [1]})})


def test_a_misspelt_argument_is_an_error(write_suite: Callable[..., str]) -> None:
    with pytest.raises(CheckError, match="between"):
        run_suite(write_suite(between(max_valu=3)), {"table": pd.DataFrame({"x": [1]})})


@pytest.mark.parametrize(
    ("expectations", "meta", "message"),
    [
        ([], {}, "expects nothing"),
        ([between(min_value={"$PARAMETER": "limit"})], {}, "needs a value for limit"),
        ([between(min_value=0, row_condition="x > 3", condition_parser="pandas")], {}, "row condition"),
        ([between(min_value=0, mostly=0.0)], {}, "share"),
        ([between()], {"table": "other"}, "'other'"),
        ([between()], {"may_be_empty": ["other"]}, "'other'"),
    ],
)
def test_a_suite_that_could_check_nothing_is_an_error(
    write_suite: Callable[..., str], expectations: list[dict[str, Any]], meta: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        run_suite(
            write_suite(*expectations, **meta), {"table": pd.DataFrame({"x": [1]})}, parameters={"limit": float("nan")}
        )


@pytest.mark.parametrize("name", ["log/no_such_suite", "raw_log", "log/../raw_log", "../pyproject", "log/Raw", ""])
def test_an_unknown_suite_is_an_error(name: str) -> None:
    with pytest.raises(CheckError):
        run_suite(name, {})


@pytest.mark.parametrize("values", [[None, None], [1.0, None], []])
def test_nulls_and_missing_rows_do_not_pass(write_suite: Callable[..., str], values: list[Any]) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype="float64")})
    assert not run_suite(write_suite(between()), {"table": frame}).passed


def test_only_an_empty_table_passes_as_empty(write_suite: Callable[..., str]) -> None:
    name = write_suite(between(), may_be_empty=["table"])
    assert run_suite(name, {"table": pd.DataFrame({"x": pd.Series([], dtype="int64")})}).passed
    assert not run_suite(name, {"table": pd.DataFrame({"x": [None]}, dtype="float64")}).passed


def test_two_expectations_alike_are_both_evaluated(write_suite: Callable[..., str]) -> None:
    result = run_suite(write_suite(between(), between(), between(min_value=5)), {"table": pd.DataFrame({"x": [1]})})
    assert [outcome.passed for outcome in result.expectations] == [True, True, False]


@pytest.mark.parametrize("column", ["x", "absent"])
def test_an_expectation_that_raises_fails_and_says_nothing_private(
    write_suite: Callable[..., str], column: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    result = run_suite(write_suite(between(column)), {"table": pd.DataFrame({"x": [SECRET]})})
    assert not result.passed
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert SECRET not in repr(result) + caplog.text


def test_a_failing_value_is_never_quoted(write_suite: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    forbidden = {"type": "expect_column_values_to_not_match_regex", "kwargs": {"column": "x", "regex": "query"}}
    result = run_suite(write_suite(forbidden), {"table": pd.DataFrame({"x": [SECRET, "other"]})})
    assert not result.passed
    assert SECRET not in repr(result) + caplog.text


def test_limits_come_from_the_parameters(write_suite: Callable[..., str]) -> None:
    name = write_suite(between(max_value={"$PARAMETER": "limit"}))
    frames = {"table": pd.DataFrame({"x": [7]})}
    assert run_suite(name, frames, parameters={"limit": 7, "unused": 1}).passed
    assert "at most 6" in run_suite(name, frames, parameters={"limit": 6}).reason


def test_importing_the_adapter_does_not_import_the_library() -> None:
    code = (
        "import sys, qlog_assets.checks.suites, qlog_assets.checks.released, qlog_assets.checks.memory\n"
        "sys.exit('great_expectations' in sys.modules or 'pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)
