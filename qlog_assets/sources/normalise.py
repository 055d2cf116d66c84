"""The fixed public normalisation of queries and urls (specification 1.5): a function of one record, for everybody.

Queries: Unicode NFKC, case folding, white space collapsed and stripped. Nothing here looks at another record; spelling,
stemming and merging of variants do not belong here, because they would couple users before the noise.

There are two ways to the same result. `normalise_text` and `normalise_url` are the reference. Pure ASCII strings,
nearly all of an English log, are normalised by the macros `normalise_ascii` and `normalise_url_ascii` of `sql/log/`;
the distinct others go through the reference once, into a table to join with (`Engine.mapped_table`).
"""

from __future__ import annotations

import re
import unicodedata

from qlog_assets.storage.engine import Engine

MACROS = ("log/normalise_ascii", "log/normalise_url_ascii")

WHITESPACE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
"""What str.split() splits at."""
WHITESPACE_CLASS = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
"""The same as a pattern for DuckDB."""
URL_PARTS = re.compile(r"((?:[^/?#]*://)?[^/?#]*)(.*)", re.DOTALL)


def normalise_text(text: str) -> str:
    """NFKC, case folding, single spaces. Applying it twice changes nothing."""
    if text.isascii():
        return " ".join(text.lower().split())
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    # Folding may take a character apart that NFKC puts together again (U+01F0), and may make one that NFKC changes
    # (U+0345): what counts is that both together change nothing any more.
    while (folded := text.casefold()) != text and (composed := unicodedata.normalize("NFKC", folded)) != text:
        text = composed
    return " ".join(text.split())


def normalise_url(url: str) -> str:
    """Scheme and host case-folded, white space around it and slashes at its end removed; the rest is left as it is."""
    url = url.lstrip().rstrip(WHITESPACE + "/")
    parts = URL_PARTS.fullmatch(url)
    return url if parts is None else parts[1].casefold() + parts[2]


def install_macros(engine: Engine) -> None:
    """Make `normalise_ascii(raw)` and `normalise_url_ascii(raw)` known to an engine."""
    for name in MACROS:
        engine.macro(name)
