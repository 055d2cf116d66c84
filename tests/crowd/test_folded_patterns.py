"""A person's patterns, folded: words of any script are found in what is kept of them, and no syntax is touched."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, get_args

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from qlog_assets.crowd.folded_patterns import SYNTAX, compile_pattern, fold_pattern
from qlog_assets.sources.normalise import normalise_text

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


@example("0⑴", "NFC", "NFKC")
@given(WORDS, st.sampled_from(get_args(Form)), st.sampled_from(get_args(Form)))
def test_a_word_is_found_in_what_is_kept_of_it_in_any_form(word: str, written: Form, searched: Form) -> None:
    pattern = unicodedata.normalize(written, word)
    # Some numbers are written out with signs, `⑴` as `(1)`: who writes that has written a group.
    assume(not SYNTAX.search(pattern))
    kept = normalise_text(unicodedata.normalize(searched, f"my {word} is"))
    assert any(each.search(kept) for each in compile_pattern(pattern))


@pytest.mark.filterwarnings("ignore:Possible nested set")
@given(st.text(st.sampled_from(r"aZßé\[](){}|?*+^$.-P<>=…＊" + "\u0301"), max_size=8))
def test_whatever_compiles_is_compiled_as_written_first_and_no_fold_of_it_finds_everything(pattern: str) -> None:
    try:
        written = re.compile(pattern, re.IGNORECASE)
    except re.error:
        return
    first, *folded = compile_pattern(pattern)
    assert first == written and not any(each.search("") for each in folded)


@pytest.mark.parametrize(
    ("pattern", "folded"),
    [
        (r"\S\W\bGroß\.", r"\S\W\bgro(?:ss)\."),
        ("[^À-Þß]Z{2}", "[^à-þß]z{2}"),
        ("(?P<Name>É)(?P=Name)", "(?P<name>é)(?P=name)"),
        ("a…＊", r"a\.\.\.\*"),
        ("[]É\\]Z]", "[]é\\]z]"),
    ],
)
def test_letters_are_folded_and_syntax_is_left_as_it_is(pattern: str, folded: str) -> None:
    assert fold_pattern(pattern) == folded
