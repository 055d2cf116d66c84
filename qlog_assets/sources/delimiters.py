"""Which character divides the fields of a table: found in its header, and nowhere else.

The header is written by whoever writes the file. Rows are written by people: one who types many semicolons may not
change how the rows of others are read. So a file without a header has the delimiter that its map says, or a tab.
"""

from __future__ import annotations

from qlog_assets.errors import QlogError
from qlog_assets.sources.column_map import DEFAULT_DELIMITER, Column, ColumnMap
from qlog_assets.sources.readers_lines import LandingFile
from qlog_assets.sources.readers_quoted import split_record

DELIMITERS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "pipe"}
HEADER_BYTES = 1 << 16


def with_delimiter(landing: LandingFile, columns: ColumnMap) -> ColumnMap:
    """The map with its delimiter filled in, from the header of the file if the map does not say it.

    A tab wins where it fits: no name of a column has one, and up to version 0.2 it was the only default.
    """
    if columns.delimiter is not None:
        return columns
    if not columns.header:
        return columns.with_changes(delimiter=DEFAULT_DELIMITER)
    header = next(landing.chunks(HEADER_BYTES), b"").partition(b"\n")[0]
    fitting = [each for each in DELIMITERS if _fits(header, columns.with_changes(delimiter=each))]
    if len(fitting) > 1 and fitting[0] != DEFAULT_DELIMITER:
        named = " or ".join(DELIMITERS[each] for each in fitting)
        raise QlogError(
            f"{landing.name}: its header can be divided by {named}: say which in the column map, such as "
            f'delimiter = "{fitting[0]}"'
        )
    if not fitting and header:
        raise _misfit(landing.name, header, columns)
    return columns.with_changes(delimiter=fitting[0] if fitting else DEFAULT_DELIMITER)


def header_fields(line: bytes, columns: ColumnMap) -> list[str] | None:
    """The fields of a first line; None if it opens a quote and does not close it."""
    text = line.decode("utf-8", "replace")
    fields = split_record(text, columns.divider) if columns.quoted else text.split(columns.divider)
    return None if fields is None else [name.strip() for name in fields]


def column_position(file: str, column: Column, names: list[str], field_count: int) -> int:
    """Where a mapped column stands. What the first line says is not printed: without a header it is private."""
    if isinstance(column, str):
        if names.count(column) != 1:
            raise QlogError(f"{file}: its header has no single column named {column!r}: correct the column map")
        return names.index(column) + 1
    if column > field_count:
        raise QlogError(f"{file}: has {field_count} columns, and the column map asks for column {column}")
    return column


def _fits(header: bytes, columns: ColumnMap) -> bool:
    names = header_fields(header, columns)
    if names is None or len(names) < 2 or (columns.field_count or len(names)) != len(names):
        return False
    return all(
        names.count(column) == 1 if isinstance(column, str) else column <= len(names)
        for column in columns.columns.values()
    )


def _misfit(file: str, header: bytes, columns: ColumnMap) -> QlogError:
    """What is missing however the header is divided: said of the delimiter that divides it most."""
    divided = [header_fields(header, columns.with_changes(delimiter=each)) for each in DELIMITERS]
    names = max((each for each in divided if each is not None), key=len, default=None)
    if names is None:
        return unclosed_header(file)
    tried = f"whether divided by {', '.join(DELIMITERS.values())}: correct the column map, or say its delimiter there"
    for column in columns.columns.values():
        if isinstance(column, str) and names.count(column) != 1:
            return QlogError(f"{file}: its header has no single column named {column!r}, {tried}")
    positions = [column for column in columns.columns.values() if isinstance(column, int)]
    wanted = columns.field_count or max(positions, default=2)
    return QlogError(f"{file}: its header has {len(names)} columns and not the {wanted} of the column map, {tried}")


def unclosed_header(file: str) -> QlogError:
    return QlogError(
        f"{file}: its first line opens a quote and does not close it: if quotes are text, set quote = none"
    )
