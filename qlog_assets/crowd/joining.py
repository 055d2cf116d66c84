"""A cast of parties that are run by different people: each makes a folder of its own, and all put their lines together.

Nobody sees another's private key. The collector and the randomness server share the seed of the tokens for reports,
which the latter gives to the former by a way of their own. No file gives anybody but the randomness server the means to
make tokens for evaluations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qlog_assets.crowd.cast import (
    KEY_BYTES,
    SETTINGS,
    TOKEN_SEED_FILE,
    Cast,
    Party,
    Role,
    read_secret,
    url_of,
    write_party,
)
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import make_private
from qlog_assets.storage.secret_keys import make_key

LINE_FILE = "public.json"
"""What a party gives to everybody: its line of the directory."""


def make_party(folder: Path, role: Role, name: str, host: str, port: int, token_seed: Path | None = None) -> Party:
    """Make the folder of one party, with its keys and its line of the directory. It is refused whole or made whole."""
    if folder.exists() and any(folder.iterdir()):
        raise QlogError(f"{folder}: is not empty: a party is made in a new directory")
    if (role == "collector") != (token_seed is not None):
        raise QlogError("the collector, and it alone, is given the token seed of the randomness server (--token-seed)")
    told: dict[str, Any] = {"name": name, "role": role, "host": host, "port": port}
    url = url_of(SETTINGS[role](**told))
    Party(name=name, role=role, url=url, key=bytes(KEY_BYTES))  # refused before anything is written
    seed = None if token_seed is None else read_secret(token_seed)
    make_private(folder)
    party = Party(name=name, role=role, url=url, key=write_party(folder, told))
    if role == "randomness":
        make_key(folder / TOKEN_SEED_FILE)
    if seed is not None:
        write_private(folder / TOKEN_SEED_FILE, seed.hex())
    (folder / LINE_FILE).write_text(json.dumps(party.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
    return party


def join_parties(lines: Sequence[Path], hops: int, target: Path) -> Cast:
    """Put the lines of all parties together: whoever joins the same lines gets the same directory, to the byte."""
    parties = sorted((read_line(path) for path in lines), key=lambda party: (party.role, party.name))
    try:
        cast = Cast(hops=hops, parties=tuple(parties))
    except ParameterError as error:
        raise QlogError(f"the directory makes no sense: {error}") from None
    target.write_text(cast.as_json(), encoding="utf-8")
    return cast


def read_line(path: Path) -> Party:
    """A party's line."""
    try:
        return Party(**json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise QlogError(f"{path}: cannot be read ({error.strerror}): name the {LINE_FILE} of a party") from None
    except (ValueError, TypeError) as error:
        reason = str(error) if isinstance(error, ParameterError) else "is no JSON of a party"
        raise QlogError(f"{path}: {reason}: ask that party for its {LINE_FILE}") from None
