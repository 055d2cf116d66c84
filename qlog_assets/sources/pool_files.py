"""The file formats of public lists: n-gram files, the tagged n-grams of COCA, plain lists, and earlier releases.

Each reader yields texts as the file has them; normalising, sampling and storing them is done in `pools.py`. A line that
does not fit is an error that names file and line, not what stands there.
"""

from __future__ import annotations

import codecs
import importlib.util
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qlog_assets.errors import QlogError
from qlog_assets.sources.compressed import DAMAGE, opened_plain

DEFAULT_FILES = ("unigrams.txt", "bigrams.txt")
DEFAULT_DESCRIPTION = (
    "The 333,213 most frequent words and 249,797 frequent word pairs of the Google Web Trillion Word Corpus "
    "(2006), as selected by Peter Norvig and shipped in the Python package wordsegment"
)
DEFAULT_ROWS = 583_010
DEFAULT_LICENCE = "Apache-2.0 (wordsegment)"
COCA_NOTICE_LINES = 100
"""COCA's files may begin with a notice: so many lines may come before the first row."""
DETECTION_LINES = 1000
LIST_ID = re.compile(r"[A-Za-z0-9_.:-]*[0-9][A-Za-z0-9_.:-]*")
"""What stands before the tab in a list of `id<TAB>query`: one word with a digit in it."""


def default_files() -> list[Path]:
    """The n-gram lists inside the wordsegment package."""
    package = importlib.util.find_spec("wordsegment")
    if package is None or package.origin is None:
        raise QlogError("the package wordsegment, which holds the default pool, is not installed: install it again")
    return [Path(package.origin).with_name(name) for name in DEFAULT_FILES]


def read_default() -> Iterator[str]:
    for path in default_files():
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.partition("\t")[0]
            # `<s> word` says how often a word starts a sentence; nobody types that.
            if not words.startswith("<"):
                yield words


def read_lines(path: Path, encoding: str) -> Iterator[str]:
    """A plain list: one text per line, `id<TAB>text`, or the `query` column of a Parquet file.

    Empty lines are passed over. A list has ids if each of its first lines is a word with a digit in it, one tab, and a
    text; a later line that is not is then an error.
    """
    if path.suffix == ".parquet":
        yield from read_released(path)
        return
    lines = numbered_lines(path, encoding)
    start = list(itertools.islice(lines, DETECTION_LINES))
    has_ids = all(_split_id(line) is not None for _, line in start)
    for number, line in itertools.chain(start, lines):
        text = _split_id(line) if has_ids else line
        if text is None:
            raise QlogError(f"{path.name}, line {number}: is not an id, a tab and a text, as the lines before it are")
        yield text


def _split_id(line: str) -> str | None:
    """The text behind an id; None if the line has no id."""
    first, tab, text = line.partition("\t")
    return text if tab and "\t" not in text and text.strip() and LIST_ID.fullmatch(first.strip()) else None


def read_ngrams(path: Path, encoding: str) -> Iterator[str]:
    """N-grams, one per line: `count<TAB>words`, `words<TAB>count`, or words alone; words between tabs or spaces.

    The first lines of a file decide where its counts are; a later line without one is an error.
    """
    rows = ((number, line.split("\t")) for number, line in numbered_lines(path, encoding))
    start = list(itertools.islice(rows, DETECTION_LINES))
    several = all(len(fields) > 1 for _, fields in start)
    counts_first = several and all(fields[0].isdecimal() for _, fields in start)
    counts_last = several and not counts_first and all(fields[-1].isdecimal() for _, fields in start)
    for number, fields in itertools.chain(start, rows):
        if (counts_first or counts_last) and (len(fields) < 2 or not fields[0 if counts_first else -1].isdecimal()):
            raise QlogError(f"{path.name}, line {number}: has no count, as the lines before it have")
        yield " ".join(fields[counts_first : len(fields) - counts_last])


def read_coca(path: Path, encoding: str) -> Iterator[str]:
    """Tagged n-grams of the Corpus of Contemporary American English that end with a noun.

    A row is a frequency, n words and n part-of-speech tags (CLAWS 7, where a noun's tag begins with n), between tabs.
    Nouns end more queries than other words do: this is the rule of the Safelog paper.
    """
    started = False
    for number, line in numbered_lines(path, encoding):
        frequency, *rest = line.rstrip("\t").split("\t")
        well_formed = frequency.strip().isdecimal() and len(rest) >= 2 and len(rest) % 2 == 0
        if not well_formed:
            if started or number > COCA_NOTICE_LINES:
                raise QlogError(f"{path.name}, line {number}: is not a frequency, words and as many tags, between tabs")
            continue
        started = True
        if rest[-1].lower().startswith("n"):
            yield " ".join(rest[: len(rest) // 2])


def read_released(path: Path) -> Iterator[str]:
    """The queries of a Parquet file. One with a user column is a log, not a list."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if "user" in names:
                raise QlogError(f"{path.name}: has a user column, so it is a log: a pool is a list of public queries")
            if "query" not in names:
                raise QlogError(f"{path.name}: has no query column: name a Parquet file that has")
            for batch in file.iter_batches(columns=["query"]):
                yield from (query for query in batch.column(0).to_pylist() if query)
    except (pa.ArrowException, OSError):
        raise QlogError(f"{path.name}: is not a readable Parquet file: fetch it again") from None


def numbered_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file, compressed or not, with their numbers; blank ones are passed over."""
    number = 0
    try:
        codecs.lookup(encoding)
        with path.open("rb") as raw:
            for line in opened_plain(raw):
                number += 1
                text = line.decode(encoding).removeprefix("\ufeff").rstrip("\r\n")
                if text.strip():
                    yield number, text
    except LookupError:
        raise QlogError(f"{encoding!r} is not a text encoding: try utf-8 or latin-1") from None
    except UnicodeDecodeError:
        raise QlogError(
            f"{path.name}, line {number}: is not {encoding}: name its encoding in the policy (pool.encoding)"
        ) from None
    except FileNotFoundError:
        raise QlogError(f"{path}: no such file: name the file that holds the public list") from None
    except DAMAGE:
        raise QlogError(f"{path.name}: cannot be read, or is damaged: fetch it again") from None
