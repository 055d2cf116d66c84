"""The study `session-loss`: what the register finds, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from qlog_assets.privacy.parameters import Listed
from qlog_assets.studies.session_logs import (
    TRAINED,
    HeldOutMonth,
    SessionStudySettings,
    draw_variant,
    raw_log_of,
    sound_parameters,
)
from qlog_assets.studies.session_plots import Panel, line_panels
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "How much of a month is left as the threshold K grows (Figure 1): clicked pairs under k-anonymity and DP_C, "
    "sequences of queries under DP_S, and both in a sound release? Counted on the users that `suggestion` trains on."
)
KINDS = {"clicks": "clicked pairs", "sessions": "sequences"}


class LossSettings(SessionStudySettings):
    """What the study varies."""

    thresholds: Annotated[tuple[int, ...], Listed] = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100)
    """K."""


def steps(work: StudyWork) -> Sequence[Step]:
    month = cache(lambda: HeldOutMonth(work))

    return [
        Step("k-anonymity", lambda at: {"kept": list(count_frequent(month()))}),
        Step("printed", lambda at: {"kept": list(count_printed(month()))}),
        Step("sound", lambda at: {"kept": list(count_sound(month(), at))}),
    ]


def count_frequent(month: HeldOutMonth) -> Iterator[dict[str, Any]]:
    users = month.click_users(TRAINED)["users"].to_numpy()
    for threshold in tried(month):
        yield row("KA", "clicks", threshold, int((users > threshold).sum()), len(users))


def count_printed(month: HeldOutMonth) -> Iterator[dict[str, Any]]:
    """Shares are of what the limits leave to be counted: what K takes away, not what they do."""
    counts = month.printed(TRAINED)
    items = sum(len(events) for _, events in counts.items)
    for threshold in tried(month):
        yield row("DP_C", "clicks", threshold, len(counts.chosen_clicks(threshold).indices), counts.clicks.num_rows)
    for threshold in tried(month):
        yield row("DP_S", "sessions", threshold, sum(len(kept) for kept, _ in counts.chosen_items(threshold)), items)


def count_sound(month: HeldOutMonth, work: StudyWork) -> Iterator[dict[str, Any]]:
    """One draw for all K: in a sound release the printed count is the one that was held against the threshold."""
    chosen = sound_parameters(work.policy, month.settings).with_changes(threshold=min(tried(month)))
    log = draw_variant(month.read(TRAINED), "sound", chosen, month.settings.seed)
    for name, table in (("clicks", log.clicks), ("sessions", log.sessions)):
        users = np.empty(0) if table is None else in_numbers(table)
        for threshold in tried(month):
            yield row("sound", name, threshold, int((users >= threshold).sum()), None)


def tried(month: HeldOutMonth) -> list[int]:
    assert isinstance(month.settings, LossSettings)
    return sorted(set(month.settings.thresholds))


def in_numbers(table: pa.Table) -> np.ndarray:
    return table["users"].to_numpy()


def row(log: str, table: str, threshold: int, kept: int, of: int | None) -> dict[str, Any]:
    """`share`: of the items there were to choose from; None where the draw does not tell."""
    return {"log": log, "table": table, "K": threshold, "kept": kept, "share": kept / of if of else None}


def pictures(tables: Tables) -> dict[str, bytes]:
    panels = [
        Panel(
            f"distinct {words} kept",
            "threshold K",
            {
                name: [(row["K"], row["kept"]) for row in tables["kept"] if (row["log"], row["table"]) == (name, table)]
                for name in dict.fromkeys(row["log"] for row in tables["kept"] if row["table"] == table)
            },
            logarithmic=True,
        )
        for table, words in KINDS.items()
    ]
    return {"session_loss.png": line_panels(panels)}


def words(tables: Tables, settings: LossSettings) -> str:
    """What the least and the largest K leave."""
    sentences = []
    for log, table in dict.fromkeys((row["log"], row["table"]) for row in tables["kept"]):
        first, *_, last = [row for row in tables["kept"] if (row["log"], row["table"]) == (log, table)] * 2
        sentences.append(
            f"{log} keeps {first['kept']:,} {KINDS[table]} at K = {first['K']} and {last['kept']:,} at K = {last['K']}."
        )
    return " ".join(sentences)


STUDY = Study(
    name="session-loss",
    title="Session logs: what is left as K grows",
    question=QUESTION,
    settings=LossSettings,
    steps=steps,
    mechanism="sessions",
    columns={"kept": ("log", "table", "K", "kept", "share")},
    pictures=pictures,
    words=words,
    reads=raw_log_of,
)
