"""Patterns of RE2, as DuckDB has them, in the words of Java, as Spark has them: the same matches, and as fast.

RE2 looks at a text once, whatever the pattern. Java tries a pattern at every place of it, and `x+$` runs from each
place of a long row of x to its end: one url of many slashes would take minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot.errors import UnsupportedError

OTHERWISE_IN_JAVA = re.compile(r"\[\[:|\[\^?\]|\\[sSvV]|\(\?(?!s\))[a-zA-Z]|&&")
"""What Java reads in another way: classes by name, `]` as the first of a class, white space, flags other than `s`."""
CLASS = r"\[\^?(?:[^\]\\]|\\.)+\]"
ONE = rf"(?:{CLASS}|\\[^bBAz]|[^\\\[\](){{}}*?+|^$])"
"""What matches one character."""
PIECE = re.compile(rf"{CLASS}|\\.|.", re.DOTALL)
RUN_AT_END = re.compile(rf"({ONE})\+\$", re.DOTALL)
TAKES_SOME = re.compile(rf"\^?{ONE}(?![*?{{])", re.DOTALL)
"""How an alternative begins that never matches the empty text."""


def java_pattern(pattern: str) -> str:
    """A pattern of RE2 for Java: `$` is the very end, `.` is anything but a line feed, and `x+$` is tried once."""
    other = OTHERWISE_IN_JAVA.search(pattern)
    if other:
        raise UnsupportedError(f"a pattern with {other.group()}")
    parts = list(alternatives(pattern))
    runs = [RUN_AT_END.fullmatch(part) for part in parts]
    if any(runs) and not all(map(TAKES_SOME.match, parts)):
        # Behind an empty match Java goes on one place later than where the match ended.
        raise UnsupportedError("a pattern with x+$ beside what may match nothing")
    written = [run_at_end(run[1]) if run else with_very_end(part) for part, run in zip(parts, runs, strict=True)]
    return f"(?d){'|'.join(written)}"


def alternatives(pattern: str) -> Iterator[str]:
    """What a pattern has between bars that are in no group."""
    part, depth = "", 0
    for piece in PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            yield part
            part = ""
        else:
            part += piece
    yield part


def with_very_end(part: str) -> str:
    return "".join(r"\z" if piece == "$" else piece for piece in PIECE.findall(part))


def run_at_end(one: str) -> str:
    """`x+$`: it begins where no x stands before, or where the match before ended, and gives nothing back."""
    return rf"(?:\G|(?<!{one})){one}++\z"
