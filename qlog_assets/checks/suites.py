"""Runs the suites of `expectations/` through Great Expectations. The only module that imports it, and it fails closed.

Counting is not done here: DuckDB counts (statements named `check_` in `sql/`) and this module gets the small table of
counts, or a released table, which is public. What a suite expects is in its JSON file; who runs it and what a failure
stops is the business of the assets and the door.

Great Expectations drops an expectation it does not know, passes an empty suite, skips nulls (so a column of nulls
passes anything) and quotes offending values in its results. Here every expectation of the file must come back, each
on values that are there, and nothing of a result is kept but whether it held.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from qlog_assets.errors import QlogError
from qlog_assets.settings import shipped_file

if TYPE_CHECKING:
    import pandas


POSITION = "position"
REASONS_SHOWN = 3


Evaluate = Callable[..., "CheckResult"]
evaluate_elsewhere: ContextVar[Evaluate | None] = ContextVar("evaluate_elsewhere", default=None)
"""Who evaluates suites instead of this process; see `beside.py`."""


class CheckError(QlogError):
    """A suite that cannot be run as it is written: nothing was checked, so nothing may pass."""


@dataclass(frozen=True)
class ExpectationOutcome:
    """Whether one expectation held. `column` is empty where the expectation is about the whole table."""

    kind: str
    column: str
    passed: bool
    table: str = ""


@dataclass(frozen=True)
class CheckResult:
    """What a suite found: public to whoever may see the asset, because it names columns and limits and no value."""

    passed: bool
    suite: str
    evaluated: int
    expectations: tuple[ExpectationOutcome, ...]
    reason: str


@dataclass(frozen=True)
class _Expectation:
    """One expectation as its file states it, with the table it reads."""

    kind: str
    table: str
    columns: tuple[str, ...]
    arguments: Mapping[str, Any]

    def label(self, parameters: Mapping[str, int | str | float]) -> str:
        """What was expected, with the limits in force: they are parameters, not values of the table."""
        limits = []
        for argument, words in (("min_value", "at least"), ("max_value", "at most"), ("value", "exactly")):
            limit = self.arguments.get(argument)
            if isinstance(limit, dict):
                limit = parameters[limit["$PARAMETER"]]
            if limit is not None:
                limits.append(f"{words} {limit}")
        expected = f" ({', '.join(limits)})" if limits else ""
        return f"{self.table}.{'+'.join(self.columns) or '*'} {self.kind}{expected}"


def run_suite(
    name: str,
    frames: Mapping[str, pandas.DataFrame],
    *,
    parameters: Mapping[str, int | str | float] | None = None,
) -> CheckResult:
    """Run `expectations/<name>.json` on the named tables.

    `parameters` fills the suite's `{"$PARAMETER": "name"}` places. A suite that is misspelt, lacks a parameter or
    names a table that was not given is a `CheckError`; a table that breaks an expectation is a result that failed.
    """
    evaluator = evaluate_elsewhere.get() or evaluate
    return evaluator(name, dict(frames), dict(parameters or {}))


def evaluate(
    name: str, frames: Mapping[str, pandas.DataFrame], parameters: Mapping[str, int | str | float]
) -> CheckResult:
    """The same, in this process."""
    suite = read_suite(name)
    may_be_empty = set(suite["meta"].get("may_be_empty", ()))
    expectations = _expectations(name, suite)
    values = _parameter_values(name, suite, parameters)
    tables = list(dict.fromkeys(expectation.table for expectation in expectations))
    for table in sorted({*tables, *may_be_empty} - set(frames)):
        raise CheckError(f"{name}: the suite reads a table {table!r} that was not given to it")

    held: dict[int, bool] = {}
    with _silent():
        for table in tables:
            chosen = {position: item for position, item in enumerate(expectations) if item.table == table}
            held |= _validate(name, _whole_frame().get_batch({"dataframe": frames[table]}), chosen, values)
    outcomes = []
    for position, item in enumerate(expectations):
        frame = frames[item.table]
        there = _has_values(frame, item.columns, empty_is_fine=item.table in may_be_empty)
        passed = held[position] and there
        outcomes.append(ExpectationOutcome(item.kind, "+".join(item.columns), passed, item.table))
    failed = [item.label(values) for item, outcome in zip(expectations, outcomes, strict=True) if not outcome.passed]
    reason = f"{name}: {len(outcomes)} expectations held"
    if failed:
        more = f" and {len(failed) - REASONS_SHOWN} more" if len(failed) > REASONS_SHOWN else ""
        reason = (
            f"{name}: {len(failed)} of {len(outcomes)} expectations failed: {'; '.join(failed[:REASONS_SHOWN])}{more}"
        )
    return CheckResult(not failed, name, len(outcomes), tuple(outcomes), reason)


def by_table(counts: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """The rows of a count statement by its `table_name` column: what `run_suite` takes."""
    return {str(name): rows.drop(columns="table_name") for name, rows in counts.groupby("table_name", sort=True)}


def read_suite(name: str) -> dict[str, Any]:
    """The suite in `expectations/<name>.json`, a plain suite of Great Expectations."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*", name):
        raise CheckError(f"{name!r} is not the name of a suite")
    path = shipped_file("expectations", f"{name}.json")
    try:
        suite = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckError(f"{name}: there is no such suite in expectations/") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise CheckError(f"{name}: its suite in expectations/ is not JSON") from None
    if not isinstance(suite, dict) or suite.get("name") != path.stem or not isinstance(suite.get("meta", {}), dict):
        raise CheckError(f"{name}: its suite in expectations/ is not a suite of that name")
    if not suite.get("expectations"):
        raise CheckError(f"{name}: the suite expects nothing")
    return {"meta": {}, **suite}


def _expectations(name: str, suite: Mapping[str, Any]) -> list[_Expectation]:
    default_table = suite["meta"].get("table", "table")
    expectations = []
    for entry in suite["expectations"]:
        kind, arguments = str(entry.get("type", "")), entry.get("kwargs", {})
        if {"row_condition", "condition_parser", "mostly"} & set(arguments):
            # A condition that no row meets holds whatever the table says, and so does one that need not hold mostly.
            raise CheckError(f"{name}: {kind} has a row condition or a share: give the rows as a table of their own")
        columns: tuple[str, ...] = ()
        if not kind.startswith("expect_table_"):
            single = [arguments[key] for key in ("column", "column_A", "column_B") if key in arguments]
            columns = (*single, *arguments.get("column_list", ()))
        table = entry.get("meta", {}).get("table", default_table)
        expectations.append(_Expectation(kind, table, columns, arguments))
    return expectations


def _parameter_values(
    name: str, suite: Mapping[str, Any], given: Mapping[str, int | str | float]
) -> dict[str, int | str | float]:
    """The values of the parameters the suite names; each must be there and be a value something can be compared to."""
    values = {}
    for needed in sorted(_named_parameters(suite["expectations"])):
        value = given.get(needed)
        comparable = isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
        if value is None or isinstance(value, bool) or not comparable:
            raise CheckError(f"{name}: the suite needs a value for {needed}")
        values[needed] = value
    return values


def _named_parameters(node: Any) -> set[str]:
    if isinstance(node, dict):
        if "$PARAMETER" in node:
            return {str(node["$PARAMETER"])}
        return set().union(*(_named_parameters(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_named_parameters(value) for value in node))
    return set()


def _has_values(frame: pandas.DataFrame, columns: Sequence[str], *, empty_is_fine: bool) -> bool:
    """Whether an expectation had something to look at in every row: expectations on columns skip nulls."""
    if not columns:
        return True
    if len(frame) == 0:
        return empty_is_fine
    return all(column in frame.columns and bool(frame[column].notna().all()) for column in columns)


def _validate(
    name: str, batch: Any, expectations: Mapping[int, _Expectation], parameters: Mapping[str, int | str | float]
) -> dict[int, bool]:
    """Which of the expectations held on a table, by position. Every one of them comes back, or it is an error."""
    from great_expectations.exceptions import GreatExpectationsError

    suite = load_library().ExpectationSuite(
        name=name, expectations=[_build(name, position, item) for position, item in expectations.items()]
    )
    try:
        answer = batch.validate(suite, result_format="BOOLEAN_ONLY", expectation_parameters=dict(parameters))
    except (GreatExpectationsError, ValueError, TypeError, KeyError) as error:
        # The message may quote a value of the table: only the kind of the error is told.
        raise CheckError(f"{name}: the suite could not be evaluated ({type(error).__name__})") from None
    held: dict[int, bool] = {}
    for result in answer.results:
        config = result.expectation_config
        position = -1 if config is None else (config.meta or {}).get(POSITION, -1)
        if position not in expectations or position in held or config.type != expectations[position].kind:
            raise CheckError(f"{name}: an expectation was answered that was not asked")
        held[position] = result.success is True
    if set(held) != set(expectations):
        raise CheckError(f"{name}: {len(expectations) - len(held)} expectations were not evaluated")
    return held


def _build(name: str, position: int, item: _Expectation) -> Any:
    from great_expectations.exceptions import GreatExpectationsError
    from great_expectations.expectations.registry import get_expectation_impl

    try:
        return get_expectation_impl(item.kind)(**item.arguments, meta={POSITION: position})
    except (GreatExpectationsError, ValueError, TypeError):
        raise CheckError(f"{name}: {item.kind} is not an expectation, or its arguments are not") from None


@cache
def _whole_frame() -> Any:
    """What makes a batch of a frame. Made once per process: with every part added, the library writes its whole
    configuration as YAML, which takes longer than the expectations do."""
    context = load_library().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    frames = context.data_sources.add_pandas("frames").add_dataframe_asset("frame")
    return frames.add_batch_definition_whole_dataframe("whole")


def is_loaded() -> bool:
    """Whether this process has imported the library."""
    return "great_expectations" in sys.modules


def load_library() -> Any:
    """The library, imported on first use: it costs seconds, and it sends usage statistics unless told not to."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        import great_expectations
        import great_expectations.expectations as _  # noqa: F401
    except SystemExit:
        # It exits, with success, where pyspark is installed without all it needs.
        raise CheckError("Great Expectations cannot be loaded beside this pyspark: install pyspark[connect]") from None
    return great_expectations


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """No log line of the library: an expectation that raises is logged with the value it raised on."""
    logger = logging.getLogger("great_expectations")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
