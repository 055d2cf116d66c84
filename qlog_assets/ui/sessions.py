"""Who is let in: the token of one start or a password file, sessions that follow a login, and a brake on guessing."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from qlog_assets.errors import QlogError
from qlog_assets.ui.passwords import NAME, Passwords

SESSION_SECONDS = 12 * 3600
"""How long nobody may use a session before it ends: a working day, not a night more."""
MOST_SESSIONS = 1000
WINDOW_SECONDS = 60
TRIES_PER_NAME = 10
TRIES_TOGETHER = 60
"""Tries per window. Far above what people mistype, far below what guessing a password takes."""
HASHES_AT_ONCE = 2
"""Each takes 32 MB and a core."""


class TooManyTriesError(Exception):
    """Guessing: the answer is 429, and no password is looked at."""


@dataclass
class Session:
    """One browser that was let in."""

    name: str
    granted_by: str
    """The password's hash that let it in, or the token's: the session ends when it does."""
    used: float


class Brake:
    """Counts the tries of the last minute, by name and together. Holds no more than the tries of one window."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tries: deque[tuple[float, str]] = deque()

    def begin(self, name: str) -> None:
        """Count a try before it is looked at, so that tries side by side count, too."""
        now = self._clock()
        while self._tries and self._tries[0][0] <= now - WINDOW_SECONDS:
            self._tries.popleft()
        mine = sum(1 for _, tried in self._tries if tried == name)
        if mine >= TRIES_PER_NAME or len(self._tries) >= TRIES_TOGETHER:
            raise TooManyTriesError
        self._tries.append((now, name))

    def forgive(self, name: str) -> None:
        """Who got in was not guessing."""
        self._tries = deque(entry for entry in self._tries if entry[1] != name)


@dataclass
class Gate:
    """Lets people in: by the token, or with a password file by name and password. There is no third way."""

    user: str
    """Whose name the token stands for: the system's user who started the server and reads its terminal."""
    passwords: Passwords | None = None
    clock: Callable[[], float] = time.monotonic
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _sessions: OrderedDict[str, Session] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        self._brake = Brake(self.clock)
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)

    @property
    def takes_token(self) -> bool:
        return self.passwords is None

    def check_token(self, given: str) -> bool:
        """Whether this is the token. Counted as a try if it is not."""
        if not self.takes_token:
            return False
        if hmac.compare_digest(given.encode(), self.token.encode()):
            return True
        self._brake.begin("")
        return False

    async def check_password(self, name: str, password: str) -> str | None:
        """The hash that lets this user in. Other requests go on meanwhile."""
        if self.passwords is None or not NAME.fullmatch(name):
            return None
        self._brake.begin(name)
        async with self._hashing:
            granted = await asyncio.to_thread(self.passwords.login, name, password)
        if granted is not None:
            self._brake.forgive(name)
        return granted

    def open_session(self, name: str, granted_by: str) -> str:
        """A new session; returns the secret that its cookie holds. Here only its digest is kept."""
        secret = secrets.token_urlsafe(32)
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[digest(secret)] = Session(name, granted_by, self.clock())
        return secret

    def close_session(self, secret: str) -> None:
        self._sessions.pop(digest(secret), None)

    def session_user(self, secrets_given: Iterable[str]) -> str | None:
        """Whose sessions these are. Cookies of one name but two users' are refused: another port may have set one."""
        names = {name for secret in secrets_given if (name := self._user_of(digest(secret))) is not None}
        return names.pop() if len(names) == 1 else None

    def _user_of(self, key: str) -> str | None:
        session = self._sessions.get(key)
        if session is None:
            return None
        if session.used <= self.clock() - SESSION_SECONDS or session.granted_by != self._granted_now(session.name):
            del self._sessions[key]
            return None
        session.used = self.clock()
        self._sessions.move_to_end(key)
        return session.name

    def _granted_now(self, name: str) -> str | None:
        if self.passwords is None:
            return self.token
        try:
            return self.passwords.hashes().get(name)
        except QlogError:  # a file that became unreadable or loose lets nobody in
            return None


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
