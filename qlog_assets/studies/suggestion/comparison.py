"""Every log of Table 5 and those that can be released: λ chosen, suggestions made, and scored on held-out people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.studies.measures.suggestion import READINGS, Reading
from qlog_assets.studies.measures.suggestion_scores import Answers, Questions, answered_by_all, score
from qlog_assets.studies.session_logs import (
    TESTED,
    TRAINED,
    TRIED,
    TRIED_FROM,
    HeldOutMonth,
    Log,
    SessionStudySettings,
    Tenths,
    cost,
    draw_variant,
    frequent_clicks,
    modern_parameters,
    sound_parameters,
)
from qlog_assets.studies.study import StudyWork, Tables

ORIGINAL, KA, DP_C, DP_S = "original", "KA", "DP_C", "DP_S"
PAPERS = (ORIGINAL, KA, DP_C, DP_S)
"""The logs of Table 5."""
PAPERS_LOGS, ALL_LOGS = "the paper's logs", "all logs"


class SuggestionSettings(SessionStudySettings):
    """What the comparison varies."""

    threshold: int = Field(20, ge=1)
    """K of k-anonymity and of the paper's draws."""
    test_sessions: int = Field(20_000, ge=1, le=10**7)
    """Sessions of held-out users that are tested. The paper's original log answers 18,475; with 3,000, KA and DP_C of a
    synthetic month differ by no more than chance."""


@dataclass(frozen=True)
class Compared:
    """A log under one reading of its sequences, with what is said of it."""

    name: str
    reading: Reading
    log: Log
    label: dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """What a log answered, and what is said of it."""

    name: str
    reading: Reading
    facts: dict[str, Any]
    answers: Answers


class Comparison:
    """The logs one after the other. What was made is kept for later steps; a study that goes on makes it anew."""

    def __init__(self, work: StudyWork) -> None:
        self.work = work
        self.settings: SuggestionSettings = work.settings
        self.groups: dict[str, Callable[[Tenths], list[Compared]]] = {
            "original": self._original,
            "k-anonymity": self._frequent,
            "printed": self._printed,
            "sound": self._variant("sound", sound_parameters(work.policy, work.settings)),
            "modern": self._variant("modern", modern_parameters(work.policy)),
        }
        self._kept: dict[tuple[Any, ...], Any] = {}

    def choose(self, group: str) -> Tables:
        """The λ of each log of a group."""
        found = self._weights(group)
        return {
            "weights": [{"log": name, "reading": reading, "lambda": found[name, reading]} for name, reading in found]
        }

    def measure(self, group: str) -> Tables:
        """The rows of Table 5 that a group of logs fills: each over the prefixes that it answers itself."""
        prefixes = self._prefixes(TESTED)
        return {
            "suggestion": [
                {"log": each.name, "reading": each.reading, **each.facts}
                | asdict(score(prefixes, each.answers, each.answers.answered))
                for each in self._answered(group)
            ]
        }

    def compare(self) -> Tables:
        """The same measures on the prefixes that every log answers: of the paper's logs, and of all."""
        found = [each for group in self.groups for each in self._answered(group)]
        prefixes, rows = self._prefixes(TESTED), []
        papers = [each for each in found if each.name in PAPERS]
        for among, chosen in ((PAPERS_LOGS, papers), (ALL_LOGS, found)):
            shared = answered_by_all([each.answers for each in chosen])
            rows += [
                {"answered_by": among, "log": each.name, "reading": each.reading}
                | asdict(score(prefixes, each.answers, shared))
                for each in chosen
            ]
        return {"same_prefixes": rows}

    # What is made once -----------------------------------------------------------------------------------------------

    def _once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @property
    def month(self) -> HeldOutMonth:
        return self._once(("month",), lambda: HeldOutMonth(self.work))

    def _prefixes(self, part: Tenths) -> Any:
        return self._once(("prefixes", part), lambda: self.month.prefixes(part, self.settings.test_sessions))

    def _weights(self, group: str) -> dict[tuple[str, Reading], float]:
        def chosen() -> dict[tuple[str, Reading], float]:
            prefixes = self._prefixes(TRIED)
            return {
                (each.name, each.reading): each.log.choose_weight(prefixes, each.reading)
                for each in self.groups[group](TRIED_FROM)
            }

        return self._once(("weights", group), chosen)

    def _answered(self, group: str) -> list[Answered]:
        def answered() -> list[Answered]:
            weights, prefixes, found = self._weights(group), self._prefixes(TESTED), []
            for each in self.groups[group](TRAINED):
                weight = weights[each.name, each.reading]
                answers = Questions.put(each.log.suggester(each.reading), prefixes).answer(weight)
                held = {"sequences": each.log.sequences, "clicks": each.log.clicked_pairs, "lambda": weight}
                found.append(Answered(each.name, each.reading, {**each.label, **held}, answers))
            return found

        return self._once(("answered", group), answered)

    # The logs --------------------------------------------------------------------------------------------------------

    def _original(self, part: Tenths) -> list[Compared]:
        return [Compared(ORIGINAL, "pairs", self.month.original(part), no_cost())]

    def _frequent(self, part: Tenths) -> list[Compared]:
        return [Compared(KA, "all", frequent_clicks(self.month.click_users(part), self.settings.threshold), no_cost())]

    def _printed(self, part: Tenths) -> list[Compared]:
        """DP_C, and DP_S with the very same clicks, as the paper has it."""
        counts, chosen = self.month.printed(part), self.settings.paper(self.settings.threshold)
        clicks = counts.draw_clicks(self.settings.threshold)
        both = Log(clicks, counts.draw_sessions(self.settings.threshold))
        alone = cost("paper", chosen.with_changes(session_scale=None))
        return [
            Compared(DP_C, "all", Log(clicks), alone),
            *(Compared(DP_S, reading, both, cost("paper", chosen)) for reading in READINGS),
        ]

    def _variant(self, variant: str, chosen: SessionParameters) -> Callable[[Tenths], list[Compared]]:
        def drawn(part: Tenths) -> list[Compared]:
            log = draw_variant(self.month.read(part), variant, chosen, self.settings.seed)
            return [Compared(f"{DP_S} {variant}", "all", log, cost(variant, chosen))]

        return drawn


def no_cost() -> dict[str, Any]:
    """No (ε, δ) holds for a log without noise."""
    return {"epsilon": None, "delta": None}
