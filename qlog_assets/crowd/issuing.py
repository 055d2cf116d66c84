"""Accounts and the tokens that are issued to them: for each job once, blindly.

The issuer knows which account took part in which job, and nothing of what it sends: serials come blinded. It can refuse
an account, or issue too many tokens to accounts that it made up; the count of accounts per job is stated to the
collector once the epoch's key is deleted, and the release counts on it. From then on the count is all that is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.crowd.epochs import DeletedEpochError
from qlog_assets.crowd.inbox import empty_log, open_database, writing
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import evaluate
from qlog_assets.crowd.malformed import MalformedError
from qlog_assets.crowd.tokens import Purpose, Token
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from voprf.ristretto import Evaluator

ACCOUNTS_DATABASE = "accounts.db"
ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
SECRET_BYTES = 32
"""Secrets are made here and not chosen by people: nobody can guess one, so a plain hash of it hides it."""
SECRET_LABEL = b"qlog-crowd account v1\0"
ISSUED_LABEL = b"qlog-crowd issued v1\0"
ISSUED_HEADER = "X-Qlog-Proof"
ACCOUNTS_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (account TEXT PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;
"""
SCHEMA = """
CREATE TABLE IF NOT EXISTS issued (
    job BLOB NOT NULL, account TEXT NOT NULL, request BLOB NOT NULL, epoch TEXT NOT NULL, PRIMARY KEY (job, account)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS issued_before (job BLOB PRIMARY KEY, accounts INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent (
    job BLOB NOT NULL, serial BLOB NOT NULL, request BLOB NOT NULL, answers INTEGER NOT NULL, epoch TEXT NOT NULL,
    PRIMARY KEY (job, serial)
) WITHOUT ROWID;
"""
DELETED = "SELECT epoch FROM epochs WHERE state = 'deleted'"
IS_OPEN = "SELECT 1 FROM epochs WHERE epoch = ? AND state = 'open'"
"""Both of the table of `epochs`, which is in the same database."""


class IssuedBeforeError(QlogError):
    """An account that has tokens for the job, and asks for others; or a token that was spent on another question."""


class TooOftenError(QlogError):
    """The same question too many times."""


@dataclass(frozen=True)
class Issued:
    """What the issuer states of a job."""

    accounts: int
    tokens_per_account: int


# Accounts -------------------------------------------------------------------------------------------------------------


class Accounts:
    """Whom tokens are issued to. One user is one account: who makes the accounts sees to that."""

    def __init__(self, folder: Path) -> None:
        self._connection = open_database(folder / ACCOUNTS_DATABASE, ACCOUNTS_SCHEMA)

    def add(self, names: Sequence[str]) -> dict[str, str]:
        """Make accounts, all or none; returns the secret of each, which is stored nowhere."""
        made = {}
        for name in names:
            if not ACCOUNT_NAME.fullmatch(name):
                raise QlogError(f"{name!r} is no name of an account: letters, digits and . _ @ -, at most 64")
            made[name] = secrets.token_urlsafe(SECRET_BYTES)
        with writing(self._connection) as connection:
            for name, secret in made.items():
                row = (name, hash_secret(secret))
                if not connection.execute("INSERT OR IGNORE INTO accounts VALUES (?, ?)", row).rowcount:
                    raise QlogError(f"{name}: there is an account of that name: choose another")
        return made

    def is_secret(self, name: str, secret: str) -> bool:
        """Whether an account has this secret. Takes as long for an account that is not there."""
        if not ACCOUNT_NAME.fullmatch(name):
            raise MalformedError("name is no account's")
        found = self._connection.execute("SELECT hash FROM accounts WHERE account = ?", (name,)).fetchone()
        (expected,) = found or (bytes(hashlib.sha256().digest_size),)
        return hmac.compare_digest(hash_secret(secret), expected)

    def number(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM accounts").fetchone()[0])

    def close(self) -> None:
        self._connection.close()


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(SECRET_LABEL + secret.encode("utf-8", "surrogatepass")).digest()


# Tokens ---------------------------------------------------------------------------------------------------------------


def sign(evaluators: Mapping[Purpose, Evaluator], blinded: Mapping[Purpose, list[bytes]]) -> dict[Purpose, bytes]:
    """The answer to blinded serials; MalformedError for what is no point of the curve. Stores nothing."""
    return {purpose: evaluate(evaluators[purpose], serials) for purpose, serials in blinded.items()}


def request_digest(parts: Sequence[bytes]) -> bytes:
    """What a request is known by when it comes again. Blinded inputs are random: it says nothing else."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def issued_proof(seed: bytes, job: bytes) -> str:
    """By what the issuer knows that the collector asks what it issued for a job: nobody else has the seed."""
    return hmac.digest(seed, ISSUED_LABEL + job, "sha256").hex()


class Issuer:
    """What was issued and what was spent. The caller commits nothing: each call that returns is durable."""

    def __init__(self, connection: sqlite3.Connection, answers_per_token: int) -> None:
        self._connection = connection
        self._answers_per_token = answers_per_token
        self._is_in_log = False

    def record(self, account: str, job: Job, blinded: dict[Purpose, list[bytes]]) -> None:
        """Write down that an account has its tokens of a job; refused if it got others before."""
        digest = request_digest([serial for purpose in sorted(blinded) for serial in blinded[purpose]])
        with writing(self._connection) as connection:
            # Looked at again here: the key may have been deleted, and the accounts counted, while tokens were signed.
            if not connection.execute(IS_OPEN, (job.epoch,)).fetchone():
                raise DeletedEpochError(f"{job.epoch}: its key was deleted")
            row = (job.digest, account, digest, job.epoch)
            connection.execute("INSERT OR IGNORE INTO issued VALUES (?, ?, ?, ?)", row)
            query = "SELECT request FROM issued WHERE job = ? AND account = ?"
            (earlier,) = connection.execute(query, (job.digest, account)).fetchone()
        if earlier != digest:
            raise IssuedBeforeError("the account has its tokens of this job")

    def spend(self, job: Job, token: Token, blinded: Sequence[bytes]) -> None:
        """Write down that a token was used for this question; refused if it was used for another, or too often."""
        digest = request_digest(blinded)
        with writing(self._connection) as connection:
            connection.execute(
                "INSERT INTO spent VALUES (?, ?, ?, 1, ?) ON CONFLICT DO UPDATE SET answers = answers + 1 "
                "WHERE request = excluded.request",
                (job.digest, token.serial, digest, job.epoch),
            )
            query = "SELECT request, answers FROM spent WHERE job = ? AND serial = ?"
            earlier, answers = connection.execute(query, (job.digest, token.serial)).fetchone()
        if earlier != digest:
            raise IssuedBeforeError("the token was used for another question")
        if answers > self._answers_per_token:
            raise TooOftenError("the question was answered often enough")

    def issued(self, job: Job) -> Issued:
        query = (
            "SELECT (SELECT count(*) FROM issued WHERE job = ?1) + "
            "coalesce((SELECT accounts FROM issued_before WHERE job = ?1), 0)"
        )
        (accounts,) = self._connection.execute(query, (job.digest,)).fetchone()
        return Issued(accounts, job.artifacts_per_user)

    def forget_deleted(self) -> None:
        """Of epochs whose key is deleted, keep how many accounts had tokens, and neither which nor what was spent."""
        known = "SELECT epoch FROM issued UNION ALL SELECT epoch FROM spent"
        if self._connection.execute(f"SELECT 1 FROM ({known}) WHERE epoch IN ({DELETED}) LIMIT 1").fetchone():
            with writing(self._connection) as connection:
                connection.execute(
                    "INSERT INTO issued_before "
                    f"SELECT job, count(*) FROM issued WHERE epoch IN ({DELETED}) GROUP BY job"
                )
                for table in ("issued", "spent"):
                    connection.execute(f"DELETE FROM {table} WHERE epoch IN ({DELETED})")
            self._is_in_log = True
        if self._is_in_log:  # tried again the next time, if another process reads in it just now
            self._is_in_log = not empty_log(self._connection)
