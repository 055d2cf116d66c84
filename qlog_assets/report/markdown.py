"""Numbers, losses and tables as Markdown, for generated pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from qlog_assets.errors import QlogError
from qlog_assets.privacy.bounds import at_most
from qlog_assets.privacy.guarantee import PrivacyLoss


def finite(found: PrivacyLoss | None) -> PrivacyLoss:
    """A loss that an example relies on."""
    if found is None:
        raise QlogError("an example on the page has no finite loss")
    return found


def loss(found: PrivacyLoss | None) -> str:
    """(ε, δ) in print, or `none`."""
    return "none" if found is None else f"({bound(found.epsilon)}, {bound(found.delta)})"


def bound(value: Fraction | float, digits: int = 4) -> str:
    """An upper bound, rounded up, without an exponent where that is readable."""
    return at_most(value, digits).replace("e-0", "e-").replace("e+0", "e")


def number(value: Fraction | float) -> str:
    """A number that bounds nothing, such as a scale: four significant digits."""
    return f"{float(value):.4g}".replace("e-0", "e-").replace("e+0", "e")


def plain(value: object) -> str:
    """A default in print."""
    if value is None:
        return "off or derived"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
