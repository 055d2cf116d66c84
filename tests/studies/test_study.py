"""Studies: answered once into one private folder, interrupted without loss, forgotten with their month."""

from __future__ import annotations

import csv
import json
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from support.cli import qlog
from support.door import APRIL, MARCH, door_at, umask, warehouse_at

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger import Ledger
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.engine import Engine
from qlog_assets.studies import register
from qlog_assets.studies.study import Step, Study, StudyWork, Tables, facts_of_run, read_facts, run_study
from qlog_assets.verify.retention import forget_before

PNG = b"\x89PNG\r\n\x1a\n and so on"
QUICK = ("--seed", 2, "--set", "items_per_user=2,5", "--set", "k=5", "--set", "frequent=5")
"""A study of forty users: few limits to try, and items that so few can make frequent."""


class ToySettings(Parameters):
    """What the toy varies."""

    seed: int = Field(1, ge=0)
    wide: int = Field(2, ge=1)


class Toy:
    """A study in three steps that counts how often each was measured, and may be interrupted at one of them."""

    def __init__(self) -> None:
        self.measured: Counter[str] = Counter()
        self.fails_at: str | None = None

    def step(self, name: str) -> Step:
        def measure(work: StudyWork) -> Tables:
            if name == self.fails_at:
                raise KeyboardInterrupt
            self.measured[name] += 1
            rows = [
                {"step": name, "number": number, "seed": work.settings.seed} for number in range(work.settings.wide)
            ]
            return {"numbers": rows, **({"last": [{"nothing": None}]} if name == "third" else {})}

        return Step(name, measure)

    def steps(self, work: StudyWork) -> Sequence[Step]:
        return [self.step(name) for name in ("first", "second", "third")]

    @property
    def study(self) -> Study:
        return Study(
            name="toy",
            title="A toy",
            question="How many rows has a toy?",
            settings=ToySettings,
            steps=self.steps,
            mechanism="zealous",
            pictures=lambda tables: {"numbers.png": PNG},
            words=lambda tables, settings: f"It has {len(tables['numbers'])} rows.",
            reads=lambda work: {"raw_log": work.warehouse.current("raw_log", str(work.month)).provenance.shape},
        )


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def ask(ingested: Path, toy: Toy) -> Iterator[Ask]:
    """Asks the toy's question about March, or another one."""
    warehouse = warehouse_at(ingested)
    with Engine.open(warehouse) as engine:

        def asking(
            month: Month | None = MARCH, study: Study | None = None, policy: Policy | None = None, **settings: Any
        ) -> dict[str, Any]:
            chosen = policy or Policy.load(ingested / "policy.toml")
            run_id = f"run {sum(toy.measured.values())}"
            work = StudyWork(warehouse, engine, chosen, ToySettings(**settings), month, run_id)
            return run_study(study or toy.study, work)

        yield asking


def folders(home: Path) -> list[Path]:
    return sorted((home / "private" / "studies").iterdir())


@pytest.mark.parametrize("change", ["safelog.threshold=12", "pool.probability=0.5", "a line of the pool's file"])
def test_what_other_mechanisms_and_the_pool_are_drawn_with_is_part_of_the_question(
    ingested: Path, ask: Ask, toy: Toy, change: str
) -> None:
    """A study of no single mechanism may draw any: an answer that is kept must not be shown for another policy."""
    study, policy = replace(toy.study, mechanism=None), Policy.load(ingested / "policy.toml")
    first = ask(study=study)
    if "=" in change:
        policy = policy.with_settings(dict([change.split("=")]))
    else:
        with (ingested / "pool.txt").open("a", encoding="utf-8") as pool:
            pool.write("one more\n")
    assert ask(study=study, policy=policy)["path"] != first["path"] and toy.measured["first"] == 2
    assert ask(study=study, policy=policy)["finished"] and toy.measured["first"] == 2


# One folder ----------------------------------------------------------------------------------------------------------


def test_tables_pictures_facts_and_text_lie_in_one_folder(ingested: Path, ask: Ask) -> None:
    facts = ask(wide=3)
    (folder,) = folders(ingested)
    assert facts["path"] == str(folder) and folder.name.startswith(f"toy-{MARCH}-")
    assert {path.name for path in folder.iterdir()} == {
        "study.json", "study.md", "numbers.csv", "last.csv", "numbers.png", "steps",
    }  # fmt: skip
    with (folder / "numbers.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows == [{name: str(value) for name, value in row.items()} for row in facts["tables"]["numbers"]]
    assert len(rows) == 9 and [row["step"] for row in rows[::3]] == ["first", "second", "third"]
    assert (folder / "numbers.png").read_bytes() == PNG
    written = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert {key: value for key, value in written.items() if key != "answered_run"} == facts
    assert written["finished"] is True and written["month"] == MARCH and written["settings"] == {"seed": 1, "wide": 3}
    assert written["parameters"] == Policy.load(ingested / "policy.toml").section("zealous").as_public()
    text = (folder / "study.md").read_text(encoding="utf-8")
    for said in (f"# A toy of {MARCH}", "How many rows", "It has 9 rows.", "wide = 3", "![numbers.png](numbers.png)"):
        assert said in text


def test_what_is_made_of_all_steps_is_a_table_like_the_others(ingested: Path, toy: Toy, ask: Ask) -> None:
    def count(tables: Tables) -> Tables:
        return {**tables, "sizes": [{"table": name, "rows": len(rows)} for name, rows in sorted(tables.items())]}

    facts = ask(study=replace(toy.study, combine=count))
    assert facts["tables"]["sizes"] == [{"table": "last", "rows": 1}, {"table": "numbers", "rows": 6}]
    (folder,) = folders(ingested)
    assert (folder / "sizes.csv").read_text(encoding="utf-8").splitlines() == ["table,rows", "last,1", "numbers,6"]


@pytest.mark.parametrize("mask", [0o077, 0o000])
def test_all_of_it_is_the_owners_alone(ingested: Path, ask: Ask, mask: int) -> None:
    with umask(mask):
        ask()
    (folder,) = folders(ingested)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_an_interrupted_studys_folder_is_the_owners_alone_too(ingested: Path, toy: Toy, ask: Ask) -> None:
    toy.fails_at = "second"
    with umask(0), pytest.raises(KeyboardInterrupt):
        ask()
    (folder,) = folders(ingested)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}


# Once ----------------------------------------------------------------------------------------------------------------


def test_an_interrupted_study_goes_on_where_it_stopped(ingested: Path, toy: Toy, ask: Ask) -> None:
    toy.fails_at = "second"
    with pytest.raises(KeyboardInterrupt):
        ask()
    (folder,) = folders(ingested)
    facts = read_facts(folder)
    assert facts is not None and facts["finished"] is False and facts["month"] == MARCH
    assert toy.measured == {"first": 1} and not (folder / "study.md").exists()
    toy.fails_at = None
    assert ask()["finished"] is True and folders(ingested) == [folder]
    assert toy.measured == {"first": 1, "second": 1, "third": 1}


def test_what_a_study_is_at_is_told_from_the_first_step_to_the_last(ingested: Path, toy: Toy) -> None:
    told: list[tuple[int, int, str]] = []
    warehouse = warehouse_at(ingested)
    with Engine.open(warehouse) as engine:
        work = StudyWork(warehouse, engine, Policy.load(ingested / "policy.toml"), ToySettings(), MARCH)
        run_study(toy.study, work, lambda done, of, step: told.append((done, of, step)))
    assert told == [(0, 3, "first"), (1, 3, "second"), (2, 3, "third"), (3, 3, "writing")]


def test_the_same_question_is_answered_from_the_folder(ingested: Path, toy: Toy, ask: Ask) -> None:
    first, written = ask(), {path: path.read_bytes() for path in folders(ingested)[0].glob("*.csv")}
    second = ask()
    assert second["tables"] == first["tables"] and second["path"] == first["path"]
    assert toy.measured == {"first": 1, "second": 1, "third": 1}
    assert written == {path: path.read_bytes() for path in folders(ingested)[0].glob("*.csv")}
    # A run that found the answer can say which it was, like the run that measured it.
    assert facts_of_run(warehouse_at(ingested), "run 3")["path"] == first["path"]


def test_another_question_is_another_folder(ingested: Path, toy: Toy, ask: Ask) -> None:
    policy = Policy.load(ingested / "policy.toml")
    asked = [
        ask(),
        ask(seed=2),
        ask(wide=5),
        ask(month=APRIL),
        ask(study=replace(toy.study, version=2)),
        ask(policy=policy.with_settings({"zealous.epsilon": "3"})),
    ]
    assert len({facts["path"] for facts in asked}) == len(asked) == len(folders(ingested))
    assert set(toy.measured.values()) == {len(asked)}
    # What the study does not read does not make it another one.
    assert ask(policy=policy.with_settings({"safelog.threshold": "12"}))["path"] == asked[0]["path"]


def test_the_same_question_of_another_log_is_another_one(ingested: Path, tmp_path: Path, ask: Ask) -> None:
    first = ask()
    late = tmp_path / "late.txt"
    late.write_text("99\tnews\t2006-03-05 10:00:00\t\t\n", encoding="utf-8")
    assert qlog(ingested, "ingest", late, "--format", "aol").code == 0
    assert ask()["path"] != first["path"]


def test_a_study_of_a_month_needs_one(ask: Ask) -> None:
    with pytest.raises(QlogError, match="is of one month: say which, with --month"):
        ask(month=None)


def test_a_study_of_no_month_reads_none(ingested: Path, toy: Toy, ask: Ask) -> None:
    facts = ask(month=None, study=replace(toy.study, per_month=False, reads=lambda work: {}))
    assert facts["month"] is None and Path(facts["path"]).name.startswith("toy-")


def test_a_withheld_table_is_in_its_file_and_nowhere_else(ingested: Path, toy: Toy, ask: Ask) -> None:
    facts = ask(study=replace(toy.study, withheld=lambda settings: ("numbers",)))
    folder = Path(facts["path"])
    assert set(facts["tables"]) == {"last"} and set(read_facts(folder)["tables"]) == {"last"}  # type: ignore[index]
    assert (folder / "numbers.csv").read_text(encoding="utf-8").count("\n") == 7


def test_a_file_has_its_columns_in_the_order_that_a_terminal_shows(ingested: Path, toy: Toy, ask: Ask) -> None:
    facts = ask(study=replace(toy.study, columns={"numbers": ("step", "number")}))
    first = (Path(facts["path"]) / "numbers.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first == "step,number,seed"


# The studies there are -----------------------------------------------------------------------------------------------


def test_the_register_finds_studies_by_their_folders() -> None:
    assert {"crowd", "sanitized", "session-loss", "safelog-clusters", "zealous"} <= set(register.names())
    assert tuple(study.name for study in register.studies()) == register.names() == tuple(sorted(register.names()))
    with pytest.raises(ParameterError, match=r"no study 'unknown': choose one of .*crowd, .*, zealous"):
        register.study("unknown")


@pytest.mark.study
def test_the_command_answers_a_study_and_the_second_time_from_its_folder(ingested: Path) -> None:
    before = qlog(ingested, "ledger", "--json").json
    facts = qlog(ingested, "study", "zealous", "--month", MARCH, *QUICK, "--json").json
    assert facts["settings"] == {"seed": 2, "k": 5, "frequent": 5, "items_per_user": [2, 5], "tested_part": 0}
    assert set(facts["tables"]) == {"frequent_items", "caching", "substitution", "attack"} and facts["finished"]
    assert {row["kind"] for row in facts["tables"]["frequent_items"]} == {"keywords", "queries", "pairs", "clicks"}
    (folder,) = folders(ingested)
    assert facts["path"] == str(folder)
    assert {"study.json", "study.md", "frequent_items.csv", "frequent_items.png", "applications.png"} <= {
        path.name for path in folder.iterdir()
    }
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.csv")}
    again = qlog(ingested, "study", "zealous", "--month", MARCH, *QUICK, "--json").json
    assert again["tables"] == facts["tables"] and folders(ingested) == [folder]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.csv")} == written
    assert qlog(ingested, "ledger", "--json").json == before, "a study is never charged"


def test_the_command_names_the_studies_and_refuses_what_is_none(ingested: Path) -> None:
    assert "zealous" in qlog(ingested, "study", "--json").json
    refusal = qlog(ingested, "study", "unknown", "--month", MARCH).refusal
    assert f"choose one of {', '.join(register.names())}" in " ".join(refusal.split())
    assert "--month" in qlog(ingested, "study", "zealous").refusal
    assert "k" in qlog(ingested, "study", "zealous", "--month", MARCH, "--set", "k=1").refusal
    assert "treshold" in qlog(ingested, "study", "zealous", "--month", MARCH, "--set", "treshold=1").refusal
    assert folders(ingested) == []


# Forgetting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_study_is_forgotten_with_its_month(released: Path, toy: Toy, interrupted: bool) -> None:
    warehouse, policy = warehouse_at(released), Policy.load(released / "policy.toml")
    toy.fails_at = "third" if interrupted else None
    with Engine.open(warehouse) as engine:
        for month in (MARCH, APRIL):
            try:
                run_study(toy.study, StudyWork(warehouse, engine, policy, ToySettings(), month))
            except KeyboardInterrupt:
                assert interrupted
    assert len(folders(released)) == 2
    door = door_at(released)
    assert forget_before(door.warehouse, door.policy, door.ledger, Month("2006-05"), False)["months"] == [MARCH]
    (left,) = folders(released)
    facts = read_facts(left)
    assert facts is not None and facts["month"] == APRIL
    (event,) = [event for event in Ledger.open(released / "ledger.db").events() if event.kind == "forgotten"]
    assert event.facts["months"] == [MARCH]
