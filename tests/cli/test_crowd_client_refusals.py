"""`qlog crowd client` given what it cannot use: one line, exit code 2, nothing of the log in it. No server is asked."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.cli import qlog
from support.instances import contents

from qlog_assets.crowd.cast import make_cast


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Path:
    """A client's folder whose servers are not there."""
    make_cast(tmp_path / "cast", ports=[1, 2, 3, 4, 5])
    (tmp_path / "secret.txt").write_text("a secret\n", encoding="utf-8")
    words = ("--cast", tmp_path / "cast" / "cast.json", "--account", "ann", "--state", tmp_path / "client")
    answer = qlog(home, "crowd", "client", "init", *words, "--secret-file", tmp_path / "secret.txt")
    assert "nothing was sent" in answer.success and "a secret" not in answer.out
    return tmp_path / "client"


LOG = ("--log", "log.txt", "--format", "aol")
REFUSALS: dict[str, tuple[tuple[str, ...], str]] = {
    "no log": (("show",), "name one log that is yours"),
    "two logs": (("run", "--chromium", "profile", *LOG), "name one log that is yours"),
    "no format": (("show", "--log", "log.txt"), "--format"),
    "a user of a browser": (("show", "--chromium", "profile", "--user", "7"), "are for a file"),
    "an engine of a file": (("show", *LOG, "--search-url", "http://tea.example/?q="), "is for a browser's history"),
    "an engine that is none": (("show", "--chromium", "profile", "--search-url", "tea"), "--search-url: write"),
    "servers that are away": (("jobs",), "collector cannot be reached"),
    "servers that are away, for a run": (("run", *LOG, "--yes"), "collector cannot be reached"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_used_is_one_line(home: Path, client: Path, case: str) -> None:
    words, said = REFUSALS[case]
    before = contents(client)
    assert said in qlog(home, "crowd", "client", *words, "--state", client).refusal
    assert contents(client) == before


def test_no_proxy_of_the_environment_learns_whom_a_client_speaks_to(home: Path, client: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        environment = {"HTTP_PROXY": address, "http_proxy": address, "NO_PROXY": "", "no_proxy": ""}
        answer = qlog(home, "crowd", "client", "jobs", "--state", client, environment=environment)
        assert "cannot be reached" in answer.refusal
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_a_client_without_a_folder_or_a_secret_is_told_how_to_get_them(home: Path, tmp_path: Path) -> None:
    assert "--state or QLOG_CROWD_HOME" in qlog(home, "crowd", "client", "status").refusal
    assert "client init" in qlog(home, "crowd", "client", "status", "--state", tmp_path / "nowhere").refusal
    make_cast(tmp_path / "cast")
    init = ("crowd", "client", "init", "--cast", tmp_path / "cast" / "cast.json", "--state", tmp_path / "client")
    assert "secret is missing" in qlog(home, *init, "--account", "ann").refusal
    environment = {"QLOG_CROWD_SECRET": "x"}
    assert "--account" in qlog(home, *init, "--account", " ", environment=environment).refusal
    assert not (tmp_path / "client").exists()


def test_a_client_is_set_up_again_for_the_same_account_alone(home: Path, client: Path, tmp_path: Path) -> None:
    init = ("crowd", "client", "init", "--cast", tmp_path / "cast" / "cast.json", "--state", client)
    environment = {"QLOG_CROWD_SECRET": "another"}
    assert qlog(home, *init, "--account", "ann", environment=environment).success
    assert "another account" in qlog(home, *init, "--account", "eve", environment=environment).refusal


def test_settings_with_a_typo_stop_every_command(home: Path, client: Path) -> None:
    (client / "client.toml").write_text('[opt_out]\npattern = ["smith"]', encoding="utf-8")
    for command in ("status", "jobs", "send"):
        refusal = qlog(home, "crowd", "client", command, "--state", client).refusal
        assert "perhaps patterns" in refusal and "smith" not in refusal


def test_a_client_that_took_part_in_nothing_has_nothing_to_send(home: Path, client: Path) -> None:
    assert "took part in no job yet" in qlog(home, "crowd", "client", "send", "--wait", "--state", client).success
