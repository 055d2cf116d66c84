"""The study `session-utility`: what the register finds, and what it measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any

from pydantic import Field

from qlog_assets.privacy.parameters import Listed
from qlog_assets.studies.measures.suggestion_scores import Prefixes, Questions, score
from qlog_assets.studies.session_logs import (
    TESTED,
    TRAINED,
    TRIED,
    TRIED_FROM,
    HeldOutMonth,
    Log,
    SessionStudySettings,
    frequent_clicks,
    raw_log_of,
)
from qlog_assets.studies.session_plots import Panel, line_panels
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "At each threshold K, how many held-out sessions does a log answer, and how well (Figure 2): k-anonymity, DP_C and "
    "DP_S as the paper prints them?"
)
MEASURES = {"precision": "Precision@5", "recall": "Recall@5"}


class UtilitySettings(SessionStudySettings):
    """What the study varies."""

    test_sessions: int = Field(20_000, ge=1, le=10**7)
    """Sessions of held-out users that are tested."""
    thresholds: Annotated[tuple[int, ...], Listed] = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100)
    """K."""


def steps(work: StudyWork) -> Sequence[Step]:
    tried = sorted(set(work.settings.thresholds))
    month = cache(lambda: HeldOutMonth(work))
    prefixes = cache(lambda part: month().prefixes(part, work.settings.test_sessions))
    weights = cache(lambda: choose_weights(month(), prefixes(TRIED), tried))

    def chosen(at: StudyWork) -> Tables:
        return {"weights": [{"log": "DP_S", "K": threshold, "lambda": weights()[threshold]} for threshold in tried]}

    def frequent(at: StudyWork) -> Tables:
        asked, clicks = prefixes(TESTED), month().click_users(TRAINED)
        logs = ((threshold, frequent_clicks(clicks, threshold)) for threshold in tried)
        return {"utility": list(measure("KA", logs, asked, lambda threshold: 1.0))}

    def printed(at: StudyWork) -> Tables:
        asked, by_k = prefixes(TESTED), weights()
        counts = month().printed(TRAINED)
        clicks = {threshold: counts.draw_clicks(threshold) for threshold in tried}
        alone = ((threshold, Log(clicks[threshold])) for threshold in tried)
        both = ((threshold, Log(clicks[threshold], counts.draw_sessions(threshold))) for threshold in tried)
        return {
            "utility": [
                *measure("DP_C", alone, asked, lambda threshold: 1.0),
                *measure("DP_S", both, asked, by_k.__getitem__),
            ]
        }

    return [Step("lambda", chosen), Step("k-anonymity", frequent), Step("printed", printed)]


def choose_weights(month: HeldOutMonth, prefixes: Prefixes, tried: Sequence[int]) -> Mapping[int, float]:
    """λ of DP_S at each K, on people who are neither in the log nor tested."""
    counts = month.printed(TRIED_FROM)
    return {
        threshold: Log(counts.draw_clicks(threshold), counts.draw_sessions(threshold)).choose_weight(prefixes)
        for threshold in tried
    }


def measure(
    name: str, logs: Iterator[tuple[int, Log]], prefixes: Prefixes, weight: Callable[[int], float]
) -> Iterator[dict[str, Any]]:
    """One row per K: what the log holds, how many sessions it answers, and how well."""
    for threshold, log in logs:
        answers = Questions.put(log.suggester(), prefixes).answer(weight(threshold))
        held = {"sequences": log.sequences, "clicks": log.clicked_pairs, "lambda": weight(threshold)}
        yield {"log": name, "K": threshold, **held, **asdict(score(prefixes, answers, answers.answered))}


def pictures(tables: Tables) -> dict[str, bytes]:
    names = list(dict.fromkeys(row["log"] for row in tables["utility"]))
    by_name = {name: [row for row in tables["utility"] if row["log"] == name] for name in names}
    panels = [
        Panel(
            "sessions answered",
            "threshold K",
            {name: [(row["K"], row["sessions"]) for row in by_name[name]] for name in names},
        ),
        *(
            Panel(words, "sessions answered", {n: [(row["sessions"], row[each]) for row in by_name[n]] for n in names})
            for each, words in MEASURES.items()
        ),
    ]
    return {"session_utility.png": line_panels(panels)}


def words(tables: Tables, settings: UtilitySettings) -> str:
    """The best precision of each log, and where it has it."""
    sentences = []
    for name in dict.fromkeys(row["log"] for row in tables["utility"]):
        answered = [row for row in tables["utility"] if row["log"] == name and row["precision"] is not None]
        if not answered:
            sentences.append(f"{name} answers no session at any K.")
            continue
        first, last = answered[0], answered[-1]
        sentences.append(
            f"{name}: {first['sessions']:,} sessions at Precision@5 {first['precision']:.4f} with K = {first['K']}, "
            f"{last['sessions']:,} at {last['precision']:.4f} with K = {last['K']}."
        )
    return " ".join(sentences)


STUDY = Study(
    name="session-utility",
    title="Session logs: suggestions against sessions answered",
    question=QUESTION,
    settings=UtilitySettings,
    steps=steps,
    mechanism="sessions",
    columns={
        "weights": ("log", "K", "lambda"),
        "utility": (
            "log",
            "K",
            "sequences",
            "clicks",
            "lambda",
            "precision",
            "error",
            "recall",
            "prefixes",
            "sessions",
        ),
    },
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
