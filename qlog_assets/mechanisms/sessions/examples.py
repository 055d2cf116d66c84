"""Worked numbers of sessions for the page of guarantees."""

from __future__ import annotations

from typing import Any

from qlog_assets.mechanisms.sessions import guarantee
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.report.markdown import loss, table


def examples() -> str:
    """Table 4 of the paper, the sum with clicks, and one noise instead of two."""
    printed = [(1, 10, 1, 3), (1, 20, 1, 3), (1, 30, 1, 3), (3, 20, 1, 3), (3, 30, 1, 3), (1, 20, 1, 4)]
    printed += [(2, 30, 1, 4), (1, 20, 2, 3), (2, 30, 2, 3)]
    rows = []
    for scale, threshold, sessions, queries in printed:
        setting: dict[str, Any] = {"session_scale": scale, "click_scale": scale, "threshold": threshold}
        setting |= {"sessions_per_user": sessions, "queries_per_session": queries, "items": "subsequences"}
        both, sound = guarantee.paper(SessionParameters(**setting)), guarantee.sound(SessionParameters(**setting))
        row = [f"{scale}, {threshold}, {sessions}, {queries}", f"{both.figures['subsequences_per_user']:.0f}"]
        rows.append([*row, loss(both.parts[0].claimed), loss(both.proven), loss(sound.proven)])
    heads = ("b, K, l_s, l_q", "Δ", "A_Session as printed", "with clicks (l = 4)", "sound, both")
    return "**Examples.** The rows of the paper's Table 4:\n\n" + table(heads, rows)
