"""What is asked of Spark's machines before they get a row: that they are who they say, that nobody listens between them
and this process, and that they see the warehouse."""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse, urlsplit

import pyarrow as pa

from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
ENCRYPTION = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
"""One of them encrypts what Spark's machines say to each other."""
FEWEST_LOOKS = 32
"""How many tasks look for the token, or more: with two for every core, each machine that is there gets one."""
LOOK_SECONDS = 0.05
"""How long a task takes at least, so that a machine that comes a second later gets one, too."""


def is_here(master: str) -> bool:
    """Whether all of Spark runs on this machine: its own cores, or masters that no other machine can reach."""
    if re.fullmatch(r"local(\[.*\])?", master):
        return True
    return all(LOOPBACK.fullmatch(host) for host in urlsplit(master).netloc.split(","))


def encrypts(address: str) -> bool:
    """Whether the address of a Connect server asks for encryption, read as pyspark reads it: the last word counts."""
    words = urlparse("http" + address.removeprefix("sc")).params.split(";")
    return dict(word.partition("=")[::2] for word in words).get("use_ssl") == "true"


def refuse_open_network(master: str, setting: Callable[[str, str], str | None]) -> None:
    """Rows of the log go over the network: they are encrypted, and whoever takes part has shown who he is."""
    if master.startswith("sc://"):
        if not is_here(master) and not encrypts(master):
            raise QlogError("[engine] master: rows would pass the network as they are: add /;use_ssl=true to it")
        return
    # The secret of our own cores is made with the process.
    if master.startswith("local"):
        return
    known = setting("spark.authenticate", "false") == "true"
    # Other users of this machine reach its ports, too: who asks for rows must know the secret.
    if is_here(master) and not known:
        raise QlogError(
            "[engine] master: every user of this machine could ask for rows: set spark.authenticate to true and "
            "spark.authenticate.secret in spark-defaults.conf, for the driver, the master and the workers"
        )
    encrypted = any(setting(name, "false") == "true" for name in ENCRYPTION)
    if not is_here(master) and not (known and encrypted):
        raise QlogError(
            "[engine] master: rows would pass the network as they are: set spark.authenticate and "
            "spark.network.crypto.enabled to true in spark-defaults.conf, here and on the cluster"
        )


def refuse_unmounted(session: SparkSession, scratch: Path, cores: int) -> None:
    """Machines that do not see the warehouse would write rows to a disk of their own."""
    token, place = secrets.token_hex(16), str(scratch / "token")
    Path(place).write_text(token, encoding="ascii")
    shortest = LOOK_SECONDS

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            time.sleep(shortest)
            try:
                blind = Path(place).read_text(encoding="ascii") != token
            except (OSError, UnicodeDecodeError):
                blind = True
            yield pa.RecordBatch.from_arrays([pa.array([socket.gethostname()] if blind else [], pa.string())], ["host"])

    looks = max(FEWEST_LOOKS, 2 * cores)
    found = session.range(0, looks, 1, looks).mapInArrow(look, "host string").distinct().toArrow()
    if found.num_rows:
        raise QlogError(
            f"QLOG_HOME: Spark's machines {', '.join(sorted(found['host'].to_pylist()))} do not see it: mount its file "
            "system there under the same path, and let the same user read it"
        )
