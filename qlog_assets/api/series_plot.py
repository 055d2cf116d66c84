"""A series as a picture: counts with error bars over the months, PNG or SVG. Drawn with matplotlib, imported on use.

Public numbers only. A month without a release is a gap in its line, and one where nothing is printed a span from zero
up to what that means.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from qlog_assets.api.reading import public_home
from qlog_assets.api.series import Asked, SeriesPoint
from qlog_assets.errors import QlogError
from qlog_assets.months import Month, months_between
from qlog_assets.settings import home_from_environment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = {".png": "png", ".svg": "svg"}
COLOURS = ("#1b6ca8", "#c8553d", "#2e7d32", "#7b1fa2", "#8d6e00")
MARKERS = ("o", "s", "^", "D", "v")
MOST_LABELS = 18
LEGEND_WIDTH = 34
GAPS = ("withdrawn", "no release", "no such table")


def refuse_plot(path: Path, home: Path | None) -> None:
    """Raise, before any work, where a picture could not be written, or does not belong: among releases or private data.

    `home` is where releases are read, if it is not the warehouse of QLOG_HOME.
    """
    if path.suffix.lower() not in FORMATS:
        raise QlogError(f"--plot {path}: name a file that ends in .png or .svg")
    if not path.parent.is_dir():
        raise QlogError(f"--plot {path}: its directory is not there: make it first")
    for kept in {public_home(home), home_from_environment()}:
        if path.parent.resolve().is_relative_to(kept):
            raise QlogError(f"--plot {path}: {kept} holds releases or what is private: name a place outside it")
    if os.path.lexists(path):
        raise QlogError(f"--plot {path}: is there already: name another file, or remove it")


def write_plot(path: Path, asked: Asked, points: Sequence[SeriesPoint]) -> None:
    """Write the picture whole or not at all, and in the place of nothing."""
    drawn = draw_series(asked, points, FORMATS[path.suffix.lower()])
    scratch = path.with_name(f".qlog-{secrets.token_hex(8)}")
    try:
        opened = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            with os.fdopen(opened, "wb") as stream:
                stream.write(drawn)
            # Not a rename, which would take the place of a file that came in the meantime.
            os.link(scratch, path)
        finally:
            scratch.unlink()
    except FileExistsError:
        raise QlogError(f"--plot {path}: is there already: name another file, or remove it") from None
    except OSError as error:
        raise QlogError(f"--plot {path}: cannot be written ({os.strerror(error.errno or 0)})") from None


def draw_series(asked: Asked, points: Sequence[SeriesPoint], format: str) -> bytes:
    """The picture's bytes; the same for the same points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    months = months_between(Month(min(point.month for point in points)), Month(max(point.month for point in points)))
    places = {str(month): place for place, month in enumerate(months)}
    figure, axis = pyplot.subplots(figsize=(max(6.4, min(14, 3 + 0.45 * len(months))), 4.2))
    names = list(dict.fromkeys(point.mechanism for point in points))
    for number, name in enumerate(names):
        # A little apart, so that the error bars of two mechanisms do not hide each other.
        shift = 0.12 * (number - (len(names) - 1) / 2)
        _draw_mechanism(axis, [point for point in points if point.mechanism == name], places, number, shift)
    every = -(-len(months) // MOST_LABELS)
    axis.set_xticks(list(places.values())[::every], list(places)[::every], rotation=45, ha="right")
    axis.set_xlim(-0.5, len(months) - 0.5)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("users (noisy), 19 of 20 errors within the bars")
    axis.set_title(title_of(asked), fontsize=11, parse_math=False)
    axis.grid(axis="y", color="#dddddd")
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    page = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "qlog"}):
        figure.savefig(
            page, format=format, dpi=120, bbox_inches="tight", metadata={"Date": None} if format == "svg" else {}
        )
    pyplot.close(figure)
    return page.getvalue()


def title_of(asked: Asked) -> str:
    """What is counted, in a title that holds nothing that could not be drawn."""
    whole = "  →  ".join(asked.key.values())
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in whole)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


def _draw_mechanism(
    axis: Axes, points: Sequence[SeriesPoint], places: dict[str, int], number: int, shift: float
) -> None:
    """One mechanism: a mark for each variant, a line through months that follow one another and were made alike."""
    name, colour = points[0].mechanism, COLOURS[number % len(COLOURS)]
    shown = [point for point in points if point.state == "printed"]
    for before, after in pairwise(points):
        if before.state == after.state == "printed" and before.made == after.made:
            across = [places[before.month] + shift, places[after.month] + shift]
            axis.plot(across, [before.users or 0, after.users or 0], color=colour, linewidth=1, alpha=0.6)
    for mark, variant in enumerate(dict.fromkeys(point.variant for point in shown)):
        of_variant = [point for point in shown if point.variant == variant]
        users = [point.users or 0 for point in of_variant]
        ends = [
            (count if point.low is None else point.low, count if point.high is None else point.high)
            for count, point in zip(users, of_variant, strict=True)
        ]
        below = [count - low for count, (low, _) in zip(users, ends, strict=True)]
        above = [high - count for count, (_, high) in zip(users, ends, strict=True)]
        axis.errorbar(
            [places[point.month] + shift for point in of_variant],
            users,
            yerr=[below, above],
            fmt=MARKERS[mark % len(MARKERS)],
            color=colour,
            capsize=3,
            label=f"{name} {variant}",
        )
    unprinted = [point for point in points if point.state == "not printed" and point.fewer_than_about is not None]
    if unprinted:
        told = next((point.condition for point in unprinted if point.condition), "")
        axis.bar(
            [places[point.month] + shift for point in unprinted],
            [point.fewer_than_about or 0 for point in unprinted],
            width=0.1,
            color=colour,
            alpha=0.3,
            label="\n".join([f"{name}: not printed,", "fewer users than about the bar", *wrap(told, LEGEND_WIDTH)]),
        )
    # Not a mark at zero: nothing is known of these months.
    gaps = [point for point in points if point.state in GAPS]
    for place, point in enumerate(gaps):
        at, label = places[point.month] + shift, f"{name}: no count\n(withdrawn, or no release)"
        axis.axvspan(
            at - 0.05,
            at + 0.05,
            facecolor="none",
            edgecolor=colour,
            hatch="////",
            alpha=0.35,
            linewidth=0,
            label=label if place == 0 else None,
        )
