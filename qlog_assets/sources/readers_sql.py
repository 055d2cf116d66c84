"""The SQL of reading: from a batch's fields to typed columns and, for each row, the reason to reject it, if any.

Text built from a column map, which is why it is here and not in `sql/`. No value of a log is ever part of a statement.
"""

from __future__ import annotations

import re
from datetime import datetime

import pyarrow as pa

from qlog_assets.sources.access_map import AccessMap
from qlog_assets.sources.column_map import ColumnMap, LogMap
from qlog_assets.sources.json_map import JsonMap
from qlog_assets.sources.normalise import WHITESPACE_CLASS
from qlog_assets.sources.readers_lines import NOT_A_SEARCH, Fault
from qlog_assets.sources.user_ids import canonical_user_sql, is_plain_sql, reason_against_sql

LARGEST_COUNT = 10**4
"""Records that one row may stand for. What is more is no count of one user's clicks, and would fill a disk."""

LONGEST_QUERY = 4096
"""Characters. Search boxes take less; what is longer is a pasted document or a broken line."""

OUTSIDE_POLICY = "month_outside_policy"
"""The reason of a row that is good, and of a month that is not asked for."""

NOTHING_AGAINST = frozenset({OUTSIDE_POLICY, NOT_A_SEARCH})
"""The reasons that say nothing against a row. Most requests of a web server are no searches."""

OFFSET_FORMATS = tuple(
    f"%Y-%m-%d{separator}%H:%M:%S{fraction}%z" for separator in (" ", "T") for fraction in ("", ".%f")
)

REQUEST_TIME = "%d/%b/%Y:%H:%M:%S %z"

ADJACENT_NUMBERS = re.compile("%[YymdHMS]%[YymdHMS]")


def literal(text: str) -> str:
    """A text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def named_fields(columns: ColumnMap, positions: dict[str, int], field_count: int) -> str:
    """Select (line, fault, complete, user_text, query, time, rank_text, url) from lines and quoted records."""
    split = f"string_split(text, chr({ord(columns.divider)}))"
    fields = f"coalesce(fields, {split})" if columns.quoted else split
    picked = {name: f"parts[{position}]" for name, position in positions.items()}
    if columns.query_in_brackets:
        picked["query"] = _without_brackets(picked["query"])
    if columns.rank_and_order:
        picked["rank"] = _first_of_two(picked["rank"])
    # A line ends with one delimiter too many (see line_batch), so it has one part more than fields.
    return f"""
        SELECT line, fault, len(parts) = {field_count + 1} AS complete,
               {picked["user"]} AS user_text, {picked["query"]} AS query,
               {_mapped_time(picked["time"], columns)} AS "time",
               {picked.get("rank", "CAST(NULL AS VARCHAR)")} AS rank_text,
               {picked.get("url", "CAST(NULL AS VARCHAR)")} AS url
               {f", {picked['count']} AS count_text" if columns.count is not None else ""}
        FROM (SELECT line, fault, {fields} AS parts FROM ingest_batch)"""


def named_parquet(columns: ColumnMap, types: dict[str, pa.DataType]) -> str:
    """Select the same columns from the rows of a Parquet file. A whole number read as a float is still one."""
    kind = types["time"]
    if pa.types.is_timestamp(kind):
        time = """timezone('UTC', "time")""" if kind.tz else '"time"'
    else:
        time = _mapped_time("""CAST("time" AS VARCHAR)""", columns)
    rank = "nullif(CAST(rank AS VARCHAR), 'nan')" if "rank" in types else "CAST(NULL AS VARCHAR)"
    rank = _first_of_two(rank) if columns.rank_and_order else rank
    query = "CAST(query AS VARCHAR)"
    query = _without_brackets(query) if columns.query_in_brackets else query
    url = "CAST(url AS VARCHAR)" if "url" in types else "CAST(NULL AS VARCHAR)"
    return f"""
        SELECT line, CASE WHEN fault <> 0 THEN fault WHEN contains(concat("user", query, {url}), chr(0))
                          THEN {Fault.NUL_BYTE:d} ELSE 0 END AS fault,
               true AS complete, "user" AS user_text, {query} AS query,
               {time} AS "time", {rank} AS rank_text, {url} AS url
               {', CAST("count" AS VARCHAR) AS count_text' if columns.count is not None else ""}
        FROM ingest_batch"""


def named_json(columns: JsonMap) -> str:
    """Select the same columns from lines that are JSON objects.

    A number is taken as it is written. Whatever else than a text or a number stands where one is wanted is no value:
    two people's ids would be one `true`.
    """
    paths = columns.paths
    listed = "[" + ", ".join(literal(path) for path in paths.values()) + "]"
    picked = {name: f"parts[{position}]" for position, name in enumerate(paths, 1)}
    nested = "list_has_any(kinds, ['OBJECT', 'ARRAY', 'BOOLEAN'])"
    return f"""
        SELECT line, CASE WHEN fault <> 0 THEN fault
                          WHEN json_type(document) IS DISTINCT FROM 'OBJECT' THEN {Fault.NO_JSON_OBJECT:d}
                          WHEN {nested} THEN {Fault.NO_PLAIN_VALUE:d}
                          WHEN contains(array_to_string(parts, ''), chr(0)) THEN {Fault.NUL_BYTE:d}
                          ELSE 0 END AS fault,
               true AS complete, {picked["user"]} AS user_text, {picked["query"]} AS query,
               {_time_from_text(picked["time"], columns.time_format)} AS "time",
               {picked.get("rank", "CAST(NULL AS VARCHAR)")} AS rank_text,
               {picked.get("url", "CAST(NULL AS VARCHAR)")} AS url
        FROM (SELECT line, fault, document, json_type(document, {listed}) AS kinds,
                     json_extract_string(document, {listed}) AS parts
              FROM (SELECT line, fault, CASE WHEN json_valid(text) THEN text END AS document FROM ingest_batch))"""


def named_requests(columns: AccessMap) -> str:
    """Select the same columns from the requests of an access log. Its searches have no clicks."""
    return f"""
        SELECT line, fault, true AS complete, "user" AS user_text, query,
               {_time_from_text('"time"', REQUEST_TIME)} AS "time",
               CAST(NULL AS VARCHAR) AS rank_text, CAST(NULL AS VARCHAR) AS url
        FROM ingest_batch"""


def classified_rows(named: str, columns: LogMap, start: datetime, end: datetime) -> str:
    """Select (line, user, query, time, rank, url, repeats, reason); `reason` is null where the row is accepted.
    `repeats` is how many records the row stands for, where the map has a column of counts; it is not there otherwise.

    The user is made canonical here, the same way for every format. The first reason that applies is the one given: what
    is wrong with the line comes before what is wrong in it. All rows but a few pass the cheap test at the start of the
    CASE, which asks of texts only how they begin and how long they are; the patterns, which would cost as much as all
    the rest of parsing, see the few.
    """
    faults = "\n".join(f"WHEN fault = {fault:d} THEN '{fault.name.lower()}'" for fault in Fault if fault)
    blank = f"'{WHITESPACE_CLASS}*'"
    not_queries = " OR ".join(f"trim(query) = {literal(text)}" for text in columns.not_queries) or "false"
    plain_query = " AND ".join(
        [_starts_printable("query"), *(f"NOT starts_with(query, {literal(text)})" for text in columns.not_queries)]
    )
    counted = has_counts(columns)
    good_count = (
        rf"""coalesce(regexp_full_match(count_text, ' *[0-9]{{1,9}}(\.0*)? *')
                       AND {WHOLE_COUNT} BETWEEN 1 AND {LARGEST_COUNT}, false)"""
        if counted
        else "true"
    )
    inside = f"""("time" >= TIMESTAMP '{start}' AND "time" < TIMESTAMP '{end}')"""
    return rf"""
        SELECT line, "user", query, "time", try_cast(nullif(rank_text, '') AS INTEGER) AS rank, nullif(url, '') AS url,
               {f"{WHOLE_COUNT} AS repeats," if counted else ""}
               CASE WHEN fault = 0 AND complete AND against_user IS NULL AND {plain_query}
                         AND strlen(query) <= {LONGEST_QUERY} AND {inside}
                         AND coalesce(rank_text = '' OR (strlen(rank_text) = 1 AND rank_text BETWEEN '0' AND '9'), true)
                         AND {good_count}
                    THEN NULL
                    {faults}
                    WHEN NOT complete THEN 'wrong_field_count'
                    WHEN against_user IS NOT NULL THEN against_user
                    WHEN query IS NULL OR regexp_full_match(query, {blank}) OR {not_queries} THEN 'empty_query'
                    WHEN length(query) > {LONGEST_QUERY} THEN 'overlong_query'
                    WHEN "time" IS NULL OR NOT isfinite("time") THEN 'bad_time'
                    WHEN NOT regexp_full_match(rank_text, ' *([0-9]{{1,9}}(\.0*)?)? *') THEN 'bad_rank'
                    WHEN NOT {good_count} THEN 'bad_count'
                    WHEN NOT {inside} THEN '{OUTSIDE_POLICY}'
               END AS reason
        FROM ({_with_canonical_user(named)})"""


WHOLE_COUNT = "try_cast(try_cast(count_text AS DOUBLE) AS BIGINT)"


def has_counts(columns: LogMap) -> bool:
    """Whether a row of a log that is read with this map stands for as many records as it says."""
    return isinstance(columns, ColumnMap) and columns.count is not None


def _with_canonical_user(named: str) -> str:
    """The named columns with `user`, canonical, and `against_user`, the reason to reject it."""
    return f"""
        SELECT *, CASE WHEN plain THEN NULL ELSE {reason_against_sql('"user"')} END AS against_user
        FROM (SELECT *, CASE WHEN plain THEN user_text ELSE {canonical_user_sql("user_text")} END AS "user"
              FROM (SELECT *, {is_plain_sql("user_text")} AS plain FROM ({named})))"""


def _starts_printable(text: str) -> str:
    """True for texts that start with a printing ASCII character and so are surely not blank: two comparisons."""
    return f"({text} >= '!' AND {text} < chr(127))"


def _without_brackets(query: str) -> str:
    return f"""CASE WHEN starts_with({query}, '[') AND ends_with({query}, ']') AND length({query}) > 1
                    THEN substr({query}, 2, length({query}) - 2) ELSE {query} END"""


def _first_of_two(rank: str) -> str:
    """The first of two numbers with spaces between them. Anything else stays as it is, and is a bad rank."""
    pair = "^ *([0-9]+) +[0-9]+ *$"
    return f"""CASE WHEN regexp_matches({rank}, '{pair}') THEN regexp_extract({rank}, '{pair}', 1) ELSE {rank} END"""


def _mapped_time(text: str, columns: ColumnMap) -> str:
    """A timestamp from the text that a map says, with the file's date before it if that is given once."""
    if columns.date is None:
        return _time_from_text(text, columns.time_format)
    return _time_from_text(f"('{columns.date.isoformat()} ' || {text})", f"%Y-%m-%d {columns.time_format}")


def _time_from_text(text: str, time_format: str) -> str:
    """A timestamp without zone from text; null where the text is none. A zone, if it has one, is turned into UTC."""
    if time_format == "iso":
        formats = ", ".join(literal(form) for form in OFFSET_FORMATS)
        # A date alone has ten characters; what is shorter is a word such as 'infinity', which DuckDB would take.
        return rf"""CASE WHEN strlen({text}) <= 19 THEN
                              CASE WHEN strlen({text}) >= 10 THEN try_cast({text} AS TIMESTAMP) END
                         WHEN regexp_matches({text}, '[+-][0-9]{{2}}(:?[0-9]{{2}})?$') THEN
                              timezone('UTC', try_strptime({text}, [{formats}]))
                         ELSE try_cast({text} AS TIMESTAMP) END"""
    if time_format in ("epoch_seconds", "epoch_milliseconds"):
        factor = 1_000_000 if time_format == "epoch_seconds" else 1_000
        number = f"try_cast({text} AS DOUBLE)"
        # Years 1 to 9999, so that the product stays a timestamp.
        return f"""CASE WHEN abs({number} * {factor}) < 2.5e17
                        THEN make_timestamp(CAST(round({number} * {factor}) AS BIGINT)) END"""
    parsed = f"try_strptime({text}, {literal(time_format)})"
    if "%z" in time_format or "%Z" in time_format:
        return f"timezone('UTC', {parsed})"
    if ADJACENT_NUMBERS.search(time_format):
        # Without separators a missing digit would shift all that follow: only a text of full width is the time it says.
        return f"CASE WHEN strftime({parsed}, {literal(time_format)}) = {text} THEN {parsed} END"
    return parsed
