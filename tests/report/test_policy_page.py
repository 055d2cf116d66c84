"""The generated page of the policy file: current, and with every key."""

from __future__ import annotations

import tomllib
from decimal import Decimal

from qlog_assets.policy import Policy
from qlog_assets.report import policy_page


def test_the_page_in_the_repository_is_current() -> None:
    assert policy_page.main(["--check"]) == 0, "run make docs"


def test_every_key_of_the_policy_is_explained() -> None:
    lines = policy_page.page().splitlines()
    for key in Policy().flat:
        name = key.rpartition(".")[2]
        rows = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert rows and all(len(row.split("|")[3].strip()) > 10 for row in rows), key


def test_the_example_on_the_page_is_a_policy() -> None:
    example = policy_page.INTRODUCTION.split("```toml\n")[1].split("```")[0]
    assert Policy(**tomllib.loads(example, parse_float=Decimal)).dataset == "library"
