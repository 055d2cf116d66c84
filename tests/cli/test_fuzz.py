"""300 commands that nobody would type: each ends with an answer or one line, and touches nothing but its warehouse.

The cases come from one seed, so that a failure can be run again: the test's name has the numbers of its cases. Commands
that would measure for minutes are given what they refuse; the rest is cheap by itself.
"""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest
from support.cli import Answer, qlog
from support.door import charges, public_files
from support.instances import AOL_HEADER, Prepared, copy_warehouse

pytestmark = pytest.mark.faults

SEED, CASES, GROUPS = 2006, 300, 10
DONE, REFUSALS = 0, (1, 2, 3)

VALUES = (
    "", " ", "0", "-1", "1", "7", "nan", "inf", "-inf", "1e-999999999", "9" * 40, "9" * 5000, "0x10", "٣", "1_000",
    "--help", "--json", "-", "--", "=", "a=b", "key=", "none", "null", "{}", "[]", "[bold]", "'", '"', "\\", "\t", "\n",
    "a\nb", "\x1b[2J", "ε", "💥", "\u202egpj", "\ufeff", os.fsdecode(b"\xff"), "x" * 70_000, "%s", "{0}", "$(id)",
    "; DROP TABLE events", "2006-03", "2006-13", "0000-00", "9999-12", "2006-3", "safelog", "zealous", "paper", "sound",
)  # fmt: skip
PATHS = (
    ".", "..", "/", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem", "/proc/kmsg", "/nowhere/at/all", "pipe",
    "loop", "folder", "binary", "empty", "log.txt", "warehouse", "warehouse/landing", "warehouse/ledger.db",
    "x" * 300, "/x" * 3000, os.fsdecode(b"\xff\xfe"), "~", "*", "-", "file:log.txt", "http://127.0.0.1:1/log",
)  # fmt: skip
SETTINGS = (
    "delta", "threshold", "queries_per_user", "selection_scale", "variant", "budget.epsilon", "pool.path", "pool.kind",
    "url_list", "dataset", "first", "last", "safelog.delta", "zealous.min_users", "safelog", "..", "__class__",
)  # fmt: skip
VARIABLES = (
    "QLOG_POLICY", "QLOG_LEDGER_URL", "QLOG_MEMORY_MB", "QLOG_SPILL_GB", "QLOG_THREADS", "QLOG_HOME", "TMPDIR",
    "PYTHONIOENCODING", "COLUMNS", "TERM", "LC_ALL", "NO_COLOR", "DAGSTER_HOME",
)  # fmt: skip
PLACES = {
    "QLOG_HOME": ("loop", "empty", "pipe", "/dev/null", "/proc/nowhere", "x" * 300, "/x" * 3000),
    "QLOG_LEDGER_URL": (
        "sqlite://",
        "sqlite:x",
        "postgresql://h:x/y",
        "://",
        " ",
        "x://y",
        "sqlite:///loop",
        ":memory:",
    ),
}
"""Where a name that could be used would rightly be made into a warehouse or a ledger: names that cannot be used."""
MECHANISMS = ("safelog", "zealous", "baselines", "crowd", "sanitized", "sessions", "nothing", "")


class Case:
    """One command line and its environment, from a generator with a seed."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(f"{SEED} {number}")
        self.words = self._command()
        self.environment: dict[str, str] = {}
        if self._random.random() < 0.3:
            name = self._random.choice(VARIABLES)
            self.environment[name] = self._random.choice(PLACES.get(name, (*PATHS, *VALUES[1:30])))

    def _value(self) -> str:
        return self._random.choice((*VALUES, *VALUES, *PATHS))

    def _set(self) -> tuple[str, str]:
        return "--set", f"{self._random.choice(SETTINGS)}={self._value()}"

    def _command(self) -> tuple[str, ...]:
        pick, value = self._random.choice, self._value()
        others = [self._value() for _ in range(3)]
        return pick(
            (
                (value,),
                ("ledger", value),
                ("ledger", "--json"),
                ("ledger", "abandon", value, "--reason", others[0]),
                ("ledger", "set-budget", "--epsilon", value, "--delta", others[0], "--reason", others[1]),
                ("audit", value),
                ("withdraw", value, "--reason", others[0]),
                ("forget", "--before", value),
                ("guarantee", pick(MECHANISMS), *self._set()),
                ("guarantee", pick(MECHANISMS), "--variant", value),
                ("guarantee", value, "--json"),
                ("release", pick(MECHANISMS), "--month", value),
                ("release", value, "--month", "2006-03", *self._set()),
                ("release", "safelog", "--month", "2006-03", "--set", f"delta={value}", "--set", "threshold=0"),
                ("simulate", pick(MECHANISMS), "--month", value, "--seed", others[0]),
                ("simulate", "safelog", "--month", "2006-03", "--variant", value),
                ("ingest", pick(PATHS), "--format", pick(("aol", "excite", "table", value))),
                ("ingest", "log.txt", "--format", "table", "--columns", pick(PATHS)),
                ("synth", pick(("-1", "10", value)), "--first", others[1]),
                ("plan", value, "--rows", others[0]),
                ("study", value, "--month", others[0]),
                ("suggest", value, "--release", pick((*PATHS, others[0])), "--count", pick(("3", others[1]))),
                ("bench", "--scratch", pick(("loop", "empty", "/nowhere")), "--rows", "1000"),
                ("ui", "--port", pick(("0", "-1", "99999", "x"))),
                ("audit-mechanism", pick(("nothing", "", "\n", "--seed"))),
                ("demo", "--rows", pick(("-1", "0", "x", ""))),
            )
        )


@pytest.fixture
def folder(prepared: Prepared, tmp_path: Path) -> Path:
    """A released month, and files of all kinds beside it."""
    copy_warehouse(prepared("released"), tmp_path / "warehouse")
    (tmp_path / "log.txt").write_text(AOL_HEADER + "7\tweather\t2006-03-02 10:00:00\t1\tx\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(random.Random(SEED).randbytes(4096))
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def outside(folder: Path) -> dict[str, str]:
    """What lies beside the warehouse, with digests of files."""
    found = {}
    for path in folder.rglob("*"):
        if not path.is_relative_to(folder / "warehouse"):
            plain = path.is_file() and not path.is_symlink()
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if plain else ""
    return found


def assert_ended(answer: Answer) -> None:
    assert answer.code in (DONE, *REFUSALS), answer
    assert len(answer.complaints) <= 1 and "Traceback" not in answer.err + answer.out, answer.err
    assert answer.code != 2 or answer.complaints[0].startswith("qlog: "), answer


@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_is_typed_is_an_answer_or_one_line(folder: Path, group: int) -> None:
    home = folder / "warehouse"
    before, public = outside(folder), public_files(home)
    charged = [charge.release_id for charge in charges(home)]
    for number in range(group, CASES, GROUPS):
        case = Case(number)
        answer = qlog(home, *case.words, environment=case.environment, cwd=folder)
        where = f"case {number}: {case.words} {case.environment}"[:2000]
        try:
            assert_ended(answer)
            assert outside(folder) == before
            assert public_files(home) == public
            assert [charge.release_id for charge in charges(home)] == charged
        except AssertionError as error:
            raise AssertionError(f"{where}\n{error}") from None
