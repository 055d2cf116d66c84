"""A person's log in a file that `qlog ingest` reads: one user, one month, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.instances import AOL_HEADER

from qlog_assets.crowd.local_log import LocalLog
from qlog_assets.crowd.mining import mine
from qlog_assets.errors import QlogError
from qlog_assets.months import Month

MARCH = Month("2006-03")
ROWS = (
    "7\tGreen Tea\t2006-03-01 10:00:00\t1\thttp://tea.example\n"
    "7\tpot\t2006-03-02 10:00:00\t\t\n"
    "7\tapril\t2006-04-01 00:00:00\t\t\n"
    "7\tno time\tyesterday\t\t\n"
)
OTHER = "8\tsomebody else\t2006-03-03 10:00:00\t\t\n"


def write(folder: Path, text: str, name: str = "log.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_the_rows_of_the_month_are_read_and_no_copy_is_left(tmp_path: Path) -> None:
    path = write(tmp_path, AOL_HEADER + ROWS)
    table = LocalLog(path, "file", "aol").searches(MARCH, tmp_path)
    assert mine(table, "queries") == [("pot",), ("green tea",)]
    assert mine(table, "clicks") == [("green tea", "http://tea.example")]
    assert LocalLog(path, "file", "aol").searches(Month("2007-01"), tmp_path).num_rows == 0
    assert [each.name for each in tmp_path.iterdir()] == ["log.txt"]


def test_of_several_users_only_the_named_one_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, AOL_HEADER + ROWS + OTHER)
    with pytest.raises(QlogError, match="2 users: say with --user") as refused:
        LocalLog(path, "file", "aol").searches(MARCH, tmp_path)
    assert "somebody" not in str(refused.value)
    table = LocalLog(path, "file", "aol", user=" 8.0 ").searches(MARCH, tmp_path)
    assert mine(table, "queries") == [("somebody else",)]
    assert LocalLog(path, "file", "aol", user="9").searches(MARCH, tmp_path).num_rows == 0


def test_a_table_is_read_by_its_column_map(tmp_path: Path) -> None:
    path = write(tmp_path, "who,when,what\nme,2006-03-05T10:00:00+02:00,Tea\n", "log.csv")
    columns = write(tmp_path, 'user = "who"\nquery = "what"\ntime = "when"\n', "columns.toml")
    table = LocalLog(path, "file", "table", columns).searches(MARCH, tmp_path)
    assert mine(table, "queries") == [("tea",)] and mine(table, "clicks") == []
    with pytest.raises(QlogError, match="needs a column map"):
        LocalLog(path, "file", "table").searches(MARCH, tmp_path)
    with pytest.raises(QlogError, match="has its own columns"):
        LocalLog(path, "file", "aol", columns).searches(MARCH, tmp_path)


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    with pytest.raises(QlogError, match="needs --format"):
        LocalLog(path, "file")
    with pytest.raises(QlogError, match="are for a file"):
        LocalLog(path, "chromium", user="7")
    with pytest.raises(QlogError, match="is not a log format"):
        LocalLog(path, "file", "tea").searches(MARCH, tmp_path)
    with pytest.raises(QlogError, match="is a directory"):
        LocalLog(tmp_path, "file", "aol").searches(MARCH, tmp_path)
