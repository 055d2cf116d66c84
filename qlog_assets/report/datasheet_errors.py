"""What the datasheet says of errors: how large the noise on a table's counts is, and how likely a row is to be missing.

From the manifest's facts of one table to sentences and the rows of a grid; Dagster's pages show the same. Releases of
versions that did not state their noise have none of this on their pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qlog_assets.report.account import join_words
from qlog_assets.report.datasheet_numbers import Numbers
from qlog_assets.report.table_noise import Reach, TableNoise
from qlog_assets.report.tables import ERROR_COLUMN

SIZES = (10, 20, 50, 100, 200, 500)
"""Of how many users counts are shown with their errors."""
SUMMARY_COLUMNS = (
    ("Table", "label"),
    ("Standard deviation of the noise, in users", "number"),
    ("Half of all noise within", "number"),
    ("19 of 20 within", "number"),
    ("Least printed count", "number"),
    ("Rows from noise alone", "number"),
)


@dataclass(frozen=True)
class ToldNoise:
    """What is said of one table: its noise in a few words, sentences, and a grid with a row for each size."""

    caption: str
    sentences: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]


def tell_noise(facts: Mapping[str, Any], numbers: Numbers) -> ToldNoise | None:
    """The error of a table's counts, from what the manifest says of the table; None where it does not say."""
    if "noise" not in facts:
        return None
    noise = TableNoise.from_json(facts["noise"])
    chances = _chances(noise, facts)
    heads = ("Number of users", "Standard error, at least" if noise.by_row else "Standard error", *chances)
    rows = tuple(
        (
            f"{users:,}",
            numbers.relative(noise.deviation / users),
            *(numbers.chance(chances[head][place]) for head in chances),
        )
        for place, users in enumerate(SIZES)
    )
    return ToldNoise(
        _caption(noise, numbers),
        (_size_words(noise, numbers), _missing_words(noise)),
        tuple((head, "number") for head in heads),
        rows,
    )


def summarise_noise(name: str, facts: Mapping[str, Any], invented: float, numbers: Numbers) -> tuple[str, ...]:
    """The table's row among those of all tables, under SUMMARY_COLUMNS."""
    noise = TableNoise.from_json(facts["noise"])
    least = "from " if noise.by_row else ""
    return (
        name,
        least + numbers.within(noise.deviation),
        f"{least}±{numbers.within(noise.within(0.5))}",
        f"{least}±{numbers.within(noise.within(0.95))}",
        f"{facts['threshold']:,}",
        numbers.invented(invented),
    )


def group_noise(told: Mapping[str, ToldNoise]) -> list[tuple[str, ToldNoise]]:
    """What is said of each title's noise, once where the same is said of several: their titles joined."""
    together: dict[ToldNoise, list[str]] = {}
    for title, noise in told.items():
        follows = noise in together
        together.setdefault(noise, []).append(title[:1].lower() + title[1:] if follows else title)
    return [(join_words(titles), noise) for noise, titles in together.items()]


def _caption(noise: TableNoise, numbers: Numbers) -> str:
    if noise.by_row:
        return f"The column {ERROR_COLUMN} has the standard deviation of the noise in each count."
    return f"Standard deviation of the noise in a count: {numbers.within(noise.deviation)} users."


def _size_words(noise: TableNoise, numbers: Numbers) -> str:
    deviation = numbers.within(noise.deviation)
    if noise.by_row:
        return (
            f"Every count has random noise in it ({noise.law}). How much differs by row: the column {ERROR_COLUMN} has "
            f"the standard deviation of each. The least is {deviation} users."
        )
    cut = "" if noise.largest is None else f", never more than {noise.largest:,} either way"
    return f"Every count has random noise in it, with a standard deviation of {deviation} users ({noise.law}{cut})."


def _missing_words(noise: TableNoise) -> str:
    among = f" This is said of {noise.among}: nothing else can be a row." if noise.among else ""
    if noise.tested:
        return (
            "The printed count is the one that was tested against the threshold, so the chance that a row is missing "
            f"follows from the noise alone.{among}"
        )
    words = (
        "What is printed was chosen first, by weights with noise of their own, and was counted afterwards: a small "
        "count can be printed, and a larger one be missing. Users who hold many items count for less in each, and the "
        f"counts are scaled up for that: a further error, whose size only the log could tell.{among}"
    )
    if not noise.reaches:
        return words
    first, *others = [(f"{reach.even_users:,}", _holding(reach)) for reach in noise.reaches]
    needs = [f"{first[0]} users did it who {first[1]}", *(f"{users} users who {holding}" for users, holding in others)]
    bounds = (
        "only these bounds of the chance are known"
        if any(reach.items > 1 for reach in noise.reaches)
        else "of users who hold more the chance is not known"
    )
    return (
        f"{words} It is at least as likely as not that something is printed if {', or '.join(needs)}. How many items "
        f"people hold is private, so {bounds}."
    )


def _holding(reach: Reach) -> str:
    listed = " and it is on a public list" if reach.listed else ""
    return ("hold nothing else" if reach.items == 1 else f"hold {reach.items:,} items each") + listed


def _chances(noise: TableNoise, facts: Mapping[str, Any]) -> dict[str, list[float]]:
    """The chances that an item of each size is missing, by what they are the chances of."""
    if not noise.tested:
        return {
            f"Missing, if they {_holding(reach)}": [reach.chance_missing(users) for users in SIZES]
            for reach in noise.reaches
        }
    threshold, outside = facts["threshold"], facts["threshold_outside_pool"]
    if outside is None:
        # What can be a row is public where it is named, and is then looked at whether anybody did it or not.
        return {"Chance that it is missing": _of_sizes(noise, threshold, only_if_held=not noise.among)}
    return {
        "Missing, if on a public list": _of_sizes(noise, threshold, only_if_held=False),
        "Missing, if on none": _of_sizes(noise, outside),
    }


def _of_sizes(noise: TableNoise, threshold: int, *, only_if_held: bool = True) -> list[float]:
    return [noise.chance_missing(users, threshold, only_if_held=only_if_held) for users in SIZES]
