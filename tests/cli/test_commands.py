"""`qlog` as scripts and people meet it: the JSON contract, one line and exit code 2 on bad input, nothing half-done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.door import door_at
from support.instances import (
    AOL_HEADER,
    MONTHS,
    POLICY,
    POLICY_EPSILON,
    USERS,
    Prepared,
    contents,
    edit_policy,
    make_home,
    small_log,
)

from qlog_assets.ledger import Ledger
from qlog_assets.storage.dagster_home import open_existing

MARCH, APRIL = MONTHS
ROW = "7\tweather\t2006-03-02 10:00:00\t1\thttp://www.weather.example\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.txt"
    path.write_text(small_log(), encoding="utf-8")
    return path


# The JSON contract --------------------------------------------------------------------------------------------------


def test_ingest_answers_what_became_of_every_row_and_the_second_time_that_nothing_was_added(
    home: Path, log: Path
) -> None:
    make_home(home)
    first = qlog(home, "ingest", log, "--format", "aol", "--json").json
    assert first["read"] == 2 * USERS * 6 == first["accepted"] + sum(first["rejected"].values())
    assert first["rejected"] == {"empty_query": 2 * USERS}
    assert first["months"] == {MARCH: USERS * 5, APRIL: USERS * 5}
    before = contents(home)
    second = qlog(home, "ingest", log, "--format", "aol", "--json").json
    assert second["read"] == second["accepted"] == 0 and second["already_ingested"] == ["small.txt"]
    assert contents(home) == before
    said = qlog(home, "ingest", log, "--format", "aol")
    assert said.code == 0 and "was ingested before; nothing was added" in said.out


def test_ingest_does_not_count_a_copy_under_another_name_twice(ingested: Path, log: Path) -> None:
    copy = log.rename(log.with_name("copy.txt"))
    answer = qlog(ingested, "ingest", copy, "--format", "aol", "--json").json
    assert answer["already_ingested"] == ["copy.txt"] and answer["accepted"] == 0


def test_ingest_leaves_the_file_it_was_given_as_it_is(home: Path, log: Path) -> None:
    log.chmod(0o400)
    before = log.read_bytes(), log.stat().st_mtime_ns
    assert qlog(make_home(home), "ingest", log, "--format", "aol").success
    assert (log.read_bytes(), log.stat().st_mtime_ns) == before


def test_ingest_takes_many_files_and_adds_them_up(home: Path, tmp_path: Path) -> None:
    paths = []
    for day in (1, 2, 3):
        paths.append(tmp_path / f"day-{day}.txt")
        paths[-1].write_text(AOL_HEADER + f"{day}\tnews\t2006-03-0{day} 10:00:00\t\t\n", encoding="utf-8")
    answer = qlog(make_home(home), "ingest", *paths, "--format", "aol", "--json").json
    assert (answer["read"], answer["accepted"], answer["months"]) == (3, 3, {MARCH: 3})


@pytest.mark.parametrize("mechanism", ["safelog", "zealous", "sessions", "crowd", "sanitized"])
def test_guarantee_states_claim_proof_parts_and_gaps_of_every_mechanism(home: Path, mechanism: str) -> None:
    facts = qlog(home, "guarantee", mechanism, "--json").json
    assert facts["mechanism"] == mechanism and facts["variant"]
    for loss in (facts["claimed"], facts["proven"], *(part["claimed"] for part in facts["parts"])):
        assert loss is None or {"epsilon", "delta"} <= set(loss)
    assert facts["parts"] and isinstance(facts["gaps"], list)
    paper = "dp_u" if mechanism == "crowd" else "paper"
    printed = qlog(home, "guarantee", mechanism, "--variant", paper, "--json").json
    assert printed["variant"] == paper and printed["gaps"]


@pytest.mark.parametrize(
    ("per_user", "printed"), [(10, "4.27"), (50, "21.36"), (100, "42.73"), (150, "64.09"), (200, "85.45")]
)
def test_guarantee_of_the_paper_variant_prints_the_epsilons_of_table_3(home: Path, per_user: int, printed: str) -> None:
    """Table 3 has K = b = b_q = b_c = 10 and leaves transitions out."""
    chosen = {
        "queries_per_user": per_user,
        "clicks_per_user": per_user,
        "selection_scale": 10,
        "query_scale": 10,
        "click_scale": 10,
        "transition_scale": "none",
        "threshold": 10,
        "pool.probability": 1,
    }
    settings = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    facts = qlog(home, "guarantee", "safelog", "--variant", "paper", *settings, "--json").json
    assert f"{facts['claimed']['epsilon']:.2f}" == printed
    assert facts["claimed"]["delta"] == 0 and facts["proven"] is None and facts["gaps"]


def test_guarantee_reads_the_policy_file_and_set_changes_it(home: Path) -> None:
    make_home(home)
    assert qlog(home, "guarantee", "safelog", "--json").json["proven"]["epsilon"] == POLICY_EPSILON
    without = qlog(home, "guarantee", "safelog", "--set", "transition_scale=none", "--json").json
    assert without["proven"]["epsilon"] == POLICY_EPSILON - 3 / 0.5
    assert "transitions" not in {part["name"] for part in without["parts"]}


def test_guarantee_is_of_the_lists_that_the_policy_names_and_tries_other_kinds_of_pool(home: Path) -> None:
    make_home(home)
    edit_policy(home, safelog='delta = "1e-6"\nclick_scale = 4')
    clicks = {part["name"]: part for part in qlog(home, "guarantee", "safelog", "--json").json["parts"]}["clicks"]
    assert clicks["proven"]["delta"] > 0
    (home / "urls.txt").write_text("http://tea.example\n", encoding="utf-8")
    edit_policy(home, top='url_list = "urls.txt"')
    clicks = {part["name"]: part for part in qlog(home, "guarantee", "safelog", "--json").json["parts"]}["clicks"]
    assert clicks["proven"]["delta"] == 0, "clicks on listed urls take no share of delta, and a release would not"
    for kind in ("default", "ngram_file", "query_list"):
        assert qlog(home, "guarantee", "safelog", "--set", f"pool.kind={kind}", "--json").json["proven"]
    assert "needs the ids of earlier" in qlog(home, "guarantee", "safelog", "--set", "pool.kind=releases").refusal


def test_release_answers_what_was_charged_and_where_the_files_are(released: Path) -> None:
    """Made with the policy file's parameters, and served without a charge when it is asked for again."""
    answer = qlog(released, "release", "safelog", "--month", MARCH, "--json").json
    assert answer["release_id"].startswith(f"safelog-{MARCH}-")
    assert (answer["month"], answer["mechanism"], answer["variant"]) == (MARCH, "safelog", "sound")
    assert (answer["epsilon"], answer["delta"], answer["charged"]) == (POLICY_EPSILON, 1e-3, False)
    assert set(answer["rows"]) == {"queries", "clicks", "transitions"} and answer["rows"]["queries"] >= 3
    path = Path(answer["path"])
    for table, rows in answer["rows"].items():
        assert pq.read_table(path / f"{table}.parquet").num_rows == rows
        assert (path / f"{table}.csv").exists()
    assert (path / "manifest.json").exists() and (path / "datasheet.html").exists()


def test_ledger_answers_budget_spent_left_and_charges(prepared: Prepared) -> None:
    facts = qlog(prepared("released"), "ledger", "--json").json
    assert facts["dataset"] == "small" and len(facts["charges"]) == 1
    assert facts["spent"]["epsilon"] == POLICY_EPSILON == facts["charges"][0]["epsilon"]
    assert facts["budget"]["epsilon"] == 100 == facts["spent"]["epsilon"] + facts["left"]["epsilon"]
    assert facts["charges"][0]["state"] == "published"


def test_audit_answers_with_a_verdict_a_release(prepared: Prepared) -> None:
    home = prepared("released")
    facts = qlog(home, "audit", "--json").json
    (release,) = facts["releases"]
    assert release["ok"] is True and release["findings"] == []
    assert release["release_id"] == qlog(home, "ledger", "--json").json["charges"][0]["release_id"]


def test_every_command_answers_people_in_words(prepared: Prepared) -> None:
    home = prepared("released")
    for words, said in (
        (("ledger",), "left"),
        (("audit",), "nothing was found"),
        (("guarantee", "safelog"), "ε ="),
        (("guarantee", "safelog", "--variant", "paper"), "gap: G1"),
    ):
        answer = qlog(home, *words)
        assert answer.code == 0 and said in answer.out and answer.err == "", words


def test_release_of_several_months_answers_for_each_and_later_ones_cost_nothing_twice(ingested: Path) -> None:
    words = ("release", "safelog", "--month", MARCH, "--month", APRIL)
    releases = qlog(ingested, *words, "--json").json["releases"]
    assert [release["month"] for release in releases] == [MARCH, APRIL] and all(r["charged"] for r in releases)
    assert qlog(ingested, "ledger", "--json").json["spent"]["epsilon"] == 2 * POLICY_EPSILON
    said = qlog(ingested, *words)
    assert said.code == 0 and said.out.count("no: released before") == 2
    assert qlog(ingested, "ledger", "--json").json["spent"]["epsilon"] == 2 * POLICY_EPSILON


@pytest.mark.slow
def test_months_that_do_not_fit_together_are_refused_before_any_is_charged(ingested: Path) -> None:
    qlog(ingested, "ledger", "set-budget", "--epsilon", "30", "--delta", "0.1", "--reason", "a test").success  # noqa: B018
    both = ("--month", MARCH, "--month", APRIL)
    refusal = qlog(ingested, "release", "safelog", *both).refusal
    assert "2006-03, 2006-04: each of them fits the budget of small, and all of them together do not" in refusal
    refusal = qlog(ingested, "release", "safelog", *both, "--month", "2006-05").refusal
    assert "no rows of 2006-05" in refusal and "nothing was charged, for 2006-03, 2006-04 neither" in refusal
    assert qlog(ingested, "ledger", "--json").json["charges"] == []


@pytest.mark.slow
def test_a_log_without_urls_is_capped_without_clicks_says_so_on_its_page_and_audits_deeply(ingested: Path) -> None:
    edit_policy(ingested, top="has_urls = false")
    assert "clicks" not in qlog(ingested, "release", "safelog", "--month", MARCH, "--json").json["rows"]
    with open_existing(ingested / "dagster") as instance:
        drawn = instance.get_latest_materialization_event(dg.AssetKey("selected"))
    assert drawn is not None and drawn.asset_materialization is not None
    said = drawn.asset_materialization.metadata["switched off"].value
    assert said == "clicks are off: the policy says that the log has no urls (has_urls = false)"
    assert qlog(ingested, "audit", "--deep", "--json").json["ok"] is True


def test_switching_optional_parts_off_leaves_their_tables_and_their_cost_out(ingested: Path) -> None:
    settings = ("--set", "transition_scale=none", "--set", "click_scale=none")
    answer = qlog(ingested, "release", "safelog", "--month", MARCH, *settings, "--json").json
    assert set(answer["rows"]) == {"queries"} and answer["epsilon"] == 4 / 0.5
    assert {path.stem for path in Path(answer["path"]).glob("*.csv")} == {"queries"}


def test_withdraw_and_forget_answer_what_they_did(released: Path) -> None:
    release_id = qlog(released, "ledger", "--json").json["charges"][0]["release_id"]
    forgotten = qlog(released, "forget", "--before", APRIL, "--json").json
    assert forgotten["months"] == [MARCH]
    withdrawn = qlog(released, "withdraw", release_id, "--reason", "a test", "--json").json
    assert withdrawn == {"release_id": release_id, "state": "withdrawn"}
    assert qlog(released, "ledger", "--json").json["spent"]["epsilon"] == POLICY_EPSILON


def test_set_budget_changes_the_account_and_never_below_what_is_spent(released: Path) -> None:
    raised = ("ledger", "set-budget", "--epsilon", "30.5", "--delta", "0.1", "--reason", "signed by nobody")
    assert qlog(released, *raised, "--json").json == {
        "dataset": "small",
        "budget": {"epsilon": 30.5, "delta": 0.1},
    }
    refusal = qlog(released, "ledger", "set-budget", "--epsilon", "3", "--delta", "0.1", "--reason", "less").refusal
    assert "spent" in refusal
    assert qlog(released, "ledger", "--json").json["budget"]["epsilon"] == 30.5


def test_a_reservation_that_nothing_was_drawn_for_can_be_given_back(ingested: Path) -> None:
    """What a run leaves behind that was killed before it drew."""
    door_at(ingested).open_account()
    ledger = Ledger.open(ingested / "ledger.db")
    charge, _ = ledger.reserve(
        dataset="small",
        month=MARCH,
        mechanism="safelog",
        variant="sound",
        mechanism_version=1,
        parameters={},
        inputs={},
        epsilon="1",
        delta="0",
    )
    assert qlog(ingested, "ledger", "--json").json["reserved"]["epsilon"] == 1
    words = ("ledger", "abandon", charge.release_id, "--reason", "its run was killed")
    assert qlog(ingested, *words, "--json").json == {"release_id": charge.release_id, "state": "abandoned"}
    assert qlog(ingested, "ledger", "--json").json["spent"]["epsilon"] == 0
    assert qlog(ingested, *words, "--json").json["state"] == "abandoned", "once more is the same"


def test_a_published_release_cannot_be_abandoned(released: Path) -> None:
    release_id = qlog(released, "ledger", "--json").json["charges"][0]["release_id"]
    assert release_id in qlog(released, "ledger", "abandon", release_id, "--reason", "no longer wanted").refusal
    assert qlog(released, "ledger", "--json").json["spent"]["epsilon"] == POLICY_EPSILON


def test_the_ledger_shows_every_event_with_its_reason_and_the_months_that_nobody_decided(released: Path) -> None:
    facts = qlog(released, "ledger", "--json").json
    assert facts["undecided"]["safelog"] == {"months": [APRIL, "2006-05"], "unfinished": []}
    release_id = facts["charges"][0]["release_id"]
    for words in (
        ("ledger", "set-budget", "--epsilon", "120", "--delta", "0.1", "--reason", "the board agreed"),
        ("withdraw", release_id, "--reason", "the wrong file"),
        ("skip", "--month", APRIL, "--month", "2006-05", "--reason", "nothing was logged"),
    ):
        assert qlog(released, *words).success
    said, facts = qlog(released, "ledger").success, qlog(released, "ledger", "--json").json
    for reason in ("the board agreed", "the wrong file", "nothing was logged"):
        assert reason in said
        assert reason in [event["reason"] for event in facts["events"]]
    charged = next(event for event in facts["events"] if event["kind"] == "reserved")
    assert charged["run_id"] and charged["run_id"][:8] in said and charged["who"] in said
    assert facts["undecided"] == {} and "undecided" not in said
    assert {(skip["month"], skip["mechanism"]) for skip in facts["skips"]} >= {(APRIL, "safelog"), (APRIL, "zealous")}
    assert qlog(released, "audit", "--json").json["ok"] is True


def test_release_over_budget_names_what_was_asked_and_what_is_left(released: Path) -> None:
    assert qlog(released, "ledger", "set-budget", "--epsilon", "30", "--delta", "0.1", "--reason", "a test").success
    refusal = qlog(released, "release", "safelog", "--month", APRIL).refusal
    assert str(int(POLICY_EPSILON)) in refusal and "10" in refusal
    assert not (released / "released" / "safelog" / APRIL).exists()
    assert qlog(released, "ledger", "--json").json["spent"]["epsilon"] == POLICY_EPSILON


def test_looking_at_the_ledger_opens_no_account_and_freezes_no_budget(home: Path) -> None:
    edit_policy(home, budget='epsilon = "5"')
    facts = qlog(home, "ledger", "--json").json
    assert (facts["is_open"], facts["budget"]["epsilon"], facts["left"]["epsilon"]) == (False, 5, 5)
    assert facts["charges"] == facts["months"] == facts["windows"] == []
    assert [event["kind"] for event in facts["events"]] == ["created"]
    assert "no account yet: the first release opens it with ε = 5" in qlog(home, "ledger").success
    edit_policy(home, budget='epsilon = "7"')
    assert "opens it with ε = 7" in qlog(home, "ledger").success, "a look binds nobody to the budget it showed"


def test_the_ledger_says_where_the_policy_states_another_budget_than_counts(home: Path) -> None:
    words = ("ledger", "set-budget", "--epsilon", "9", "--delta", "0.1", "--reason", "a test")
    edit_policy(home, budget='epsilon = "5"\ndelta = "0.1"')
    assert qlog(home, *words).success
    said = " ".join(qlog(home, "ledger").success.split())
    assert "the policy says ε = 5, δ = 0.1 (basic accountant); the ledger's budget counts" in said
    edit_policy(home, budget='epsilon = "9"')
    assert "the policy says" not in qlog(home, "ledger").success
    facts = qlog(home, "ledger", "--json").json
    assert facts["is_open"] and facts["budget"] == facts["budget_in_policy"]


# Ingesting what is not quite right -----------------------------------------------------------------------------------


def test_a_file_of_which_too_much_is_rejected_is_warned_about_and_its_month_is_released(
    home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "poor.txt"
    path.write_text(AOL_HEADER + ROW * 3 + "7\t\t2006-03-02 10:00:00\t\t\n", encoding="utf-8")
    said = " ".join(qlog(make_home(home), "ingest", path, "--format", "aol").success.split())
    assert "warning: poor.txt: 25 % of its 4 rows were rejected (empty_query 1)" in said
    assert "ingest.max_rejected_share = 0.2" in said and "qlog ingest withdraw poor-txt-aol-" in said
    assert qlog(home, "ingest", path, "--format", "aol", "--json").json["already_ingested"] == ["poor.txt"]
    assert qlog(home, "release", "safelog", "--month", MARCH, "--json").json["charged"] is True


@pytest.mark.parametrize("mechanism", ["safelog", "zealous"])
def test_a_month_of_which_cleaning_leaves_nothing_has_an_empty_release(
    home: Path, tmp_path: Path, mechanism: str
) -> None:
    """Whether the last query of a month is one decides what is counted, never whether there is a release."""
    path = tmp_path / "dash.txt"
    path.write_text(AOL_HEADER + "7\t\uff0d\t2006-03-02 10:00:00\t\t\n", encoding="utf-8")
    assert qlog(make_home(home), "ingest", path, "--format", "aol", "--json").json["accepted"] == 1
    assert qlog(home, "release", mechanism, "--month", MARCH, "--json").json["charged"] is True


def test_rows_outside_the_policys_months_are_taken_in_once_the_policy_is_wider(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "summer.txt"
    path.write_text(AOL_HEADER + ROW * 9 + "7\tnews\t2006-06-02 10:00:00\t\t\n", encoding="utf-8")
    make_home(home)
    first = qlog(home, "ingest", path, "--format", "aol", "--json").json
    assert first["rejected"] == {"month_outside_policy": 1} and first["months"] == {MARCH: 9}
    make_home(home, POLICY.replace("2006-05", "2006-06"))
    second = qlog(home, "ingest", path, "--format", "aol", "--json").json
    assert second["months"] == {MARCH: 9, "2006-06": 1} and second["already_ingested"] == []


def test_guarantee_says_in_words_which_thresholds_are_set_or_derived_and_what_is_off(home: Path) -> None:
    said = qlog(home, "guarantee", "safelog", "--set", "has_urls=false", "--set", "variant=sound").out
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "queries of the pool 25 set at most about 1.4 the pool has 583,010" in rows
    assert "other queries 30 derived none" in rows
    assert "clicks are off: the policy says that the log has no urls (has_urls = false)" in rows
    said = qlog(home, "guarantee", "safelog", "--set", "has_urls=false").out
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "clicks are off: the policy says that the log has no urls (has_urls = false)" in rows
    assert any(row.startswith("queries of the pool ") and " derived at most about 1 " in row for row in rows)


EXCITE = Path(__file__).parents[2] / "shared" / "data" / "excite-small.log"


@pytest.fixture
def excite_log(tmp_path: Path) -> Path:
    """A log like Excite's, with an empty query among ten rows, as one in eight of Excite's is."""
    path = tmp_path / "excite.log"
    rows = [f"2A9EABFB35F5B9{number:02d}\t97091600{number:02d}00\t+md+finance" for number in range(9)]
    path.write_text("".join(row + "\n" for row in [*rows, "BED75271605EBD0C\t970916001949\t"]), encoding="latin-1")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "epsilon"), [("modern", 2), ("sound", 1.5)])
@pytest.mark.parametrize("sample", ["made here", "the real one"])
def test_an_excite_log_is_ingested_and_a_release_of_it_may_be_empty(
    home: Path, excite_log: Path, sample: str, variant: str, epsilon: float
) -> None:
    expected = (10, {"empty_query": 1})
    if sample == "the real one":
        if not EXCITE.exists():
            pytest.skip("the Excite sample is not on this machine: ../shared/data/excite-small.log")
        excite_log, expected = EXCITE, (4501, None)
    answer = qlog(home, "ingest", excite_log, "--format", "excite", "--json").json
    assert answer["read"] == expected[0] == answer["accepted"] + sum(answer["rejected"].values())
    assert expected[1] in (None, answer["rejected"])
    assert set(answer["months"]) == {"1997-09"}
    assert [f"{excite_log.name} has no column of urls" in said for said in answer["warnings"]].count(True) == 1
    # The pool of the test, because the default pool has 250,000 queries and nothing here depends on it.
    (home / "pool.txt").write_text("weather\n", encoding="utf-8")
    pool = 'kind = "query_list"\npath = "pool.txt"'
    edit_policy(home, top="has_urls = false", pool=pool, safelog=f'variant = "{variant}"')
    release = qlog(home, "release", "safelog", "--month", "1997-09", "--json").json
    # The table that could not hold a row is neither there nor paid for. In `sound` it would take half a unit of ε; the
    # budget of `modern` is one, and goes to the others.
    assert release["charged"] is True and set(release["rows"]) == {"queries", "transitions"}
    assert release["epsilon"] == epsilon
    assert json.loads((Path(release["path"]) / "manifest.json").read_text())["month"] == "1997-09"


# Simulations ---------------------------------------------------------------------------------------------------------


@pytest.mark.study
@pytest.mark.parametrize("variant", ["sound", "paper"])
def test_a_simulation_is_private_free_and_repeats_with_its_seed(
    ingested: Path, variant: str, tables: Callable[[str], dict[str, list]]
) -> None:
    """Six words decide a draw: the same ones give the same rows, another seed gives others."""
    words = ("simulate", "safelog", "--month", MARCH, "--variant", variant, "--json")
    one, again, other = (qlog(ingested, *words, "--seed", seed).json for seed in (5, 5, 6))
    assert one["charged"] is False and one["variant"] == variant and one["seed"] == 5
    assert (one["proven"] is None) == (variant == "paper")
    assert one["rows"]["queries"] >= 3
    assert tables(one["path"]) == tables(again["path"]) != tables(other["path"])
    for facts in (one, again, other):
        path = Path(facts["path"])
        assert path.is_relative_to(ingested / "private" / "studies") and path.stat().st_mode & 0o077 == 0
        assert all(file.stat().st_mode & 0o077 == 0 for file in path.iterdir())
    assert not list((ingested / "released").iterdir())
    assert qlog(ingested, "ledger", "--json").json["charges"] == []


@pytest.fixture
def tables() -> Callable[[str], dict[str, list]]:
    return lambda path: {file.name: pq.read_table(file).to_pylist() for file in Path(path).glob("*.parquet")}


def test_a_simulation_with_other_parameters_leaves_what_a_release_was_made_from(released: Path) -> None:
    pointers = {path: path.read_text() for path in (released / "private").glob("*/*/current")}
    assert qlog(released, "simulate", "safelog", "--month", MARCH, "--set", "queries_per_user=2").success
    assert {path: path.read_text() for path in (released / "private").glob("*/*/current")} == pointers
    assert qlog(released, "audit", "--json").json["ok"] is True


@pytest.mark.slow
def test_a_simulation_draws_the_variant_and_the_tables_that_a_release_would(ingested: Path) -> None:
    words = ("zealous", "--month", MARCH, "--json")
    for variant in ("modern", "sound"):
        edit_policy(ingested, top="has_urls = false", zealous=f'variant = "{variant}"\nitems_per_user = 2')
        drawn = qlog(ingested, "simulate", *words).json
        again = ("--again", "another variant") if variant == "sound" else ()
        release = qlog(ingested, "release", *words, *again).json
        assert drawn["variant"] == release["variant"] == variant
        assert set(drawn["rows"]) == set(release["rows"]) == {"keywords", "queries", "pairs"}
        assert drawn["proven"]["epsilon"] == release["epsilon"]


def test_pure_epsilon_releases_pool_queries_and_listed_urls_only(ingested: Path) -> None:
    """With delta = 0 nothing that is not public already can appear, whatever was typed."""
    urls = ingested / "urls.txt"
    urls.write_text("http://www.weather.example\nhttp://www.news.example\n", encoding="utf-8")
    edit_policy(ingested, top='url_list = "urls.txt"')
    answer = qlog(ingested, "release", "safelog", "--month", MARCH, "--set", "delta=0", "--json").json
    assert answer["delta"] == 0 and answer["epsilon"] == POLICY_EPSILON
    pool = set((ingested / "pool.txt").read_text().splitlines())
    rows = {name: pq.read_table(Path(answer["path"]) / f"{name}.parquet").to_pylist() for name in answer["rows"]}
    assert {row["query"] for row in rows["queries"]} <= pool and rows["queries"]
    assert {row["url"] for row in rows["clicks"]} <= {"http://www.weather.example", "http://www.news.example"}
    assert rows["clicks"]
