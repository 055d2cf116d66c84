"""Three people and a whole cast of servers: each report arrives once, and what enough of them share can be read."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from support.crowd_cast import RunningCast, open_job, running_cast, wait_for
from support.crowd_people import Person

from qlog_assets.crowd.aggregation import aggregate
from qlog_assets.crowd.cast import read_secret
from qlog_assets.crowd.client_state import ClientState
from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import derive, epoch_evaluator, prf_input
from qlog_assets.crowd.sealing import SCHEMA
from qlog_assets.errors import QlogError

pytestmark = pytest.mark.slow

LOGS = {"ann": ("tea", "pot", "cups"), "bob": ("TEA ", "pot"), "cat": ("old", "a", "b", "c", "tea")}


def test_reports_arrive_once_although_a_relay_is_killed_and_people_try_again(tmp_path: Path) -> None:
    job = open_job(artifacts_per_user=4)
    with running_cast(tmp_path / "cast", jobs=[job]) as cast:
        people = [Person(cast, tmp_path, name, queries) for name, queries in LOGS.items()]
        for person in people:
            with person.client() as client:
                client.take_part(client.preview(job, person.log), client.poll())
        late = job.closes - timedelta(seconds=1)
        cast.kill("relay-2")
        for person in people:
            with person.client(late) as client:
                first = client.send_due()
                assert first.sent + first.failed == 4
        cast.start("relay-2")
        for person in people:
            with person.client(late) as client:
                assert client.send_due().failed == 0
                assert client.state.progress()[0].messages == {"planned": 0, "sent": 4, "missed": 0}
        wait_for(lambda: cast.metrics("collector")["reports_accepted_total"] == 12)
        known = queries_by_tag(cast, job)
        reports = collected(cast)
    rows = reports.to_pylist()
    found = Counter(known.get(row["tag"], "a dummy") for row in rows)
    assert found == {"tea": 3, "pot": 2, "cups": 1, "a": 1, "b": 1, "c": 1, "a dummy": 3}
    assert len({row["x"] for row in rows}) == 12, "no two shares lie at one place"
    released = aggregate(reports, job).artifacts.to_pylist()
    assert released == [{"query": "pot", "users": 2}, {"query": "tea", "users": 3}]


def collected(cast: RunningCast) -> pa.Table:
    """What the collector would seal."""
    with sqlite3.connect(cast.folder("collector") / "collector.db") as connection:
        rows = connection.execute(f"SELECT {', '.join(SCHEMA.names)} FROM reports").fetchall()
    connection.close()
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def queries_by_tag(cast: RunningCast, job: Job) -> dict[bytes, str]:
    """What each tag stands for, computed with the key that the randomness server still has."""
    evaluator = epoch_evaluator(read_secret(cast.folder("randomness") / "epochs" / f"{job.epoch}.key"), job.epoch)
    queries = {query.strip().lower() for log in LOGS.values() for query in log}
    return {
        derive(evaluator.evaluate_known_input(prf_input(job, data)), job, data).tag: query
        for query, data in ((query, encode((query,))) for query in queries)
    }


def test_an_account_gets_its_tokens_once_and_a_second_machine_sends_nothing(tmp_path: Path) -> None:
    job = open_job()
    with running_cast(tmp_path / "cast", jobs=[job]) as cast:
        ann = Person(cast, tmp_path, "ann", LOGS["ann"])
        with ann.client() as client:
            client.take_part(client.preview(job, ann.log), client.poll())
        ann.folder = tmp_path / "second machine"
        ClientState.create(ann.folder, "ann", ann.secret)
        with ann.client() as client:
            with pytest.raises(QlogError, match="given out before"):
                client.take_part(client.preview(job, ann.log), client.poll())
            assert client.standing(job) == "lost" and client.state.next_due() is None
