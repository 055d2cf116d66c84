"""`qlog` given what it cannot use: one line, exit code 2, and nothing changed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import socket
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support.cli import Answer, qlog
from support.instances import AOL_HEADER, MONTHS, Prepared, contents, copy_warehouse

from qlog_assets.ledger import Ledger
from qlog_assets.policy import FILE_ALONE

MARCH, _ = MONTHS
ROW = "7\tweather\t2006-03-02 10:00:00\t1\thttp://www.weather.example\n"


def assert_whole(home: Path) -> None:
    """No partition is half-written: each has its provenance, and nothing temporary is left."""
    for folder in (home / "private").glob("*/*/*/"):
        assert folder.parts[-3] == "draws" or (folder / "provenance.json").exists(), folder
    assert not [path for path in home.rglob(".*") if path.is_dir() or "tmp" in path.name or "landing" in path.name]


REFUSALS: dict[str, tuple[tuple[str, ...], str]] = {
    "missing file": (("ingest", "no-such.txt", "--format", "aol"), "no-such.txt: no such file"),
    "a directory for a file": (("ingest", ".", "--format", "aol"), "is a directory: give the path of a log"),
    "unknown format": (("ingest", "good.txt", "--format", "yahoo"), "'yahoo' is not a format"),
    "no format": (("ingest", "good.txt"), "--format"),
    "no file": (("ingest", "--format", "aol"), "paths"),
    "table without a column map": (("ingest", "good.txt", "--format", "table"), "column map"),
    "missing column map": (("ingest", "good.txt", "--format", "table", "--columns", "none.toml"), "none.toml"),
    "column map of another format": (("ingest", "good.txt", "--format", "aol", "--columns", "map.toml"), "columns"),
    "column map with a typo": (("ingest", "good.txt", "--format", "table", "--columns", "typo.toml"), "usr"),
    "good and missing file": (("ingest", "good.txt", "no-such.txt", "--format", "aol"), "no-such.txt: no such file"),
    "bad month": (("release", "safelog", "--month", "2006-13"), "'2006-13' is not a month"),
    "no month": (("release", "safelog"), "--month"),
    "month outside the policy": (("release", "safelog", "--month", "2007-01"), "first or last in the policy"),
    "empty month": (("release", "safelog", "--month", "2006-05"), "no rows of 2006-05 were ingested: run qlog ingest"),
    "unknown mechanism": (("release", "safe_log", "--month", MARCH), "safe_log"),
    "mechanism that cannot be released": (("release", "baselines", "--month", MARCH), "baselines"),
    "unknown key": (
        ("release", "safelog", "--month", MARCH, "--set", "treshold=5"),
        "treshold: unknown key: perhaps threshold",
    ),
    "key like no other": (
        ("release", "safelog", "--month", MARCH, "--set", "foo=1"),
        "foo: unknown key: there are queries_per_user, ",
    ),
    "unknown section": (
        ("release", "safelog", "--month", MARCH, "--set", "pol.kind=default"),
        "pol.kind: unknown key: perhaps pool",
    ),
    "no value": (("release", "safelog", "--month", MARCH, "--set", "threshold"), "key=value"),
    "bad value": (("release", "safelog", "--month", MARCH, "--set", "threshold=many"), "threshold: "),
    "value out of range": (("release", "safelog", "--month", MARCH, "--set", "queries_per_user=0"), "queries_per_user"),
    "scale that is no number": (("release", "safelog", "--month", MARCH, "--set", "click_scale=x"), "click_scale"),
    "infinite scale": (("release", "safelog", "--month", MARCH, "--set", "click_scale=inf"), "click_scale"),
    "negative scale": (("release", "safelog", "--month", MARCH, "--set", "click_scale=-1"), "click_scale"),
    "delta of one": (("release", "safelog", "--month", MARCH, "--set", "delta=1"), "delta"),
    "mandatory part off": (("release", "safelog", "--month", MARCH, "--set", "threshold=none"), "threshold"),
    "budget of a run's own": (("release", "safelog", "--month", MARCH, "--set", "budget.epsilon=1000000"), FILE_ALONE),
    "data set of a run's own": (("release", "safelog", "--month", MARCH, "--set", "dataset=mine"), FILE_ALONE),
    "months of a run's own": (("release", "safelog", "--month", MARCH, "--set", "last=none"), FILE_ALONE),
    "pool of a run's own": (("release", "safelog", "--month", MARCH, "--set", "pool.path=/etc/passwd"), FILE_ALONE),
    "kind of pool of a run's own": (("release", "safelog", "--month", MARCH, "--set", "pool.kind=default"), FILE_ALONE),
    "url list of a run's own": (("release", "safelog", "--month", MARCH, "--set", "url_list=urls.txt"), FILE_ALONE),
    "limits of a run's own": (("release", "safelog", "--month", MARCH, "--set", "limits.epsilon=99"), FILE_ALONE),
    "directories of a run's own": (
        ("release", "safelog", "--month", MARCH, "--set", "public_directories=/etc"),
        FILE_ALONE,
    ),
    "words of a run's own": (("release", "safelog", "--month", MARCH, "--set", "about.publisher=me"), FILE_ALONE),
    "rejected rows of a run's own": (
        ("release", "safelog", "--month", MARCH, "--set", "ingest.max_rejected_share=0.9"),
        FILE_ALONE,
    ),
    "another mechanism's parameter": (
        ("release", "safelog", "--month", MARCH, "--set", "zealous.epsilon=1"),
        "zealous.epsilon: is no parameter of safelog",
    ),
    "more epsilon than the policy's": (
        ("release", "safelog", "--month", MARCH, "--set", "selection_scale=0.4"),
        "one release may cost ε = 20 at most",
    ),
    "more delta than the policy's": (
        ("release", "safelog", "--month", MARCH, "--set", "delta=2e-3"),
        "at δ = 0.002: one release may cost δ = 0.001 at most",
    ),
    "simulation from a file of its own": (
        ("simulate", "safelog", "--month", MARCH, "--set", "pool.path=/etc/passwd"),
        "pool.path: names a file",
    ),
    "simulation with a url list of its own": (
        ("simulate", "safelog", "--month", MARCH, "--set", "url_list=/etc/passwd"),
        "url_list: names a file",
    ),
    "study of a file of its own": (
        ("study", "zealous", "--month", MARCH, "--set", "pool.path=/etc/passwd"),
        "pool.path: names a file",
    ),
    "plan from a file of its own": (
        ("plan", "zealous", "--rows", "1000", "--set", "url_list=/etc/passwd"),
        "url_list: names a file",
    ),
    "guarantee with a file of its own": (
        ("guarantee", "safelog", "--set", "url_list=/etc/passwd"),
        "url_list: names a file",
    ),
    "paper variant released": (("release", "safelog", "--month", MARCH, "--set", "variant=paper"), "variant"),
    "simulation of another mechanism": (("simulate", "nothing", "--month", MARCH), "nothing"),
    "simulation of another variant": (("simulate", "safelog", "--month", MARCH, "--variant", "loud"), "loud"),
    "simulation of an empty month": (("simulate", "safelog", "--month", "2006-05"), "2006-05"),
    "seed that is no number": (("simulate", "safelog", "--month", MARCH, "--seed", "x"), "--seed"),
    "guarantee of nothing": (("guarantee", "nothing"), "nothing"),
    "guarantee with another variant": (("guarantee", "safelog", "--variant", "loud"), "loud"),
    "guarantee with an unknown key": (
        ("guarantee", "safelog", "--set", "foo=1"),
        "foo: unknown key: a parameter of a mechanism",
    ),
    "audit of an unknown release": (("audit", "safelog-2006-03-000000000000"), "safelog-2006-03-000000000000"),
    "withdraw of an unknown release": (
        ("withdraw", "no-release", "--reason", "x"),
        "no release no-release: qlog ledger shows those there are",
    ),
    "withdraw without a reason": (("withdraw", "no-release"), "--reason"),
    "abandon of an unknown release": (("ledger", "abandon", "no-release", "--reason", "x"), "no-release"),
    "budget that is no number": (
        ("ledger", "set-budget", "--epsilon", "much", "--delta", "0", "--reason", "x"),
        "much",
    ),
    "forget before no month": (("forget", "--before", "March"), "'March' is not a month"),
    "too small a log": (("synth", "10"), "1,000"),
    "months the wrong way round": (("synth", "1000", "--first", "2006-05", "--last", "2006-03"), "2006-03"),
    "unknown command": (("relase", "safelog"), "relase"),
    "unknown option": (("ledger", "--jsonn"), "--jsonn"),
}


@pytest.fixture(scope="module")
def bystander(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that no refused command may change, in a folder with files to name."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "good.txt").write_text(AOL_HEADER + ROW, encoding="utf-8")
    (folder / "map.toml").write_text(
        "user = 1\nquery = 2\ntime = 3\nheader = false\nfield_count = 3\n", encoding="utf-8"
    )
    (folder / "typo.toml").write_text(
        "usr = 1\nquery = 2\ntime = 3\nheader = false\nfield_count = 3\n", encoding="utf-8"
    )
    return copy_warehouse(prepared("ingested"), folder / "warehouse")


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_line_and_exit_code_2_and_changes_nothing(bystander: Path, case: str) -> None:
    words, said = REFUSALS[case]
    before = contents(bystander)
    answer = qlog(bystander, *(word.format(home=bystander) for word in words), cwd=bystander.parent)
    assert said in answer.refusal
    assert contents(bystander) == before
    assert_whole(bystander)
    assert Ledger.open(bystander / "ledger.db").charges() == []


def test_the_ui_refuses_a_port_that_is_taken(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in qlog(home, "ui", "--port", port).refusal


def test_without_a_command_the_commands_are_listed(home: Path) -> None:
    alone = qlog(home)
    assert alone.code == 0 and alone.err == ""
    for command in ("demo", "synth", "ingest", "release", "simulate", "guarantee", "ledger", "audit", "ui"):
        assert command in alone.out


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("2>&-", 0), ("| head -c 0; exit ${PIPESTATUS[0]}", 1)])
def test_a_command_nobody_listens_to_ends_quietly(closed: str, code: int) -> None:
    """A caller may close the streams, or leave while the answer is written; neither is an error of the command."""
    program = Path(sys.executable).with_name("qlog")
    command = ["bash", "-c", f"{program} guarantee safelog --json {closed}"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == code and "Traceback" not in ended.stderr


def test_nothing_is_cut_off_in_a_narrow_terminal(home: Path) -> None:
    """A path or a number that ends in dots cannot be copied; a line that the terminal wraps can."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = [str(Path(sys.executable).with_name("qlog")), "guarantee", "safelog", "--variant", "paper"]
    environment = {"QLOG_HOME": str(home), "PATH": "/usr/bin:/bin", "TERM": "dumb"}
    with subprocess.Popen(command, env=environment, cwd=home, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        said = b""
        with contextlib.suppress(OSError):  # how a terminal says that the other end is gone
            while part := os.read(controller, 65536):
                said += part
    os.close(controller)
    assert process.returncode == 0 and "transitions" in said.decode() and "…" not in said.decode()


def test_the_installed_command_refuses_in_one_line_too(home: Path) -> None:
    """The same through the real entry point, without the tests' fork server."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("qlog")), "guarantee", "safelog", "--set", "threshold=0"],
        env={"QLOG_HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "threshold" in Answer(done.returncode, done.stdout, done.stderr).refusal


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ("datset = 5\n", "datset: unknown key: perhaps dataset"),
        ("[safelog]\ntreshold = 5\n", "safelog: treshold: unknown key: perhaps threshold"),
        ("[safelog]\nthreshold = 0\n", "safelog: threshold"),
        ('first = "2006-03"\nlast = "2006-02"\n', "last"),
        ('first = "March"\n', "first"),
        ("[budget]\nepsilon = 0\n", "budget: epsilon"),
        ('[pool]\nkind = "query_list"\n', "path"),
        ("dataset = 'Not A Name'\n", "dataset"),
        ("first = '2006-03'\ndataset = \n", "policy.toml, line 2: not a TOML file"),
        ("# ours\ndataset = '\xff'\n", "policy.toml, line 2: not a TOML file"),
        ("dataset = 'small'\nlast = [\n", "policy.toml, line 2: not a TOML file"),
    ],
)
def test_a_wrong_policy_file_is_an_error_that_names_file_and_key(home: Path, policy: str, named: str) -> None:
    (home / "policy.toml").write_bytes(policy.encode("latin-1"))
    for words in (("guarantee", "safelog"), ("ledger",), ("release", "safelog", "--month", MARCH)):
        refusal = qlog(home, *words).refusal
        assert "policy.toml" in refusal and named in refusal


def test_a_policy_file_that_is_asked_for_must_exist(home: Path) -> None:
    answer = qlog(home, "ledger", environment={"QLOG_POLICY": str(home / "none.toml")})
    assert "none.toml: no such policy file" in answer.refusal
