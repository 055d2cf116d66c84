"""Linear programmes, solved: HiGHS by interior point, PDLP of OR-Tools above its reach, HiGHS for whole numbers.

Matrices in, numbers out. A solution is as exact as the solver is; `Programme.scale_into` makes it allowed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array, csc_matrix, vstack

from qlog_assets.errors import ParameterError, QlogError

HIGHS_VARIABLES = 20_000
"""Up to here interior point takes seconds: 0.3 s for 6,000 variables, 6 s for 29,000, 50 s for 85,000. Of 857,000
it had found nothing after two minutes, in 1.2 GB."""
PDLP_TOLERANCE = 4e-3
"""Scaled into the constraints, such a solution misses the largest output by about 0.2 %."""
SUPPORT_TOLERANCE = 1e-5
"""Where supports are to be met: their distances are hundredths, beside sizes of thousands."""
PDLP_SECONDS = 600
PDLP_SHARDS = 8
NOTHING_FITS = "no counts satisfy the constraints: the asked size is above the largest one"


class NothingFitsError(ParameterError):
    """No counts satisfy the constraints and the asked size."""


@dataclass(frozen=True)
class LinearProgramme:
    """Minimise gain·x under matrix·x ≤ above, at most `tops`, never below 0; and, if asked, total·x = size."""

    gain: np.ndarray
    matrix: csc_array
    above: np.ndarray
    tops: np.ndarray
    total: np.ndarray | None = None
    size: float = 0.0
    tolerance: float = PDLP_TOLERANCE
    """Of PDLP, absolute and relative."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no variable to choose; an asked size cannot be met then."""
        if self.gain.size == 0 and self.size > 0:
            raise NothingFitsError(NOTHING_FITS)
        return self.gain.size == 0

    def restricted(self, columns: np.ndarray) -> LinearProgramme:
        """The same with some variables only; the others are 0."""
        total = None if self.total is None else self.total[columns]
        return replace(
            self, gain=self.gain[columns], matrix=self.matrix[:, columns], tops=self.tops[columns], total=total
        )


def solve(asked: LinearProgramme) -> np.ndarray:
    """The optimum, by the solver that the number of variables asks for."""
    if asked.is_empty:
        return np.empty(0)
    return solve_by_pdlp(asked) if asked.gain.size > HIGHS_VARIABLES else solve_by_highs(asked)


def solve_by_highs(asked: LinearProgramme) -> np.ndarray:
    """By HiGHS, interior point with crossover: a vertex, so that most numbers are whole or 0."""
    total, size = (None, None) if asked.total is None else (asked.total[None, :], [asked.size])
    bounds = np.stack([np.zeros(asked.tops.size), asked.tops], axis=1)
    found = linprog(asked.gain, asked.matrix, asked.above, total, size, bounds=bounds, method="highs-ipm")
    if not found.success:
        raise NothingFitsError(NOTHING_FITS)
    return np.asarray(found.x)


def solve_by_pdlp(asked: LinearProgramme) -> np.ndarray:
    """By PDLP, a first-order method: near the optimum, not at a vertex, in memory of a few matrices."""
    try:
        from ortools.pdlp import solve_log_pb2, solvers_pb2
        from ortools.pdlp.python import pdlp
    except ImportError:
        raise QlogError(
            f"more than {HIGHS_VARIABLES:,} (query, url) pairs are solved by OR-Tools, which is not installed: "
            "pip install 'qlog[solvers]'"
        ) from None
    matrix, below, above = asked.matrix, np.full(asked.above.size, -np.inf), asked.above
    if asked.total is not None:
        matrix = vstack([matrix, csc_array(asked.total[None, :])], format="csc")
        below, above = np.append(below, asked.size), np.append(above, asked.size)
    programme = pdlp.QuadraticProgram()
    programme.objective_vector = asked.gain
    programme.constraint_matrix = csc_matrix(matrix)
    programme.constraint_lower_bounds, programme.constraint_upper_bounds = below, above
    programme.variable_lower_bounds, programme.variable_upper_bounds = np.zeros(asked.tops.size), asked.tops
    settings = solvers_pb2.PrimalDualHybridGradientParams()
    settings.termination_criteria.simple_optimality_criteria.eps_optimal_relative = asked.tolerance
    settings.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = asked.tolerance
    settings.termination_criteria.time_sec_limit = PDLP_SECONDS
    # Sums are taken by shard: with their number fixed, the answer is the same on any number of processors.
    settings.num_threads, settings.num_shards = min(os.cpu_count() or 1, PDLP_SHARDS), PDLP_SHARDS
    found = pdlp.primal_dual_hybrid_gradient(programme, settings)
    reason = solve_log_pb2.TerminationReason
    if found.solve_log.termination_reason == reason.TERMINATION_REASON_PRIMAL_INFEASIBLE:
        raise NothingFitsError(NOTHING_FITS)
    if found.solve_log.termination_reason != reason.TERMINATION_REASON_OPTIMAL:
        raise QlogError(f"PDLP did not come near the optimum within {PDLP_SECONDS} seconds: ask for a smaller log")
    return np.asarray(found.primal_solution)


def solve_whole(asked: LinearProgramme, whole: np.ndarray, seconds: float) -> np.ndarray:
    """The best solution that HiGHS finds in so many seconds with the variables in `whole` being whole numbers."""
    if asked.is_empty:
        return np.empty(0)
    constraints = [LinearConstraint(asked.matrix, ub=asked.above)]
    if asked.total is not None:
        constraints.append(LinearConstraint(asked.total[None, :], asked.size, asked.size))
    found = milp(
        asked.gain,
        integrality=whole.astype(int),
        bounds=Bounds(0, asked.tops),
        constraints=constraints,
        options={"time_limit": float(seconds)},
    )
    if found.x is None:
        raise NothingFitsError(
            f"no whole counts of the asked size were found in {seconds:g} seconds: ask for a smaller one"
        )
    return np.asarray(found.x)
