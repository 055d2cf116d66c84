"""A whole month of CrowdLogging: two hundred clients, three relays, a collector that is killed twice, and a release.

With so little noise (ε = 1000) that the release shows true counts: what the people sent can be compared with what came
out. Noise moves any of its counts with a probability below 1e-40.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cli import qlog
from support.crowd_cast import QUICK

from qlog_assets.api.crowd_jobs import jobs_from_policy
from qlog_assets.crowd.cast import CollectorSettings, RandomnessSettings, open_folder
from qlog_assets.crowd.guessing import by_epoch_key, by_hash, confirm_guesses
from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import epoch_evaluator
from qlog_assets.crowd.mining import Artifact, choose, mine
from qlog_assets.crowd.opening import open_collector
from qlog_assets.crowd.randomness import open_epochs
from qlog_assets.crowd.running import RunningCast, running_cast, wait_for
from qlog_assets.crowd.sealing import SealedEpoch, epoch_directory, seal_epoch
from qlog_assets.crowd.trial import Person, enrol, enter_jobs, send_messages, split_log, wait_until_drained
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.synthetic import plant, write_log

pytestmark = [pytest.mark.faults]

MONTH = Month("2006-03")
PEOPLE, ROWS, CANARIES, SEED = 200, 12_000, 20, 3
KILLS = 2
RELAYS = {"relay": {**QUICK["relay"], "batch": 20, "delay_seconds": 0.2, "longest_delay_seconds": 1.0}}
POLICY = """\
dataset = "crowd"
first = "2006-03"
last = "2006-03"

[budget]
epsilon = 1000
delta = "1e-5"

[crowd]
jobs = "queries"
variant = "sound"
artifacts_per_user = 10
share_threshold = 3
epsilon = 1000
delta = "1e-5"
"""


@dataclass(frozen=True)
class CrowdMonth:
    """What the month left behind, and what the people really sent."""

    directory: Path
    home: Path
    people: list[Person]
    job: Job
    sent: Counter[Artifact]
    sealed: SealedEpoch
    seized: list[tuple[bytes, bytes]]
    """Tags and ciphertexts, as a thief of the collector's store takes them before the month is over."""
    epoch_seed: bytes
    """The randomness server's key, as it was while it existed."""
    released: dict[Artifact, int]


def what_people_send(people: list[Person], job: Job, scratch: Path) -> Counter[Artifact]:
    sent: Counter[Artifact] = Counter()
    for person in people:
        searches = person.log.searches(job.epoch, scratch)
        sent.update(choose(mine(searches, job.application), job.artifacts_per_user, job.counts))
    return sent


def killing(running: RunningCast, reports: int) -> Iterator[None]:
    """kill -9 of the collector whenever it has stored another part of the reports, and a new start."""
    for number in range(1, KILLS + 1):
        wanted = reports * number // (KILLS + 1)
        wait_for(lambda: running.metrics("collector").get("reports_stored_total", 0) > 0, 120, "reports come")
        wait_for(lambda least=wanted: stored(running) >= least, 120, f"{wanted} reports are stored")
        running.kill("collector")
        running.start("collector")
        yield


def stored(running: RunningCast) -> int:
    """Reports in the collector's store, opened or not."""
    connection = open_collector(running.folder("collector"))
    try:
        (opened,) = connection.execute("SELECT count(*) FROM reports").fetchone()
        (waiting,) = connection.execute("SELECT count(*) FROM waiting").fetchone()
    finally:
        connection.close()
    return int(opened) + int(waiting)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> CrowdMonth:
    directory = tmp_path_factory.mktemp("crowd")
    home = directory / "warehouse"
    home.mkdir()
    (home / "policy.toml").write_text(POLICY)
    write_log(directory / "log.txt", ROWS, SEED, MONTH, MONTH, canaries=CANARIES)
    people = split_log(directory / "log.txt", directory / "people")[-PEOPLE:]
    now = datetime.now(UTC).replace(microsecond=0)
    policy = Policy.load(home / "policy.toml")
    (job,) = jobs_from_policy(policy, MONTH, now - timedelta(hours=1), now + timedelta(days=7))
    reports = len(people) * job.artifacts_per_user
    cast = directory / "cast"
    with running_cast(cast, home, jobs=[job], settings={**QUICK, **RELAYS}) as running:
        enrol(running, people)
        enter_jobs(people, [job])
        sending = threading.Thread(target=send_messages, args=(people, [job]))
        sending.start()
        assert sum(1 for _ in killing(running, reports)) == KILLS
        sending.join()
        wait_until_drained(running, reports)
        connection = open_collector(running.folder("collector"))
        seized = connection.execute("SELECT tag, ciphertext FROM reports").fetchall()
        connection.close()
        (key,) = (running.folder("randomness") / "epochs").glob("*.key")
        epoch_seed = bytes.fromhex(key.read_text().strip())
        open_epochs(open_folder(running.folder("randomness"), RandomnessSettings)).delete(MONTH)
        collector = open_folder(running.folder("collector"), CollectorSettings)
        over = job.closes.timestamp()
        sealed = seal_epoch(collector, MONTH, epoch_directory(home, MONTH), clock=lambda: over)
    answer = qlog(home, "release", "crowd", "--month", MONTH, "--json").json
    table = pq.read_table(Path(answer["path"]) / "queries.parquet")
    released = {(row["query"],): row["users"] for row in table.to_pylist()}
    sent = what_people_send(people, job, directory)
    return CrowdMonth(directory, home, people, job, sent, sealed, seized, epoch_seed, released)


def test_every_report_was_accepted_once_although_the_collector_was_killed(month: CrowdMonth) -> None:
    assert month.sealed.accepted == PEOPLE * month.job.artifacts_per_user
    assert set(month.sealed.rejected) <= {"report came before"}


def test_every_artifact_above_the_threshold_is_released_once_with_its_count(month: CrowdMonth) -> None:
    above = {artifact: users for artifact, users in month.sent.items() if users > month.job.share_threshold}
    assert len(above) >= 5 and month.released == above


def test_the_same_policy_on_a_central_log_gives_the_same_release(month: CrowdMonth, tmp_path: Path) -> None:
    home = tmp_path / "central"
    home.mkdir()
    (home / "policy.toml").write_text(POLICY)
    logs = [person.log.path.read_text().partition("\n") for person in month.people]
    (tmp_path / "log.txt").write_text(logs[0][0] + "\n" + "".join(rows for _, _, rows in logs))
    assert qlog(home, "ingest", tmp_path / "log.txt", "--format", "aol").code == 0
    answer = qlog(home, "simulate", "crowd", "--month", MONTH, "--json").json
    table = pq.read_table(Path(answer["path"]) / "queries.parquet")
    assert {(row["query"],): row["users"] for row in table.to_pylist()} == month.released


def test_nothing_that_few_people_sent_is_readable_in_any_store_or_log(month: CrowdMonth) -> None:
    rare = [artifact for artifact, users in month.sent.items() if users < month.job.share_threshold]
    canaries = [canary.query for canary in plant(ROWS, SEED, CANARIES)]
    distinctive = [text.encode() for (text,) in rare if len(text) >= 12] + [text.encode() for text in canaries]
    assert len(distinctive) > 500
    searched = 0
    for place in (month.directory / "cast", month.home):
        for path in filter(Path.is_file, place.rglob("*")):
            data, searched = path.read_bytes(), searched + 1
            assert not [text for text in distinctive if text in data], path.name
    assert searched > 20
    # Parquet may compress texts: what it holds is read as well.
    readable = {
        text
        for path in month.home.rglob("*.parquet")
        for column in pq.read_table(path).columns
        if str(column.type) == "string"
        for text in column.to_pylist()
    }
    assert readable and not readable & {text for (text,) in rare}


def test_guesses_find_everything_while_the_key_exists_and_nothing_afterwards(month: CrowdMonth) -> None:
    guesses = [encode(artifact) for artifact in month.sent]
    with_key = by_epoch_key(epoch_evaluator(month.epoch_seed, MONTH), month.job)
    found = confirm_guesses(month.seized, guesses, month.job, with_key)
    assert {guess: found.get(guess, 0) for guess in guesses} == {encode(a): n for a, n in month.sent.items()}
    assert confirm_guesses(month.seized, guesses, month.job, by_hash(month.job)) == {}
    assert not list((month.directory / "cast" / "randomness" / "epochs").glob("*.key"))


def test_the_release_passes_the_audit(month: CrowdMonth) -> None:
    answer = qlog(month.home, "audit", "--json").json
    assert answer["findings"] == []
