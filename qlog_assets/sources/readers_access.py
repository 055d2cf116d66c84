"""From a web server's access log to Arrow batches: which requests are searches, what was asked, and by whom.

Each line stands for itself. A line in the combined format (or the common one, which lacks referer and agent) that is a
good GET request with the wanted parameter is a search; another request is none, and that is no fault of the line.

Where nobody logs in, the user is a keyed hash of address and agent. The key is the data set's: with it one visitor has
one id in all files, and without it nobody can find an id by hashing every address there is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from qlog_assets.sources.access_map import ADDRESS_AND_AGENT, AccessMap
from qlog_assets.sources.readers_lines import Fault, line_batch, line_offsets

REQUEST_SCHEMA = pa.schema(
    [("line", pa.int64()), ("fault", pa.uint8()), ("user", pa.string()), ("query", pa.string()), ("time", pa.string())]
)
QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
ACCESS_LINE = re.compile(
    r'([^\s"]++) [^\s"]++ ([^\s"\[\]]++) '
    r"\[([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})\] "
    rf"{QUOTED} ([0-9]{{3}}) (?:[0-9]+|-)(?: {QUOTED} {QUOTED})?(?: .*)?"
)
"""Address, user name, time, request, status, referer, agent; what a server adds after them is passed over."""
ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
NOBODY = "-"
FIRST_ERROR_STATUS = "400"
USER_PERSON = b"qlog user"
"""Sets these hashes apart from all others that might be made with the same key."""


def request_batches(chunks: Iterator[bytes], columns: AccessMap, key: bytes | None) -> Iterator[pa.RecordBatch]:
    """Chunks of whole lines as (line, fault, user, query, time)."""
    if columns.user == ADDRESS_AND_AGENT and not key:
        raise RuntimeError("a log whose users are hashes of address and agent is read with the data set's key")
    first_line = 1
    for chunk in chunks:
        plain = line_batch(chunk, line_offsets(chunk), first_line, " ")
        faults = plain.column("fault").to_numpy().copy()
        rows = []
        for index, text in enumerate(plain.column("text").to_pylist()):
            found = (None, None, None) if text is None else read_request(text[:-1], columns, key)
            if isinstance(found, Fault):
                faults[index], found = found, (None, None, None)
            rows.append(found)
        users, queries, times = zip(*rows, strict=True)
        arrays = [plain.column("line"), pa.array(faults, pa.uint8())]
        arrays += [pa.array(values, pa.string()) for values in (users, queries, times)]
        yield pa.RecordBatch.from_arrays(arrays, schema=REQUEST_SCHEMA)
        first_line += plain.num_rows


def read_request(line: str, columns: AccessMap, key: bytes | None) -> tuple[str | None, str, str] | Fault:
    """User, query and time of a search; why the line is none otherwise."""
    match = ACCESS_LINE.fullmatch(line)
    if match is None:
        return Fault.NO_ACCESS_LINE
    address, name, time, request, status, _, agent = match.groups()
    value = find_query(request, columns) if status < FIRST_ERROR_STATUS else None
    if value is None:
        return Fault.NOT_A_SEARCH
    query = decode_value(value)
    if query is None:
        return Fault.UNDECODABLE_BYTES
    if "\0" in query:
        return Fault.NUL_BYTE
    if columns.user == ADDRESS_AND_AGENT:
        assert key is not None  # asked before the first line
        user = None if agent is None else hash_user(key, address, agent)
    else:
        user = None if name == NOBODY else name
    return user, query, time


def find_query(request: str, columns: AccessMap) -> str | None:
    """The parameter's value, still encoded, if a request is a search. The first one counts where it is named twice."""
    method, _, rest = request.partition(" ")
    target, _, asked = (rest.rpartition(" HTTP/")[0] or rest).partition("?")
    if method != "GET" or not asked:
        return None
    if columns.path is not None and not _path_of(target).startswith(columns.path):
        return None
    for pair in asked.split("&"):
        name, _, value = pair.partition("=")
        # Hardly any name is written with percent signs: most are compared as they stand.
        if name == columns.query_parameter or ("%" in name and decode_value(name) == columns.query_parameter):
            return value
    return None


def decode_value(value: str) -> str | None:
    """What a url's parameter says, as UTF-8: percent signs decoded, a plus is a space; None if it is no UTF-8.

    Servers write bytes that are not printed as `\\xe9`, and a backslash before a quote.
    """
    if "\\" in value:
        value = ESCAPED.sub(lambda match: f"%{match[1]}" if match[1] else match[2], value)
    if "+" in value:
        value = value.replace("+", " ")
    if "%" not in value:
        return value
    try:
        return unquote_to_bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return None


def hash_user(key: bytes, address: str, agent: str) -> str:
    """The id of everybody who comes from one address with one agent. An address has no space, so no two pairs share a
    text."""
    text = f"{address} {agent}".encode()
    return "h" + hashlib.blake2b(text, key=key, digest_size=16, person=USER_PERSON).hexdigest()


def _path_of(target: str) -> str:
    """The path of a request's target, which a proxy is given with scheme and host."""
    scheme, found, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if found and scheme.isalnum() else target
