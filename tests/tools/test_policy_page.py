"""The generated page of the policy file: current, and with every key."""

from __future__ import annotations

from pathlib import Path

from qlog_assets.mechanisms.register import releasable
from qlog_assets.policy import Policy
from tools import policy_page
from tools.pages import main


def test_the_page_in_the_repository_is_current() -> None:
    assert main(policy_page.PAGE, policy_page.page, "make docs", ["--check"]) == 0, "run make docs"


def test_every_key_of_the_policy_is_explained() -> None:
    lines = policy_page.page().splitlines()
    policy = Policy().as_public()
    nested = [inner for value in policy.values() if isinstance(value, dict) for inner in value]
    for name in (*nested, *(key for key, value in policy.items() if not isinstance(value, dict))):
        rows = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert rows and all(len(row.split("|")[3].strip()) > 10 for row in rows), name


def test_the_example_on_the_page_is_a_policy_that_a_release_can_be_asked_with(tmp_path: Path) -> None:
    example = policy_page.INTRODUCTION.split("```toml\n")[1].split("```")[0]
    (tmp_path / "policy.toml").write_text(example, encoding="utf-8")
    policy = Policy.load(tmp_path / "policy.toml")
    assert policy.dataset == "library"
    for each in releasable():
        each.refuse_unusable(policy.variant(each), policy.parameters(each))
