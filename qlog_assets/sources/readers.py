"""Reading a landing file: every row ends up accepted, by month, or rejected with a reason.

Which months and how many rejected rows a data set's owner allows is the policy's business; cleaning is a later asset's.
A file is read once, in rounds of bounded size: each round is parsed by DuckDB into a temporary table, from which its
months and its rejected rows are written. A rejected row leaves its line number and a reason, never its content.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.sources.access_map import AccessMap
from qlog_assets.sources.column_map import DEFAULT_DELIMITER, KNOWN_FORMATS, TIME_FORMATS, ColumnMap, LogMap
from qlog_assets.sources.delimiters import column_position, header_fields, unclosed_header, with_delimiter
from qlog_assets.sources.json_map import JsonMap
from qlog_assets.sources.readers_access import REQUEST_SCHEMA, request_batches
from qlog_assets.sources.readers_lines import (
    BLOCK_BYTES,
    LINE_SCHEMA,
    LandingFile,
    line_batch,
    line_offsets,
)
from qlog_assets.sources.readers_parquet import BATCH_ROWS, ParquetLog, is_parquet
from qlog_assets.sources.readers_quoted import RECORD_SCHEMA, record_batches
from qlog_assets.sources.readers_sql import (
    classified_rows,
    has_counts,
    literal,
    named_fields,
    named_json,
    named_parquet,
    named_requests,
)
from qlog_assets.storage.engine import PARQUET, quoting_no_value

MAPS: dict[str, type[LogMap]] = {"table": ColumnMap, "json": JsonMap, "access": AccessMap}
"""The formats that are read by a map which lies beside the file, and what their maps are."""
FORMATS = (*KNOWN_FORMATS, *MAPS)
NEEDS_MAP = "needs a column map: say where user, query and time are"
ROUND_BYTES = 256 << 20
"""Of text parsed into one temporary table: some four million AOL rows, which DuckDB spills if its memory is small."""
ROUND_ROWS = 4 << 20


@dataclass(frozen=True)
class LogSource:
    """A landing file and how it is written."""

    path: Path
    format: str
    columns: LogMap | None = None
    user_key: bytes | None = field(default=None, repr=False, compare=False)
    """The data set's secret, for logs whose users are keyed hashes."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise QlogError(f"{self.format!r} is not a log format: choose one of {', '.join(FORMATS)}")
        if self.format in MAPS and self.columns is None:
            raise QlogError(f"the format {self.format} {NEEDS_MAP}")
        if self.format not in MAPS and self.columns is not None:
            raise QlogError(f"the format {self.format} has its own columns: use the format table with a column map")

    @cached_property
    def column_map(self) -> LogMap:
        """The map by which the file is read, with what is found in its header where the map leaves that open."""
        columns = self.columns or KNOWN_FORMATS[self.format]
        if not isinstance(columns, ColumnMap) or columns.delimiter is not None:
            return columns
        if is_parquet(self.path):
            return columns.with_changes(delimiter=DEFAULT_DELIMITER)
        landing = LandingFile(self.path, columns.encoding)
        try:
            return with_delimiter(landing, columns)
        except QlogError:
            landing.refuse_no_text()
            raise
        finally:
            landing.close()


def refuse_unreadable(source: LogSource) -> None:
    """Raise where a look at a file's beginning tells that reading it would be refused: a damaged start, a header that
    does not tell how the file is divided. What only its rows can tell is left to reading them."""
    columns = source.column_map
    if isinstance(columns, ColumnMap) and source.format == "table" and is_parquet(source.path):
        ParquetLog(source.path, columns).close()
        return
    landing = LandingFile(source.path, getattr(columns, "encoding", "utf-8"))
    try:
        if next(landing.chunks(), None) is None:
            raise _no_rows(landing.name)
    finally:
        landing.close()


@dataclass(frozen=True)
class MonthRange:
    """The months a data set takes in, first and last included."""

    first: Month
    last: Month


@dataclass(frozen=True)
class BatchFacts:
    """What became of a file's rows: accepted + rejected = read, always.

    An accepted row that says how many records it stands for is read and accepted as so many.
    """

    read: int
    accepted: int
    rejected: dict[str, int] = field(default_factory=dict)
    """Rows by reason."""
    months: dict[str, int] = field(default_factory=dict)
    """Accepted rows by month."""


@dataclass
class _Rows:
    """A file's rows as Arrow batches, counted as they pass, and the SQL that names their columns."""

    source: Iterator[pa.RecordBatch]
    schema: pa.Schema
    named: str
    batches_a_round: int
    read: int = 0
    failure: QlogError | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """DuckDB turns an exception inside a stream into text of its own: keep it, end the stream, raise it later."""
        try:
            for batch in self.source:
                self.read += batch.num_rows
                yield batch
        except QlogError as failure:
            self.failure = failure


def read_batch(
    connection: duckdb.DuckDBPyConnection,
    source: LogSource,
    months: MonthRange,
    out: Path,
    progress: Callable[[int, int], None] | None = None,
) -> BatchFacts:
    """Read one landing file once into `out/accepted/<month>/part-*.parquet` and `out/rejected/part-0.parquet`.

    `progress` is told how much of the file is read and how much there is, after each round.
    """
    columns = source.column_map
    _check_time_format(connection, getattr(columns, "time_format", TIME_FORMATS[0]))
    log: ParquetLog | LandingFile
    if isinstance(columns, ColumnMap) and source.format == "table" and is_parquet(source.path):
        log = ParquetLog(source.path, columns)
        rows = _Rows(log.batches(), log.schema, named_parquet(columns, log.types), ROUND_ROWS // BATCH_ROWS)
    else:
        log = LandingFile(source.path, getattr(columns, "encoding", "utf-8"))
        try:
            rows = _text_rows(log, columns, source.user_key)
        except QlogError:
            log.refuse_no_text()
            raise
    try:
        with quoting_no_value(f"{source.path.name}: cannot be read", "write it anew as text or with plain types"):
            facts = _sort_out(
                connection, rows, source, months, out, after_round=lambda: progress and progress(log.position, log.size)
            )
        if facts.accepted == 0 and isinstance(log, LandingFile):
            log.refuse_no_text()
        if isinstance(columns, JsonMap):
            _refuse_one_value(source.path, columns.encoding, is_usable=facts.accepted > 0)
    finally:
        log.close()
    if facts.accepted + sum(facts.rejected.values()) != facts.read:
        raise RuntimeError(f"{source.path.name}: rows were lost or made up while reading: use nothing of it")
    return facts


def _sort_out(
    connection: duckdb.DuckDBPyConnection,
    rows: _Rows,
    source: LogSource,
    months: MonthRange,
    out: Path,
    *,
    after_round: Callable[[], None],
) -> BatchFacts:
    """Parse round after round, and write each round's months and rejected rows."""
    statement = classified_rows(rows.named, source.column_map, months.first.start, months.last.end)
    counted, repeated = has_counts(source.column_map), 0
    accepted: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    connection.execute("CREATE OR REPLACE TEMP TABLE ingest_rejected (line BIGINT, reason VARCHAR)")
    try:
        batches = rows.batches()
        for part in itertools.count():
            first = next(batches, None)
            if first is None:
                break
            one_round = itertools.chain([first], itertools.islice(batches, rows.batches_a_round - 1))
            connection.register("ingest_batch", pa.RecordBatchReader.from_batches(rows.schema, one_round))
            try:
                connection.execute(f"CREATE OR REPLACE TEMP TABLE ingest_rows AS {statement}")
            finally:
                connection.unregister("ingest_batch")
            accepted.update(_write_months(connection, out / "accepted", part, counted))
            repeated += _count_repeated(connection) if counted else 0
            rejected.update(_keep_rejected(connection))
            after_round()
        if rows.failure is not None:
            raise rows.failure
        if rows.read == 0:
            raise _no_rows(source.path.name)
        _write_rejected(connection, source.path.name, out / "rejected")
    finally:
        connection.execute("DROP TABLE IF EXISTS ingest_rows")
        connection.execute("DROP TABLE IF EXISTS ingest_rejected")
    read = rows.read + repeated
    return BatchFacts(read, accepted.total(), dict(sorted(rejected.items())), dict(sorted(accepted.items())))


def _count_repeated(connection: duckdb.DuckDBPyConnection) -> int:
    """How many records the accepted rows of a round stand for beyond one each."""
    found = connection.execute("SELECT sum(repeats - 1) FROM ingest_rows WHERE reason IS NULL").fetchone()
    return int(found[0] or 0) if found else 0


def _write_months(
    connection: duckdb.DuckDBPyConnection, accepted: Path, part: int, with_counts: bool
) -> dict[str, int]:
    """Write a round's accepted rows, a file per month. One scan per month is faster than a partitioned COPY.

    With counts each row is written as often as it says.
    """
    number, repeated = ("CAST(sum(repeats) AS BIGINT)", ", range(repeats)") if with_counts else ("count(*)", "")
    counted = connection.execute(
        f"""SELECT strftime(month, '%Y-%m'), rows
           FROM (SELECT date_trunc('month', "time") AS month, {number} AS rows FROM ingest_rows
                 WHERE reason IS NULL GROUP BY ALL)"""
    ).fetchall()
    for text, _ in counted:
        month = Month(text)
        (accepted / month).mkdir(parents=True, exist_ok=True)
        target = literal(str(accepted / month / f"part-{part:04d}.parquet"))
        connection.execute(
            f"""COPY (SELECT "user", query, "time", rank, url FROM ingest_rows{repeated}
                      WHERE reason IS NULL AND "time" >= TIMESTAMP '{month.start}' AND "time" < TIMESTAMP '{month.end}')
                TO {target} ({PARQUET})"""
        )
    return dict(counted)


def _keep_rejected(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    connection.execute(
        "INSERT INTO ingest_rejected SELECT line, reason FROM ingest_rows WHERE reason IS NOT NULL ORDER BY line"
    )
    return dict(
        connection.execute("SELECT reason, count(*) FROM ingest_rows WHERE reason IS NOT NULL GROUP BY ALL").fetchall()
    )


def _write_rejected(connection: duckdb.DuckDBPyConnection, name: str, rejected: Path) -> None:
    rejected.mkdir(parents=True, exist_ok=True)
    connection.execute(
        f"""COPY (SELECT {literal(name)} AS file, line, reason FROM ingest_rejected ORDER BY line)
            TO {literal(str(rejected / "part-0.parquet"))} ({PARQUET})"""
    )


def _text_rows(landing: LandingFile, columns: LogMap, user_key: bytes | None) -> _Rows:
    """The rows of a file of lines, by the kind of its map."""
    if isinstance(columns, ColumnMap):
        return _delimited_rows(landing, columns)
    rounds = ROUND_BYTES // BLOCK_BYTES
    if isinstance(columns, JsonMap):
        # A space in place of the line feed changes nothing in JSON.
        return _Rows(_line_batches(landing.chunks(), 1, " "), LINE_SCHEMA, named_json(columns), rounds)
    if isinstance(columns, AccessMap):
        requests = request_batches(landing.chunks(), columns, user_key)
        return _Rows(requests, REQUEST_SCHEMA, named_requests(columns), rounds)
    raise TypeError(f"no reader for {type(columns).__name__}")


def _delimited_rows(landing: LandingFile, columns: ColumnMap) -> _Rows:
    """The rows of a delimited file: finds the header, checks the map against it, and picks the way to split lines."""
    chunks = landing.chunks()
    start = next(chunks, b"")
    if not start:
        raise _no_rows(landing.name)
    first_line, _, after = start.partition(b"\n")
    fields = header_fields(first_line, columns)
    if fields is None and columns.header:
        raise unclosed_header(landing.name)
    names = fields or []
    skip = columns.header or (bool(columns.header_names) and names == list(columns.header_names))
    field_count = columns.field_count or len(names)
    positions = {
        meaning: column_position(landing.name, column, names, field_count)
        for meaning, column in columns.columns.items()
    }
    whole = itertools.chain([after if skip else start], chunks)
    lines = (chunk for chunk in whole if chunk)
    first_number = 2 if skip else 1
    named = named_fields(columns, positions, field_count)
    if columns.quoted:
        batches, schema = record_batches(lines, first_number, columns.divider), RECORD_SCHEMA
    else:
        batches, schema = _line_batches(lines, first_number, columns.divider), LINE_SCHEMA
    return _Rows(batches, schema, named, ROUND_BYTES // BLOCK_BYTES)


def _line_batches(chunks: Iterator[bytes], first_line: int, delimiter: str) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        offsets = line_offsets(chunk)
        yield line_batch(chunk, offsets, first_line, delimiter)
        first_line += len(offsets) - 1


def _refuse_one_value(path: Path, encoding: str, *, is_usable: bool) -> None:
    """Raise if a file is one JSON value over many lines, as exports often are.

    Where rows of it can be used, as the last one of an array can that has no comma behind it, only a first line says so
    that no record is and no one's record can be made to be: `[` alone, or one that a comma or a brace leaves open.
    """
    landing = LandingFile(path, encoding)
    try:
        start = next(landing.chunks(), b"").lstrip()
    finally:
        landing.close()
    first = start.partition(b"\n")[0].strip()
    is_open = first == b"[" or (first.startswith(b"[") and first.endswith((b",", b"{")))
    if is_open or (not is_usable and (first.startswith(b"[") or first == b"{")):
        raise QlogError(
            f"{path.name}: is one JSON value and not one object per line: write its records as lines, for example with "
            "jq -c '.[]' FILE"
        )


def _no_rows(file: str) -> QlogError:
    return QlogError(f"{file}: has no rows: name a file that holds a log")


def _check_time_format(connection: duckdb.DuckDBPyConnection, time_format: str) -> None:
    if time_format in TIME_FORMATS:
        return
    try:
        connection.execute("SELECT try_strptime('', ?)", [time_format])
    except duckdb.Error:
        raise QlogError(f"time_format {time_format!r} has a directive that is not known: see strptime") from None
