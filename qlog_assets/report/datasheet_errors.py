"""What the datasheet says of errors: how large the noise on a table's counts is, and how likely a row is to be missing.

From the manifest's facts of one table to sentences and the rows of a grid; Dagster's pages show the same. Releases of
versions that did not state their noise have none of this on their pages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from qlog_assets.report.account import join_words
from qlog_assets.report.datasheet_numbers import Numbers
from qlog_assets.report.table_noise import GEOMETRIC, Reach, TableNoise, least_users
from qlog_assets.report.tables import ERROR_COLUMN

Said = TypeVar("Said", bound=Hashable)

SIZES = (10, 20, 50, 100, 200, 500)
"""Of how many users counts are shown with their errors."""
SUMMARY_COLUMNS = (
    ("Table", "label"),
    ("Standard error, in users", "number"),
    ("Half of all counts within", "number"),
    ("19 of 20 within", "number"),
    ("Printed as likely as not from", ""),
    ("Rows from noise alone", "number"),
)
EARLIER_SUMMARY_COLUMNS = (
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
    chances = chances_missing(noise, facts)
    made_up = facts["threshold"] is None
    heads = ("Number of users", "Standard error, at least" if noise.by_row else "Standard error", *chances)
    rows = tuple(
        (
            f"{users:,}",
            numbers.relative(noise.deviation / users),
            *(numbers.chance(chance(users)) for chance in chances.values()),
        )
        for users in SIZES
    )
    return ToldNoise(
        "" if made_up else _caption(noise, numbers),
        _made_up_words(noise, numbers) if made_up else (_size_words(noise, numbers), _missing_words(noise)),
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
        f"{least}±{_width(noise, 0.5, numbers)}",
        f"{least}±{_width(noise, 0.95, numbers)}",
        tell_threshold(facts),
        numbers.invented(invented),
    )


def summarise_noise_earlier(name: str, facts: Mapping[str, Any], invented: float, numbers: Numbers) -> tuple[str, ...]:
    """The table's row among those of all tables, under EARLIER_SUMMARY_COLUMNS."""
    noise = TableNoise.from_json(facts["noise"])
    least = "from " if noise.by_row else ""
    return (
        name,
        least + numbers.within(noise.deviation),
        f"{least}±{numbers.within(noise.nearly_within(0.5))}",
        f"{least}±{numbers.within(noise.nearly_within(0.95))}",
        f"{facts['threshold']:,}",
        numbers.invented(invented),
    )


def tell_error_of(count: int, facts: Mapping[str, Any], largest: float | None, numbers: Numbers) -> str:
    """How far off a count may be, for somebody who reads nothing else. `largest` is the largest standard error of the
    table's rows, where they differ."""
    noise = TableNoise.from_json(facts["noise"])
    most = noise.within(0.95)
    what = f"a count of {count:,}"
    if facts["threshold"] is None:
        what = f"the noisy number behind something that {count:,} users did"
    share = _share(_width(noise, 0.95, numbers), most, count, numbers)
    words = f"In 19 of 20 cases noise moves {what} by no more than {share}"
    if not noise.by_row:
        return f"{words}, in half of all cases by no more than {_width(noise, 0.5, numbers)}."
    if largest is None:
        return f"{words} where it is least, and by more elsewhere."
    if largest > noise.deviation:
        widest = most / noise.deviation * largest
        share = _share(numbers.within(widest), widest, count, numbers)
        words = f"{words} where it is least, and by no more than {share} where it is largest"
    return f"{words}. What holds for a row is about twice its {ERROR_COLUMN}."


def _width(noise: TableNoise, share: float, numbers: Numbers) -> str:
    """How far from 0 a share of the noise stays, in print: whole users where noise is whole."""
    width = noise.within(share)
    return f"{width:,}" if noise.law == GEOMETRIC else numbers.within(width)


def _share(told: str, users: float, count: int, numbers: Numbers) -> str:
    return f"{told} {'user' if users == 1 else 'users'} ({numbers.relative(users / count)})"


def tell_threshold(facts: Mapping[str, Any]) -> str:
    """From how many users on something is printed at least as likely as not: what the threshold comes to."""
    if "noise" not in facts:
        return "" if facts["threshold"] is None else f"a noisy count of {facts['threshold']:,}"
    chances = chances_missing(TableNoise.from_json(facts["noise"]), facts)
    found = [(least_users(chance, 0.5), _condition(head)) for head, chance in chances.items()]
    return "; ".join(f"{users:,} {'user' if users == 1 else 'users'}{condition}" for users, condition in found)


def _condition(head: str) -> str:
    """What a column of chances is about, as it ends a number of users."""
    _, _, condition = head.partition("Missing, if ")
    if not condition:
        return ""
    return f" who {condition.removeprefix('they ')}" if condition.startswith("they ") else f", {condition}"


def group_titles(said: Mapping[str, Said]) -> list[tuple[str, Said]]:
    """What is said of each title, once where the same is said of several: their titles joined."""
    together: dict[Said, list[str]] = {}
    for title, words in said.items():
        follows = words in together
        together.setdefault(words, []).append(title[:1].lower() + title[1:] if follows else title)
    return [(join_words(titles), words) for words, titles in together.items()]


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


def _made_up_words(noise: TableNoise, numbers: Numbers) -> tuple[str, ...]:
    """Of a table without counts, whose rows were made from noisy numbers of users that are not printed."""
    deviation = numbers.within(noise.deviation)
    least = "of at least" if noise.by_row else "of"
    return (
        "The table has no counts of users. It was made from noisy numbers of users, one for each item, whose noise has "
        f"a standard deviation {least} {deviation} users ({noise.law}). How often an item occurs follows its noisy "
        "number and is rounded to a whole number: a further error.",
        "An item whose noisy number stayed below the threshold occurs nowhere, and the chance of that follows from the "
        "noise alone."
        if noise.tested
        else _missing_words(noise),
    )


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


def chances_missing(noise: TableNoise, facts: Mapping[str, Any]) -> dict[str, Callable[[int], float]]:
    """From a number of users to the chance that what they did is missing, by what it is the chance of."""
    if not noise.tested:
        return {f"Missing, if they {_holding(reach)}": reach.chance_missing for reach in noise.reaches}
    threshold, outside = facts["threshold"] or 0, facts["threshold_outside_pool"]
    if outside is None:
        # What can be a row is public where it is named, and is then looked at whether anybody did it or not.
        return {"Chance that it is missing": _tested(noise, threshold, only_if_held=not noise.among)}
    return {
        "Missing, if on a public list": _tested(noise, threshold, only_if_held=False),
        "Missing, if on none": _tested(noise, outside),
    }


def _tested(noise: TableNoise, threshold: int, *, only_if_held: bool = True) -> Callable[[int], float]:
    return functools.partial(noise.chance_missing, threshold=threshold, only_if_held=only_if_held)
