"""What a mechanism did to the data, in sentences for somebody who does not read formulas. One account a mechanism.

Everything is derived from the manifest, which is public: limits, noise scales, thresholds, and how many rows the noise
alone is expected to put into a table. A mechanism without an account of its own is told in general terms. No HTML here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Account:
    """The steps in order, what a reader must mind, and per table the noise scale and the expected invented rows."""

    steps: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    noise_scales: Mapping[str, float] = field(default_factory=dict)
    expected_inventions: Mapping[str, float] = field(default_factory=dict)
    counts_were_tested: bool = True
    """Whether a row is printed because of the very count that is printed with it."""


def account(manifest: Mapping[str, Any]) -> Account:
    """The account of the manifest's mechanism."""
    known = {"safelog": _safelog, "zealous": _zealous}
    if manifest["mechanism"] in known:
        return known[manifest["mechanism"]](manifest)
    return Account(
        steps=(
            "What one user adds to the statistics was limited before anything was counted.",
            *(f"{part['name'].capitalize()}: {part['sentence']}" for part in manifest["guarantee"]["parts"]),
            "Random noise was added once to the counts, and what stayed below a threshold was left out.",
            _suppression(manifest),
        )
    )


def survival(scale: float, at_least: int) -> float:
    """The probability that two-sided geometric noise of this scale reaches a value; for words, not for decisions."""
    decay = math.exp(-1 / scale)
    if at_least <= 0:
        return 1 - decay ** (1 - at_least) / (1 + decay)
    return decay**at_least / (1 + decay)


def _safelog(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    names = {"queries": "selection_scale", "clicks": "click_scale", "transitions": "transition_scale"}
    scales = {
        table: float(Fraction(str(parameters[name])))
        for table, name in names.items()
        if table in tables and parameters.get(name) is not None
    }
    queries = int(parameters["queries_per_user"])
    kept = [_some(queries, "different query", "different queries")]
    if "clicks" in tables:
        kept.append(
            _some(int(parameters["clicks_per_user"]), "different clicked address", "different clicked addresses")
        )
    if "transitions" in tables:
        kept.append(
            _some(queries - 1, "different step from one query to the next", "different steps from query to query")
        )
    steps = [
        "Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each user, only the first {_joined(kept)} of the month were kept. Whatever else the user did that month "
        "has no influence on anything here.",
        "For each item, the users who hold it were counted. No user counts twice for one item.",
        "Random whole numbers from the operating system's entropy were added to the counts, once. The published count "
        "is the one that was tested; the noise is never drawn again for the same data.",
        _thresholds(manifest),
        _suppression(manifest),
    ]
    cautions = [
        f"A user's first {_some(queries, 'query', 'queries')} of the month "
        f"{'counts' if queries == 1 else 'count'}, so the beginning of the month weighs more than its end, and very "
        "active users weigh no more than others. Counts are of users, never of searches.",
    ]
    if len(tables) > 1:
        cautions.append("Clicks and transitions are given for queries of the table of queries only.")
    return Account(tuple(steps), tuple(cautions), scales, _inventions(manifest, scales))


def _zealous(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    items, method = int(parameters["items_per_user"]), str(parameters["method"])
    in_two_steps = manifest["variant"] == "modern" and method in ("weighted_gaussian", "sips")
    if in_two_steps:
        rounds = "three rounds" if method == "sips" else "one round"
        chosen = (
            f"In {rounds}, each user's items were given weights that together are the same for every user, random "
            "noise was added to the weight of each item, and the items above a threshold were chosen. Noisy numbers of "
            "users were then made for the chosen items; a user who holds many of them counts for less in each, and the "
            "numbers were scaled up for that."
        )
    else:
        least = [f"{name} from a noisy count of {table['threshold']:,}" for name, table in tables.items()]
        chosen = (
            "Random whole numbers were added to the counts, once, and items were printed where the noisy count, which "
            f"is the one printed, reached a threshold: {_joined(least)}."
        )
    steps = (
        "Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each user, at most {_some(items, 'different item', 'different items')} of each kind "
        f"({_joined(list(tables))}) were kept, chosen by a public rule that looks at that user's records alone.",
        "For each item, the users who kept it were counted. No user counts twice for one item.",
        chosen,
        _suppression(manifest),
    )
    cautions = (
        f"Users of more than {_some(items, 'item', 'items')} were heard on {items:,} of them: counts of what active "
        "users do are too low. Counts are of users, never of searches.",
        "The tables were made one by one: a click may belong to a query that the table of queries does not hold.",
    )
    if manifest["variant"] == "sound":
        scale = items * len(tables) / float(Fraction(str(parameters["epsilon"])))
        return Account(steps, cautions, dict.fromkeys(tables, scale))
    return Account(steps, cautions, counts_were_tested=not in_two_steps)


def _thresholds(manifest: Mapping[str, Any]) -> str:
    queries = manifest["tables"]["queries"]
    words = (
        f"A query of the public list was printed where its noisy count reached {queries['threshold']:,}, whether or "
        "not anybody typed it; "
    )
    if manifest["guarantee"]["delta"] == 0:
        words += "a query outside the list was never printed."
    else:
        outside = queries["threshold_outside_pool"] or queries["threshold"]
        words += f"any other query only where somebody typed it and its noisy count reached {outside:,}."
    others = [
        f"{name} from a noisy count of {table['threshold']:,}"
        for name, table in manifest["tables"].items()
        if name != "queries"
    ]
    return words + (f" Likewise {_joined(others)}." if others else "")


def _suppression(manifest: Mapping[str, Any]) -> str:
    suppressed = sum(table["suppressed_rows"] for table in manifest["tables"].values())
    rows = "No row was" if suppressed == 0 else f"{suppressed:,} row{' was' if suppressed == 1 else 's were'}"
    return (
        "Rows that look like an e-mail address, a payment card, a phone number or a US social security number, and "
        f"were not in a public list, were then left out. {rows} left out for that reason."
    )


def _inventions(manifest: Mapping[str, Any], scales: Mapping[str, float]) -> dict[str, float]:
    """At most how many rows of a table are expected to stand for something nobody did: noise above the threshold.

    An upper bound that public facts allow: it takes every item of the public domain for one that nobody touched.
    """
    tables = manifest["tables"]
    sizes = {
        kind: sum(pool["rows"] for pool in manifest["pools"] if (pool["kind"] == "url_list") == (kind == "urls"))
        for kind in ("queries", "urls")
    }
    released = tables["queries"]["rows"] + tables["queries"]["suppressed_rows"]
    cells = {"queries": sizes["queries"], "clicks": released * sizes["urls"], "transitions": released * (released - 1)}
    # The counts of queries are shifted by min_users - 1 when they are printed; the noise was tested without that.
    shift = {"queries": int(manifest["parameters"].get("min_users", 1)) - 1}
    return {
        table: cells[table] * survival(scale, tables[table]["threshold"] - shift.get(table, 0))
        for table, scale in scales.items()
    }


def _some(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _joined(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
