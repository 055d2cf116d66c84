"""The password file of a shared server: one line per user, `name:scrypt$…`, readable by its owner alone."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from functools import cache
from pathlib import Path

from qlog_assets.errors import QlogError
from qlog_assets.storage.private_files import write_private

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
COST, BLOCK, PARALLEL = 2**15, 8, 3
"""32 MB and a third of a second per try; one of the choices of OWASP's password storage cheat sheet."""
LOWEST_COST, HIGHEST_COST = 2**14, 2**17
SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024
LARGEST_FILE = 1_000_000


def hash_password(password: str, cost: int = COST, block: int = BLOCK, parallel: int = PARALLEL) -> str:
    salt = secrets.token_bytes(16)
    hashed = _scrypt(password, salt, cost, block, parallel)
    return f"scrypt${cost}${block}${parallel}${_text(salt)}${_text(hashed)}"


def is_password(password: str, hashed: str) -> bool:
    """Whether a password fits a line's hash. Takes its time, by design."""
    _, cost, block, parallel, salt, expected = hashed.split("$")
    found = _scrypt(password, base64.b64decode(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(found, base64.b64decode(expected))


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    memory = 128 * block * (cost + parallel + 2) + 1024
    return hashlib.scrypt(password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=memory, dklen=32)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@cache
def nobody() -> str:
    """What a name that is not in the file is compared with, so that it takes as long as one that is."""
    return hash_password(secrets.token_urlsafe())


class Passwords:
    """A password file. It is read again when it changed, so that users come and go without a restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()
        self._hashes: dict[str, str] = {}
        self.hashes()

    def hashes(self) -> dict[str, str]:
        """Hash by name."""
        about = check_file(self.path)
        seen = (about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size)
        if seen != self._seen:
            self._hashes = parse_lines(self.path)
            self._seen = seen
        return self._hashes

    def login(self, name: str, password: str) -> str | None:
        """The hash that let a user in; None if nobody is let in."""
        hashed = self.hashes().get(name)
        fits = len(password) <= LONGEST_PASSWORD and is_password(password, hashed or nobody())
        return hashed if fits else None


def check_file(path: Path) -> os.stat_result:
    try:
        about = path.lstat()
    except OSError as error:
        raise QlogError(f"{path}: cannot be read ({error.strerror}): `qlog ui-password NAME` makes it") from None
    if not stat.S_ISREG(about.st_mode):
        raise QlogError(f"{path}: a password file must be a regular file")
    if about.st_mode & 0o077:
        raise QlogError(f"{path}: others may read or change it: chmod 600 it")
    if about.st_size > LARGEST_FILE:
        raise QlogError(f"{path}: {about.st_size:,} bytes are no password file")
    return about


def parse_lines(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise QlogError(f"{path}: cannot be read as text") from None
    hashes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, hashed = line.strip().partition(":")
        if not NAME.fullmatch(name) or not is_hash(hashed):
            raise QlogError(f"{path}, line {number}: not `name:scrypt$…`: `qlog ui-password NAME` writes such a line")
        if name in hashes:
            raise QlogError(f"{path}, line {number}: {name} stands there twice")
        hashes[name] = hashed
    if not hashes:
        raise QlogError(f"{path}: no user in it: `qlog ui-password NAME` adds one")
    return hashes


def is_hash(text: str) -> bool:
    """Whether a text is a hash as `hash_password` writes it, with a cost that this machine is to pay for a login."""
    found = re.fullmatch(r"scrypt\$(\d{5,6})\$(\d{1,2})\$(\d)\$([A-Za-z0-9+/]{22}==)\$([A-Za-z0-9+/]{43}=)", text)
    if not found:
        return False
    cost, block, parallel = (int(found[number]) for number in (1, 2, 3))
    return cost & (cost - 1) == 0 and LOWEST_COST <= cost <= HIGHEST_COST and 1 <= block <= 16 and parallel >= 1


def write_password(path: Path, name: str, password: str) -> bool:
    """Add a user, or change her password; returns whether she is new. The file is made if it is not there."""
    if not NAME.fullmatch(name):
        raise QlogError(f"{name!r} is not a user's name: letters, digits and . _ @ -, at most 64")
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise QlogError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters")
    lines: list[str] = []
    known = False
    if path.exists() or path.is_symlink():
        check_file(path)
        text = path.read_text(encoding="utf-8")
        known = name in parse_lines(path) if text.strip() else False
        lines = [line for line in text.splitlines() if not line.startswith(f"{name}:")]
    if not path.parent.is_dir():
        raise QlogError(f"{path.parent}: no such directory")
    write_private(path, "\n".join([*lines, f"{name}:{hash_password(password)}"]) + "\n")
    return not known
