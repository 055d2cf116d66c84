"""What is known in public of a CrowdLogging release before it is drawn: how many users an artifact needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qlog_assets.mechanisms.crowd import noise
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.expectations import Expectation


def expects(variant: str, chosen: CrowdParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """The least printed count of each job. Nothing that nobody sent is looked at, so no row comes from noise alone."""
    least = noise.draw_nothing(variant, chosen).threshold
    return tuple(Expectation(job.replace("_", " "), least, "derived") for job in chosen.jobs)
