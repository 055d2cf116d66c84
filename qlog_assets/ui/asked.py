"""Who asked for a run: a name with a proof, carried from the web server by tags into the ledger. No Dagster here.

Whoever can send a request can send a tag. A name counts as proven only with a code that the key in `private/ui.key`
makes: the web server signs the header of a request, the run coordinator signs the run's id. A code is of no use for
another run, so that copying one from a page of the UI proves nothing.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from qlog_assets.processes import user_name
from qlog_assets.storage.secret_keys import find_key, make_key

NAME_TAG = "qlog/asked_by"
PROOF_TAG = "qlog/asked_by_proof"
NAME_HEADER = "x-qlog-asked-by"
PROOF_HEADER = "x-qlog-asked-by-proof"
KEY_NAME = "ui.key"
LONGEST_NAME = 64


@dataclass(frozen=True)
class Seal:
    """Makes and checks proofs with one warehouse's key."""

    key: bytes

    @classmethod
    def made(cls, private: Path) -> Seal:
        """The seal of the warehouse with this private zone; its key is made on first use."""
        found = cls.found(private)
        if found is None:
            (private / KEY_NAME).unlink(missing_ok=True)
            make_key(private / KEY_NAME)
            found = cls.found(private)
            assert found is not None
        return found

    @classmethod
    def found(cls, private: Path) -> Seal | None:
        """The seal, if there is a key that nobody else can read: a name that others could sign is not proven."""
        key = find_key(private / KEY_NAME)
        return None if key is None else cls(key)

    def _code(self, *parts: str) -> str:
        return hmac.digest(self.key, json.dumps(parts).encode(), "sha256").hex()

    def _is_code(self, code: str, *parts: str) -> bool:
        return hmac.compare_digest(code.encode(), self._code(*parts).encode())

    # A request: the web server signs, the run coordinator checks. These headers never leave the server's process.

    def headers(self, name: str) -> dict[str, str]:
        return {NAME_HEADER: quote(name), PROOF_HEADER: self._code("request", name)}

    def requester(self, headers: Mapping[str, str | None]) -> str | None:
        """The name in a request's headers, if our own server put it there."""
        name, proof = unquote(headers.get(NAME_HEADER) or ""), headers.get(PROOF_HEADER) or ""
        return name if name and self._is_code(proof, "request", name) else None

    # A run: the run coordinator signs, the run itself checks when it opens the ledger.

    def run_tags(self, run_id: str, name: str) -> dict[str, str]:
        return {NAME_TAG: name, PROOF_TAG: self._code("run", run_id, name)}

    def is_run_of(self, name: str, run_id: str, tags: Mapping[str, str]) -> bool:
        return self._is_code(tags.get(PROOF_TAG, ""), "run", run_id, name)

    # A backfill: the web server signs before the backfill has an id, the coordinator checks when its runs are launched.

    def backfill_tags(self, name: str) -> dict[str, str]:
        nonce = secrets.token_hex(16)
        return {NAME_TAG: name, PROOF_TAG: f"{nonce} {self._code('backfill', nonce, name)}"}

    def backfiller(self, tags: Mapping[str, str]) -> str | None:
        """The name that a backfill's tags prove. That no other backfill has the same tags is the caller's to see."""
        nonce, _, code = tags.get(PROOF_TAG, "").partition(" ")
        name = tags.get(NAME_TAG, "")
        return name if name and self._is_code(code, "backfill", nonce, name) else None


def author(tags: Mapping[str, str], run_id: str, private: Path) -> str:
    """Who the ledger says asked for a run: a proven user of the UI, or the system's user beside what was claimed."""
    name = tags.get(NAME_TAG)
    if not name:
        return user_name()
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)[:LONGEST_NAME]
    seal = Seal.found(private)
    if seal is not None and seal.is_run_of(name, run_id, tags):
        return f"{shown} (ui)"
    return f"{user_name()}, claimed: {shown}"
