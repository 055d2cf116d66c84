"""Records whose fields may be wrapped in double quotes, as spreadsheets write them: commas and line feeds inside.

Only lines that have a quote, or stand inside an open one, come here; all others stay on the fast path of
`readers_lines.py`. A quote opens a field only at its start; anywhere else it is a character like others. A quote that
is never closed costs its own line, not the rest of the file.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qlog_assets.sources.readers_lines import LINE_SCHEMA, LONGEST_LINE, Fault, line_batch, line_offsets

QUOTE = '"'
RECORD_SCHEMA = LINE_SCHEMA.append(pa.field("fields", pa.list_(pa.string())))


class RecordParser:
    """Splits one record into fields, physical line by physical line. Never fails: any text is some record."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.fields: list[str] = []
        self._pieces: list[str] = []
        self._inside = False

    def feed(self, line: str) -> bool:
        """Take one more line; true if the record ends with it."""
        position = 0
        if self._inside:
            self._pieces.append("\n")
            position = self._read_quoted(line, 0)
        while not self._inside:
            if not self._pieces and line.startswith(QUOTE, position):
                self._inside = True
                position = self._read_quoted(line, position + 1)
                continue
            end = line.find(self.delimiter, position)
            self._pieces.append(line[position:] if end < 0 else line[position:end])
            self.fields.append("".join(self._pieces))
            self._pieces = []
            if end < 0:
                return True
            position = end + 1
        return False

    def _read_quoted(self, line: str, position: int) -> int:
        """Read to the closing quote and return where to read on; without one, stay inside and read the whole line."""
        while True:
            quote = line.find(QUOTE, position)
            self._pieces.append(line[position:] if quote < 0 else line[position:quote])
            if quote < 0:
                return len(line)
            if not line.startswith(QUOTE, quote + 1):
                self._inside = False
                return quote + 1
            self._pieces.append(QUOTE)
            position = quote + 2


def split_record(line: str, delimiter: str) -> list[str] | None:
    """The fields of a record on one line; None if a quote is still open at its end."""
    parser = RecordParser(delimiter)
    return parser.fields if parser.feed(line) else None


class RecordAssembler:
    """Puts physical lines together into records. Keeps those of an open record until it closes or grows too long."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self._parser = RecordParser(delimiter)
        self._open: list[tuple[int, bytes]] = []
        self._open_bytes = 0
        self._open_fault = Fault.NONE
        self._finished: list[tuple[int, Fault, list[str] | None]] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def feed(self, number: int, line: bytes) -> None:
        waiting = deque([(number, line)])
        while waiting:
            number, line = waiting.popleft()
            text, fault = _decoded(line)
            self._open.append((number, line))
            self._open_bytes += len(line)
            self._open_fault = max(self._open_fault, fault)
            if self._parser.feed(text):
                # One field more, empty: plain lines have it too, see line_batch.
                self._finish(self._open_fault, [*self._parser.fields, ""])
            elif self._open_bytes > LONGEST_LINE:
                waiting.extendleft(reversed(self._give_up()))

    def close(self) -> None:
        """At the end of the file: what is still open will not be closed any more."""
        while self._open:
            for number, line in self._give_up():
                self.feed(number, line)

    def take(self) -> pa.RecordBatch:
        """The records finished since the last call."""
        numbers, faults, fields = zip(*self._finished, strict=True) if self._finished else ((), (), ())
        self._finished = []
        columns = [
            pa.array(numbers, pa.int64()),
            pa.array([int(fault) for fault in faults], pa.uint8()),
            pa.nulls(len(numbers), pa.string()),
            pa.array(fields, pa.list_(pa.string())),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)

    def _give_up(self) -> list[tuple[int, bytes]]:
        """Reject the line that opened the quote and hand back those after it, to be read on their own."""
        following = self._open[1:]
        self._finish(Fault.UNCLOSED_QUOTE, None)
        return following

    def _finish(self, fault: Fault, fields: list[str] | None) -> None:
        self._finished.append((self._open[0][0], fault, None if fault else fields))
        self._parser = RecordParser(self.delimiter)
        self._open, self._open_bytes, self._open_fault = [], 0, Fault.NONE


def record_batches(chunks: Iterator[bytes], first_line: int, delimiter: str) -> Iterator[pa.RecordBatch]:
    """Chunks of whole lines as (line, fault, text, fields): records with a quote as fields, all others as text."""
    assembler = RecordAssembler(delimiter)
    quote = QUOTE.encode()
    for chunk in chunks:
        offsets = line_offsets(chunk)
        lines = len(offsets) - 1
        plain = line_batch(chunk, offsets, first_line, delimiter)
        if assembler.is_open or quote in chunk:
            positions = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord(QUOTE))
            with_quote = np.unique(np.searchsorted(offsets, positions, side="right") - 1).tolist()
            slow = np.zeros(lines, bool)
            for index in _slow_lines(with_quote, lines, assembler):
                slow[index] = True
                assembler.feed(first_line + index, chunk[offsets[index] : offsets[index + 1] - 1])
            plain = plain.filter(pa.array(~slow))
        yield plain.append_column("fields", pa.nulls(plain.num_rows, RECORD_SCHEMA.field("fields").type))
        yield assembler.take()
        first_line += lines
    assembler.close()
    yield assembler.take()


def _slow_lines(with_quote: list[int], lines: int, assembler: RecordAssembler) -> Iterator[int]:
    """The lines of a chunk that have a quote or follow an open one; asks the assembler after each."""
    index = 0
    while index < lines:
        if not assembler.is_open:
            following = bisect.bisect_left(with_quote, index)
            if following == len(with_quote):
                return
            index = with_quote[following]
        yield index
        index += 1


def _decoded(line: bytes) -> tuple[str, Fault]:
    if len(line) > LONGEST_LINE:
        return "", Fault.OVERLONG_LINE
    fault = Fault.NUL_BYTE if b"\0" in line else Fault.NONE
    try:
        return line.decode("utf-8"), fault
    except UnicodeDecodeError:
        return line.decode("utf-8", "replace"), fault or Fault.UNDECODABLE_BYTES
