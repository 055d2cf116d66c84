"""The sanitization paper's printed numbers: those our formulas reproduce, and, one test each, those that do not hold.

A test of the second kind asserts our number and names the paper's in its docstring. No noise is drawn here.
"""

from __future__ import annotations

import math

import pytest

from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.sanitized.guarantee import largest_output, least_delta, user_budget
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters

UMP_TABLE_4 = {
    1.001: (3759, 4007, 4007, 4007, 4007, 4007, 4007),
    1.01: (3759, 4007, 4879, 4879, 4879, 4879, 4879),
    1.1: (3759, 4007, 4891, 8382, 8382, 8382, 8382),
    1.4: (3759, 4007, 4891, 8874, 10445, 11419, 11419),
    1.7: (3759, 4007, 4891, 8874, 10445, 12438, 12438),
    2.0: (3759, 4007, 4891, 8874, 10445, 13088, 13088),
    2.3: (3759, 4007, 4891, 8874, 10445, 13088, 13901),
}


UMP_DELTAS = (1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 0.8)


UMP_USERS = 1980


UMP_CELLS = [
    (math.log(ratio), delta, size)
    for ratio, sizes in UMP_TABLE_4.items()
    for delta, size in zip(UMP_DELTAS, sizes, strict=True)
]


def test_ump_table_4_depends_on_b_alone_and_grows_with_it() -> None:
    cells = sorted((user_budget(epsilon, delta), size) for epsilon, delta, size in UMP_CELLS)
    assert len(cells) == 49
    sizes = [size for _, size in cells]
    assert sizes == sorted(sizes)
    by_budget: dict[float, set[int]] = {}
    for budget, size in cells:
        by_budget.setdefault(round(budget, 9), set()).add(size)
    assert all(len(found) == 1 for found in by_budget.values())
    assert len({size for _, size in cells}) == 11
    assert round(100 * min(sizes) / 53_067, 2) == 7.08
    assert round(100 * max(sizes) / 53_067, 1) == 26.2


def test_ump_table_4_exceeds_what_its_constraints_allow() -> None:
    """Table 4 prints 3759 to 13901 tuples; summing Eq. (4) over the 1,980 users allows 0.198 to 1649.2."""
    bounds = sorted({size: largest_output(UMP_USERS, epsilon, delta) for epsilon, delta, size in UMP_CELLS}.items())
    expected = [0.198, 1.98, 19.7, 19.9, 188.7, 208.6, 441.8, 666.2, 1050.6, 1372.4, 1649.2]
    assert [bound for _, bound in bounds] == pytest.approx(expected, rel=3e-3)
    assert all(size > 8 * bound for size, bound in bounds)


def test_ump_fixed_output_sizes_and_diversity_are_infeasible() -> None:
    """Tables 5 and 6 fix |O| >= 3000 at e^ε = 2, δ = ½, where at most 1372 fit; Table 7 keeps 774 pairs where 2 fit."""
    assert largest_output(UMP_USERS, math.log(2), 0.5) == pytest.approx(1372.4, abs=0.1)
    assert round(3000 / UMP_USERS, 3) == 1.515
    assert math.exp(3000 / UMP_USERS) == pytest.approx(4.55, abs=0.01)
    assert 1 - math.exp(-3000 / UMP_USERS) == pytest.approx(0.78, abs=0.001)
    assert round(0.128 * 6043) == 774
    assert largest_output(UMP_USERS, math.log(2), 1e-3) == pytest.approx(1.98, abs=0.01)


def test_ump_is_private_in_its_sampling_step_only() -> None:
    """The paper claims (ε, δ) for 'the entire process'; the counts it samples from are the log's, printed exactly."""
    promise = guarantee("sanitized", "paper", SanitizedParameters(epsilon="0.69", delta="0.5"))
    assert promise.proven is None
    assert promise.label.startswith("sampling-step-only")
    sampling, counts = promise.parts
    assert sampling.proven == promise.claimed
    assert counts.proven is None
    # A meaningful δ, below one in the number of users, leaves an empty output.
    assert largest_output(UMP_USERS, 10.0, 0.99 * least_delta(UMP_USERS)) < 1
