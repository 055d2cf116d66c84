"""`qlog crowd client` as a person types it, against a whole cast of servers in processes of their own."""

from __future__ import annotations

import hashlib
import os
import pty
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.cli import Answer, qlog
from support.crowd_cast import RunningCast, open_job, running_cast, wait_for
from support.crowd_people import write_log
from support.instances import contents
from support.search_engine import browse, serving_results

from qlog_assets.months import Month

pytestmark = pytest.mark.slow

TODAY = Month.containing(datetime.now(UTC).date())
CANARY = "canary of nobody else"


class Person:
    """Somebody with a folder, an account and a log."""

    def __init__(self, home: Path, cast: RunningCast, name: str, secret: str, log: Path) -> None:
        self.home, self.log, self.state = home, log, home / f"client-{name}"
        self.environment = {"QLOG_CROWD_HOME": str(self.state)}
        directory = cast.directory / "cast.json"
        init = ("init", "--cast", directory, "--account", name)
        told = self.ask(*init, environment={"QLOG_CROWD_SECRET": secret}).success
        assert hashlib.sha256(directory.read_bytes()).hexdigest() in told, "what people compare with others"

    def ask(self, *words: object, environment: dict[str, str] | None = None) -> Answer:
        return qlog(self.home, "crowd", "client", *words, environment=self.environment | (environment or {}))

    def with_log(self, command: str, *words: object) -> Answer:
        return self.ask(command, "--log", self.log, "--format", "aol", *words)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "warehouse").mkdir()
    return tmp_path / "warehouse"


def add_accounts(home: Path, cast: RunningCast, *names: str) -> dict[str, str]:
    added = qlog(home, "crowd", "account", "add", *names, "--randomness", cast.folder("randomness"), "--json")
    return dict(added.json["secrets"])


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCast]:
    jobs = [open_job(), open_job(application="clicks"), open_job(application="click_hosts", epoch=TODAY)]
    with running_cast(tmp_path_factory.mktemp("servers") / "cast", jobs=jobs) as cast:
        yield cast


def test_what_would_leave_is_shown_and_only_sent_when_somebody_agrees(
    home: Path, cast: RunningCast, tmp_path: Path
) -> None:
    secrets = add_accounts(home, cast, "ann")
    ann = Person(home, cast, "ann", secrets["ann"], write_log(tmp_path, "ann", "Green Tea", CANARY, "my name"))
    assert stat.S_IMODE((ann.state / "client.db").stat().st_mode) == 0o600
    (ann.state / "client.toml").write_text(
        '[opt_out]\njobs = ["clicks", "click_hosts"]\npatterns = ["NAME"]', encoding="utf-8"
    )

    jobs = {job["name"]: job for job in ann.ask("jobs", "--json").json["jobs"]}
    assert {name: job["standing"] for name, job in jobs.items()} == {
        "queries-2006-03": "open",
        "clicks-2006-03": "opted out",
        f"click_hosts-{TODAY}": "opted out",
    }
    told = ann.ask("jobs").success
    assert all(line in told for job in jobs.values() for line in job["about"])

    before = contents(ann.state)
    (shown,) = ann.with_log("show", "--json").json["jobs"]
    assert shown["artifacts"] == [[CANARY], ["green tea"]] and shown["dummies"] == 1
    assert "green tea" in ann.with_log("show").success
    assert "give --yes" in ann.with_log("run").refusal
    assert contents(ann.state) == before and ann.ask("status", "--json").json == {"jobs": []}

    ran = ann.with_log("run", "--yes", "--json").json
    assert (ran["entered"], ran["resumed"]) == (1, 0)
    (job,) = ann.ask("status", "--json").json["jobs"]
    assert job["standing"] == "took part" and job["planned"] + job["sent"] == 3 and job["missed"] == 0
    again = ann.with_log("run", "--yes", "--json").json
    assert again["entered"] == 0 and again["jobs"][0]["planned"] + again["jobs"][0]["sent"] == 3
    refused = ann.with_log("run", "--yes", "--job", "queries-2006-03").refusal
    assert "took part" in refused
    assert ann.ask("send").success
    stored = b"".join(contents(cast.directory).values()) + (ann.state / "client.db").read_bytes()
    assert CANARY.encode() not in stored


def test_waiting_sends_what_is_due_later_and_then_ends(home: Path, cast: RunningCast, tmp_path: Path) -> None:
    bob = Person(home, cast, "bob", add_accounts(home, cast, "bob")["bob"], write_log(tmp_path, "bob", "tea"))
    assert bob.with_log("run", "--yes", "--job", "queries-2006-03", "--json").json["entered"] == 1
    soon = datetime.now(UTC) + timedelta(seconds=1)
    with sqlite3.connect(bob.state / "client.db") as connection:
        connection.execute("UPDATE messages SET due = ? + number", (int(soon.timestamp() * 1_000_000),))
    connection.close()
    before = cast.metrics("collector")["reports_stored_total"]
    (job,) = bob.ask("send", "--wait", "--json").json["jobs"]
    assert (job["sent"], job["planned"], job["next_due"]) == (3, 0, None) and datetime.now(UTC) > soon
    wait_for(lambda: cast.metrics("collector")["reports_stored_total"] == before + 3)


def test_on_a_terminal_the_person_is_shown_what_leaves_and_asked(home: Path, cast: RunningCast, tmp_path: Path) -> None:
    eve = Person(home, cast, "eve", add_accounts(home, cast, "eve")["eve"], write_log(tmp_path, "eve", CANARY))
    words = ("run", "--job", "queries-2006-03", "--log", str(eve.log), "--format", "aol")
    code, out, err = at_terminal(eve, "n\n", *words)
    assert code == 2 and CANARY in out and "nothing was sent" in err and CANARY not in err
    assert eve.ask("status", "--json").json == {"jobs": []}
    code, out, err = at_terminal(eve, "y\n", *words)
    assert code == 0 and "jobs entered: 1" in out and CANARY not in err


def at_terminal(person: Person, typed: str, *words: str) -> tuple[int, str, str]:
    """Run a command whose standard input is a terminal at which somebody typed."""
    master, slave = pty.openpty()
    try:
        os.write(master, typed.encode())
        done = subprocess.run(
            [sys.executable, "-m", "qlog_assets.cli", "crowd", "client", *words],
            stdin=slave,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **person.environment, "QLOG_HOME": str(person.home)},
        )
    finally:
        os.close(master)
        os.close(slave)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.browser
def test_a_real_chromium_profile_takes_part(home: Path, cast: RunningCast, tmp_path: Path) -> None:
    with serving_results() as engine:
        browse(tmp_path / "profile", engine, [("Tea Pot", ["straight"]), ("cups", ["round"])])
    cat = Person(home, cast, "cat", add_accounts(home, cast, "cat")["cat"], tmp_path)
    profile = ("--chromium", tmp_path / "profile" / "Default", "--search-url", engine.pattern)
    job = ("--job", f"click_hosts-{TODAY}")
    (shown,) = cat.ask("show", *job, *profile, "--json").json["jobs"]
    assert (shown["artifacts"], shown["dummies"]) == ([["cups", "127.0.0.1"], ["tea pot", "127.0.0.1"]], 1)
    assert cat.ask("run", *job, *profile, "--yes", "--json").json["entered"] == 1
