"""Our whole release in a process that is warm: everything imported, one small release of three months made before.

Usage, from the root of the checkout: python -m benchmarks.ours LANDED_FILE (QLOG_HOME names the warehouse it lies in)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import own_cpu

FIRST, LAST = "2006-03", "2006-05"
WARMING_ROWS = 5_000


def release_landed(landed: Path, last: str = LAST) -> dict[str, Any]:
    """Ingest a file that lies in the landing zone and release its months, as the command line does."""
    from qlog_assets.api.operations import ingest_files, release_months
    from qlog_assets.months import Month, months_between
    from qlog_assets.policy import Policy
    from qlog_assets.settings import Settings
    from qlog_assets.storage.warehouse import Warehouse

    warehouse = Warehouse(Settings.from_environment())
    policy = Policy.load(warehouse.settings.policy_file)
    ingested = ingest_files(warehouse, policy, [landed], "aol", None, lambda step: None)
    months = months_between(Month(FIRST), Month(last))
    releases = release_months(warehouse, policy, {}, "safelog", months, None, lambda step: None)
    return {"accepted": ingested["accepted"], "rows": {item["month"]: item["rows"] for item in releases}}


def warm_up(last: str = LAST) -> None:
    """A small log through the same commands, in a warehouse that is thrown away. Several months are several processes:
    what is to be measured in this one needs a release of one month."""
    from qlog_assets.api.operations import write_synthetic_log
    from qlog_assets.months import Month
    from qlog_assets.settings import Settings
    from qlog_assets.storage.warehouse import Warehouse

    home = os.environ["QLOG_HOME"]
    with tempfile.TemporaryDirectory(prefix="qlog-warm-") as scratch:
        os.environ["QLOG_HOME"] = scratch
        warehouse = Warehouse(Settings.from_environment())
        log = write_synthetic_log(warehouse, WARMING_ROWS, 1, Month(FIRST), Month(LAST), lambda step: None)
        release_landed(log, last)
    os.environ["QLOG_HOME"] = home


def main() -> None:
    warm_up()
    started, cpu = time.perf_counter(), own_cpu()
    answer = release_landed(Path(sys.argv[1]))
    print(json.dumps({"wall": time.perf_counter() - started, "cpu": own_cpu() - cpu, **answer}))


if __name__ == "__main__":
    main()
