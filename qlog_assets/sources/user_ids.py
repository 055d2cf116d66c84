"""Canonical user ids: one person, one id, whichever file the row came in and however its writer wrote the number.

Whoever has two ids has twice the ε. So an id is a text in one form, and what cannot be brought into it is rejected:

- Unicode NFC, without white space and invisible marks (byte order mark, zero-width space, directions) at either end.
- A whole number that was a float is that number: `7.0`, `7.00` and `7.` are `7`, and `-0` is `0`. So are floats and
  decimals of Parquet. So is a float with an exponent as programs write it (`1.2345678E7`, `1e+05`: a point or a sign is
  in it). Nothing else in a text is read as a number: `007`, `+7`, `7.5`, `3e8` and `12e5` are ids of their own, because
  a text that no number type writes so was not a number, and may well be a code.
- A float from 2^53 on (2^24 in 32 bits) cannot be told from its neighbours: two people may be in it, or one person's
  half. As text such a float has a point: without one, digits of any length are exact.
- Words that stand for no value (`nan`, `null`, `NA`, …) are no ids, though somebody may be called so: it is better to
  lose that person's rows than to give everybody a second id for the rows that lost theirs.

`canonical_user` is the reference. The SQL is equal to it; texts in `PLAIN_USER`, nearly all of a log, are canonical as
they are and pass after one pattern.
"""

from __future__ import annotations

import re
import unicodedata

from qlog_assets.sources.normalise import WHITESPACE, WHITESPACE_CLASS

LARGEST_WHOLE = 2**53 - 1
"""The largest whole number that a float of 64 bits tells from both its neighbours."""

INVISIBLE = "\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
INVISIBLE_CLASS = r"\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}\x{2066}-\x{2069}\x{feff}"
AROUND_CLASS = WHITESPACE_CLASS[:-1] + INVISIBLE_CLASS + "]"

MISSING = ("nan", "inf", "infinity", "null", "none", "nat", "na", "n/a", "<na>", "\\n")
"""How programs write a value that is not there, in lower case; the first three may have a sign."""
SIGNED_MISSING = tuple(sign + word for sign in "+-" for word in MISSING[:3])

WRITTEN_AS_FLOAT = re.compile(r"(-?[0-9]+)\.0*")
EXPONENT = r"-?[0-9](\.[0-9]{1,17}[eE][+-]?|[eE][+-])[0-9]{1,3}"
WITH_EXPONENT = re.compile(EXPONENT)
PLAIN_USER = r"[0-9]+|[0-9][!-\-/-~]*[!-*,/:-DF-df-~][!-\-/-~]*|[A-Za-z_][!-~]*[0-9@][!-~]*"
"""ASCII without spaces that is neither a number with point or exponent nor one of the words: canonical, an id."""

EMPTY_USER = "empty_user"
MISSING_USER = "missing_user"
INEXACT_USER = "inexact_user"


def canonical_user(text: str) -> str:
    """The id that a text stands for. Applying it twice changes nothing."""
    text = unicodedata.normalize("NFC", text).strip(WHITESPACE + INVISIBLE)
    match = WRITTEN_AS_FLOAT.fullmatch(text)
    if match is not None and _is_exact(match[1]):
        text = match[1]
    elif WITH_EXPONENT.fullmatch(text) and abs(value := float(text)) <= LARGEST_WHOLE and value == int(value):
        text = str(int(value))
    return "0" if text == "-0" else text


def reason_against(canonical: str) -> str | None:
    """Why a text that was made canonical is no id, if it is none."""
    if not canonical:
        return EMPTY_USER
    if _ascii_lower(canonical) in (*MISSING, *SIGNED_MISSING):
        return MISSING_USER
    too_large = WITH_EXPONENT.fullmatch(canonical) is not None and abs(float(canonical)) > LARGEST_WHOLE
    return INEXACT_USER if too_large or WRITTEN_AS_FLOAT.fullmatch(canonical) else None


def _is_exact(digits: str) -> bool:
    # Longer ones are out of range whatever they say, and Python refuses to read the longest.
    return len(digits) <= 40 and abs(int(digits)) <= LARGEST_WHOLE


def _ascii_lower(text: str) -> str:
    return text.lower() if text.isascii() else text


def is_plain_sql(text: str) -> str:
    """SQL: whether a text is surely canonical and an id."""
    return f"regexp_full_match({text}, '{PLAIN_USER}')"


def canonical_user_sql(text: str) -> str:
    """SQL: `canonical_user`. Costs some ten times `is_plain_sql`: ask that first."""
    stripped = f"regexp_replace(nfc_normalize({text}), '^{AROUND_CLASS}+|{AROUND_CLASS}+$', '', 'g')"
    # A lambda over a list of one is how a value gets a name inside an expression.
    digits = r"regexp_extract(id, '^(-?[0-9]+)\.0*$', 1)"
    whole = f"strlen({digits}) <= 40 AND try_cast({digits} AS BIGINT) BETWEEN {-LARGEST_WHOLE} AND {LARGEST_WHOLE}"
    value = f"CASE WHEN regexp_full_match(id, '{EXPONENT}') THEN try_cast(id AS DOUBLE) END"
    exponent = f"abs({value}) <= {LARGEST_WHOLE} AND {value} = trunc({value})"
    number = (
        f"CASE WHEN {whole} THEN {digits} WHEN {exponent} THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE id END"
    )
    return f"list_transform(list_transform([{stripped}], lambda id: {number}), lambda id: if(id = '-0', '0', id))[1]"


def reason_against_sql(canonical: str) -> str:
    """SQL: `reason_against`, of a column that holds canonical texts or nulls."""
    words = ", ".join(f"'{word}'" for word in (*MISSING, *SIGNED_MISSING))
    return rf"""CASE WHEN {canonical} IS NULL OR {canonical} = '' THEN '{EMPTY_USER}'
                     WHEN strlen({canonical}) = length({canonical}) AND lower({canonical}) IN ({words})
                     THEN '{MISSING_USER}'
                     WHEN regexp_full_match({canonical}, '-?[0-9]+\.0*')
                          OR (regexp_full_match({canonical}, '{EXPONENT}')
                              AND NOT coalesce(abs(try_cast({canonical} AS DOUBLE)) <= {LARGEST_WHOLE}, false))
                     THEN '{INEXACT_USER}' END"""
