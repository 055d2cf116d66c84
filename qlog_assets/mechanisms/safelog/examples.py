"""Worked numbers of safelog for the page of guarantees."""

from __future__ import annotations

from qlog_assets.mechanisms.safelog import guarantee
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.report.markdown import bound, finite, loss, table


def examples() -> str:
    """Table 3 of the paper beside what its parameters cost once the algorithm is repaired."""
    setting = {"threshold": 10, "selection_scale": 10, "query_scale": 10, "click_scale": 10}
    rows = []
    for limit, printed in ((10, 4.27), (50, 21.36), (100, 42.73), (150, 64.09), (200, 85.45)):
        setting |= {"queries_per_user": limit, "clicks_per_user": limit}
        claim = guarantee.paper(SafelogParameters(transition_scale=None, **setting))
        sound = guarantee.sound(SafelogParameters(transition_scale=None, **setting))
        complete = guarantee.sound(SafelogParameters(transition_scale=10, **setting))
        tight = claim.figures["epsilon_with_tight_alpha"]
        row = [str(limit), f"{printed:.2f}", bound(finite(claim.claimed).epsilon, 5), bound(tight, 5)]
        row += [bound(finite(release.proven).epsilon) for release in (sound, complete)]
        rows.append([*row, loss(complete.accounted())])
    heads = ("q_f = c_f", "printed ε", "Theorem 1", "with tight α", "sound", "and transitions", "accounted (ε, δ)")
    turning = guarantee.paper(SafelogParameters(threshold=100)).figures["turning_point_scale"]
    return (
        "**Examples.** Table 3 of the paper (K = b = b_q = b_c = 10, transitions left out); the same formula with a "
        "tight bound; and the sound release at these scales with δ = 1e-6, with one noise per query, not two:\n\n"
        + table(heads, rows)
        + f"\n\nThe paper advises to set b near the turning point of its ε (K = 100: b = {turning:.2f}). That is "
        "an artefact of a loose bound: with tight α selection costs q_f/b, and more noise is always more private."
    )
