"""Every mechanism's per-user limit, broken by somebody who makes all checksums fit: Great Expectations sees it, and the
door refuses to draw. A mechanism that is added is tested here without a word if it is made from the log; one that is
made from what was collected elsewhere has no table by user to break, and tests of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import MARCH, door_at, warehouse_at
from support.instances import POLICY
from support.tampering import vouch_for

from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.pipeline.stage import Work, make_stages
from qlog_assets.policy import Policy
from qlog_assets.storage.engine import Engine

pytest_plugins = ("support.warehouse_fixtures",)

MORE = 1100
"""Beyond every default limit."""
DEFAULTS = POLICY.partition("[safelog]")[0]
"""The small log's policy without a word of mechanisms."""
EVERY = pytest.mark.parametrize(
    ("mechanism", "policy"),
    [pytest.param(each, DEFAULTS, id=each.name) for each in releasable() if each.reads_log]
    + [pytest.param(mechanism("safelog"), POLICY, id="safelog sound")],
)


def make_month(home: Path, mechanism: Mechanism, text: str) -> None:
    """The mechanism's stages of March under a policy, as its release job makes them."""
    (home / "policy.toml").write_text(text, encoding="utf-8")
    warehouse, policy = warehouse_at(home), Policy.load(home / "policy.toml")
    book = Book(Ledger.open(warehouse.ledger_url), policy.dataset)
    raw, _ = assemble_raw_log(warehouse, MARCH, book=book)
    with Engine.open(warehouse) as engine:
        work = Work(warehouse, engine, MARCH, policy.section(mechanism.name), policy.lists, book=book)
        make_stages((CLEANED_LOG, *mechanism.stages), work, {"raw_log": raw})


def give_one_user_more(home: Path, mechanism: Mechanism, table: str, repeat: bool) -> None:
    """Add rows of one user to a table of the limited stage: many different ones, or one of them again."""
    partition = warehouse_at(home).current(mechanism.limited_stage.name, MARCH)
    (path,) = partition.files(table)
    rows = pq.read_table(path)
    more = rows.slice(0, 1)
    if not repeat:
        more = pa.concat_tables([more] * MORE)
        for position, field in enumerate(rows.schema):
            if pa.types.is_string(field.type) and field.name != "user":
                more = more.set_column(position, field, pa.array([f"{field.name} {number}" for number in range(MORE)]))
    pq.write_table(pa.concat_tables([rows, more]), path)
    vouch_for(home, partition, entered=True)


@EVERY
@pytest.mark.parametrize("repeat", [False, True], ids=["too many", "one twice"])
def test_the_door_refuses_a_broken_limit_of_every_table(
    ingested: Path, another: Callable[[str], Path], mechanism: Mechanism, policy: str, repeat: bool
) -> None:
    make_month(ingested, mechanism, policy)
    limited = mechanism.limited_stage.name
    made = warehouse_at(ingested).current(limited, MARCH)
    # A table that names no user, such as a public domain, holds nothing of anybody's.
    for table in [name for name in made.provenance.tables if "user" in pq.read_schema(made.files(name)[0]).names]:
        home = another("ingested")
        make_month(home, mechanism, policy)
        give_one_user_more(home, mechanism, table, repeat)
        with pytest.raises(
            DoorError, match=rf"{limited} breaks the contribution limits \({mechanism.name}/{limited}: "
        ):
            door_at(home).draw(mechanism.name, MARCH)
        assert door_at(home).ledger.charges() == []


@EVERY
def test_the_check_of_the_limited_stage_is_a_suite_of_great_expectations(
    ingested: Path, mechanism: Mechanism, policy: str
) -> None:
    make_month(ingested, mechanism, policy)
    stage = mechanism.limited_stage
    assert stage.inspect is not None
    with Engine.open(warehouse_at(ingested)) as engine:
        result = stage.inspect(engine, warehouse_at(ingested).current(stage.name, MARCH))
    assert result.passed and result.evaluated == len(result.expectations) > 0
    assert result.suite == f"{mechanism.name}/{stage.name}"
