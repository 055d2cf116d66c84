"""The data set's secret for logs that do not name their users: made once, and the same for every file of the data set.

Under another key the same visitors would have other ids: one who is in two files of a month would be two users and have
twice the ε. So a key that is lost, or is another one, is refused as long as batches are there that it made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from qlog_assets.errors import QlogError
from qlog_assets.pipeline.landing import Batch
from qlog_assets.sources.access_map import ADDRESS_AND_AGENT
from qlog_assets.sources.column_map import USER_IDS
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.secret_keys import find_key, make_key
from qlog_assets.storage.warehouse import Warehouse

KEY_NAME = "users.key"
WORDS = {USER_IDS: "user id", ADDRESS_AND_AGENT: "address with one agent"}
UPSTREAM = "user_key"
"""Under which name a batch says which key made its users: a digest of it, from which a key cannot be found."""


def with_user_key(warehouse: Warehouse, batch: Batch, known: Sequence[Partition]) -> Batch:
    """The batch with the data set's key, where its users are hashes; `known` is what was ingested before."""
    source = batch.source
    if source.column_map.one_user != ADDRESS_AND_AGENT or source.user_key is not None:
        return batch
    path = warehouse.private / KEY_NAME
    used = {part.provenance.upstream[UPSTREAM] for part in known if UPSTREAM in part.provenance.upstream}
    restore = (
        "restore it from a backup, as a file of yours with mode 600 (under another key the same visitors would have "
        "other ids); if it is lost for good, ingest all access logs into a new warehouse"
    )
    if not used and not path.exists():
        make_key(path)
    key = find_key(path)
    if key is None:
        state = "is no key that you alone may read" if path.exists() else "is gone, and batches were read with it"
        raise QlogError(f"private/{KEY_NAME} {state}: {restore}")
    if used - {key_name(key)}:
        raise QlogError(f"private/{KEY_NAME} is not the key that earlier batches were read with: {restore}")
    return replace(batch, source=replace(source, user_key=key))


def key_name(key: bytes) -> str:
    """What a key is called in provenance."""
    return hashlib.blake2b(key, digest_size=8, person=b"qlog key name").hexdigest()


def key_facts(batch: Batch) -> dict[str, str]:
    """What a batch's provenance says of the key that made its users."""
    key = batch.source.user_key
    return {} if key is None else {UPSTREAM: key_name(key)}


def one_user_of(partition: Partition) -> str:
    """Who is one user in a batch that was read."""
    return ADDRESS_AND_AGENT if UPSTREAM in partition.provenance.upstream else USER_IDS


def refuse_other_users(name: str, found: str, stated: str) -> None:
    """Raise where a log's users are others than the policy says: what is published says whom it protects."""
    if found != stated:
        raise QlogError(
            f"{name}: one user is one {WORDS[found]} there, and the policy says unit.one_user = {stated}: say the same "
            "in both, because manifests and datasheets say whom a release protects"
        )
