"""What a person finds out without a page: the version, an example of every command, words that the shell completes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import qlog
from support.commands import all_commands, parse

from qlog_assets.cli.examples import EXAMPLES
from qlog_assets.version import VERSION


def test_every_command_has_examples_that_its_parser_takes() -> None:
    commands = dict(all_commands())
    assert set(EXAMPLES) == set(commands)
    for words, command in commands.items():
        assert EXAMPLES[words]
        for line in EXAMPLES[words]:
            # A group that does nothing by itself shows a command below it.
            assert f"{parse(line)} ".startswith(f"{words} ")
            assert line in command.epilog


@pytest.mark.parametrize(
    "line", ["qlog relase safelog", "qlog release safelog", "qlog release safelog --month 2006-03 --agian x"]
)
def test_an_example_with_a_slip_would_be_found(line: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing"):
        parse(line)


def test_the_help_shows_the_examples_one_per_line(home: Path) -> None:
    for words in ("skip", "ingest", "ingest withdraw"):
        said = [line.strip() for line in qlog(home, *words.split(), "--help").success.splitlines()]
        assert all(line in said for line in EXAMPLES[words])
    assert "qlog ingest list" in " ".join(qlog(home, "ingest", "--help").success.split())


def test_the_version_is_told_without_a_warehouse(tmp_path: Path) -> None:
    assert qlog(tmp_path / "nowhere" / "at all", "--version", cwd=tmp_path).success == f"qlog {VERSION}\n"
    assert not list(tmp_path.iterdir())


def test_the_shell_completes_commands_and_mechanisms(home: Path) -> None:
    def completed(*words: str) -> list[str]:
        environment = {
            "_QLOG_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        return qlog(home, environment=environment).success.split()

    assert completed("qlog", "wit") == ["withdraw"]
    assert {"safelog", "zealous"} <= set(completed("qlog", "release", ""))
    assert "safelog" in completed("qlog", "skip", "safe")
    # Which shell it is cannot be seen from below pytest: with this variable it is said.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = qlog(home, "--show-completion", "bash", environment=named).success
    assert "complete -o default -F _qlog_completion qlog" in script
