"""The words of a guarantee have a version: those of old draws never change, and today's say what they must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.register import mechanism, mechanisms
from qlog_assets.privacy.guarantee import RELEASE_ASSUMPTIONS, WORDS

FIRST = json.loads((Path(__file__).parents[1] / "data" / "words-1.json").read_text(encoding="utf-8"))
"""Guarantees of settings that the warehouses of earlier versions do not have, as version 0.2.0 stated them."""
NAMES = [f"{case['mechanism']} {case['variant']} {case['parameters']}" for case in FIRST]


@pytest.mark.parametrize("case", FIRST, ids=NAMES)
def test_the_first_words_are_what_version_0_2_0_said(case: dict[str, Any]) -> None:
    asked = mechanism(case["mechanism"])
    stated = asked.guarantee(case["variant"], asked.parameters(**case["parameters"]), words=1).as_json()
    assert stated == case["guarantee"]


@pytest.mark.parametrize("case", FIRST, ids=NAMES)
def test_another_version_of_the_words_costs_the_same(case: dict[str, Any]) -> None:
    asked = mechanism(case["mechanism"])
    now = asked.guarantee(case["variant"], asked.parameters(**case["parameters"])).as_json()
    worded = ("sentence", "assumptions", "formula", "parts")
    assert {key: value for key, value in now.items() if key not in worded} == {
        key: value for key, value in case["guarantee"].items() if key not in worded
    }
    for part, before in zip(now["parts"], case["guarantee"]["parts"], strict=True):
        assert {**part, "sentence": ""} == {**before, "sentence": ""}


def test_every_publishable_guarantee_says_what_every_release_rests_on() -> None:
    for each in mechanisms():
        for variant in each.variants:
            stated = each.guarantee(variant, each.parameters())
            assert (set(RELEASE_ASSUMPTIONS) <= set(stated.assumptions)) == stated.publishable, (each.name, variant)


@pytest.mark.parametrize("words", [0, WORDS + 1])
def test_words_that_this_version_does_not_know_are_refused(words: int) -> None:
    asked = mechanism("safelog")
    with pytest.raises(ParameterError, match="the public words have versions 1 to"):
        asked.guarantee("sound", asked.parameters(), words)
