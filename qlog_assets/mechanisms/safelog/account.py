"""What Safelog did to the data, in sentences for somebody who does not read formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.steered_words import expected_inventions as steered_inventions
from qlog_assets.mechanisms.steered_words import steered_cautions, steered_steps
from qlog_assets.privacy.steered import LISTED_FAKES
from qlog_assets.report.account import Account, counted, join_words, one_user_words, suppression_words, survival


def account(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    queries = int(parameters["queries_per_user"])
    kept = [counted(queries, "different query", "different queries")]
    if "clicks" in tables:
        kept.append(
            counted(int(parameters["clicks_per_user"]), "different clicked address", "different clicked addresses")
        )
    if "transitions" in tables:
        kept.append(
            counted(queries - 1, "different step from one query to the next", "different steps from query to query")
        )
    steps = [
        "Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each user, only the first {join_words(kept)} of the month were kept. Whatever else the user did that "
        "month "
        "has no influence on anything here.",
        "For each item, the users who hold it were counted. No user counts twice for one item.",
    ]
    cautions = [
        f"A user's first {counted(queries, 'query', 'queries')} of the month "
        f"{'counts' if queries == 1 else 'count'}, so the beginning of the month weighs more than its end, and very "
        "active users weigh no more than others. Counts are of users, never of searches.",
    ]
    if len(tables) > 1:
        cautions.append("Clicks and transitions are given for queries of the table of queries only.")
    if manifest["variant"] == "modern":
        return replace(_steered_account(manifest, steps, cautions), one_user=one_user_words(kept))
    names = {"queries": "selection_scale", "clicks": "click_scale", "transitions": "transition_scale"}
    scales = {
        table: float(Fraction(str(parameters[name])))
        for table, name in names.items()
        if table in tables and parameters.get(name) is not None
    }
    steps += [
        "Random whole numbers from the operating system's entropy were added to the counts, once. The published count "
        "is the one that was tested; the noise is never drawn again for the same data.",
        threshold_words(manifest),
        suppression_words(manifest),
    ]
    invented = expected_inventions(manifest, scales)
    return Account(tuple(steps), tuple(cautions), scales, invented, one_user=one_user_words(kept))


def _steered_account(manifest: Mapping[str, Any], steps: list[str], cautions: list[str]) -> Account:
    """The rest of the account where steered selection drew the tables, one after the other."""
    listed = (
        "A query of the public list got noise whether or not anybody typed it, and a lower threshold: about "
        f"{LISTED_FAKES} of them is expected to be here although nobody typed it."
    )
    in_order = "Clicks and transitions were drawn after the queries, for those that had been chosen."
    return Account(
        (
            *steps,
            *steered_steps(manifest),
            listed,
            *([in_order] if len(manifest["tables"]) > 1 else []),
            suppression_words(manifest),
        ),
        (*cautions, *steered_cautions(manifest)),
        expected_inventions=steered_inventions(manifest, manifest["tables"], listed="queries"),
        counts_were_tested=False,
    )


def threshold_words(manifest: Mapping[str, Any]) -> str:
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
    return words + (f" Likewise {join_words(others)}." if others else "")


def expected_inventions(manifest: Mapping[str, Any], scales: Mapping[str, float]) -> dict[str, float]:
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
