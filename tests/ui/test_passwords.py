"""The password file: what is written into it, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qlog_assets.errors import QlogError
from qlog_assets.ui.passwords import LOWEST_COST, Passwords, hash_password, is_hash, write_password

CHEAP = hash_password("correct horse", LOWEST_COST, 8, 1)


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.slow
def test_a_written_password_lets_its_user_in_and_nobody_else(tmp_path: Path) -> None:
    path = written(tmp_path / "users", f"# of the night shift\nbob:{CHEAP}\n")
    assert write_password(path, "alice", "battery staple") is True
    assert path.stat().st_mode & 0o777 == 0o600 and "battery" not in path.read_text()
    assert [line.partition(":")[0] for line in path.read_text().splitlines()] == [
        "# of the night shift",
        "bob",
        "alice",
    ]
    passwords = Passwords(path)
    assert passwords.login("alice", "battery staple") and passwords.login("bob", "correct horse")
    assert passwords.login("alice", "correct horse") is None
    assert write_password(path, "alice", "another one") is False
    assert passwords.login("alice", "battery staple") is None, "the file is read again when it changes"
    assert len(path.read_text().splitlines()) == 3


def test_two_users_with_one_password_have_different_lines() -> None:
    assert hash_password("correct horse", LOWEST_COST, 8, 1) != CHEAP and is_hash(CHEAP)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no user in it"),
        ("# nobody\n", "no user in it"),
        ("alice:secret\n", "line 1: not"),
        ("bob:HASH\nalice\n", "line 2: not"),
        ("bob:HASH\nbob:HASH\n", "line 2: bob stands there twice"),
        ("a b:HASH\n", "line 1: not"),
        ("bob:CHEAPER\n", "line 1: not"),
        ("bob:DEARER\n", "line 1: not"),
    ],
)
def test_a_file_that_is_no_password_file_is_refused_in_one_line_without_its_content(
    tmp_path: Path, text: str, complaint: str
) -> None:
    # Salts are random: names of tests, which the workers of one session compare, must not hold them.
    hashes = {"CHEAPER": CHEAP.replace(str(LOWEST_COST), "1024"), "DEARER": CHEAP.replace(str(LOWEST_COST), "999999")}
    for word, hashed in {**hashes, "HASH": CHEAP}.items():
        text = text.replace(word, hashed)
    path = written(tmp_path / "users", text)
    with pytest.raises(QlogError, match=complaint) as refused:
        Passwords(path)
    assert (
        str(path) in str(refused.value) and "scrypt$1" not in str(refused.value) and "secret" not in str(refused.value)
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o644])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "users", f"bob:{CHEAP}\n", mode)
    with pytest.raises(QlogError, match="chmod 600"):
        Passwords(path)
    with pytest.raises(QlogError, match="chmod 600"):
        write_password(path, "alice", "battery staple")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "link").symlink_to(written(tmp_path / "users", f"bob:{CHEAP}\n"))
    (tmp_path / "folder").mkdir(0o700)
    for name in ("pipe", "link", "folder"):
        with pytest.raises(QlogError, match="regular file"):
            Passwords(tmp_path / name)
    with pytest.raises(QlogError, match="cannot be read"):
        Passwords(tmp_path / "nothing")


@pytest.mark.parametrize(("name", "password"), [("a:b", "long enough"), ("", "long enough"), ("alice", "short")])
def test_a_name_or_password_that_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str, password: str
) -> None:
    with pytest.raises(QlogError):
        write_password(tmp_path / "users", name, password)
    assert list(tmp_path.iterdir()) == []
