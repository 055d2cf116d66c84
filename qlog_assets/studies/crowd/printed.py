"""What the paper prints of its simulations and of its pilot (Feild, Allan and Glatt 2011, sections 4 and 5)."""

from __future__ import annotations

from qlog_assets.crowd.jobs import Application

APPLICATIONS: tuple[Application, ...] = ("queries", "reformulations", "clicks")
"""The three that the paper measures."""
FIGURE_3_END = 160, 0.20
"""FT_a and FT_u of the AOL log end "around 20 %" at k = 160; the figure has no numbers beside it."""
REFORMULATIONS_AT_100 = {"ft_a": 233_000, "ft_u": 196_000, "dp_u": 44_000, "dp_a": 42_000}
"""Of the AOL log. The paper calls them queries; of 20.4 million instances they are a "very low proportion"."""
PILOT_USERS = 16
PILOT_INSTANCES: dict[Application, int] = {"queries": 8363, "reformulations": 8305, "clicks": 5432}
PILOT: dict[Application, tuple[tuple[int, int], ...]] = {
    "queries": ((4905, 4905), (1803, 46), (490, 13), (402, 6), (156, 1)),
    "reformulations": ((6194, 6194), (1783, 12), (118, 1), (89, 1), (36, 0)),
    "clicks": ((2816, 2816), (830, 9), (288, 1), (209, 0), (126, 0)),
}
"""Table 1: distinct artifacts released by FT_a and FT_u at k = 1 to 5."""
