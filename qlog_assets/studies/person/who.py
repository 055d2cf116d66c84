"""Who is looked at: the planted person of a synthetic log, or somebody whose id was handed over in a private file.

An id is never a setting: settings stand on command lines, in Dagster's history and in the names of folders. A command
puts it into a file of the warehouse that nobody else can read, for the time of its run. What a study's folder is named
by is a digest of the id under a key of the warehouse, from which nobody can find the id by trying.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pyarrow as pa

from qlog_assets.errors import QlogError
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.sources.user_ids import canonical_user, reason_against
from qlog_assets.storage.plain_files import open_plain
from qlog_assets.storage.private_files import OTHERS, write_private
from qlog_assets.storage.scratch import PREFIX, hold_lock, remove_leftovers, temporary_directory
from qlog_assets.storage.secret_keys import find_key, make_key
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.study import StudyWork, cleaned_month
from qlog_assets.synthetic import PERSONS_OWN_QUERY

Who = Literal["planted", "named"]
PLANTED: Who = "planted"
NAMED: Who = "named"
HANDED_OVER = "person.user"
KEY_NAME = "person.key"
LONGEST_ID_BYTES = 1000
WAIT_SECONDS = 5
"""For another process that asks about somebody: one at a time, so that no answer is of two people."""
WANTED = "give a file of yours with mode 600 that holds one user id and nothing else"


def read_user_file(path: Path) -> str:
    """The id in a file that nobody but its owner can read."""
    descriptor = open_plain(path, WANTED)
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        content = stream.read(LONGEST_ID_BYTES + 1)
    if about.st_mode & OTHERS or about.st_uid != os.getuid():
        raise QlogError(f"{path}: others may read it: {WANTED}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise QlogError(f"{path}: is no text in UTF-8: {WANTED}") from None


@contextmanager
def handing_over(warehouse: Warehouse, text: str) -> Iterator[None]:
    """Have a run find an id in the warehouse, and nothing of it afterwards."""
    user = canonical_user(text)
    if reason_against(user) is not None or len(user.encode()) > LONGEST_ID_BYTES or len(user.splitlines()) != 1:
        raise QlogError(f"that is no user id: {WANTED}")
    with hold_lock(warehouse.locks / "person.lock", WAIT_SECONDS, "another process asks about a person"):
        remove_leftovers(warehouse.studies)  # what a killed process handed over was of somebody else
        # In a scratch directory: whoever works next removes what a killed process leaves there.
        with temporary_directory(warehouse.studies) as folder:
            write_private(folder / HANDED_OVER, user)
            yield


def handed_over(warehouse: Warehouse) -> str:
    """The id that a command handed over."""
    places = list(warehouse.studies.glob(f"{PREFIX}*/{HANDED_OVER}"))
    if len(places) != 1:
        raise QlogError("nobody was named: a person is named by qlog person --user-file FILE, never here")
    return places[0].read_text(encoding="utf-8")


def digest_of_person(warehouse: Warehouse) -> str:
    """What tells one named person's study from another's."""
    path = warehouse.private / KEY_NAME
    make_key(path)
    key = find_key(path)
    if key is None:
        raise QlogError(f"private/{KEY_NAME} is no key that you alone may read: delete it, and a new one is made")
    return hashlib.blake2b(handed_over(warehouse).encode(), key=key, digest_size=16).hexdigest()


def find_users(work: StudyWork) -> pa.Table:
    """The person's id in a column `user`, with no row where a named person is not in the log."""
    if work.settings.who == NAMED:
        if digest_of_person(work.warehouse) != work.reads["person"]:
            raise QlogError("another person was named in the meantime: ask again")
        return pa.table({"user": [handed_over(work.warehouse)]})
    view_cleaned(work.engine, cleaned_month(work), clicks=False, transitions=False)
    users = work.engine.arrow("studies/person_by_query", query=PERSONS_OWN_QUERY)
    if users.num_rows != 1:
        raise QlogError(
            f"nobody is planted in {work.month}: qlog synth --world 2 plants a person in the first month of a log; "
            "somebody else is named with --user-file"
        )
    return users
