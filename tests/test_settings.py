"""The policy file and the environment: every key checked, decimals exact, `none` for off, file names beside it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month
from qlog_assets.policy import Policy, qualify_names
from qlog_assets.settings import CHECKOUT, Settings


@pytest.fixture
def load(tmp_path: Path):
    def loading(text: str) -> Policy:
        path = tmp_path / "policy.toml"
        path.write_text(text, encoding="utf-8")
        return Policy.load(path)

    return loading


# The policy file ----------------------------------------------------------------------------------------------------


def test_without_a_file_the_policy_is_the_default(tmp_path: Path) -> None:
    assert Policy.load(tmp_path / "policy.toml") == Policy()


def test_decimals_of_the_file_are_read_as_written_and_not_as_doubles(load) -> None:
    policy = load("[safelog]\nselection_scale = 0.1\ndelta = 1e-7\n[budget]\nepsilon = 2.30\n")
    assert policy.section("safelog").selection_scale == Fraction(1, 10)
    assert policy.section("safelog").delta == Fraction(1, 10**7)
    assert policy.budget.epsilon == Fraction(23, 10)


def test_the_word_none_in_the_file_switches_an_optional_part_off(load) -> None:
    policy = load('last = "none"\n[safelog]\ntransition_scale = "none"\nclick_scale = "None"\n')
    assert (
        policy.section("safelog").transition_scale is None
        and policy.section("safelog").click_scale is None
        and policy.last is None
    )
    with pytest.raises(QlogError, match="threshold"):
        load('[safelog]\nthreshold = "none"\n')


def test_file_names_are_relative_to_the_policy_file_wherever_the_command_runs(
    load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    policy = load('url_list = "lists/urls.txt"\n[pool]\nkind = "query_list"\npath = "pool.txt"\n')
    assert policy.pool.path == tmp_path / "pool.txt" and policy.url_list == tmp_path / "lists" / "urls.txt"
    assert load('url_list = "/elsewhere/urls.txt"\n').url_list == Path("/elsewhere/urls.txt")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("quite = 'unknown'", "quite: unknown key"),
        ("[safelog]\nq_f = 5", "safelog.*q_f: unknown key"),
        ("[mechanism]\nepsilon = 5", "mechanism: unknown key"),
        ("[budget]\naccountant = 'generous'", "accountant"),
        ("[ingest]\nmax_rejected_share = 2", "max_rejected_share"),
        ("[safelog]\nselection_scale = true", "selection_scale"),
        ("[safelog]\nselection_scale = nan", "selection_scale"),
        ("first = 2006-03-01", "first"),
        ("safelog = 3", "safelog"),
        ("[pool]\nkind = 'releases'", "release_ids"),
    ],
)
def test_what_a_file_gets_wrong_is_named(load, tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(QlogError, match=f"policy.toml: .*{named}") as refused:
        load(text)
    assert "\n" not in str(refused.value)


def test_one_months_policy_is_possible_and_the_wrong_order_is_not(load) -> None:
    assert load('first = "2006-03"\nlast = "2006-03"\n').last == Month("2006-03")
    with pytest.raises(QlogError, match="2006-02 is before first"):
        load('first = "2006-03"\nlast = "2006-02"\n')


# Settings of the command line ----------------------------------------------------------------------------------------


def test_settings_change_what_they_name_and_nothing_else() -> None:
    changed = Policy().with_settings({"safelog.threshold": "7", "pool.description": "mine", "last": "2006-05"})
    assert changed.safelog == Policy().safelog.with_changes(threshold=7)
    assert changed.pool.description == "mine" and changed.last == Month("2006-05")
    assert changed.budget == Policy().budget


def test_settings_are_checked_like_the_file() -> None:
    for settings, named in (
        ({"safelog.treshold": "7"}, "safelog.treshold: unknown key"),
        ({"nothing.at.all": "7"}, "nothing.at.all: unknown key"),
        ({"dataset.name": "7"}, "dataset.name: unknown key"),
        ({"safelog.threshold": "0"}, "threshold"),
        ({"last": "1990-01"}, "last"),
    ):
        with pytest.raises(ParameterError, match=named):
            Policy().with_settings(settings)


def test_a_bare_key_belongs_to_the_mechanism_at_hand_and_is_refused_where_it_could_mean_two() -> None:
    assert qualify_names({"delta": "0"}, "zealous") == {"zealous.delta": "0"}
    assert qualify_names({"queries_per_user": "3"}) == {"safelog.queries_per_user": "3"}
    assert qualify_names({"last": "2006-05"}, "safelog") == {"last": "2006-05"}
    with pytest.raises(ParameterError, match=r"safelog\.delta or zealous\.delta"):
        qualify_names({"delta": "0"})


def test_every_setting_can_be_written_down_and_read_back() -> None:
    policy = Policy().with_settings({"safelog.transition_scale": "none", "safelog.selection_scale": "1/3"})
    kept = {key: text for key, text in policy.flat.items() if key not in ("pool.release_ids", "zealous.kinds")}
    assert Policy().with_settings(kept) == policy


# The environment -----------------------------------------------------------------------------------------------------


def test_the_environment_chooses_warehouse_ledger_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"HOME": tmp_path, "LEDGER_URL": "postgresql://x/y", "MEMORY_MB": 512, "THREADS": 1}.items():
        monkeypatch.setenv(f"QLOG_{key}", str(value))
    settings = Settings.from_environment()
    assert settings.home == tmp_path and settings.policy_file == tmp_path / "policy.toml"
    assert (settings.ledger_url, settings.memory_limit_mb, settings.threads) == ("postgresql://x/y", 512, 1)
    monkeypatch.setenv("QLOG_MEMORY_MB", "plenty")
    with pytest.raises(ParameterError, match="memory_limit_mb"):
        Settings.from_environment()


def test_in_a_checkout_the_warehouse_is_the_checkouts_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QLOG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment().home == CHECKOUT / "warehouse"
