"""What was done to make a sanitized log, in sentences for somebody who does not read formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qlog_assets.mechanisms.steered_words import steered_steps
from qlog_assets.report.account import Account, counted, one_user_words, suppression_words

HOLDS = (
    "in the shape of a search log. Its users never lived: each is a number from 1 on, made up by chance from noisy "
    "statistics. No row is a record of any person, and no made-up user stands for a real one."
)
OBJECTIVES = {
    "output_size": "Each named pair was given events in proportion to its noisy number of users.",
    "frequent_pairs": "Named pairs that are frequent by their noisy numbers of users were given events so that their "
    "shares are as near to those as whole numbers come; the others share the rest.",
    "diversity": "Every named pair was given one event, the most frequent first, before any was given another.",
}


def account(manifest: Mapping[str, Any]) -> Account:
    parameters = manifest["parameters"]
    linked = parameters.get("association_share") is not None
    pairs = counted(int(parameters["pairs_per_user"]), "pair", "different pairs")
    users = counted(int(parameters["synthetic_users"]), "user", "users")
    asked = parameters.get("asked_size")
    size = (
        "as many events as their clicks come to"
        if asked is None
        else counted(int(asked), "event", "events") + " in all"
    )
    steps = [
        "Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each real user's pairs of a query and a clicked address, at most {pairs} of the month were kept, by a "
        "rule that looks at that user's records alone.",
        *_naming_words(manifest),
        "How many users kept 1 pair, 2 pairs and so on was counted, and random whole numbers were added to these "
        "counts. This costs ε.",
    ]
    if linked:
        steps.append(
            "How many users kept two of the named pairs together was counted, random whole numbers were added, and two "
            "pairs count as going together where the noisy number reached a threshold. This costs ε and δ."
        )
    steps += [
        f"From these noisy numbers alone, {users} were made up, with {size}. {OBJECTIVES[parameters['objective']]} "
        "Nothing from here on costs anything: the log was not looked at again.",
        _dealing_words(linked),
        suppression_words(manifest),
    ]
    return Account(
        tuple(steps),
        _cautions(linked, asked is not None, parameters["objective"]),
        counts_were_tested=False,
        holds=HOLDS,
        one_user=_one_user_words(pairs, int(parameters["pairs_per_user"]), linked),
    )


def _one_user_words(pairs: str, pairs_per_user: int, linked: bool) -> str:
    kept = [f"{pairs} of a query and an address", "one number of pairs per user"]
    if linked:
        kept.append(counted(pairs_per_user * (pairs_per_user - 1) // 2, "two pairs together", "two pairs together"))
    return one_user_words(kept)


def _naming_words(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    method = manifest["parameters"]["method"]
    if method == "steered":
        return (*steered_steps(manifest), "Naming and counting pairs costs ε and δ.")
    if method == "weighted_gaussian":
        return (
            "Each user's pairs were given weights that together are the same for every user, random noise was added to "
            "the weight of each pair, and the pairs above a threshold were named. Noisy numbers of users were then "
            "made for the named pairs. This costs ε and δ.",
        )
    return (
        "For each pair, the users who kept it were counted, random whole numbers were added to the counts, and the "
        "pairs whose noisy count reached a threshold were named. This costs ε and δ.",
    )


def _dealing_words(linked: bool) -> str:
    if linked:
        return (
            "The events were dealt to the made-up users, who got events in proportion to a number of pairs drawn from "
            "the noisy numbers: the first by lot, each next one, by the noisy share of users who hold both and as long "
            "as there were any left, among the pairs that go with the one before it, and otherwise by lot."
        )
    return (
        "The events were dealt by lot to the made-up users, who got events in proportion to a number of pairs drawn "
        "from the noisy numbers."
    )


def _cautions(linked: bool, asked: bool, objective: str) -> tuple[str, ...]:
    shares = "" if objective == "diversity" else ", and how often compared with each other"
    together = (
        "Which pairs one user has together follows the real log only from one pair to the next, and only where many "
        "users hold both; anything else that the rows of one made-up user seem to say together is chance."
        if linked
        else "Which pairs one user has together is chance: nothing about that was taken from the real log. Do not "
        "study sessions, profiles or what searches go together with this log."
    )
    size = (
        "The number of events was asked for and says nothing about the real log."
        if asked
        else "The number of events follows from the number of made-up users and says nothing about the size of the "
        "real log."
    )
    return (
        "These users never lived. The number of users was chosen beforehand and says nothing about how many there are.",
        together,
        f"Kept, up to noise: which addresses many users clicked after which queries{shares}. Not kept: times, order, "
        "searches without a click, rare pairs, how often one user clicked the same address: a count above 1 is chance, "
        "and a user with the same pair twice has fewer different ones.",
        size,
    )
