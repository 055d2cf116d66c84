"""Worked numbers of zealous for the page of guarantees."""

from __future__ import annotations

from qlog_assets.mechanisms.zealous import guarantee
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.parameters import AOL_USERS
from qlog_assets.report.markdown import bound, number, table


def examples() -> str:
    """Thresholds of the theorem and of the stability histogram at the same budget."""
    rows = []
    for items, epsilon in ((1, "2.3"), (5, "2.3"), (10, "10"), (20, "10")):
        setting = {"items_per_user": items, "epsilon": epsilon, "kinds": ("queries",)}
        paper, sound = guarantee.paper(ZealousParameters(**setting)), guarantee.sound(ZealousParameters(**setting))
        row = [str(items), epsilon, number(paper.figures["noise_scale"]), str(paper.thresholds["before_noise"])]
        row += [bound(paper.figures["noisy_threshold"]), number(sound.figures["noise_scale"])]
        rows.append([*row, str(sound.thresholds["queries"])])
    heads = ("m", "ε", "paper λ", "paper τ", "paper τ′", "sound scale", "sound T")
    return f"**Examples.** One kind of items, δ = 1e-6, U = {AOL_USERS:,}:\n\n" + table(heads, rows)
