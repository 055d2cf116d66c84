"""What was done to session logs, in sentences for somebody who does not read formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.steered_words import expected_inventions, steered_cautions, steered_steps
from qlog_assets.report.account import Account, counted, join_words, one_user_words, suppression_words, survival

HOLDS = (
    "each with the noisy number of users behind it. A sequence is a few queries that many different users typed in the "
    "same order within one sitting; it is no record of any one person's sitting, and nobody can be followed from one "
    "row to the next: no user identifier, no time."
)

HOLDS_PAIRS = (
    "each with the noisy number of users behind it. A sequence is a pair of queries that were public before, from "
    "another release of the same month. How many users typed both is known from the noisy number alone: a few pairs "
    "were typed by nobody. No row is a record of any person: no user identifier, no time."
)


def account(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    over_release = parameters.get("domain", "open") != "open"
    by_weight = parameters.get("method") in ("weighted_gaussian", "steered")
    steered = by_weight and parameters["method"] == "steered"
    steps = ["Each query was normalised by a fixed public rule: Unicode NFKC, case folded, spaces collapsed."]
    cautions = []
    if "sessions" in tables:
        steps += _session_steps(parameters, over_release)
        cautions += _session_cautions(parameters)
    if "clicks" in tables:
        clicks = counted(int(parameters["clicks_per_user"]), "click", "different clicks")
        steps.append(f"Of each user's clicks, the first {clicks} of the month were kept.")
        cautions.append(f"Counts of clicks hear each user on at most {clicks}, the first of the month.")
    steps.append("For each item, the users who kept it were counted. No user counts twice for one item.")
    weighed = [name for name in tables if by_weight and not (over_release and name == "sessions")]
    steps += _choice_words(tables, [] if steered else weighed, weighed)
    if steered and weighed:
        steps += steered_steps(manifest)
        cautions += steered_cautions(manifest)
    steps.append(suppression_words(manifest))
    return Account(
        tuple(steps),
        tuple(cautions),
        _scales(manifest),
        (expected_inventions(manifest, weighed) if steered else {}) | (_inventions(manifest) if over_release else {}),
        counts_were_tested=not weighed,
        holds=HOLDS_PAIRS if over_release else HOLDS,
        one_user=one_user_words(_kept(manifest)),
    )


def _kept(manifest: Mapping[str, Any]) -> list[str]:
    """What was kept of each user at most."""
    chosen = SessionParameters(**manifest["parameters"])
    kept = {
        "sessions": counted(chosen.items_per_user, "sequence", "different sequences"),
        "clicks": counted(chosen.clicks_per_user, "click", "different clicks"),
    }
    return [kept[name] for name in manifest["tables"]]


def _session_steps(parameters: Mapping[str, Any], over_release: bool) -> list[str]:
    gap = counted(int(parameters["session_gap_minutes"]), "minute", "minutes")
    sessions = counted(int(parameters["sessions_per_user"]), "session", "sessions")
    queries = counted(int(parameters["queries_per_session"]), "query", "queries")
    taken = (
        "every ordered pair of its queries was"
        if parameters["items"] == "pairs"
        else "every ordered selection of two or more of its queries was"
    )
    listed = f"Queries that {parameters['domain']} does not hold were left out. " if over_release else ""
    collapsed = "A query typed again right after itself was taken once. " if parameters["collapse_repeats"] else ""
    return [
        f"Each user's searches were split into sessions wherever more than {gap} passed between two of them. A session "
        "that runs past midnight at the end of a month is two sessions, one of each month.",
        f"{listed}{collapsed}Of each user, the first {sessions} of two queries or more were kept, each cut to its "
        f"first {queries}. These rules look at that user's records alone.",
        f"Of each kept session, {taken} taken, whether other queries stood between them or not.",
    ]


def _session_cautions(parameters: Mapping[str, Any]) -> list[str]:
    queries = int(parameters["queries_per_session"])
    reading = "A sequence says that one query came later than another in a session, not that it came next."
    if parameters["items"] == "subsequences":
        reading += (
            " Parts of a longer sequence are rows of their own where they passed by themselves: adding up rows counts "
            "the same sittings more than once."
        )
    return [
        reading,
        f"What people searched after the first {queries:,} queries of a session, or in later sessions than those kept, "
        "is not in the counts. Counts are of users, never of sessions.",
    ]


def _choice_words(tables: Mapping[str, Any], weighed: Sequence[str], untested: Sequence[str]) -> list[str]:
    """How items were chosen by weights in one round, and how those whose printed count is the tested one."""
    words = []
    if weighed:
        words.append(
            f"Each user's items ({join_words(weighed)}) were given weights that together are the same for every user, "
            "random noise was added to the weight of each item, and the items above a threshold were chosen. Noisy "
            "numbers of users were then made for the chosen items; a user who holds many of them counts for less in "
            "each, and the numbers were scaled up for that."
        )
    least = [f"{name} from a noisy count of {tables[name]['threshold']:,}" for name in tables if name not in untested]
    if least:
        words.append(
            "Random whole numbers were added to the counts, once, and items were printed where the noisy count, which "
            f"is the one printed, reached a threshold: {join_words(least)}."
        )
    return words


def _scales(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The scales of two-sided geometric noise, by table; Gaussian noise has none."""
    if manifest["variant"] == "modern":
        chosen = SessionParameters(**manifest["parameters"])
        return {"sessions": float(chosen.pair_scale)} if chosen.over_release else {}
    names = {"sessions": "session_scale", "clicks": "click_scale"}
    return {table: float(Fraction(str(manifest["parameters"][names[table]]))) for table in manifest["tables"]}


def _inventions(manifest: Mapping[str, Any]) -> dict[str, float]:
    """At most how many pairs are expected that nobody typed: all pairs of the domain are taken for such."""
    queries = sum(pool["rows"] for pool in manifest["pools"] if pool["kind"] == "releases")
    threshold = manifest["tables"]["sessions"]["threshold"]
    return {"sessions": queries * (queries - 1) * survival(_scales(manifest)["sessions"], threshold)}
