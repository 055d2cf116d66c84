"""The studies of session logs: people held out whole, and each study answered by its command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.cli import qlog
from support.door import warehouse_at

from qlog_assets.storage.engine import Engine
from qlog_assets.studies.session_logs import TESTED, TRAINED, TRIED, TRIED_FROM, Tenths

SMALL = ("--set", "test_sessions=300")


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(warehouse_at(home)) as opened:
        yield opened


def test_every_user_is_in_one_tenth_with_all_rows(engine: Engine) -> None:
    """5,000 users of three rows. A tenth has 10 % of them: ±4 standard deviations, false alarm 6e-5 per tenth."""
    users = np.repeat(np.arange(5000), 3).astype(str)
    rows = pa.table({"user": users, "query": ["a", "b", "c"] * 5000})

    def read(part: Tenths) -> list[str]:
        with engine.table("whole_log", rows):
            engine.statement_table("studies/part_of_log", first_tenth=part[0], last_tenth=part[1])
        return engine.connection.execute('SELECT "user" FROM part_of_log').fetchnumpy()["user"].tolist()

    tenths = [read((tenth, tenth)) for tenth in range(10)]
    assert sorted(user for tenth in tenths for user in tenth) == sorted(users.tolist())
    for tenth in tenths:
        assert len(tenth) == 3 * len(set(tenth)) and abs(len(set(tenth)) - 500) < 4 * np.sqrt(5000 * 0.09)
    assert set(read(TESTED)).isdisjoint(read(TRAINED)) and set(read(TRIED)).isdisjoint(read(TRIED_FROM))
    assert set(read(TRIED)) | set(read(TRIED_FROM)) == set(read(TRAINED)), "λ is chosen on people who train"


def keep(engine: Engine, sessions: list[tuple[str, int, str]]) -> None:
    """The table kept_sessions of (user, session, queries in order)."""
    rows = [
        (user, number, place + 1, query)
        for user, number, queries in sessions
        for place, query in enumerate(queries.split())
    ]
    columns = dict(zip(("user", "session", "place", "query"), map(list, zip(*rows, strict=True)), strict=True))
    with engine.table("rows", pa.table(columns)):
        engine.connection.execute("CREATE OR REPLACE TEMP TABLE kept_sessions AS SELECT * FROM rows")


def test_the_original_log_counts_users_of_every_later_query(engine: Engine) -> None:
    keep(engine, [("1", 1, "a b c"), ("1", 2, "a b"), ("2", 1, "a c"), ("3", 1, "c a a")])
    found = {
        (row["query"], row["next_query"]): row["users"] for row in engine.arrow("studies/session_pairs").to_pylist()
    }
    assert found == {("a", "b"): 1, ("a", "c"): 2, ("b", "c"): 1, ("c", "a"): 1, ("a", "a"): 1}


def test_test_sessions_come_whole_in_order_and_the_same_each_time(engine: Engine) -> None:
    sessions = [(str(user), number, f"q{user} x{number} a") for user in range(30) for number in (1, 2)]
    keep(engine, sessions)
    few, more = (engine.arrow("studies/test_sessions", sessions=count).to_pylist() for count in (5, 20))
    assert few == more[: len(few)] and len(few) == 15
    keep(engine, sessions[::-1])
    assert engine.arrow("studies/test_sessions", sessions=5).to_pylist() == few
    asked = [row["query"] for row in more]
    assert {" ".join(asked[start : start + 3]) for start in range(0, 60, 3)} <= {queries for _, _, queries in sessions}


@pytest.mark.study
def test_the_commands_answer_the_studies_of_a_small_synthetic_month(home: Path) -> None:
    assert qlog(home, "synth", 30_000, "--first", "2006-03", "--last", "2006-03").code == 0
    before = qlog(home, "ledger", "--json").json

    table = qlog(home, "study", "suggestion", "--month", "2006-03", *SMALL, "--set", "threshold=3", "--json").json
    rows = {(row["log"], row["reading"]): row for row in table["tables"]["suggestion"]}
    assert [name for name, _ in rows] == ["original", "KA", "DP_C", "DP_S", "DP_S", "DP_S sound", "DP_S modern"]
    answered = [rows[key]["sessions"] for key in (("original", "pairs"), ("KA", "all"), ("DP_C", "all"))]
    assert 300 > answered[0] > answered[1] > answered[2] > 0
    assert rows["DP_S", "all"]["sequences"] > 0 and rows["DP_S", "all"]["clicks"] == rows["DP_C", "all"]["clicks"]
    assert rows["DP_S", "all"]["epsilon"] is None, "with K = 3 the paper's own bound on δ is above 1"
    assert {rows[f"DP_S {variant}", "all"]["epsilon"] for variant in ("sound", "modern")} == {2}
    shared = [row for row in table["tables"]["same_prefixes"] if row["answered_by"] == "the paper's logs"]
    assert len({row["prefixes"] for row in shared}) == 1 and 0 < shared[0]["sessions"] <= answered[2]
    assert all(row["lambda"] == 1 for row in rows.values() if not row["sequences"])

    loss = qlog(home, "study", "session-loss", "--month", "2006-03", "--set", "thresholds=20,3,5", "--json").json
    kept = [row["kept"] for row in loss["tables"]["kept"] if (row["log"], row["table"]) == ("KA", "clicks")]
    assert kept == sorted(kept, reverse=True) and kept[0] == rows["KA", "all"]["clicks"]
    assert {(row["log"], row["table"]) for row in loss["tables"]["kept"]} == {
        ("KA", "clicks"), ("DP_C", "clicks"), ("DP_S", "sessions"), ("sound", "clicks"), ("sound", "sessions"),
    }  # fmt: skip

    command = ("study", "session-utility", "--month", "2006-03", *SMALL, "--set", "thresholds=3,5", "--json")
    utility = qlog(home, *command).json
    for row in utility["tables"]["utility"]:
        if row["K"] == 3:
            same = rows[row["log"], "all"]
            assert {key: same[key] for key in ("precision", "recall", "sessions", "lambda")}.items() <= row.items()
    for facts, picture in ((table, "suggestion"), (loss, "session_loss"), (utility, "session_utility")):
        assert (Path(facts["path"]) / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
        assert facts["warning"] is not None, "nothing was released of this month"
    assert qlog(home, *command).json["tables"] == utility["tables"]
    assert qlog(home, "ledger", "--json").json == before, "a study is never charged"
