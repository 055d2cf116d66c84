"""Sealed epochs: whole or not at all, only after the key's deletion, and nothing of the order of arrival in them."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.crowd_cast import QUICK, free_ports, made_reports, open_job, sealed_reports, serving

from qlog_assets.crowd import inbox, sealing
from qlog_assets.crowd.cast import CollectorSettings, RandomnessSettings, make_cast, open_folder
from qlog_assets.crowd.inbox import digest_of
from qlog_assets.crowd.issuing import Issued
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.opening import Opener, open_collector
from qlog_assets.crowd.randomness import RandomnessServer
from qlog_assets.crowd.sealing import SCHEMA, SealedEpoch, epoch_directory, seal_epoch, write_sealed
from qlog_assets.errors import QlogError, RefusedError
from qlog_assets.months import Month

MONTH = Month("2006-03")


class Scene:
    """A collector's folder with two jobs and reports of both, and the randomness server that it asks."""

    def __init__(self, directory: Path) -> None:
        ports = free_ports(3)
        self.cast = make_cast(directory, 1, 1, ports=ports, settings=QUICK)
        self.jobs = [open_job(), open_job(application="urls")]
        write_jobs(self.jobs, [directory / name / "jobs" for name in ("collector", "randomness")])
        self.collector = open_folder(directory / "collector", CollectorSettings)
        self.randomness = open_folder(directory / "randomness", RandomnessSettings)
        self.port = ports[2]
        self.now = datetime.now(UTC).timestamp()
        self.after = self.jobs[0].closes.timestamp() + 1
        self.target = epoch_directory(directory / "warehouse", MONTH)
        self.opener = Opener(self.collector, lambda: self.now)

    def store(self, job: Job, number: int) -> None:
        """Reports as the collector's server stores them, not opened yet."""
        connection = open_collector(self.collector.folder)
        for message in sealed_reports(self.cast, made_reports(self.collector.folder, job, number)):
            row = (digest_of(message), message, len(message))
            connection.execute(
                "INSERT INTO waiting (digest, message, onward, size, due, late) VALUES (?, ?, '', ?, 0, 0)", row
            )
        connection.execute("UPDATE totals SET messages = messages + ?", (number,))
        connection.close()

    @contextmanager
    def randomness_server(self) -> Iterator[None]:
        with serving(RandomnessServer(self.randomness, lambda: self.now).application(), self.port):
            yield

    def seal(self) -> SealedEpoch:
        return seal_epoch(self.collector, MONTH, self.target, lambda: self.now)

    def rows(self) -> int:
        return int(open_collector(self.collector.folder).execute("SELECT count(*) FROM reports").fetchone()[0])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path / "cast")
    scene.store(scene.jobs[0], 20)
    scene.store(scene.jobs[1], 5)
    return scene


def test_an_epoch_is_sealed_with_all_its_reports_and_the_collector_forgets_them(scene: Scene) -> None:
    scene.opener.open_waiting()
    scene.now = scene.after
    with scene.randomness_server():
        sealed = scene.seal()
    assert sealed == SealedEpoch.read(scene.target)
    assert (sealed.month, sealed.accepted, sealed.rejected) == (MONTH, 25, {})
    assert set(sealed.jobs) == set(scene.jobs)
    assert sealed.issued == {job.digest.hex(): Issued(0, 3) for job in scene.jobs}
    assert sealed.key_deleted_at.startswith(datetime.fromtimestamp(scene.after, UTC).strftime("%Y-%m-%dT%H:%M"))
    tables = [sealed.reports(job) for job in scene.jobs]
    assert [len(table) for table in tables] == [20, 5] and tables[0].schema.equals(SCHEMA)
    order = list(zip(tables[0]["tag"].to_pylist(), tables[0]["x"].to_pylist(), strict=True))
    assert order == sorted(order)
    assert scene.rows() == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [scene.target, *scene.target.iterdir()]}
    assert modes == {"2006-03": 0o700, "reports.parquet": 0o600, "epoch.json": 0o600}


def test_nothing_is_sealed_before_the_epoch_closed_and_drained(scene: Scene) -> None:
    scene.opener.open_waiting()
    with pytest.raises(RefusedError, match="may be on their way until"):
        scene.seal()
    assert not scene.target.exists() and scene.rows() == 25


def test_nothing_is_sealed_while_reports_wait_to_be_opened(scene: Scene) -> None:
    scene.now = scene.after
    with scene.randomness_server(), pytest.raises(RefusedError, match="25 reports wait to be opened"):
        scene.seal()
    assert not scene.target.exists()


def test_nothing_is_sealed_while_the_deletion_is_not_stated(scene: Scene) -> None:
    scene.opener.open_waiting()
    with scene.randomness_server():
        late = scene.after
        with pytest.raises(RefusedError, match="still has the epoch's key"):
            seal_epoch(scene.collector, MONTH, scene.target, lambda: late)
    scene.now = scene.after
    with pytest.raises(QlogError, match="does not answer"):
        scene.seal()
    assert not scene.target.exists() and scene.rows() == 25


def test_an_epoch_without_a_job_is_not_sealed(scene: Scene) -> None:
    with pytest.raises(QlogError, match="has no job of this epoch"):
        seal_epoch(scene.collector, Month("2006-04"), scene.target)


def test_reports_that_come_after_the_seal_are_refused_and_counted(scene: Scene) -> None:
    scene.opener.open_waiting()
    scene.now = scene.after
    with scene.randomness_server():
        first = scene.seal()
        scene.store(scene.jobs[0], 2)
        scene.opener.open_waiting()
        assert scene.seal() == first, "sealed once"
    connection = open_collector(scene.collector.folder)
    assert connection.execute("SELECT reason, reports FROM rejected").fetchall() == [("epoch is sealed", 2)]
    assert scene.rows() == 0


def test_a_seal_that_was_interrupted_is_finished_by_the_next(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.opener.open_waiting()
    scene.now = scene.after

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with scene.randomness_server():
        for step in ("write_sealed", "forget_reports"):
            with monkeypatch.context() as patched:
                patched.setattr(sealing, step, stop)
                with pytest.raises(KeyboardInterrupt):
                    scene.seal()
            assert scene.rows() == 25, "forgotten before they were sealed"
            scene.store(scene.jobs[0], 1)
            scene.opener.open_waiting()
        sealed = scene.seal()
    assert sealed.accepted == sum(len(sealed.reports(job)) for job in scene.jobs) == 25
    assert scene.rows() == 0


def test_a_reader_that_keeps_the_reports_in_the_log_is_told_and_the_next_seal_is_whole(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.opener.open_waiting()
    scene.now = scene.after
    reader = open_collector(scene.collector.folder)
    cursor = reader.execute("SELECT * FROM reports")
    (tag,) = reader.execute("SELECT tag FROM reports LIMIT 1").fetchone()
    monkeypatch.setattr(inbox, "BUSY_SECONDS", 0.1)
    with scene.randomness_server():
        cursor.fetchone()
        with pytest.raises(QlogError, match="seal the epoch again"):
            scene.seal()
        cursor.close()
        assert scene.seal().accepted == 25
    assert all(tag not in path.read_bytes() for path in scene.collector.folder.glob("collector.db*"))


def test_what_could_not_be_read_is_told_with_the_next_epoch_that_is_sealed(scene: Scene) -> None:
    scene.opener.open_waiting()
    connection = open_collector(scene.collector.folder)
    connection.execute("INSERT INTO rejected VALUES ('', 'envelope does not open', 4)")
    scene.now = scene.after
    with scene.randomness_server():
        assert scene.seal().rejected == {"envelope does not open": 4}
    assert connection.execute("SELECT count(*) FROM rejected WHERE epoch = ''").fetchone() == (0,)


def opened(directory: Path, reports: int) -> Scene:
    """A collector with reports that were opened, of an epoch that is over."""
    scene = Scene(directory)
    scene.store(scene.jobs[0], reports)
    scene.opener.open_waiting()
    scene.now = scene.after
    return scene


def test_where_another_collector_sealed_the_epoch_nothing_is_forgotten_and_nothing_closed(tmp_path: Path) -> None:
    """A trial before, a second collector, a warehouse that was restored: what is sealed there are not these reports."""
    one, other = opened(tmp_path / "one", 3), opened(tmp_path / "other", 20)
    with one.randomness_server():
        one.seal()
    other.target = one.target
    with other.randomness_server():
        with pytest.raises(RefusedError, match="another collector sealed"):
            other.seal()
        assert other.rows() == 20
        other.target = tmp_path / "warehouse" / MONTH
        assert other.seal().accepted == 20, "it can still be sealed elsewhere"


@pytest.mark.parametrize("kept", ["fewer reports", "another report", "another job"])
def test_reports_are_forgotten_only_if_the_sealed_files_hold_these_very_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    scene = opened(tmp_path / "cast", 20)
    with scene.randomness_server():
        with monkeypatch.context() as patched:
            patched.setattr(sealing, "forget_reports", lambda *_: None)
            sealed = scene.seal()
        table, jobs = sealed.reports(scene.jobs[0]), scene.jobs
        shutil.rmtree(scene.target)
        if kept == "fewer reports":
            table = table.slice(1)
        elif kept == "another report":
            table = pa.concat_tables([table.slice(1), made_table(1, scene.jobs[0])])
        else:
            jobs = [scene.jobs[0], open_job(application="urls", share_threshold=7)]
        write_sealed(scene.target, MONTH, jobs, table, len(table), {}, sealed.issued, sealed.key_deleted_at)
        with pytest.raises(RefusedError, match=r"holds other (reports|jobs)"):
            scene.seal()
    assert scene.rows() == 20


def test_an_epoch_whose_reports_are_sealed_elsewhere_is_not_sealed_again_without_them(tmp_path: Path) -> None:
    scene = opened(tmp_path / "cast", 20)
    with scene.randomness_server():
        scene.seal()
        scene.target.rename(tmp_path / "away")
        with pytest.raises(RefusedError, match="20 reports were accepted and 0 are stored"):
            scene.seal()
    assert not scene.target.exists()


JOB = open_job()


def test_an_epoch_is_sealed_with_the_jobs_that_were_seen_although_a_file_is_gone(tmp_path: Path) -> None:
    scene = opened(tmp_path / "cast", 20)
    (scene.collector.jobs / "2006-03-queries.toml").unlink()
    with scene.randomness_server():
        sealed = scene.seal()
    assert (sealed.accepted, len(sealed.reports(scene.jobs[0])), scene.rows()) == (20, 20, 0)
    assert {job.digest for job in sealed.jobs} == {job.digest for job in scene.jobs}


def made_table(number: int, job: Job = JOB) -> pa.Table:
    widths = {field.name: field.type.byte_width for field in SCHEMA}
    rows = {name: [bytes([255 - at]) * width for at in range(number)] for name, width in widths.items()}
    return pa.table({**rows, "job": [job.digest] * number}, schema=SCHEMA)


def test_another_number_of_reports_than_were_accepted_is_neither_sealed_nor_read(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="160 reports were accepted and 0 are"):
        write_sealed(tmp_path / "a", MONTH, [JOB], made_table(0), 160, {}, {}, "")
    assert not (tmp_path / "a").exists()
    write_sealed(tmp_path / "a", MONTH, [JOB], made_table(3), 3, {}, {}, "")
    pq.write_table(made_table(2), tmp_path / "a" / "reports.parquet")
    with pytest.raises(QlogError, match="3 reports were accepted and 2 are"):
        SealedEpoch.read(tmp_path / "a")
    (tmp_path / "a" / "reports.parquet").unlink()
    with pytest.raises(QlogError, match=r"reports\.parquet: cannot be read"):
        SealedEpoch.read(tmp_path / "a")


def test_reports_of_a_job_that_is_not_sealed_with_them_are_not_sealed(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="of a job that is not sealed with them"):
        write_sealed(tmp_path / "a", MONTH, [JOB], made_table(2, open_job(application="urls")), 2, {}, {}, "")


def test_the_digest_follows_both_files(tmp_path: Path) -> None:
    arguments = (MONTH, [JOB], made_table(3), 3)
    one = write_sealed(tmp_path / "a", *arguments, {}, {}, "2006-04-08T00:00:00+00:00")
    same = write_sealed(tmp_path / "b", *arguments, {}, {}, "2006-04-08T00:00:00+00:00")
    other = write_sealed(tmp_path / "c", *arguments, {"forged token": 1}, {}, "2006-04-08T00:00:00+00:00")
    fewer = write_sealed(tmp_path / "d", *arguments[:2], made_table(2), 2, {}, {}, "2006-04-08T00:00:00+00:00")
    assert one.digest() == same.digest()
    assert len({one.digest(), other.digest(), fewer.digest()}) == 3


def test_a_sealed_epoch_is_never_written_over(tmp_path: Path) -> None:
    write_sealed(tmp_path / "a", MONTH, [JOB], made_table(3), 3, {}, {}, "")
    with pytest.raises(RefusedError, match="sealed already"):
        write_sealed(tmp_path / "a", MONTH, [JOB], made_table(2), 2, {}, {}, "")


def test_an_epoch_without_reports_can_be_sealed(tmp_path: Path) -> None:
    sealed = write_sealed(tmp_path / "a", MONTH, [JOB], made_table(0), 0, {}, {}, "")
    assert len(sealed.reports(JOB)) == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', '{"format": 2}'])
def test_a_description_that_is_none_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "epoch.json").write_text(text)
    with pytest.raises(QlogError, match=r"epoch\.json"):
        SealedEpoch.read(tmp_path)
