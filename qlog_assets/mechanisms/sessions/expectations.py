"""What is known in public of a release of session logs before it is drawn: how many users an item needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qlog_assets.mechanisms.expectations import Expectation
from qlog_assets.mechanisms.sessions import noise
from qlog_assets.mechanisms.sessions.guarantee import modern_budget
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.steered_words import expect_steered
from qlog_assets.privacy.steered import plan_part


def expects_sound(chosen: SessionParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    expected = []
    for name, kind in noise.kinds(chosen).items():
        least = noise.least_count("sound", kind, chosen)
        expected.append(Expectation(name, least, "set" if least == chosen.threshold else "derived"))
    return expected


def expects_modern(chosen: SessionParameters, list_rows: Mapping[str, int]) -> Sequence[Expectation]:
    """The threshold of counts; where weights are tested, how many users' weights reach it, the noise being zero."""
    expected = []
    for name, kind in noise.kinds(chosen).items():
        if name == "sessions" and noise.is_over_release("modern", chosen):
            note = "and more, the more queries the release has, so that noise alone makes few rows"
            expected.append(Expectation(name, 1, "derived", noise_rows=None, note=note))
            continue
        if noise.is_steered("modern", chosen):
            expected.append(expect_steered(name, plan_part(modern_budget(chosen), kind.part)))
            continue
        if not noise.takes_rows("modern", chosen):
            expected.append(Expectation(name, noise.least_count("modern", kind, chosen), "derived"))
            continue
        (step,) = noise.plan_rows(kind, chosen).rounds
        alone, full = (-(-step.threshold // step.weights[items]) for items in (0, -1))
        note = f"who hold nothing else; {full:,} who hold {kind.items_per_user:,} each"
        expected.append(Expectation(name, alone, "derived", note=note))
    return expected
