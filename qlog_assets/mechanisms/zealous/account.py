"""What ZEALOUS did to the data, in sentences for somebody who does not read formulas."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.steered_words import expected_inventions, steered_cautions, steered_steps
from qlog_assets.report.account import Account, counted, join_words, one_user_words, suppression_words


def account(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    items, method = int(parameters["items_per_user"]), parameters.get("method")
    steered = manifest["variant"] == "modern" and method == "steered"
    in_two_steps = manifest["variant"] == "modern" and method in ("weighted_gaussian", "sips")
    if steered:
        chosen: tuple[str, ...] = steered_steps(manifest)
    elif in_two_steps:
        rounds = "three rounds" if method == "sips" else "one round"
        chosen = (
            f"In {rounds}, each user's items were given weights that together are the same for every user, random "
            "noise was added to the weight of each item, and the items above a threshold were chosen. Noisy numbers of "
            "users were then made for the chosen items; a user who holds many of them counts for less in each, and the "
            "numbers were scaled up for that.",
        )
    else:
        least = [f"{name} from a noisy count of {table['threshold']:,}" for name, table in tables.items()]
        chosen = (
            "Random whole numbers were added to the counts, once, and items were printed where the noisy count, which "
            f"is the one printed, reached a threshold: {join_words(least)}.",
        )
    kept = f"{counted(items, 'different item', 'different items')} of each kind ({join_words(list(tables))})"
    heard = one_user_words([kept])
    steps = (
        "Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each user, at most {kept} were kept, chosen by a public rule that looks at that user's records alone.",
        "For each item, the users who kept it were counted. No user counts twice for one item.",
        *chosen,
        suppression_words(manifest),
    )
    cautions = (
        f"Users of more than {counted(items, 'item', 'items')} were heard on {items:,} of them: counts of what active "
        "users do are too low. Counts are of users, never of searches.",
        "The tables were made one by one: a click may belong to a query that the table of queries does not hold.",
        *(steered_cautions(manifest) if steered else ()),
    )
    if manifest["variant"] == "sound":
        scale = items * len(tables) / float(Fraction(str(parameters["epsilon"])))
        return Account(steps, cautions, dict.fromkeys(tables, scale), one_user=heard)
    invented = expected_inventions(manifest, tables) if steered else {}
    return Account(steps, cautions, {}, invented, counts_were_tested=not in_two_steps and not steered, one_user=heard)
