"""Tells texts that look like an e-mail address, a payment card, a phone number or a US social security number.

Pure functions over arrays of texts. They run after the noise, on what is about to be public, so that suppressing a row
is post-processing and costs no budget; texts of the public pool stay, because they were public before. A text that is
suppressed was already safe to publish in the sense of the guarantee: nobody likes to read it in a public table.

The patterns use only what RE2 (Arrow, DuckDB) and Python's `re` (Great Expectations) read alike, no look-around, and no
repetition that two parts of a pattern could share: time stays linear in both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qlog_assets.report.tables import texts_of

Texts: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[str] | np.ndarray"

# What people put between the digits of one number: the typographic dashes and the minus beside the keyboard's.
_DASHES = "\\-\u2010-\u2015\u2212"
_GAP = f"[ .{_DASHES}]"
_PHONE_GAP = f"[ ./(){_DASHES}]{{0,3}}"
_START, _END = "(?:^|[^0-9])", "(?:$|[^0-9])"

EMAIL_PATTERNS = (
    # An ordinary address; one letter is enough before the sign, and a url may have it as %40.
    "[^ @](?: ?@ ?|%40)[^ @.%]+ ?\\. ?[^ @.0-9][^ @.0-9]",
    # An address without its top-level domain, as people type those of their own provider.
    "[^ @][^ @]@[^ @][^ @]",
    # Spelt out against collectors of addresses.
    "[^ ] ?[(\\[{]at[)\\]}] ?[^ ]",
    "[^ ] at [^ ]+ dot [a-z][a-z]",
)
PHONE_PATTERNS = (
    # North America: 212-555-0123, (212) 555 0123, +1.212.555.0123, 2125550123.
    f"{_START}(?:1{_PHONE_GAP})?[2-9][0-9][0-9]{_PHONE_GAP}[2-9][0-9][0-9]{_PHONE_GAP}[0-9][0-9][0-9][0-9]{_END}",
    # International: a plus and eight to fifteen digits.
    f"\\+[ (]?[1-9](?:{_PHONE_GAP}[0-9]){{7,14}}{_END}",
    # National elsewhere: a leading zero, an area code set apart, then six to eight digits.
    f"{_START}\\(?0[1-9][0-9]{{1,3}}[ ./){_DASHES}]{{1,2}}[0-9]{{3,4}}{_GAP}?[0-9]{{3,4}}{_END}",
    # A Chinese mobile number.
    f"{_START}1[3-9][0-9]{_GAP}?[0-9]{{4}}{_GAP}?[0-9]{{4}}{_END}",
)
SSN_PATTERNS = (
    # 078-05-1120, with any separator; a dash more on either side makes it a part number.
    f"(?:^|[^0-9{_DASHES}])[0-9]{{3}}{_GAP}[0-9]{{2}}{_GAP}[0-9]{{4}}(?:$|[^0-9{_DASHES}])",
    # Nine digits that stand alone.
    "(?:^|[^0-9a-z])[0-9]{9}(?:$|[^0-9a-z])",
)
REGEX_PATTERNS = (*EMAIL_PATTERNS, *PHONE_PATTERNS, *SSN_PATTERNS)
"""The kinds that a pattern alone tells. The suites of released tables hold the same list; a test compares them."""

_CARD_CANDIDATE = f"[0-9](?:{_GAP}{{0,2}}[0-9]){{12}}"
_DIGIT_RUN = re.compile(f"[0-9]+(?:{_GAP}{{1,2}}[0-9]+)*")
_CARD_DIGITS = range(13, 20)
# Payment networks' numbers begin with 2 (Mastercard's second range) to 6; others are left alone as plain long numbers.
_CARD_FIRST_DIGITS = "23456"


def pattern_mask(texts: Texts, patterns: Sequence[str]) -> np.ndarray:
    """Which texts hold something that one of the patterns describes."""
    return _matches(folded(texts), patterns)


def card_mask(texts: Texts) -> np.ndarray:
    """Which texts hold a payment card number: 13 to 19 digits, grouped in any way, whose check digit is right."""
    return _cards(folded(texts))


def personal_data_mask(texts: Texts) -> np.ndarray:
    """Which texts look like personal data of any of the four kinds."""
    return pattern_mask(texts, REGEX_PATTERNS) | card_mask(texts)


def outside(texts: Texts, public: pa.Array | pa.ChunkedArray | None) -> np.ndarray:
    """Which texts a public list does not hold. Without a list: all of them."""
    values = _as_array(texts)
    if public is None:
        return np.ones(len(values), dtype=bool)
    return ~_as_numpy(pc.is_in(values, value_set=_as_array(public)))


def suppression_mask(columns: Sequence[Texts], public: pa.Array | pa.ChunkedArray | None) -> np.ndarray:
    """Which rows to suppress: those with a text in any of `columns` that looks personal and was not public before.

    A column may hold lists of texts; one such text suppresses the row.
    """
    suppressed = np.zeros(len(columns[0]), dtype=bool)
    for column in columns:
        values, rows = texts_of(column if isinstance(column, pa.Array | pa.ChunkedArray) else _as_array(column))
        personal = np.flatnonzero(personal_data_mask(values))
        private = outside(values.take(pa.array(personal)), public)
        suppressed[rows[personal[private]]] = True
    return suppressed


def passes_check_digit(digits: str) -> bool:
    """Luhn's test: from the right, every second digit doubled, the digits of all of it add up to a multiple of ten."""
    doubled = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
    total = sum(doubled[int(digit)] if position % 2 else int(digit) for position, digit in enumerate(reversed(digits)))
    return total % 10 == 0


def _cards(texts: pa.Array) -> np.ndarray:
    """Candidates by pattern, all at once; only those, a handful in a release, are then looked at one by one."""
    found = _matches(texts, (_CARD_CANDIDATE,))
    for position in np.flatnonzero(found):
        found[position] = _holds_card(texts[position].as_py())
    return found


def _holds_card(text: str) -> bool:
    """Whether some whole groups of digits in a row form a card number, so that a year before it hides nothing."""
    for run in _DIGIT_RUN.findall(text):
        groups = re.split("[^0-9]+", run)
        for first, group in enumerate(groups):
            digits = ""
            for other in groups[first:]:
                digits += other
                if len(digits) >= _CARD_DIGITS.stop:
                    break
                if len(digits) in _CARD_DIGITS and group[0] in _CARD_FIRST_DIGITS and passes_check_digit(digits):
                    return True
    return False


def _matches(texts: pa.Array, patterns: Sequence[str]) -> np.ndarray:
    found = np.zeros(len(texts), dtype=bool)
    for pattern in patterns:
        found |= _as_numpy(pc.match_substring_regex(texts, pattern))
    return found


def folded(texts: Texts) -> pa.Array:
    """Lower case with plain spaces, as the patterns expect. Queries are normalised already; urls come as they are."""
    return pc.replace_substring_regex(pc.utf8_lower(_as_array(texts)), "[\\s\u00a0]+", " ")


def _as_array(texts: Any) -> pa.Array:
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if not isinstance(array, pa.Array):
        array = pa.array(array, type=pa.string(), from_pandas=True)
    return array.cast(pa.string())


def _as_numpy(mask: Any) -> np.ndarray:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
