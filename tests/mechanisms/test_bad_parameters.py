"""Parameters that mean nothing are refused by name, before anything is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.register import guarantee, mechanism, names
from qlog_assets.mechanisms.safelog.parameters import PaperParameters, SafelogParameters
from qlog_assets.mechanisms.sanitized.parameters import SanitizedParameters
from qlog_assets.mechanisms.sessions.parameters import SessionParameters
from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.privacy.guarantee import PrivacyLoss
from qlog_assets.privacy.parameters import Parameters

BAD_SCALE = [0, -1, "0", "NaN", "Infinity", "-3", 0.5, math.nan, "ten", 10**7]
BAD_DELTA = [1, "1", "1.5", -1, "NaN", 0.1]
BAD_EPSILON = [0, -1, "0", "NaN", "Infinity", 1.0, math.inf, 2000]
BAD_COUNT = [0, -1, "many", 1.5]
BAD: list[tuple[type[Parameters], str, list[Any]]] = [
    (SafelogParameters, "selection_scale", BAD_SCALE),
    (SafelogParameters, "click_scale", BAD_SCALE),
    (SafelogParameters, "transition_scale", BAD_SCALE),
    (SafelogParameters, "query_scale", BAD_SCALE),
    (SafelogParameters, "delta", BAD_DELTA),
    (SafelogParameters, "threshold", BAD_COUNT),
    (SafelogParameters, "queries_per_user", BAD_COUNT),
    (PaperParameters, "pool_probability", [0, "1.1", "NaN", 0.5]),
    (SafelogParameters, "epsilon", BAD_EPSILON),
    (SafelogParameters, "click_share", [0, 1, "NaN", 0.5]),
    (SafelogParameters, "transition_share", [0, 1, "NaN", "0.75"]),
    (ZealousParameters, "epsilon", BAD_EPSILON),
    (ZealousParameters, "delta", [0, *BAD_DELTA]),
    (ZealousParameters, "items_per_user", BAD_COUNT),
    (ZealousParameters, "noisy_threshold", BAD_SCALE[:7]),
    (ZealousParameters, "kinds", [(), ("queries", "queries"), ("sessions",)]),
    (ZealousParameters, "method", ["laplace"]),
    (SessionParameters, "queries_per_session", [11, 1, 0, -1]),
    (SessionParameters, "sessions_per_user", BAD_COUNT),
    (SessionParameters, "session_scale", BAD_SCALE),
    (SessionParameters, "click_scale", BAD_SCALE),
    (SessionParameters, "threshold", BAD_COUNT),
    (SessionParameters, "delta", [0, *BAD_DELTA]),
    (CrowdParameters, "epsilon", BAD_EPSILON),
    (CrowdParameters, "delta", [0, *BAD_DELTA]),
    (CrowdParameters, "threshold", BAD_COUNT),
    (CrowdParameters, "count_scale", BAD_SCALE),
    (CrowdParameters, "jobs", [(), ("queries", "queries")]),
    (SanitizedParameters, "epsilon", BAD_EPSILON),
    (SanitizedParameters, "delta", [0, *BAD_DELTA]),
    (SanitizedParameters, "activity_share", [0, 1, "NaN"]),
    (SanitizedParameters, "association_share", ["0.95"]),
]


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [(model, field, value) for model, field, values in BAD for value in values],
    ids=lambda part: part.__name__ if isinstance(part, type) else str(part),
)
def test_bad_parameters_are_refused_by_name_before_anything_is_drawn(
    model: type[Parameters], field: str, value: Any
) -> None:
    with pytest.raises(ParameterError) as caught:
        model(**{field: value})
    message = str(caught.value)
    assert field in message
    assert "\n" not in message


@pytest.mark.parametrize("model", [mechanism(name).parameters for name in names()])
def test_unknown_keys_and_changes_to_made_parameters_are_refused(model: type[Parameters]) -> None:
    with pytest.raises(ParameterError, match="sensitivity: unknown key"):
        model(sensitivity=1)
    made = model()
    with pytest.raises(ValueError, match="frozen"):
        made.delta = Fraction(1, 2)  # type: ignore[attr-defined]
    with pytest.raises(ParameterError):
        made.with_changes(delta=2)


def test_associations_need_two_pairs_a_user() -> None:
    with pytest.raises(ParameterError, match="two pairs_per_user"):
        SanitizedParameters(pairs_per_user=1, association_share="0.2")


def test_unknown_names_and_the_wrong_model_are_refused_with_the_choices() -> None:
    with pytest.raises(ParameterError, match="baselines, crowd, safelog, sanitized, sessions, zealous"):
        guarantee("laplace", "sound", SafelogParameters())
    with pytest.raises(ParameterError, match="choose one of modern, sound, paper"):
        guarantee("safelog", "best", SafelogParameters())
    with pytest.raises(ParameterError, match="takes SafelogParameters"):
        guarantee("safelog", "sound", CrowdParameters())


def test_losses_that_mean_nothing_are_refused() -> None:
    for epsilon, delta, rho in ((-1, 0, None), (math.nan, 0, None), (math.inf, 0, None), (1, -1, None), (1, 0, -1)):
        with pytest.raises(ParameterError):
            PrivacyLoss(epsilon, delta, rho)
