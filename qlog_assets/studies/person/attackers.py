"""What the papers' attackers learn of one person from one system, as rows with a sentence that needs no formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.studies.person.person import Person
from qlog_assets.studies.person.seen import Seen
from qlog_assets.studies.study import Row

RERUNS = 25
"""How often the same release is drawn again by whoever could have it drawn again."""


@dataclass(frozen=True)
class Examined:
    """One system with and without a person, and the same with an attacker's accounts in the log."""

    person: Person
    guarantee: Guarantee
    present: Seen
    absent: Seen
    attacked_present: Seen
    attacked_absent: Seen
    accounts: int
    accounts_needed: int

    @property
    def allowed(self) -> float | None:
        """How often anybody can be right at most about whether the person was in the log, by the proven guarantee."""
        loss = self.guarantee.proven
        if loss is None:
            return None
        odds = math.exp(float(loss.epsilon))
        return min(1.0, (odds + float(loss.delta)) / (1 + odds))

    @property
    def is_exact(self) -> bool:
        return is_exact(self.guarantee)


def is_exact(guarantee: Guarantee) -> bool:
    """Whether a system draws no noise: whatever draws some claims something of it."""
    return guarantee.claimed is None and guarantee.proven is None


def be_right(with_person: float, without: float) -> float:
    """How often somebody is right who sees whether an event happened and must say whether the person was there.

    Both are as likely beforehand: a coin is right half of the time.
    """
    return (1 + abs(with_person - without)) / 2


def promise_row(examined: Examined) -> Row:
    """What a system promises everybody, whoever they are."""
    guarantee = examined.guarantee
    told = {name: loss and _loss(loss.as_json()) for name, loss in _losses(guarantee)}
    if told["proven"] is not None:
        promise = f"proven {told['proven']}"
        means = (
            "whatever is printed would have been printed with almost the same probability without this person: nobody "
            f"is right more often than {_percent(examined.allowed)} about whether the person was there"
        )
    elif told["claimed"] is not None:
        promise = f"claimed {told['claimed']}; the claim fails"
        means = f"the paper's promise does not hold, because {guarantee.gaps[0]}" if guarantee.gaps else "nothing holds"
    else:
        promise, means = "none", "there is no noise, and no promise to anybody"
    return {
        "may_be_published": guarantee.publishable,
        "promise": promise,
        "allowed": examined.allowed,
        "sentence": f"{means[0].upper()}{means[1:].removesuffix('.')}.",
    }


def attack_rows(examined: Examined) -> list[Row]:
    """One row per attacker."""
    return [_accounts(examined), _dictionary(examined), _reruns(examined), _linking(examined)]


def _accounts(examined: Examined) -> Row:
    present, absent = examined.attacked_present, examined.attacked_absent
    what = "everything that the person typed" if present.links_users else "one session of the person"
    fewer = ""
    if examined.accounts < examined.accounts_needed:
        fewer = f" (for the threshold it would take {examined.accounts_needed:,})"
    sentence = (
        f"Made-up accounts, {examined.accounts:,} of them{fewer}, repeat {what}, with a query that hardly anybody "
        f"types. It is printed in {_percent(present.guess_confirmed)} of releases with the person and in "
        f"{_percent(absent.guess_confirmed)} without."
    )
    return _row(examined, "k - 1 accounts", present.guess_confirmed, absent.guess_confirmed, sentence)


def _dictionary(examined: Examined) -> Row:
    present, absent, own = examined.present, examined.absent, len(examined.person.own)
    average = [sum(seen.own) / seen.draws for seen in (present, absent)]
    sentence = (
        f"Somebody guesses all {own:,} queries that only this person typed and looks for them: of these, "
        f"{average[0]:.1f} are printed with the person and {average[1]:.1f} without."
    )
    return _row(examined, "dictionary", present.any_own, absent.any_own, sentence)


def _reruns(examined: Examined) -> Row:
    deviation = 0.0 if examined.is_exact else examined.present.deviation
    if deviation is None or not any(examined.present.counts.values()):
        sentence = "Hardly anything of the person's is printed twice: there is nothing to average."
        return _row(examined, "re-runs", None, None, sentence) | {"allowed": None}
    one, averaged = (count_told_apart(deviation, runs) for runs in (1, RERUNS))
    if deviation == 0:
        sentence = "Counts are exact: whoever knows the others' searches sees in one release whether one was added."
        return _row(examined, "re-runs", None, None, sentence, averaged)
    sentence = (
        f"A count moves by about {deviation:.1f} users from draw to draw. Whoever knows the others' searches is right "
        f"{_percent(one)} of the time with one release, and {_percent(averaged)} with {RERUNS} draws averaged: that is "
        "why a release is drawn once and served again."
    )
    # The bound is of one release: each further draw would cost as much again.
    return _row(examined, "re-runs", None, None, sentence, averaged) | {"allowed": None}


def _linking(examined: Examined) -> Row:
    present, absent = (sum(seen.linked) / seen.draws for seen in (examined.present, examined.absent))
    together = "with one printed user" if examined.present.links_users else "in one printed row"
    sentence = (
        f"Up to {max(examined.present.linked)} of the person's {len(examined.person.queries):,} queries stand together "
        f"{together}; without the person up to {max(examined.absent.linked)} would."
    )
    row = _row(examined, "linking", present, absent, sentence)
    return row | {"right": None, "allowed": None}


def _row(
    examined: Examined,
    attacker: str,
    with_person: float | None,
    without: float | None,
    sentence: str,
    right: float | None = None,
) -> Row:
    if with_person is not None and without is not None:
        right = be_right(with_person, without)
    return {
        "attacker": attacker,
        "with": with_person,
        "without": without,
        "right": right,
        "allowed": examined.allowed,
        "sentence": sentence,
    }


def count_told_apart(deviation: float, runs: int) -> float:
    """How often two counts that differ by one user are told apart from the mean of so many noisy ones."""
    return 1.0 if deviation == 0 else NormalDist().cdf(math.sqrt(runs) / (2 * deviation))


def _losses(guarantee: Guarantee) -> list[tuple[str, Any]]:
    return [("claimed", guarantee.claimed), ("proven", guarantee.proven)]


def _loss(numbers: dict[str, float]) -> str:
    return f"ε = {numbers['epsilon']:.3g}, δ = {numbers['delta']:.1g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
