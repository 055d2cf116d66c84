"""Records whose fields may be wrapped in double quotes, as spreadsheets write them: delimiters and quotes inside.

Only lines that have a quote are split here; all others stay on the fast path of `readers_lines.py`. A quote opens a
field only at its start; anywhere else it is a character like others. A line is a record, always: spreadsheets would go
on in the next line where a quote is still open, but no search has a line feed in it, and joining lines would let one
person's stray quote swallow the rows of others. Such a line is rejected, and the next one is read on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from qlog_assets.sources.readers_lines import LINE_SCHEMA, Fault, line_batch, line_offsets

QUOTE = '"'
QUOTED = re.compile('"([^"]*+(?:""[^"]*+)*+)"')
RECORD_SCHEMA = LINE_SCHEMA.append(pa.field("fields", pa.list_(pa.string())))


def split_record(line: str, delimiter: str) -> list[str] | None:
    """The fields of a record; None if a quote is still open at its end."""
    fields, position = [], 0
    while True:
        wrapped = ""
        if line.startswith(QUOTE, position):
            match = QUOTED.match(line, position)
            if match is None:
                return None
            wrapped, position = match[1].replace(QUOTE * 2, QUOTE), match.end()
        end = line.find(delimiter, position)
        fields.append(wrapped + (line[position:] if end < 0 else line[position:end]))
        if end < 0:
            return fields
        position = end + 1


def record_batches(chunks: Iterator[bytes], first_line: int, delimiter: str) -> Iterator[pa.RecordBatch]:
    """Chunks of whole lines as (line, fault, text, fields); `fields` is null where the text has no quote."""
    for chunk in chunks:
        offsets = line_offsets(chunk)
        batch = line_batch(chunk, offsets, first_line, delimiter)
        faults = batch.column("fault").to_numpy().copy()
        fields: list[list[str] | None] = [None] * batch.num_rows
        positions = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord(QUOTE))
        for index in np.unique(np.searchsorted(offsets, positions, side="right") - 1).tolist():
            if faults[index] == Fault.NONE:
                found = split_record(chunk[offsets[index] : offsets[index + 1] - 1].decode("utf-8"), delimiter)
                if found is None:
                    faults[index] = Fault.UNCLOSED_QUOTE
                else:
                    # One field more, empty: plain lines have it too, see line_batch.
                    fields[index] = [*found, ""]
        columns = [
            batch.column("line"),
            pa.array(faults),
            batch.column("text"),
            pa.array(fields, pa.list_(pa.string())),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)
        first_line += batch.num_rows
