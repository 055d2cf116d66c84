"""Where the files of partitions may lie beside the warehouse: an object store, or a directory on another disk.

One file system of Arrow's and a folder in it that is ours. What the files are, who names them and when they may go is
`stored`. No error of a server's is repeated: some name accounts, and none says what to do.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from qlog_assets.errors import QlogError
from qlog_assets.storage.scratch import make_private, sync, sync_directory

if TYPE_CHECKING:
    from pyarrow import fs

MARKERS = "qlog-store"
"""The folder of a store with its markers: files with random names, which tell it from any other at the same address."""
MARKER = re.compile(r"[0-9a-f]{32}")
MARKER_TEXT = b"Tables of qlog lie beside this folder, and are used and deleted while this file is here: keep it.\n"
RANGE_BYTES = 16 << 20
"""What one request reads."""
REQUESTS_AT_ONCE = 4
"""Of one file: a single stream from an object store has a fraction of the line."""
TROUBLES = {
    "NO_SUCH_BUCKET": "there is no such bucket: make it, or correct the name",
    "ACCESS_DENIED|HTTP status 40[13]|INVALID_ACCESS_KEY_ID|SIGNATURE|TOKEN|CREDENTIAL": (
        "access is denied: look at the AWS credentials in the environment, and at their rights to list, read, write "
        "and delete there"
    ),
    "NETWORK_CONNECTION|REQUEST_TIMEOUT|SERVICE_UNAVAILABLE|SLOW_DOWN|INTERNAL_FAILURE": (
        "its server does not answer: try it again later"
    ),
    "SKEWED": "the clocks differ: set this machine's",
    "HTTP status 30": "the bucket is in another region: set AWS_REGION to it",
}
"""What is said of a server's errors, by patterns of their codes."""


class StoreError(QlogError, OSError):
    """A store that is not there, does not answer or lets nobody in: no fault of the work, which may be tried again."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Store:
    """A place as `settings.checked_place` writes it, and its file system."""

    place: str
    files: fs.FileSystem

    @property
    def root(self) -> str:
        """The place as its file system calls it."""
        return self.place.partition("://")[2]

    def check(self) -> None:
        """Raise unless the bucket or directory is there, and a directory is the owner's alone."""
        from pyarrow import fs

        if self.place.startswith("file:"):
            self._check_directory()
            return
        with self._saying_what_failed():
            if self.files.get_file_info(self.root.partition("/")[0]).type == fs.FileType.NotFound:
                raise StoreError(f"{self.place}: {TROUBLES['NO_SUCH_BUCKET']}")

    def identify(self) -> str:
        """The name of a marker of this store, which its first writer makes.

        Two that are first at once make two, and both stay: no lock is needed, and nothing is overwritten.
        """
        self.check()
        known = [name for name in self.sizes(MARKERS) if MARKER.fullmatch(name)]
        return min(known) if known else self._mark()

    def put(self, source: Path, name: str) -> None:
        """Write a file of this disk under a name that nothing has yet."""
        with self._saying_what_failed(), source.open("rb") as stream, self._new_file(name) as out:
            while part := stream.read(RANGE_BYTES):
                out.write(part)

    def get(self, name: str, target: Path) -> bool:
        """Bring a file to this disk; returns whether it is there."""
        with self._saying_what_failed():
            try:
                source = self.files.open_input_file(f"{self.root}/{name}")
                size = source.size()
            except FileNotFoundError:
                return False
            with source, target.open("wb") as out:
                descriptor = out.fileno()

                def fetch(start: int) -> None:
                    self._write_at(descriptor, source.read_at(min(RANGE_BYTES, size - start), start), start)

                with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                    list(pool.map(fetch, range(0, size, RANGE_BYTES)))
        return True

    def sizes(self, folder: str) -> dict[str, int]:
        """The files below a folder, by their names in it."""
        from pyarrow import fs

        start = f"{self.root}/{folder}"
        with self._saying_what_failed():
            found = self.files.get_file_info(fs.FileSelector(start, allow_not_found=True, recursive=True))
        return {info.path.removeprefix(f"{start}/"): info.size for info in found if info.type == fs.FileType.File}

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        with self._saying_what_failed(), contextlib.suppress(FileNotFoundError):
            self.files.delete_file(f"{self.root}/{name}")
        self._keep_deleted(name)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything in it, if it is there."""
        with self._saying_what_failed(), contextlib.suppress(FileNotFoundError):
            self.files.delete_dir(f"{self.root}/{folder}")
        self._keep_deleted(folder)

    def _keep_deleted(self, name: str) -> None:
        """What is gone stays so after a power cut: the record that names it goes next, on another disk."""
        if self.place.startswith("file:"):
            with self._saying_what_failed(), contextlib.suppress(FileNotFoundError):
                sync(Path(self.root, name).parent)

    def _write_at(self, descriptor: int, part: bytes, start: int) -> None:
        left = memoryview(part)
        while left:
            try:
                written = os.pwrite(descriptor, left, start)
            except OSError as error:
                raise StoreError(f"{self.place}: a copy could not be written here ({error.strerror})") from None
            # A disk that fills up takes a part, and says why at the next try.
            left, start = left[written:], start + written

    def _mark(self) -> str:
        marker = secrets.token_hex(16)
        with self._saying_what_failed(), self._new_file(f"{MARKERS}/{marker}") as out:
            out.write(MARKER_TEXT)
        if self.place.startswith("file:"):
            # Records that name it will survive a power cut.
            sync_directory(Path(self.root, MARKERS))
            sync(Path(self.root))
        return marker

    def _new_file(self, name: str) -> fs.NativeFile:
        if self.place.startswith("file:"):
            path = Path(self.root, name)
            self._check_directory()  # never made here: it would be on another disk
            make_private(path.parent)
            path.touch(mode=0o600)
        return self.files.open_output_stream(f"{self.root}/{name}")

    def _check_directory(self) -> None:
        try:
            facts = os.stat(self.root)
        except OSError as error:
            raise StoreError(
                f"{self.place}: cannot be used ({error.strerror}): mount it, or make it, mode 0700"
            ) from None
        if not stat.S_ISDIR(facts.st_mode):
            raise StoreError(f"{self.place}: is no directory")
        if facts.st_mode & 0o077 or facts.st_uid != os.geteuid():
            raise StoreError(f"{self.place}: is not yours alone, and would hold rows of the log: chmod 700, chown")

    @contextlib.contextmanager
    def _saying_what_failed(self) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self.place}: {self._trouble(error)}") from None

    def _trouble(self, error: OSError) -> str:
        if self.place.startswith("file:"):
            return f"cannot be used ({error.strerror or type(error).__name__})"
        code = re.search(r"AWS Error (UNKNOWN \(HTTP status \d+\)|[A-Z_]+)", str(error))
        if code is None:
            return f"a file could not be written or read ({error.strerror or type(error).__name__})"
        known = (words for pattern, words in TROUBLES.items() if re.search(pattern, code[1]))
        return next(known, f"the server refused ({code[1]})")


def open_store(place: str) -> Store:
    """The store of a place, once per process: a connection is not shared with the process that forked this one."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return _open_store(place, endpoint, os.getpid())


@lru_cache(maxsize=8)
def _open_store(place: str, endpoint: str, process: int) -> Store:
    # Arrow's file systems take a tenth of a second to import, and most warehouses need none.
    from pyarrow import fs

    if place.startswith("file:"):
        return Store(place, fs.LocalFileSystem())
    # Nothing of it is repeated: a password may stand before the host's name.
    server = re.fullmatch(r"(https?)://((?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?)/?", endpoint)
    if endpoint and server is None:
        raise StoreError("AWS_ENDPOINT_URL: is no address of a server: write https://HOST or https://HOST:PORT")
    named = {"endpoint_override": server[2], "scheme": server[1]} if server else {}
    try:
        # A small file is one request: without a delay its upload would begin with a second one.
        return Store(place, fs.S3FileSystem(connect_timeout=10, allow_delayed_open=True, **named))
    except OSError:
        raise StoreError(f"{place}: Arrow cannot open it: look at the AWS variables of the environment") from None
