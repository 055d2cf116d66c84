"""An engine for many draws of one log: what a draw counts before any noise is counted by the first draw alone.

Draws of one variant run the same statements until noise has decided something. Each answer and each kept table is
known here by its statement, its parameters and what these read, down to the files; whoever asks for the same again
gets the same again. What no draw has used since the one before is dropped. For studies: a release is drawn once.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from qlog_assets.storage.answers import ROWS_AT_ONCE
from qlog_assets.storage.digests import bytes_digest, digest_of
from qlog_assets.storage.engine import DuckDBEngine, open_database
from qlog_assets.storage.statements import statement, table_of
from qlog_assets.storage.warehouse import Warehouse


class RepeatingEngine(DuckDBEngine):
    """A DuckDB engine that counts nothing twice."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(connection)
        self._views: dict[str, str] = {}
        """The texts of views by name: what they read is looked up where they are read."""
        self._contents: dict[str, str] = {}
        """What tables and files hold, by name: digests of how it was made."""
        self._aside: dict[str, str] = {}
        """The tables that others of the same name have replaced: their names now, by content."""
        self._answers: dict[str, Any] = {}
        """By content, too."""
        self._used: set[str] = set()
        """What the draw under way has read or made."""
        self._numbers = count()

    @classmethod
    @contextlib.contextmanager
    def open(cls, warehouse: Warehouse) -> Iterator[Self]:  # type: ignore[override]
        """One with the warehouse's limits, closed at the end of the block."""
        with open_database(warehouse, duckdb.connect(":memory:")) as connection, cls.lent(connection) as engine:
            yield engine

    def start_draw(self) -> None:
        """Forget what the last draw has not used: noise decided otherwise in it than in the one before."""
        self._answers = {content: answer for content, answer in self._answers.items() if content in self._used}
        for content in self._aside.keys() - self._used:
            self.connection.execute(f"DROP TABLE {self._aside.pop(content)}")
        self._used = set()

    # Names ----------------------------------------------------------------------------------------------------------

    def view(self, name: str, files: Sequence[Path]) -> None:
        super().view(name, files)
        self._name(name, "files", files_known_by(files))

    def numbered_view(self, name: str, files: Sequence[Path]) -> None:
        super().numbered_view(name, files)
        self._name(name, "numbered files", files_known_by(files))

    def view_as(self, name: str, table: str) -> None:
        super().view_as(name, table)
        self._views[name] = table

    def statement_view(self, name: str, *, without_rows: bool = False) -> None:
        super().statement_view(name, without_rows=without_rows)
        self._views[table_of(name)] = f"{statement(name)} LIMIT {0 if without_rows else 'ALL'}"

    @contextlib.contextmanager
    def table(self, name: str, data: pa.Table) -> Iterator[None]:
        with super().table(name, data):
            self._name(name, "rows", rows_digest(data))
            try:
                yield
            finally:
                del self._contents[name]

    def drop(self, name: str) -> None:
        super().drop(name)
        self._views.pop(name, None)
        self._contents.pop(name, None)

    def add_rows(self, name: str, table: str) -> None:
        super().add_rows(name, table)
        self._name(table, "other rows", next(self._numbers))

    def mapped_table(self, name: str, table: str, function: Callable[[str], str]) -> int:
        rows = super().mapped_table(name, table, function)
        self._name(table, "mapped", next(self._numbers))
        return rows

    def _name(self, name: str, *content: Any) -> None:
        self._views.pop(name, None)
        self._contents[name] = digest_of(content)

    def _content(self, text: str, parameters: Any = None, *, within: frozenset[str] = frozenset()) -> str:
        """What a statement would answer now. A word that is a table's name counts as the table, whatever it is."""
        read = {}
        for name in (words_of(text) & (self._views.keys() | self._contents.keys())) - within:
            view = self._views.get(name)
            read[name] = self._contents[name] if view is None else self._content(view, within=within | {name})
        return digest_of([text, parameters, read])

    # Statements -----------------------------------------------------------------------------------------------------

    def statement_table(self, name: str, table: str | None = None, **parameters: Any) -> None:
        kept = table or table_of(name)
        content = self._content(statement(name), parameters)
        self._used.add(content)
        if self._contents.get(kept) == content:
            return
        made = self._aside.pop(content, None)
        if made is None:
            made = self._free_name()
            super().statement_table(name, made, **parameters)  # it may read the table that it replaces
        if self._contents.get(kept) in self._aside:
            self.drop(kept)  # the same lies there under another name
        elif kept in self._contents:
            self._aside[self._contents[kept]] = aside = self._free_name()
            self.connection.execute(f"ALTER TABLE {kept} RENAME TO {aside}")
        self.connection.execute(f"ALTER TABLE {made} RENAME TO {kept}")
        self._contents[kept] = content

    def _free_name(self) -> str:
        return f"aside_{next(self._numbers)}"

    def arrow(self, name: str, **parameters: Any) -> pa.Table:
        return self._once("arrow", name, parameters)

    def arrays(self, name: str, **parameters: Any) -> dict[str, np.ndarray]:
        # Copies: whoever writes into one must not change what the next draw gets.
        return {column: array.copy() for column, array in self._once("arrays", name, parameters).items()}

    @contextlib.contextmanager
    def parts(self, name: str, **parameters: Any) -> Iterator[Iterator[dict[str, np.ndarray]]]:
        whole = self.arrays(name, **parameters)
        starts = range(0, max(1, *map(len, whole.values())), ROWS_AT_ONCE)
        yield ({column: array[start : start + ROWS_AT_ONCE] for column, array in whole.items()} for start in starts)

    def row(self, name: str, **parameters: Any) -> dict[str, Any]:
        row: dict[str, Any] = deepcopy(self._once("row", name, parameters))
        return row

    def _once(self, kind: str, name: str, parameters: dict[str, Any]) -> Any:
        """An answer, computed unless it is known."""
        content = digest_of([kind, self._content(statement(name), parameters)])
        self._used.add(content)
        if content not in self._answers:
            self._answers[content] = getattr(super(), kind)(name, **parameters)
        return self._answers[content]


@cache
def words_of(text: str) -> frozenset[str]:
    """The words of a statement in small letters, among them every table that it reads."""
    return frozenset(re.findall(r"\w+", text.lower()))


def files_known_by(files: Sequence[Path]) -> list[list[Any]]:
    """What tells files from others that came under their names."""
    return [[str(path), found.st_ino, found.st_size, found.st_mtime_ns] for path in files if (found := path.stat())]


def rows_digest(data: pa.Table) -> str:
    """A digest of some rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as stream:
        stream.write_table(data)
    return bytes_digest(sink.getvalue())
