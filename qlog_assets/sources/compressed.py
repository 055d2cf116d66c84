"""Which files are compressed, and how they are opened: gzip and zstd. What is in them is their readers' business.

How a file begins tells what it is; its name is not asked. A log may begin with what the first person typed, so a few
bytes alone never make a file a compressed one: its header must be one that a compressor writes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from typing import BinaryIO, cast

import pyarrow as pa

GZIP_MAGIC = b"\x1f\x8b"
GZIP_DEFLATE = 8
"""The only method there is."""
GZIP_RESERVED = 0b1110_0000
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PROBE_BYTES = 1 << 18
"""Enough for the first block of a zstd frame, which has at most 128 kB."""

DAMAGE = (OSError, EOFError, zlib.error)
"""What reading a damaged or shortened file raises."""


def opened_plain(raw: BinaryIO) -> BinaryIO:
    """A file's content, decompressed where it is compressed. Closing it may close the file too."""
    head = raw.read(PROBE_BYTES)
    raw.seek(0)
    if is_gzip(head):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    return _zstd_stream(raw) if is_zstd(head) else raw


def is_gzip(head: bytes) -> bool:
    """Whether a file that begins so is gzip: its mark, its one method, and none of the flags that never were used."""
    return len(head) > 3 and head.startswith(GZIP_MAGIC) and head[2] == GZIP_DEFLATE and not head[3] & GZIP_RESERVED


def is_zstd(head: bytes) -> bool:
    """Whether a file that begins so is zstd: its mark, and a first block that is one. `(µ/ý` is text in latin-1."""
    if not head.startswith(ZSTD_MAGIC):
        return False
    try:
        _zstd_stream(pa.BufferReader(head)).read(1)
    except DAMAGE as error:
        # A file cut short begins as zstd does, and is said to be cut short when it is read.
        return "truncated" in str(error).lower()
    return True


def _zstd_stream(raw: object) -> BinaryIO:
    source = raw if isinstance(raw, pa.NativeFile) else pa.PythonFile(raw, mode="r")
    # Arrow's own stream gives no lines.
    return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(source, "zstd")), PROBE_BYTES)
