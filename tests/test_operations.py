"""docs/operations.md and deploy/ tell the truth: commands parse, links lead somewhere, systemd takes the units."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import all_commands, fenced_commands, inline_commands, parse

from qlog_assets.settings import CHECKOUT, VARIABLES

PAGE = CHECKOUT / "docs" / "operations.md"
UNITS = sorted((CHECKOUT / "deploy").glob("qlog*.*"))
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


def test_every_command_on_the_page_parses() -> None:
    commands = fenced_commands(PAGE)
    assert len(commands) > 20
    parsed = {parse(command) for command in commands if "--version" not in command}
    assert {
        "skip",
        "ingest withdraw",
        "withdraw",
        "forget",
        "audit",
        "ledger recover",
        "ledger set-budget",
        "ui-password",
    } <= parsed
    names = {words.partition(" ")[0] for words, _ in all_commands()}
    for command in inline_commands(PAGE):
        word = shlex.split(command)[1]
        assert word in names or word.startswith("--"), command


def test_links_of_the_page_lead_to_files_and_headings() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(targets) > 8
    for target in targets:
        file, _, heading = target.partition("#")
        path = (PAGE.parent / file).resolve() if file else PAGE
        assert path.exists(), target
        titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
        anchors = {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}
        assert not heading or heading in anchors, target


def test_the_units_name_commands_that_parse_and_settings_that_exist() -> None:
    assert [unit.name for unit in SERVICES] == ["qlog-audit.service", "qlog-ui.service"]
    for unit in SERVICES:
        text = unit.read_text(encoding="utf-8")
        (command,) = re.findall(r"^ExecStart=/opt/qlog/bin/(qlog .*)$", text, re.MULTILINE)
        assert parse(command) in ("ui", "audit")
        assert "\nUMask=0077\n" in text and "\nLimitCORE=0\n" in text, "no file or core of it is for others"
    named = set(re.findall(r"^#?(QLOG_\w+)=", (CHECKOUT / "deploy" / "qlog.env").read_text(), re.MULTILINE))
    assert named == {"QLOG_HOME", "QLOG_POLICY", "QLOG_DAGSTER_URL", *VARIABLES.values()}


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_roots_command_takes_the_callers_variables_and_directory_before_the_services(tmp_path: Path) -> None:
    """The account is left as it is, which takes no root; everything else runs as it is installed."""
    settings, program, command = (tmp_path / name for name in ("qlog.env", "program", "qlog"))
    home, here = tmp_path / "home", tmp_path / "a directory"
    home.mkdir()
    here.mkdir()
    settings.write_text(f"QLOG_HOME={home}\nQLOG_LEDGER_URL=of-the-services\nQLOG_THREADS=2\n", encoding="utf-8")
    program.write_text('#!/bin/sh\npwd\nenv\nprintf "<%s>" "$@"\n', encoding="utf-8")
    text = (CHECKOUT / "deploy" / "qlog").read_text(encoding="utf-8")
    for installed, tried in (
        ("/etc/qlog/qlog.env", str(settings)),
        ("/opt/qlog/bin/qlog", str(program)),
        (" --reuid=qlog --regid=qlog --clear-groups", ""),
    ):
        assert text.count(installed) == 1
        text = text.replace(installed, tried)
    command.write_text(text, encoding="utf-8")
    for path in (program, command):
        path.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "QLOG_LEDGER_URL": "of the $(caller); 'quoted'"}
    words = [str(command), "ingest", "a file.txt"]
    done = subprocess.run(words, cwd=here, env=given, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[0] == str(here) and said[-1] == "<ingest><a file.txt>"
    assert {f"QLOG_LEDGER_URL={given['QLOG_LEDGER_URL']}", "QLOG_THREADS=2", f"QLOG_HOME={home}"} <= set(said)
    assert not any(line.startswith("given_") for line in said)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """It asks whether the program is there: that of this environment stands for the one in /opt."""
    for unit in UNITS:
        if unit.suffix in (".service", ".timer"):
            text = unit.read_text(encoding="utf-8").replace("/opt/qlog/bin/qlog", str(Path(sys.executable)))
            (tmp_path / unit.name).write_text(text, encoding="utf-8")
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "qlog" in line]
    assert done.returncode == 0 and ours == [], done.stderr
    spoiled = tmp_path / "spoiled.service"
    spoiled.write_text(
        (tmp_path / "qlog-ui.service").read_text(encoding="utf-8").replace("UMask=", "UMaks="), encoding="utf-8"
    )
    found = subprocess.run(["systemd-analyze", "verify", str(spoiled)], capture_output=True, text=True, check=False)
    assert "UMaks" in found.stderr, "a slip in a unit is noticed"
