"""What CrowdLogging did to the data, in sentences for somebody who does not read formulas, and whom people trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from qlog_assets.report.account import Account, counted, join_words, one_user_words, suppression_words

TRUST = (
    "The guarantee holds towards everybody who reads this release. It does not hold towards the collector, which "
    "received the reports: it saw how often each encrypted tag came, and the text and the true number of users of what "
    "enough people sent. It saw no sender.",
    "The first relay knew who took part, and no relay could read a report. The collector and all relays of a person's "
    "route together could tell which tags that person sent; one relay that keeps to its task prevents it.",
    "The server of random numbers issued the tokens and helped to make the tags, without seeing whose or of what. "
    "Together with the collector it could, until it deleted the month's key, have tested guesses: whether a text was "
    "sent, and how often, however few sent it; and with all relays of a route, too, by whom. The reports were opened "
    "after the key was deleted. The collector alone could test none, because it could not make the tokens that answers "
    "cost; had it accounts of its own, or accounts that the server of random numbers invented for it, it could test as "
    "many guesses as these may send reports.",
    "A person's guarantee takes that person's own programs to follow the protocol, and nobody else's. Wrong reports "
    "were set against right ones, and texts of which too little was left were dropped. Somebody with many accounts can "
    "raise or lower the count of a text, but readers of this release learn no more of another person than the "
    "guarantee says.",
)
"""Who must not collude, and what they would learn together."""
MADE_FROM = "computed from reports that people's own machines sent"
HOLDS = (
    "each with the noisy number of users behind it. It holds no record of any person: no user identifier, no time, no "
    "sequence of one user's searches."
)


def account(manifest: Mapping[str, Any]) -> Account:
    parameters, tables = manifest["parameters"], manifest["tables"]
    artifacts, shares = int(parameters["artifacts_per_user"]), int(parameters["share_threshold"])
    least = [f"{name.replace('_', ' ')} from a noisy count of {table['threshold']:,}" for name, table in tables.items()]
    kinds = join_words([name.replace("_", " ") for name in tables])
    steps = (
        "No log was collected. Each person's searches stayed on that person's machine; a program there, which asked "
        "first, sent encrypted reports of a few of them.",
        "Each text was normalised there by a fixed public rule: Unicode NFKC, case folded, spaces collapsed.",
        f"Of each user, the {counted(artifacts, 'most recent one', 'most recent different ones')} of each kind "
        f"({kinds}) were reported, filled up with empty reports, so that everybody sent as many. Each report cost a "
        f"one-time token, of which every account got {artifacts:,} per kind, and which does not tell whose it is.",
        f"A report could be read once {counted(shares, 'user', 'users')} had sent the same, and the users who sent it "
        "were counted. No user counts twice for one.",
        "Random whole numbers were added to the counts, once, and rows were printed where the noisy count, which is "
        f"the one printed, reached a threshold: {join_words(least)}. That counts below {shares:,} could not be "
        "read is paid for by that threshold.",
        suppression_words(manifest),
    )
    cautions = (
        *TRUST,
        f"Users of more than {counted(artifacts, 'text', 'texts')} of a kind were heard on the last {artifacts:,}: "
        "counts of what active users do are too low. Counts are of users, never of searches, and of those users alone "
        "who took part.",
        "The tables were made one by one: a click may belong to a query that the table of queries does not hold.",
    )
    heard = one_user_words([f"{counted(artifacts, 'text', 'different texts')} of each kind ({kinds})"])
    told = Account(steps, cautions, holds=HOLDS, made_from=MADE_FROM, one_user=heard)
    if manifest["variant"] == "sound":
        scale = artifacts * len(tables) / float(Fraction(str(parameters["epsilon"])))
        return replace(told, noise_scales=dict.fromkeys(tables, scale))
    return told
