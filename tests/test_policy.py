"""The policy file: every key checked, decimals exact, `none` for off, file names beside it, a section per mechanism."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from qlog_assets.door.expectations import public_expectations
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.mechanisms.expectations import NO_URLS
from qlog_assets.mechanisms.register import mechanism, simulated
from qlog_assets.months import Month
from qlog_assets.policy import Policy, qualify_names
from qlog_assets.privacy.parameters import Parameters


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
    chosen = policy.section("safelog")
    assert chosen.transition_scale is None and chosen.click_scale is None and policy.last is None
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
        ("[mechanisms.safelog]\nthreshold = 5", "mechanisms: unknown key"),
        ("[zealous]\nvariant = 'paper'", "zealous.*variant"),
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


# A section per mechanism ---------------------------------------------------------------------------------------------


def test_the_policy_has_a_section_for_every_mechanism_that_can_be_drawn_and_no_other(load) -> None:
    policy = load("[zealous]\nitems_per_user = 3\n[baselines]\nk = 7\n")
    assert list(policy.mechanisms) == [each.name for each in simulated()]
    for each in simulated():
        assert type(policy.section(each.name)) is each.policy_section
    assert policy.section("zealous").items_per_user == 3 and policy.section("baselines").k == 7
    with pytest.raises(ParameterError, match=r"no section 'toy': it has baselines, crowd, .*safelog, .*zealous"):
        policy.section("toy")


def test_what_a_release_is_made_with_follows_from_the_section_and_the_lists(load) -> None:
    safelog, zealous = mechanism("safelog"), mechanism("zealous")
    policy = load("[zealous]\nvariant = 'sound'\n[safelog]\nvariant = 'sound'\n")
    assert policy.variant(safelog) == "sound" and policy.variant(zealous) == "sound"
    assert Policy().variant(safelog) == "modern" and Policy().variant(zealous) == "modern"
    assert type(policy.parameters(zealous)) is zealous.parameters, "the choice of a variant is no parameter of it"
    assert policy.parameters(safelog).click_support == "stability"
    assert load('url_list = "urls.txt"\n').parameters(safelog).click_support == "public_list"
    with pytest.raises(ParameterError, match="needs the policy's url_list"):
        load("[safelog]\nclick_support = 'public_list'\n").parameters(safelog)


def test_a_log_without_urls_pays_for_no_clicks_and_this_is_said(load) -> None:
    safelog, zealous = mechanism("safelog"), mechanism("zealous")
    policy = load("has_urls = false\n")
    chosen = policy.parameters(safelog)
    assert chosen.click_share is None and set(chosen.parts) == {"queries", "transitions"}
    assert safelog.guarantee("modern", chosen).proven.epsilon == 2, "the other tables share it"
    sound = load("has_urls = false\n[safelog]\nvariant = 'sound'\n")
    chosen = sound.parameters(safelog)
    assert chosen.click_scale is None and chosen.selection_delta == chosen.delta
    assert safelog.guarantee("sound", chosen).proven.epsilon == Fraction(3, 2)
    assert sound.switched_off(safelog) == (NO_URLS,) and public_expectations(safelog, sound).endswith(NO_URLS)
    assert policy.parameters(zealous).kinds == ("keywords", "queries", "pairs")
    assert zealous.guarantee("modern", policy.parameters(zealous)).proven.epsilon == 2, "the other kinds share it"
    for each in (safelog, zealous):
        assert policy.switched_off(each) == (NO_URLS,) and Policy().switched_off(each) == ()
        assert public_expectations(each, policy).endswith(NO_URLS)
        assert Policy().parameters(each) == mechanism(each.name).plain_parameters(Policy().section(each.name))
    for off in ("click_share = 'none'", "variant = 'sound'\nclick_scale = 'none'"):
        assert load(f"has_urls = false\n[safelog]\n{off}\n").switched_off(safelog) == ()
    assert "clicks are off" in load("[safelog]\nvariant = 'sound'\ndelta = 0\n").switched_off(safelog)[0]


def test_what_contradicts_a_log_without_urls_is_refused(load) -> None:
    with pytest.raises(QlogError, match="url_list: has_urls = false says that the log has no urls"):
        load('has_urls = false\nurl_list = "urls.txt"\n')
    with pytest.raises(ParameterError, match="clicks is the only kind"):
        load("has_urls = false\n[zealous]\nkinds = ['clicks']\n").parameters(mechanism("zealous"))
    with pytest.raises(ParameterError, match="has_urls: a release may be asked for other parameters"):
        Policy().with_run_changes({"has_urls": "false"})


def test_what_is_let_in_is_the_policys_months_and_share(load) -> None:
    admission = load('first = "2006-03"\n[ingest]\nmax_rejected_share = 0.3\n').admission
    assert (admission.months.first, admission.max_rejected_share) == (Month("2006-03"), Fraction(3, 10))
    assert admission.months.last > Month("9000-01"), "without a last month there is no last month"


# What a run may change ------------------------------------------------------------------------------------------------


def test_settings_change_what_they_name_and_nothing_else() -> None:
    changed = Policy().with_settings({"safelog.threshold": "7", "pool.description": "mine", "last": "2006-05"})
    assert changed.section("safelog") == Policy().section("safelog").with_changes(threshold=7)
    assert changed.section("zealous") == Policy().section("zealous")
    assert changed.pool.description == "mine" and changed.last == Month("2006-05")
    assert changed.budget == Policy().budget


@pytest.mark.parametrize("changing", ["with_settings", "with_run_changes"])
def test_changes_are_checked_like_the_file(changing: str) -> None:
    for settings, named in (
        ({"safelog.treshold": "7"}, "safelog.treshold: unknown key"),
        ({"nothing.at.all": "7"}, "nothing.at.all: unknown key"),
        ({"dataset.name": "7"}, "dataset.name: unknown key"),
        ({"mechanisms": "7"}, "mechanisms: unknown key"),
        ({"mechanisms.safelog": "7"}, "mechanisms.safelog: unknown key"),
        ({"safelog": "7"}, "safelog: write its parameters as a section"),
        ({"safelog.threshold": "0"}, "threshold"),
        ({"safelog.threshold": {"env": "HOME"}}, "threshold"),
        ({"safelog.selection_scale": True}, "selection_scale"),
        ({"safelog.selection_scale": float("nan")}, "selection_scale"),
    ):
        with pytest.raises(ParameterError, match=named):
            getattr(Policy(), changing)(settings)


def keys_outside_mechanisms() -> list[str]:
    keys = []
    for name in Policy.model_fields:
        section = getattr(Policy(), name)
        inner = type(section).model_fields if isinstance(section, Parameters) else None
        keys += [name] if inner is None else [f"{name}.{key}" for key in inner]
    return [key for key in keys if key != "mechanisms"]


@pytest.mark.parametrize("key", keys_outside_mechanisms())
def test_a_run_that_charges_changes_no_key_outside_a_mechanisms_section(key: str) -> None:
    """Whatever key the policy gets one day: the file alone says it."""
    with pytest.raises(ParameterError, match=f"{key}: .*come from the policy file alone"):
        Policy().with_run_changes({key: "none"})


def test_a_run_that_charges_may_change_a_parameter_and_the_policy_still_knows_its_file(load) -> None:
    policy = load("[safelog]\nthreshold = 20\n")
    changed = policy.with_run_changes({"threshold": 30}, "safelog").with_run_changes({"safelog.min_users": "2"})
    assert changed.section("safelog") == policy.section("safelog").with_changes(threshold=30, min_users=2)
    assert changed.in_file == policy and policy.in_file is policy
    assert changed.with_changes(last=Month("2006-05")).in_file == policy
    with pytest.raises(ParameterError, match=r"zealous\.epsilon: is no parameter of safelog"):
        policy.with_run_changes({"zealous.epsilon": "1"}, "safelog")


@pytest.mark.parametrize("key", ["pool.path", "url_list", "public_directories"])
@pytest.mark.parametrize("value", ["/etc/passwd", "none", ""])
def test_what_is_never_charged_may_try_any_key_but_files(key: str, value: str) -> None:
    with pytest.raises(ParameterError, match=f"{key}: names a file, and files come from the policy file alone"):
        Policy().with_settings({key: value})
    assert Policy().with_settings({"pool.kind": "default", "budget.epsilon": "3"}).budget.epsilon == 3


@pytest.mark.parametrize(
    ("written", "exact"),
    [(1e-6, "1/1000000"), (0.1, "1/10"), (2.5, "5/2"), (1e-7, "1/10000000"), (3, "3"), ("0.3", "3/10")],
)
def test_a_number_that_became_a_double_on_the_way_is_the_decimal_that_was_written(written: object, exact: str) -> None:
    chosen = Policy().with_run_changes({"safelog.click_scale": written}).section("safelog")
    assert chosen.click_scale == Fraction(exact)


def test_a_bare_key_belongs_to_the_mechanism_at_hand_and_is_refused_where_it_could_mean_two() -> None:
    assert qualify_names({"delta": "0"}, "zealous") == {"zealous.delta": "0"}
    assert qualify_names({"queries_per_user": "3"}) == {"safelog.queries_per_user": "3"}
    assert qualify_names({"last": "2006-05"}, "safelog") == {"last": "2006-05"}
    with pytest.raises(ParameterError, match=r"safelog\.delta or .*zealous\.delta"):
        qualify_names({"delta": "0"})


def test_every_setting_can_be_written_down_and_read_back() -> None:
    policy = Policy().with_settings({"safelog.transition_scale": "none", "safelog.selection_scale": "1/3"})
    written: dict[str, str] = {}
    for key, value in policy.as_public().items():
        for name, inner in value.items() if isinstance(value, dict) else [("", value)]:
            written[f"{key}.{name}".rstrip(".")] = "none" if inner is None else str(inner)
    assert written.pop("pool.release_ids") == "[]", "a list of ids is written in the file only"
    for key in ("pool.path", "url_list", "public_directories", "dataset", "engine.kind"):
        del written[key]
    assert {"safelog.threshold", "zealous.kinds", "baselines.k", "budget.epsilon"} <= set(written)
    assert Policy().with_settings(written) == policy


# Limits of one release ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[limits]\nepsilon = 0", "limits: epsilon"),
        ("[limits]\ndelta = 1", "limits: delta"),
        ("[limits]\nrho = 1", "limits: rho: unknown key"),
        ("[pool]\nkind = 'releases'\nrelease_ids = ['a']\npath = 'x'", "pool: path: .*reads no file"),
    ],
)
def test_limits_and_pools_that_make_no_sense_are_named(load, text: str, named: str) -> None:
    with pytest.raises(QlogError, match=named):
        load(text)


def test_directories_of_public_files_are_relative_to_the_policy_file(load, tmp_path: Path) -> None:
    policy = load('public_directories = ["lists", "/srv/lists"]\n')
    assert policy.lists.directories == (tmp_path, tmp_path / "lists", Path("/srv/lists"))
    assert Policy().lists.directories == (), "a policy that no file holds names no file"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pool", {"kind": "query_list", "path": "policy.toml"}),
        ("ledger", {"witness": "elsewhere"}),
        ("ledger.witness", "elsewhere"),
        ("dataset", "other"),
    ],
)
def test_a_study_sets_no_whole_section_no_data_set_and_nothing_of_the_ledger(key: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"^{key}: "):
        Policy().with_settings({key: value})


@pytest.mark.parametrize(
    ("name", "text", "key", "reader"),
    [
        ("safelog", '[safelog]\nvariant = "sound"\nepsilon = 1\n', "epsilon", 'variant = "modern"'),
        ("safelog", "[safelog]\nclick_scale = 3\n", "click_scale", 'variant = "sound"'),
        ("zealous", "[zealous]\nset_share = 0.5\n", "set_share", "weighted_gaussian"),
        ("sessions", "[sessions]\ncounted_items_per_user = 5\n", "counted_items_per_user", "weighted_gaussian"),
        ("sanitized", "[sanitized]\nset_share = 0.5\n", "set_share", "weighted_gaussian"),
    ],
)
def test_a_key_that_a_release_would_not_read_is_refused_and_not_ignored(
    load, name: str, text: str, key: str, reader: str
) -> None:
    with pytest.raises(ParameterError, match=f"{key}: is read by .*{reader}"):
        load(text).parameters(mechanism(name))
