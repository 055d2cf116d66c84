"""How commands end: whatever they are given or meet, it is one line and an exit code, and they do end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.cli import Answer, qlog
from support.instances import AOL_HEADER, contents

ROW = "7\tweather\t2006-03-02 10:00:00\t1\thttp://www.weather.example\n"
NOBODY = 65534
PROGRAM = Path(sys.executable).with_name("qlog")

Make = Callable[[Path], object]


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """A socket in the file system, for the time of a block. Its name may be short only, so it is made from beside."""
    with socket.socket(socket.AF_UNIX) as server:
        before = os.getcwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(before)
        yield


SPECIAL: dict[str, tuple[Make, str]] = {
    "a directory": (Path.mkdir, "is a directory"),
    "a named pipe": (os.mkfifo, "is a named pipe"),
    "a device without an end": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "memory of the process": (lambda path: path.symlink_to("/proc/self/mem"), "made by the kernel"),
    "the kernel's messages": (lambda path: path.symlink_to("/proc/kmsg"), "made by the kernel"),
    "a loop of links": (link_to_itself, "Too many levels of symbolic links"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "no such file"),
}
NO_TOML: dict[str, tuple[str, str]] = {
    "nested 3,000 deep": ("x = " + "[" * 3000 + "]" * 3000, "nested too deep"),
    "a number of 5,000 digits": ("x = " + "9" * 5000, "TOML file"),
    "a file of many megabytes": ("# " + "x" * (5 << 20), "larger than 4 MB"),
}
MADE = SPECIAL | {name: (partial(Path.write_text, data=text), said) for name, (text, said) in NO_TOML.items()}


@pytest.mark.parametrize("kind", MADE)
def test_a_policy_that_is_no_file_of_settings_is_refused_and_not_waited_for(home: Path, kind: str) -> None:
    make, said = MADE[kind]
    make(home / "policy.toml")
    refusal = qlog(home, "guarantee", "safelog").refusal
    assert "policy.toml: " in refusal and said in refusal


@pytest.mark.faults
@pytest.mark.parametrize("kind", MADE)
def test_a_column_map_that_is_none_is_refused_and_not_waited_for(home: Path, kind: str) -> None:
    make, said = MADE[kind]
    make(home / "map.toml")
    (home / "log.txt").write_text(ROW, encoding="utf-8")
    refusal = qlog(home, "ingest", home / "log.txt", "--format", "table", "--columns", home / "map.toml").refusal
    assert "map.toml: " in refusal and said in refusal
    assert contents(home) == {}


@pytest.mark.faults
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_log_that_is_no_ordinary_file_is_refused_and_not_waited_for(home: Path, kind: str) -> None:
    make, said = SPECIAL[kind]
    make(home / "log.txt")
    refusal = qlog(home, "ingest", home / "log.txt", "--format", "aol").refusal
    assert "log.txt: " in refusal and said in refusal
    assert contents(home) == {}


def test_a_log_that_is_a_socket_is_refused(home: Path) -> None:
    with listening(home / "log.txt"):
        assert "is a socket" in qlog(home, "ingest", home / "log.txt", "--format", "aol").refusal


def test_a_file_name_that_is_no_text_is_refused_and_printed_in_escapes(home: Path) -> None:
    path = home / os.fsdecode(b"l\xff\x1b[2Jog.txt")
    path.write_text(AOL_HEADER + ROW, encoding="utf-8")
    refusal = qlog(home, "ingest", path, "--format", "aol").refusal
    assert r"l\xff\x1b[2Jog.txt: its name is no UTF-8" in refusal
    assert contents(home) == {}


@pytest.mark.faults
def test_a_file_name_with_brackets_is_printed_as_it_is(home: Path) -> None:
    path = home / "[bold]log.txt"
    path.write_text(AOL_HEADER + ROW, encoding="utf-8")
    qlog(home, "ingest", path, "--format", "aol").success  # noqa: B018 - asserts
    assert qlog(home, "ingest", path, "--format", "aol").success.startswith("[bold]log.txt: was ingested before")


@pytest.mark.faults
def test_a_refused_file_does_not_stay_in_the_landing_zone(home: Path) -> None:
    """What was there before stays. All files of a command are looked at before one is read."""
    for name, text in (("good.txt", AOL_HEADER + ROW), ("empty.txt", ""), ("later.txt", AOL_HEADER + ROW * 2)):
        (home / name).write_text(text, encoding="utf-8")
    by_hand = home / "landing" / "aol" / "by-hand.txt"
    by_hand.parent.parent.mkdir(mode=0o700)
    by_hand.parent.mkdir()
    by_hand.write_text("", encoding="utf-8")
    names = [home / name for name in ("good.txt", "empty.txt", "later.txt")]
    assert "empty.txt: has no rows" in qlog(home, "ingest", *names, "--format", "aol").refusal
    assert sorted(path.name for path in by_hand.parent.iterdir()) == ["by-hand.txt"]
    assert "by-hand.txt: has no rows" in qlog(home, "ingest", by_hand, "--format", "aol").refusal
    assert by_hand.exists()


# The warehouse and the environment ------------------------------------------------------------------------------------

HOMES: dict[str, tuple[str, str]] = {
    "a file": ("file", "is no directory"),
    "below a file": ("file/below", "Not a directory"),
    "a loop of links": ("loop", "is a link that leads back to itself"),
    "a name that is too long": ("x" * 300, "File name too long"),
    "a name that is no text": (os.fsdecode(b"\xfe"), r"\xfe: is no UTF-8"),
}


@pytest.mark.parametrize("kind", HOMES)
def test_a_warehouse_that_cannot_be_one_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    link_to_itself(tmp_path / "loop")
    name, said = HOMES[kind]
    for words in (("ledger",), ("audit",)):
        refusal = qlog(tmp_path / name, *words, cwd=tmp_path).refusal
        assert refusal.startswith("QLOG_HOME: ") and said in refusal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user can reach; the tests' own are shut."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("shut", ["warehouse", "warehouse/private"])
def test_another_users_warehouse_is_refused_in_one_line(reachable: Path, shut: str) -> None:
    home = reachable / "warehouse"
    (home / "private").mkdir(parents=True)
    (reachable / shut).chmod(0o700)
    for words in (("ledger",), ("release", "safelog", "--month", "2006-03")):
        refusal = qlog(home, *words, user=NOBODY).refusal
        assert "Permission denied" in refusal and str(home) in refusal


URLS = (
    "sqlite://", "sqlite:///", "sqlite:///:memory:", ":memory:", "file:ledger?mode=memory", "sqlite:ledger.db",
    "sqlite:///file:ledger?mode=memory&uri=true", "sqlite:///ledger.db?timeout=soon", "sqlite:///{folder}",
    "sqlite:///{folder}/file/ledger.db", "postgresql:/ledger", "postgresql://host:port/ledger", "postgresql://[::1/x",
    "postgresql://" + "h" * 70 + "/ledger", "postgresql://a..b/ledger", "mysql://host/ledger", "://", " ",
    os.fsdecode(b"\xff://x"), os.fsdecode(b"sqlite:///\xff"), "postgresql+psycopg2://127.0.0.1:1/x?connect_timeout=x",
)  # fmt: skip


@pytest.mark.parametrize("url", URLS, ids=range(len(URLS)))
def test_a_malformed_ledger_url_is_one_line_and_makes_no_ledger(home: Path, url: str) -> None:
    (home / "file").touch()
    answer = qlog(home, "ledger", environment={"QLOG_LEDGER_URL": url.format(folder=home)}, cwd=home)
    assert "ledger" in answer.refusal
    assert {path.name for path in home.iterdir()} <= {
        "file", "landing", "private", "released", "dagster"
    }  # fmt: skip


@pytest.mark.parametrize("variable", ["QLOG_MEMORY_MB", "QLOG_SPILL_GB", "QLOG_THREADS"])
@pytest.mark.parametrize("value", ["abc", "-1", "9" * 18, "9" * 5000, os.fsdecode(b"\xff")], ids=range(5))
def test_a_number_of_the_environment_out_of_range_is_named(home: Path, variable: str, value: str) -> None:
    assert qlog(home, "ledger", environment={variable: value}).refusal.startswith(f"{variable}: ")


BENCHES: dict[str, tuple[tuple[str, ...], str]] = {
    "scratch that is not there": (("--scratch", "nowhere"), "--scratch nowhere: is no directory"),
    "scratch that is a file": (("--scratch", "file"), "--scratch file: is no directory"),
    "figures to nowhere": (("--json", "nowhere/figures.json"), "nowhere is no directory"),
    "figures to a directory": (("--json", "."), "--json"),
}


@pytest.mark.parametrize("kind", BENCHES)
def test_a_benchmark_that_could_not_work_or_write_refuses_before_it_measures(home: Path, kind: str) -> None:
    (home / "file").touch()
    words, said = BENCHES[kind]
    assert said in qlog(home, "bench", "--rows", "1000", *words, cwd=home).refusal


# Output and faults ----------------------------------------------------------------------------------------------------


def run(*words: str, shell: str = "", **environment: str) -> Answer:
    """The installed program, or Python, with a shell's redirections."""
    command = ["bash", "-c", f'"$@" {shell}', "bash", *words]
    with tempfile.TemporaryDirectory() as folder:
        variables = {"QLOG_HOME": folder, "PATH": "/usr/bin:/bin", "GX_ANALYTICS_ENABLED": "false", **environment}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, cwd=folder)
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", [("guarantee", "safelog", "--json"), ("--help",)])
def test_a_full_standard_output_is_one_line_and_exit_code_2(words: tuple[str, ...]) -> None:
    answer = run(str(PROGRAM), *words, shell="> /dev/full")
    assert "could not be written to standard output (No space left on device)" in answer.refusal


@pytest.mark.slow
def test_a_terminal_that_knows_no_utf_8_gets_an_answer(home: Path) -> None:
    plain = qlog(home, "guarantee", "safelog", "--json").json
    answer = run(str(PROGRAM), "guarantee", "safelog", "--json", PYTHONIOENCODING="ascii")
    assert answer.json == plain
    assert run(str(PROGRAM), "guarantee", "safelog", PYTHONIOENCODING="ascii").code == 0


FAULT = "from qlog_assets.cli.endings import end, run_command; end(run_command(lambda: int('my own secret query')))"


def test_a_fault_of_the_program_is_one_line_that_quotes_nothing() -> None:
    answer = run(sys.executable, "-c", FAULT)
    assert (answer.code, answer.out, answer.err.count("\n")) == (70, "", 1)
    assert "ValueError" in answer.err and "QLOG_TRACEBACK=1" in answer.err and "secret" not in answer.err


def test_whoever_asks_for_it_sees_where_a_fault_is() -> None:
    answer = run(sys.executable, "-c", FAULT, QLOG_TRACEBACK="1")
    assert answer.code == 70 and "Traceback" in answer.err and "secret" in answer.err


def test_a_refusal_that_nobody_hears_goes_nowhere_else() -> None:
    answer = run(str(PROGRAM), "guarantee", "nothing", shell="2>&-")
    assert (answer.code, answer.out, answer.err) == (2, "", "")
