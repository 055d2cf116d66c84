"""Regular expressions of a person, made to find normalised texts: `groß` is to find what is kept as `gross`.

A pattern is used as it is written and folded: with its letters, and nothing else of it, normalised as every text is.
"""

from __future__ import annotations

import re
import unicodedata

from qlog_assets.sources.normalise import normalise_text

SYNTAX = re.compile(r"(\\.|\(\?P|\[\^?\]?(?:\\.|[^\]\\])*\]|[.^$*+?{}|()\[\]])", re.DOTALL)
"""What is no plain letter in a pattern: escapes, names of groups, sets of characters, signs with a meaning."""


def compile_pattern(pattern: str) -> list[re.Pattern[str]]:
    """A pattern that can be compiled as written and, where that is another one, folded. Both whatever the case."""
    written = re.compile(pattern, re.IGNORECASE)
    try:
        folded = re.compile(fold_pattern(pattern), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError):
        return [written]
    # One that finds nothing in a text finds it in every text.
    return [written] if folded.pattern == pattern or folded.search("") else [written, folded]


def fold_pattern(pattern: str) -> str:
    """A pattern with its letters normalised. It may be no pattern any more: a range may end before it begins."""
    parts = SYNTAX.split(pattern)
    parts[::2] = [_fold_letters(part) for part in parts[::2]]
    parts[1::2] = [_fold_set(part) if part.startswith("[") else part for part in parts[1::2]]
    return "".join(parts)


def _fold_letters(letters: str) -> str:
    folded = (_fold_letter(letter) for letter in unicodedata.normalize("NFKC", letters))
    # What one letter became stays one: the sign behind it may say how often it comes. NFKC may make a sign (`…`).
    return "".join(
        f"(?:{each})" if len(each) > 1 else re.sub(r"[.^$*+?{}|()\[\]\\]", r"\\\g<0>", each) for each in folded
    )


def _fold_set(text: str) -> str:
    """A set holds single characters: one that becomes two letters, as ß does, is left as it is."""
    folded = ((letter, _fold_letter(letter)) for letter in unicodedata.normalize("NFC", text))
    return "".join(after if len(after) == 1 and after.isalpha() else before for before, after in folded)


def _fold_letter(letter: str) -> str:
    return normalise_text(letter) or " "
