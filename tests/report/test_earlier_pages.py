"""Draws of versions 0.3.0 and 0.4.0 keep their guarantees, manifests and pages byte for byte.

Their public words are the second and the third. `tests/data/words-2.json` and `words-3.json` hold what those versions
wrote for some requests, as digests of guarantee, manifest and page. They never change.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from support.datasheets import example_datasheet, name_of, requests_of

from qlog_assets.storage.digests import canonical_json

VERSIONS = {2: "0.3.0", 3: "0.4.0"}
CASES = [(words, case) for words in VERSIONS for case in requests_of(words)]
NAMES = [f"{words} {name_of(case)}" for words, case in CASES]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(("words", "case"), CASES, ids=NAMES)
def test_earlier_words_are_what_their_version_said(words: int, case: dict[str, Any]) -> None:
    made = example_datasheet(case, words, VERSIONS[words])
    found = {
        "guarantee": digest(canonical_json(made.guarantee.as_json())),
        "manifest": digest(canonical_json(made.manifest)),
        "datasheet": digest(made.page),
    }
    assert found == {name: case[name] for name in found}
