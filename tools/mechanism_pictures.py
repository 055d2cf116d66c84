"""Draws docs/pictures/mechanisms/: how many users a row needs at which ε, and what fake accounts learn without noise.

Run `python -m tools.mechanism_pictures`. Everything is computed by the functions that price a release; no log is read.
"""

from __future__ import annotations

import os
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from qlog_assets.api.planning import explain_guarantee
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanisms
from qlog_assets.privacy.histogram import stability_threshold
from tools.pages import DOCS

PICTURES = DOCS / "pictures" / "mechanisms"
EPSILONS = ("0.25", "0.5", "1", "2", "4", "8")
EPSILON, DELTA, QUERIES_PER_USER = Fraction(2), Fraction(1, 1_000_000), 10
"""Of the noise beside k-anonymity: the ε and δ of every default, and a limit as on ZEALOUS' page."""


def main() -> None:
    """Draw the picture of every mechanism, at the policy's defaults."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["QLOG_HOME"] = empty
        for each in mechanisms():
            path = PICTURES / f"{each.name}.png"
            if each.is_releasable:
                draw_needs(each, path)
            else:
                draw_fake_accounts(path)


def draw_needs(mechanism: Mechanism, path: Path) -> None:
    """A line for each kind of row: users that it needs, by ε."""
    lines: dict[str, list[int]] = {}
    for epsilon in EPSILONS:
        for row in explain_guarantee(mechanism.name, None, {"epsilon": epsilon})["expected"]:
            lines.setdefault(row["rows"], []).append(row["threshold"])
    figure, axis = new_figure()
    for place, (name, needed) in enumerate(lines.items()):
        axis.plot([float(each) for each in EPSILONS], needed, marker="osD^v"[place % 5], label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks([float(each) for each in EPSILONS], EPSILONS)
    axis.set_yticks([5, 10, 20, 50, 100, 200, 500], ["5", "10", "20", "50", "100", "200", "500"])
    axis.minorticks_off()
    axis.set_xlabel("ε of the month, at δ = 1e-6")
    axis.set_ylabel("users that a row needs")
    axis.set_title(f"{mechanism.name}: how many users a row needs")
    save(figure, axis, path)


def draw_fake_accounts(path: Path) -> None:
    """How often a guessed query is printed, by fake accounts that hold it: k-anonymity beside exact noise."""
    scale = QUERIES_PER_USER / EPSILON
    threshold = stability_threshold(QUERIES_PER_USER, scale, DELTA)
    accounts = np.arange(threshold - 30, threshold + 30)
    figure, axis = new_figure()
    for victim, dashes, said in ((1, "-", "with the victim"), (0, "--", "without")):
        exact = (accounts + victim >= threshold).astype(float)
        axis.plot(accounts, exact, dashes, color="C3", drawstyle="steps-mid", label=f"k-anonymity, {said}")
        noisy = [chance_of(threshold - count - victim, float(scale)) for count in accounts]
        axis.plot(accounts, noisy, dashes, color="C0", label=f"noise, {said}")
    axis.set_xlabel("fake accounts that typed the guess")
    axis.set_ylabel("how often it is printed")
    axis.set_title(
        f"k = {threshold}, and noise with the threshold {threshold}: "
        f"ε = {EPSILON}, δ = 1e-6, {QUERIES_PER_USER} queries per user"
    )
    save(figure, axis, path)


def chance_of(least: int, scale: float) -> float:
    """How often two-sided geometric noise is at least so much."""
    a = float(np.exp(-1 / scale))
    return a**least / (1 + a) if least > 0 else 1 - a ** (1 - least) / (1 + a)


def new_figure():  # type: ignore[no-untyped-def]  # matplotlib has no types here
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7.2, 4))


def save(figure, axis, path: Path) -> None:  # type: ignore[no-untyped-def]
    from matplotlib import pyplot

    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    axis.title.set_fontsize(10)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
