"""The Python API does what the commands do, with typed answers and one-line refusals, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.door import in_child
from support.instances import MONTHS, make_home, small_log

MARCH = MONTHS[0]


def work_through(home: Path, log: Path) -> dict[str, Any]:
    """A child's task: a researcher's and an operator's morning."""
    os.environ["QLOG_HOME"] = str(home)
    import qlog_assets as qlog

    ingested = qlog.ingest([log], format="aol")
    simulated = qlog.simulate("safelog", MARCH, variant="paper", seed=3)
    first, second = (qlog.release("safelog", MARCH) for _ in range(2))
    queries = qlog.load("safelog", MARCH, "queries")
    report = qlog.audit()
    return {
        "accepted": ingested.accepted,
        "again": qlog.ingest([log], format="aol").already_ingested,
        "simulated": {**asdict(simulated), "path": str(simulated.path)},
        "charged": [first.charged, second.charged],
        "same": first.path == second.path,
        "left": first.epsilon_left,
        "columns": queries.column_names,
        "rows": [len(queries), first.rows["queries"]],
        "ok": report.ok,
        "priced": qlog.guarantee("safelog", settings={"selection_scale": "2"})["parts"][0]["proven"]["epsilon"],
    }


def edit_between(home: Path) -> list[float]:
    """A child's task: what a month would cost, and what it cost, around an edit of the policy."""
    os.environ["QLOG_HOME"] = str(home)
    import qlog_assets as qlog

    qlog.simulate("safelog", MARCH)
    policy = home / "policy.toml"
    policy.write_text(policy.read_text(encoding="utf-8").replace("queries_per_user = 4", "queries_per_user = 2"))
    return [qlog.guarantee("safelog")["proven"]["epsilon"], qlog.release("safelog", MARCH).epsilon]


def refused(home: Path, what: str) -> str:
    """A child's task: something that is refused."""
    os.environ["QLOG_HOME"] = str(home)
    import qlog_assets as qlog

    if what == "load":
        return str(qlog.load("safelog", MARCH, "queries"))
    if what == "month":
        return str(qlog.release("safelog", "March"))
    if what == "setting":
        return str(qlog.release("safelog", MARCH, settings={"treshold": "3"}))
    return str(qlog.simulate("laplace", MARCH))


@pytest.mark.slow
def test_a_morning_with_the_api(tmp_path: Path) -> None:
    home, log = make_home(tmp_path / "warehouse"), tmp_path / "log.txt"
    log.write_text(small_log(), encoding="utf-8")
    ended = in_child(work_through, home, log)
    assert ended.code == 0, ended.answer
    answer = ended.answer
    assert (answer["accepted"], answer["again"]) == (400, ["log.txt"])
    assert answer["simulated"]["variant"] == "paper" and Path(answer["simulated"]["path"]).is_dir()
    assert answer["charged"] == [True, False] and answer["same"] is True
    assert answer["left"] == 80
    assert answer["columns"] == ["query", "users", "month"] and answer["rows"][0] == answer["rows"][1] > 0
    assert answer["ok"] is True
    assert answer["priced"] == 2


@pytest.mark.slow
def test_a_policy_edited_between_two_calls_is_what_the_second_one_charges(ingested: Path) -> None:
    ended = in_child(edit_between, ingested)
    assert ended.code == 0, ended.answer
    assert ended.answer == [2 / 0.5 + 3 / 0.5 + 1 / 0.5] * 2


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("load", "safelog 2006-03: there is no release of it"),
        ("month", "'March' is not a month"),
        ("setting", "treshold: unknown key"),
        ("mechanism", "no simulation of 'laplace'"),
    ],
)
def test_refusals_are_one_line_that_says_what_is_wrong(tmp_path: Path, what: str, reason: str) -> None:
    ended = in_child(refused, make_home(tmp_path / "warehouse"), what)
    assert ended.code == 2 and reason in ended.answer and "\n" not in ended.answer


def test_a_table_that_was_changed_in_public_is_not_loaded(released: Path) -> None:
    (table,) = (released / "released" / "safelog" / MARCH).glob("safelog-*/queries.parquet")
    table.chmod(0o644)
    table.write_bytes(table.read_bytes() + b" ")
    ended = in_child(refused, released, "load")
    assert ended.code == 2 and "is not the file that was published" in ended.answer


def test_importing_the_package_imports_nothing_slow() -> None:
    slow = "('dagster', 'duckdb', 'great_expectations', 'numpy', 'pandas', 'pyarrow', 'pydantic', 'scipy')"
    code = f"import sys, qlog_assets; print([name for name in {slow} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
