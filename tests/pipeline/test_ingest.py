"""Landing files into raw_log: a month is made of all that was ingested, each file read once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import MARCH, warehouse_at
from support.instances import AOL_HEADER, make_home

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.ledger.budget import Budget
from qlog_assets.pipeline import batches as batches_module
from qlog_assets.pipeline.batches import (
    batches,
    ingest_batch,
    inspect_batch,
    inspect_rejected,
    is_ingested,
    warn_of_rejected,
)
from qlog_assets.pipeline.landing import batch_of, find_batch, land, landed_files
from qlog_assets.pipeline.raw_log import assemble_raw_log, inspect_user_ids
from qlog_assets.pipeline.withdrawal import withdraw_batch
from qlog_assets.policy import Policy
from qlog_assets.sources import readers_sql
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.warehouse import Warehouse

GOOD = "{}\tweather\t2006-03-01 10:00:00\t\t"
BAD = "{}\tweather\tnot a time\t\t"
OUTSIDE = "{}\tweather\t2006-09-01 10:00:00\t\t"

Ingest = Callable[..., Partition]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home")


@pytest.fixture
def warehouse(home: Path) -> Warehouse:
    return warehouse_at(home)


@pytest.fixture
def policy(home: Path) -> Policy:
    return Policy.load(home / "policy.toml")


@pytest.fixture
def ingest(warehouse: Warehouse, policy: Policy) -> Ingest:
    """Ingests an AOL file with so many good and bad rows and rows of other months, each of another user."""

    def ingesting(name: str, good: int = 0, bad: int = 0, outside: int = 0) -> Partition:
        path = warehouse.landing / "aol" / name
        path.parent.mkdir(exist_ok=True)
        patterns = [GOOD] * good + [BAD] * bad + [OUTSIDE] * outside
        path.write_text("".join(f"{pattern.format(f'{name} {n}')}\n" for n, pattern in enumerate(patterns)))
        with Engine.open(warehouse) as engine:
            return ingest_batch(warehouse, engine, batch_of(path, "aol"), policy.admission)[0]

    return ingesting


@pytest.fixture
def ingest_as_earlier(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> Ingest:
    """The same under the name that the asset had up to version 0.1."""

    def ingesting(name: str, **rows: int) -> Partition:
        with monkeypatch.context() as earlier:
            earlier.setattr(batches_module, "LANDING_BATCH", batches_module.EARLIER_NAME)
            earlier.setattr(batches_module, "EARLIER_NAME", "no earlier name")
            return ingest(name, **rows)

    return ingesting


@pytest.mark.parametrize("bad", [20, 21, 99])
def test_one_more_bad_row_neither_stops_a_month_nor_takes_other_rows_out_of_it(
    warehouse: Warehouse, ingest: Ingest, bad: int
) -> None:
    """What a file's rows are used for, and whether at all, may not hang on another user's row."""
    ingest("b.txt", good=5)
    ingest("a.txt", good=100 - bad, bad=bad)
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 105 - bad


def test_a_file_of_which_too_much_was_rejected_is_warned_about_with_what_to_do(
    warehouse: Warehouse, policy: Policy, ingest: Ingest
) -> None:
    ingest("good.txt", good=5)
    bad = ingest("poor.txt", good=3, bad=2)
    with Engine.open(warehouse) as engine:
        said = warn_of_rejected(warehouse, engine, bad, policy.ingest.max_rejected_share)
        assert warn_of_rejected(warehouse, engine, bad, Fraction(2, 5)) is None
    assert said is not None and "\n" not in said and "good.txt" not in said
    assert "40 % of its 5 rows were rejected (bad_time 2)" in said and "ingest.max_rejected_share = 0.2" in said
    assert said.startswith("poor.txt: ") and f"qlog ingest withdraw {bad.provenance.month} --reason" in said
    # What the warning tells the operator to do.
    book = Book(Ledger.open(warehouse.ledger_url), policy.dataset)
    withdraw_batch(warehouse, book, bad.provenance.month, "not the log")
    ingest("corrected.txt", good=4)
    assert assemble_raw_log(warehouse, MARCH, book=book)[0].rows("log") == 9


def test_a_bad_file_is_warned_about_after_good_ones_came_until_it_is_withdrawn(
    warehouse: Warehouse, policy: Policy, ingest: Ingest
) -> None:
    """The asset has one check for all its files: the next good one hid the bad one before."""
    bad, good = ingest("poor.txt", good=3, bad=2), ingest("good.txt", good=5)
    share = policy.ingest.max_rejected_share
    with Engine.open(warehouse) as engine:
        said = inspect_rejected(warehouse, engine, good, share, batches(warehouse))
        assert not said.passed and said.reason.startswith("poor.txt: 40 %")
        others = [batch for batch in batches(warehouse) if batch.path != bad.path]
        assert inspect_rejected(warehouse, engine, good, share, others).passed
        assert inspect_rejected(warehouse, engine, None, share, others).passed


def test_a_warning_names_the_batch_even_where_its_landing_file_is_gone(
    warehouse: Warehouse, policy: Policy, ingest: Ingest
) -> None:
    bad = ingest("poor.txt", good=3, bad=2)
    (warehouse.landing / "aol" / "poor.txt").unlink()
    with Engine.open(warehouse) as engine:
        said = warn_of_rejected(warehouse, engine, bad, policy.ingest.max_rejected_share)
    assert said is not None and said.startswith(f"{bad.provenance.month}: 40 % of its 5 rows")


@pytest.mark.parametrize(("bad", "few"), [(20, True), (21, False)])
def test_rows_of_other_months_are_not_bad_rows(
    warehouse: Warehouse, policy: Policy, ingest: Ingest, bad: int, few: bool
) -> None:
    """A year's file under a policy of three months is no broken file."""
    batch = ingest("year.txt", good=5, bad=bad, outside=95 - bad)
    with Engine.open(warehouse) as engine:
        assert inspect_rejected(warehouse, engine, batch, policy.ingest.max_rejected_share).passed is few
        assert inspect_batch(warehouse, engine, batch).passed
    landed = batch_of(warehouse.landing / "aol" / "year.txt", "aol")
    assert is_ingested(warehouse, [batch], landed, policy.admission)
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 5


# What an earlier reader read ------------------------------------------------------------------------------------------


def charge_for(warehouse: Warehouse, month: str) -> None:
    ledger = Ledger.open(warehouse.ledger_url)
    ledger.ensure_dataset("small", Budget(Fraction(1), Fraction(1, 10)))
    ledger.reserve(
        dataset="small",
        month=month,
        mechanism="safelog",
        variant="sound",
        mechanism_version=1,
        parameters={},
        inputs={},
        epsilon=Fraction(1),
        delta=Fraction(0),
    )


@pytest.mark.parametrize(("charged", "stays"), [(None, False), ("2006-04", False), ("2006-03", True)])
def test_what_an_earlier_reader_read_stays_where_a_month_of_it_was_charged_and_is_read_again_elsewhere(
    warehouse: Warehouse,
    policy: Policy,
    ingest: Ingest,
    monkeypatch: pytest.MonkeyPatch,
    charged: str | None,
    stays: bool,
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(batches_module, "READER_VERSION", "2")
        ingest("old.txt", good=5)
    if charged is not None:
        charge_for(warehouse, charged)
    batch = batch_of(warehouse.landing / "aol" / "old.txt", "aol")
    assert is_ingested(warehouse, batches(warehouse), batch, policy.admission) is stays
    # Read again, it takes the place of the earlier reading.
    with Engine.open(warehouse) as engine:
        again, fresh = ingest_batch(warehouse, engine, batch, policy.admission)
    assert fresh and [part.path for part in batches(warehouse)] == [again.path]
    assert is_ingested(warehouse, batches(warehouse), batch, policy.admission)
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 5


def test_ids_that_an_earlier_reader_left_in_two_forms_are_warned_about_and_counted(
    warehouse: Warehouse, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest("new.txt", good=5)
    with monkeypatch.context() as earlier:
        earlier.setattr(readers_sql, "is_plain_sql", lambda text: "true")
        # The users are named for the file: with a space before them that the earlier reader left where it was.
        old = ingest("\u00a0old.txt", good=2)
    raw, _ = assemble_raw_log(warehouse, MARCH)
    with Engine.open(warehouse) as engine:
        result = inspect_user_ids(engine, raw)
    assert not result.passed and "\n" not in result.reason
    assert result.reason.startswith("2 rows of 2006-03 have a user id") and old.provenance.month in result.reason


# One file, once -------------------------------------------------------------------------------------------------------


def test_a_copy_under_another_name_adds_no_rows(warehouse: Warehouse, policy: Policy, ingest: Ingest) -> None:
    """However it came in: the command line notices a copy, a file put into the landing zone by hand is ingested."""
    ingest("one.txt", good=5)
    copy = warehouse.landing / "aol" / "two.txt"
    shutil.copyfile(warehouse.landing / "aol" / "one.txt", copy)
    with Engine.open(warehouse) as engine:
        ingest_batch(warehouse, engine, batch_of(copy, "aol"), policy.admission)
    assert len(batches(warehouse)) == 2
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 5


def test_one_file_in_two_formats_is_two_batches_each_read_in_its_own(warehouse: Warehouse) -> None:
    for format in ("aol", "excite"):
        (warehouse.landing / format).mkdir()
        (warehouse.landing / format / "log.txt").write_text("u\t970916001949\tnews\n", encoding="utf-8")
    keys = {format: batch_of(warehouse.landing / format / "log.txt", format).key for format in ("aol", "excite")}
    assert keys["aol"] != keys["excite"]
    for format, key in keys.items():
        assert find_batch(warehouse, key).source.format == format


def test_a_batch_whose_rows_were_damaged_is_refused_by_name_and_mended_by_ingesting_again(
    warehouse: Warehouse, policy: Policy, ingest: Ingest
) -> None:
    batch = ingest("log.txt", good=5)
    (rows,) = batch.files(MARCH)
    rows.write_bytes(rows.read_bytes()[:-4] + b"PAR0")
    with pytest.raises(QlogError, match="was changed after it was written"):
        assemble_raw_log(warehouse, MARCH)
    assert not is_ingested(
        warehouse, batches(warehouse), batch_of(warehouse.landing / "aol" / "log.txt", "aol"), policy.admission
    )
    ingest("log.txt", good=5)
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 5


def test_a_month_of_several_batches_has_the_rows_of_each_once(
    warehouse: Warehouse, policy: Policy, ingest: Ingest
) -> None:
    for number in range(3):
        ingest(f"{number}.txt", good=number + 1)
    first, fresh = assemble_raw_log(warehouse, MARCH)
    assert first.rows("log") == 6 and fresh
    again, fresh = assemble_raw_log(warehouse, MARCH)
    assert again.provenance.shape == first.provenance.shape and not fresh
    ingest("3.txt", good=1)
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 7


def test_a_batch_that_an_earlier_version_wrote_under_its_old_name_is_used_like_any_other(
    warehouse: Warehouse, policy: Policy, ingest: Ingest, ingest_as_earlier: Ingest
) -> None:
    """Nobody ingests everything again for a new name."""
    old = ingest_as_earlier("old.txt", good=5)
    assert old.path.is_relative_to(warehouse.private / "rejected_log")
    assert is_ingested(
        warehouse, batches(warehouse), batch_of(warehouse.landing / "aol" / "old.txt", "aol"), policy.admission
    )
    new = ingest("new.txt", good=2)
    assert [batch.path for batch in batches(warehouse)] == [new.path, old.path]
    raw, _ = assemble_raw_log(warehouse, MARCH)
    assert raw.rows("log") == 7
    assert {name.partition(":")[0] for name in raw.provenance.upstream} == {"landing_batch", "rejected_log"}


def test_a_batch_of_an_earlier_version_is_mended_by_ingesting_its_file_again(
    warehouse: Warehouse, policy: Policy, ingest: Ingest, ingest_as_earlier: Ingest
) -> None:
    old = ingest_as_earlier("log.txt", good=5)
    (old.path / "provenance.json").write_text("{", encoding="utf-8")
    with pytest.raises(QlogError, match="materialize the partition again"):
        assemble_raw_log(warehouse, MARCH)
    ingest("log.txt", good=5)
    assert len(batches(warehouse)) == 1 and not old.path.exists()
    assert assemble_raw_log(warehouse, MARCH)[0].rows("log") == 5


# The landing zone -----------------------------------------------------------------------------------------------------


def test_logs_of_one_name_and_different_content_both_land(warehouse: Warehouse, tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "log.txt")
        paths[-1].write_text(f"log of {folder}\n", encoding="utf-8")
    landed = land(warehouse, paths, "aol")
    assert [path.read_text(encoding="utf-8") for path in landed] == ["log of a\n", "log of b\n"]
    assert land(warehouse, paths, "aol") == landed
    assert [path for path, _ in landed_files(warehouse)] == sorted(landed)


def test_a_log_that_lies_in_the_landing_zone_stays_where_it_is(warehouse: Warehouse) -> None:
    path = warehouse.landing / "aol" / "log.txt"
    path.parent.mkdir()
    path.write_text("log\n", encoding="utf-8")
    assert land(warehouse, [path], "aol") == [path.resolve()]
    assert [found for found, _ in landed_files(warehouse)] == [path]


def test_a_batch_without_a_landing_file_is_an_error_that_says_what_to_do(warehouse: Warehouse) -> None:
    with pytest.raises(QlogError, match="run qlog ingest with its file again"):
        find_batch(warehouse, "gone-txt-aol-0123456789ab")


def test_a_landing_file_that_was_replaced_is_another_batch(warehouse: Warehouse) -> None:
    """A checksum is remembered with what the file system says of the file, so a long-lived process is not fooled."""
    path = warehouse.landing / "aol" / "log.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("one\n")
    times = path.stat()
    first = batch_of(path, "aol")
    assert batch_of(path, "aol") == first
    path.write_text("two\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert batch_of(path, "aol").checksum == file_checksum(path) != first.checksum


# One person in files of several kinds ---------------------------------------------------------------------------------


def test_sixty_people_whose_ids_are_written_in_five_ways_are_sixty_users(
    warehouse: Warehouse, policy: Policy, tmp_path: Path
) -> None:
    """Each kind of file wrote its own ids once: sixty people were released as 117, and each had twice the ε."""
    people, when = range(1, 61), datetime(2006, 3, 1, 10)
    columns = tmp_path / "columns.toml"
    columns.write_text('user = "user"\nquery = "query"\ntime = "time"\ndelimiter = ","\n', encoding="utf-8")
    for name, users in {
        "whole.parquet": pa.array(people),
        "float.parquet": pa.array([*map(float, people), float("nan")]),
        "decimal.parquet": pa.array([Decimal(f"{each}.00") for each in people]),
    }.items():
        rows = len(users)
        pq.write_table(pa.table({"user": users, "query": ["tea"] * rows, "time": [when] * rows}), tmp_path / name)
    text = "".join(f"{each}.0,tea,{when}\n\u00a0{each}\u3000,cake,{when}\n" for each in people)
    (tmp_path / "float.csv").write_text(f"user,query,time\nnan,tea,{when}\n{text}", encoding="utf-8")
    (tmp_path / "aol.txt").write_text("".join(f" {each} \ttea\t{when}\t\t\n" for each in people), encoding="utf-8")
    tables = [tmp_path / name for name in ("whole.parquet", "float.parquet", "decimal.parquet", "float.csv")]
    landed = [(path, "table") for path in land(warehouse, tables, "table", columns)]
    landed += [(path, "aol") for path in land(warehouse, [tmp_path / "aol.txt"], "aol")]
    with Engine.open(warehouse) as engine:
        for path, format in landed:
            ingest_batch(warehouse, engine, batch_of(path, format), policy.admission)
        raw, _ = assemble_raw_log(warehouse, MARCH)
        engine.view("raw_log", raw.files("log"))
        users = engine.connection.execute('SELECT "user", count(*) FROM raw_log GROUP BY ALL').fetchall()
        assert inspect_user_ids(engine, raw).passed
    assert sorted(users, key=lambda row: int(row[0])) == [(str(each), 6) for each in people]


def test_a_file_that_lay_in_the_landing_zone_stays_there_whatever_becomes_of_its_ingest(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """Somebody's original may be there, behind a link to a larger disk."""
    large = tmp_path / "large"
    large.mkdir()
    original = large / "log.txt"
    original.write_text(AOL_HEADER, encoding="utf-8")
    (warehouse.landing / "aol").symlink_to(large)
    brought: list[Path] = []
    assert land(warehouse, [warehouse.landing / "aol" / "log.txt"], "aol", brought=brought) == [original.resolve()]
    assert brought == []
    copied: list[Path] = []
    (tmp_path / "new.txt").write_text(AOL_HEADER + "x", encoding="utf-8")
    land(warehouse, [tmp_path / "new.txt"], "aol", brought=copied)
    assert [path.name for path in copied] == ["new.txt"] and original.exists()
    (tmp_path / ".log").write_text(AOL_HEADER, encoding="utf-8")
    with pytest.raises(QlogError, match="hidden files are not looked at"):
        land(warehouse, [tmp_path / ".log"], "aol")
