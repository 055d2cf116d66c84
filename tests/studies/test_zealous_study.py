"""The study of ZEALOUS: what a release is worth to people whom it was not drawn from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.cli import qlog
from support.door import MARCH, warehouse_at
from support.instances import AOL_HEADER, make_home

from qlog_assets.mechanisms.zealous.parameters import ZealousParameters
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine
from qlog_assets.studies.measures.frequent import Truth
from qlog_assets.studies.parts import hold_out
from qlog_assets.studies.study import StudyWork
from qlog_assets.studies.zealous.applications import measure_application
from qlog_assets.studies.zealous.comparison import Items, StudySettings, hold

PEOPLE = 40
OFTEN = 5
"""How often each person looks up a word of their own."""
NO_NOISE = ZealousParameters(epsilon=400, delta="0.1", kinds=("keywords", "pairs"))
PLAN = StudySettings(k=5, frequent=5, items_per_user=(5,))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody types `news`, then `weather`, and OFTEN a word that nobody else types."""
    tmp_path = tmp_path_factory.mktemp("planted")
    home = make_home(tmp_path / "home")
    rows = []
    for user in range(PEOPLE):
        rows += [f"{user}\tnews\t{MARCH}-01 10:00:00\t\t\n", f"{user}\tweather\t{MARCH}-01 10:01:00\t\t\n"]
        rows += [f"{user}\town{user}\t{MARCH}-0{day + 2} 10:00:00\t\t\n" for day in range(OFTEN)]
    log = tmp_path / "log.txt"
    log.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol").success
    return home


def applied(home: Path, kind: str) -> dict[str, dict[str, Any]]:
    """What an application gets, by method."""
    warehouse = warehouse_at(home)
    reads = {"raw_log": warehouse.current("raw_log", MARCH).provenance.shape}
    with Engine.open(warehouse) as engine:
        work = StudyWork(warehouse, engine, Policy.load(home / "policy.toml"), PLAN, MARCH, reads=reads)
        with hold_out(work, PLAN.tested_part) as fold:
            (rows,) = measure_application(engine, kind, fold, NO_NOISE, PLAN).values()
    return {row["method"]: row for row in rows}


def test_a_cache_is_asked_by_people_whom_it_was_not_filled_by(planted: Path) -> None:
    """It has room for three words. Filled and asked by the same people it would find their own words, too."""
    found = applied(planted, "keywords")
    shared = 2 / (2 + OFTEN)
    assert {row["best"] for row in found.values()} == {shared}
    assert found["sound"]["hit_rate"] == found["k-anonymity: users"]["hit_rate"] == shared
    # By events, words of one person are frequent, and worth nothing to another one.
    assert found["k-anonymity: frequency"]["hit_rate"] == shared


def test_substitutes_are_those_that_others_typed(planted: Path) -> None:
    found = applied(planted, "pairs")
    assert found["sound"]["queries"] == 1 and found["sound"]["ndcg"] == found["sound"]["best"] == 1


def test_each_user_gives_as_many_different_items_as_allowed_evenly_chosen_and_more_where_more_are_allowed() -> None:
    users, domain = 4_000, 10
    event_users = np.repeat(np.arange(users), 2 * domain)
    event_items = np.tile(np.arange(domain), 2 * users)
    nothing = Truth(np.zeros(domain), np.zeros(domain))
    held = hold(
        Items("queries", pa.table({"query": [str(i) for i in range(domain)]}), nothing, event_users, event_items), 1
    )
    pairs = {}
    for per_user in (1, 3, domain, domain + 1):
        whose, items = held.limited(per_user)
        assert (np.bincount(whose, minlength=users) == min(per_user, domain)).all()
        pairs[per_user] = set(zip(whose.tolist(), items.tolist(), strict=True))
        assert len(pairs[per_user]) == len(whose)
    assert pairs[1] < pairs[3] < pairs[domain] == pairs[domain + 1]
    # Each item is one user's first with a chance of a tenth: 400 of 4,000, standard deviation 19; seeded.
    assert (np.abs(np.bincount([item for _, item in pairs[1]], minlength=domain) - users / domain) < 100).all()
