"""From the bytes of a landing file to Arrow batches of numbered lines: decompression, encoding, where lines end.

A line ends at a line feed and nowhere else: a Unicode line separator inside a query splits nothing. What a field means
is decided later, in SQL (`readers.py`). Every line comes out once, as text or as a fault; none is dropped, so that the
rows read can be counted here and compared with the rows sorted out there.
"""

from __future__ import annotations

import codecs
import enum
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from qlog_assets.errors import QlogError
from qlog_assets.sources.compressed import DAMAGE, opened_plain
from qlog_assets.sources.other_files import DAMAGED, say_other_kind

BLOCK_BYTES = 4 << 20
"""Read at a time. Blocks of 32 MB cost five times the processor time: they are too large for the allocator to reuse."""
LONGEST_LINE = 1 << 20
"""Bytes. No record of a search is longer: such a line is cut while reading, so memory stays bounded, and rejected."""

BYTE_ORDER_MARK = codecs.BOM_UTF8
UNDECODABLE_MARK = "\udc80"

LINE_SCHEMA = pa.schema([("line", pa.int64()), ("fault", pa.uint8()), ("text", pa.string())])


class Fault(enum.IntEnum):
    """Why a row is rejected before SQL looks into it: its line has no text to be split, or its user is no id."""

    NONE = 0
    UNDECODABLE_BYTES = 1
    NUL_BYTE = 2
    UNCLOSED_QUOTE = 3
    OVERLONG_LINE = 4
    FRACTIONAL_USER = 5
    INEXACT_USER = 6
    NO_JSON_OBJECT = 7
    NO_PLAIN_VALUE = 8
    NO_ACCESS_LINE = 9
    NOT_A_SEARCH = 10


NOT_A_SEARCH = Fault.NOT_A_SEARCH.name.lower()
"""The reason of a line that is whole and good, and tells of something else than a search."""


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Put a lone surrogate where bytes could not be decoded: it survives as invalid UTF-8 and marks its line alone."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return UNDECODABLE_MARK, error.end


codecs.register_error("qlog_mark_undecodable", _mark_undecodable)


class LandingFile:
    """One landing file, opened to be read once from start to end. Says how far it has got; never writes."""

    def __init__(self, path: Path, encoding: str) -> None:
        self.name = path.name
        self.encoding = codecs.lookup(encoding).name
        try:
            self._raw: BinaryIO = path.open("rb")
            self.size = path.stat().st_size
            self._stream = opened_plain(self._raw)
        except FileNotFoundError:
            raise QlogError(f"{path}: no such file: put the log there, or name the right path") from None
        except OSError as error:
            raise QlogError(f"{path}: cannot be read ({error.strerror}): name a file that you may read") from None
        self._path = path

    @property
    def position(self) -> int:
        """Bytes of the file consumed so far, as it lies on disk."""
        return self._raw.tell()

    def refuse_no_text(self) -> None:
        """Raise if the file begins like one that holds no lines of text. To be asked where no row can be used: `BZh`
        may also be what the first person typed, and one person's row may not cost the others theirs."""
        said = say_other_kind(self._path)
        if said is not None:
            raise QlogError(f"{self.name}: {said}") from None

    def close(self) -> None:
        self._stream.close()
        self._raw.close()

    def chunks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The file as UTF-8, in chunks of whole lines, each line ending with a single line feed.

        Bytes that are no text in the file's encoding come out as bytes that are no UTF-8.
        """
        carried = b""
        for block in _without_mark(self._utf8_blocks(block_bytes)):
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                carried = (carried + block)[: LONGEST_LINE + 1]
                continue
            yield _single_line_ends(carried + block[:cut])
            carried = block[cut:]
        if carried:
            yield _single_line_ends(carried + b"\n")

    def _utf8_blocks(self, block_bytes: int) -> Iterator[bytes]:
        decoder = None
        if self.encoding != "utf-8":
            decoder = codecs.getincrementaldecoder(self.encoding)(errors="qlog_mark_undecodable")
        while block := self._read(block_bytes):
            yield block if decoder is None else decoder.decode(block).encode("utf-8", "surrogatepass")
        if decoder is not None:
            yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")

    def _read(self, block_bytes: int) -> bytes:
        try:
            return self._stream.read(block_bytes)
        except DAMAGE:
            raise QlogError(f"{self.name}: {DAMAGED}") from None


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks without a byte order mark at the very start."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(BYTE_ORDER_MARK):
            yield start.removeprefix(BYTE_ORDER_MARK)
            yield from blocks
            return
    yield start


def _single_line_ends(chunk: bytes) -> bytes:
    # Most logs have no carriage return at all: one memchr says so, and nothing is copied.
    return chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk


def line_offsets(chunk: bytes) -> np.ndarray:
    """Where the lines of a chunk start, and where the last one ends."""
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
    offsets = np.zeros(len(ends) + 1, np.int32)
    np.add(ends, 1, out=offsets[1:], casting="unsafe")
    return offsets


def line_batch(chunk: bytes, offsets: np.ndarray, first_line: int, delimiter: str) -> pa.RecordBatch:
    """A chunk as (line, fault, text); the text ends with one delimiter more than it has, in place of the line feed.

    The lines stay where they are: Arrow gets their offsets, and splitting into fields is left to DuckDB's threads.
    """
    lines = len(offsets) - 1
    faults = _faults(chunk, offsets)
    buffer = np.frombuffer(chunk, np.uint8).copy()
    buffer[offsets[1:] - 1] = ord(delimiter)
    valid = None if not faults.any() else pa.py_buffer(np.packbits(faults == 0, bitorder="little"))
    text = pa.Array.from_buffers(pa.string(), lines, [valid, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    numbers = np.arange(first_line, first_line + lines, dtype=np.int64)
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(faults), text], schema=LINE_SCHEMA)


def _faults(chunk: bytes, offsets: np.ndarray) -> np.ndarray:
    """The fault of each line. Whole chunks are tested first: nearly all of them have none."""
    faults = np.zeros(len(offsets) - 1, np.uint8)
    data = np.frombuffer(chunk, np.uint8)
    if not chunk.isascii() and not _is_utf8(chunk, offsets):
        suspects = np.flatnonzero(np.maximum.reduceat(data, offsets[:-1]) >= 0x80)
        for index in suspects.tolist():
            try:
                str(memoryview(chunk)[offsets[index] : offsets[index + 1]], "utf-8")
            except UnicodeDecodeError:
                faults[index] = Fault.UNDECODABLE_BYTES
    if b"\0" in chunk:
        faults[np.searchsorted(offsets, np.flatnonzero(data == 0), side="right") - 1] = Fault.NUL_BYTE
    faults[np.diff(offsets) > LONGEST_LINE + 1] = Fault.OVERLONG_LINE
    return faults


def _is_utf8(chunk: bytes, offsets: np.ndarray) -> bool:
    lines = pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(chunk)])
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
