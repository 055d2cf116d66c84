"""`qlog crowd demo`: a crowd of made-up people, relays and servers on this machine, and one release of what they sent.

Nothing but calls, and the facts for a page that shows what each party saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from qlog_assets.api.crowd_jobs import jobs_from_policy
from qlog_assets.api.operations import Tell, release_months
from qlog_assets.crowd.cast import Role
from qlog_assets.crowd.jobs import Job
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.warehouse import Warehouse

MONTH = Month("2006-03")
SEED = 1
ROWS_PER_PERSON = 56
"""Of the synthetic log, a little more than AOL's number: it then has a few people more than are asked for."""
PAGE = "what-each-party-saw.html"
POLICY = """\
# The policy of `qlog crowd demo`, which wrote it. Every key has a default: see docs/policy.md.
dataset = "crowd-demo"
first = "2006-03"
last = "2006-03"

[about]
publisher = "qlog crowd demo"
population = "made-up people, each with a log and a client of their own"
licence = "public domain"

[budget]
epsilon = "8"
delta = "1e-5"

[crowd]
# A large ε, because two hundred people are few.
jobs = "urls"
variant = "gaussian"
artifacts_per_user = 10
share_threshold = 3
epsilon = "8"
delta = "1e-5"
"""
QUICK: Mapping[Role, Mapping[str, Any]] = {
    "relay": {"batch": 40, "delay_seconds": 0.5, "longest_delay_seconds": 2.0, "requests_per_second": 1e5},
    "collector": {"drain_seconds": 0.0, "requests_per_second": 1e5},
    "randomness": {"requests_per_second": 1e5},
}
"""Relays that mix for seconds where they would for hours, and limits that one machine's clients do not meet."""


def run_crowd_demo(directory: Path, people: int, tell: Tell) -> dict[str, Any]:
    """Make a crowd, have it send its reports, seal them and release what enough of them share."""
    from qlog_assets.crowd.cast import CollectorSettings, RandomnessSettings, open_folder
    from qlog_assets.crowd.randomness import open_epochs
    from qlog_assets.crowd.running import running_cast
    from qlog_assets.crowd.sealing import epoch_directory, seal_epoch
    from qlog_assets.crowd.trial import enrol, enter_jobs, send_messages, split_log, wait_until_drained
    from qlog_assets.crowd.trial_views import view_collector, view_issuer, view_relay
    from qlog_assets.synthetic import write_log

    if directory.exists() and any(directory.iterdir()):
        raise QlogError(f"{directory}: is not empty: name a new directory")
    warehouse, policy = open_trial(directory)
    tell("writing the logs of made-up people")
    log = directory / "everybody.txt"
    write_log(log, people * ROWS_PER_PERSON, SEED, MONTH, MONTH, canaries=0)
    crowd = split_log(log, directory / "people")[:people]
    log.unlink()  # from here on nobody has the whole of it
    jobs = jobs_of(policy)
    tell("starting relays, collector and randomness server")
    with running_cast(directory / "cast", warehouse.home, jobs=jobs, settings=QUICK) as running:
        enrol(running, crowd)
        tell(f"{len(crowd)} clients take tokens and ask for randomness")
        enter_jobs(crowd, jobs)
        tell(f"{len(crowd)} clients send their reports")
        send_messages(crowd, jobs)
        relays = [view_relay(running, party.name) for party in running.cast.relays]
        tell("relays mix and send on")
        wait_until_drained(running, len(crowd) * sum(job.artifacts_per_user for job in jobs))
        saw = {
            "person": person_view(crowd[0].log, jobs[0], crowd[0].folder),
            "relays": [asdict(view) for view in relays],
            "collector": asdict(view_collector(running)),
            "issuer": asdict(view_issuer(running)),
        }
        tell("the key is deleted, and the reports are sealed")
        open_epochs(open_folder(running.folder("randomness"), RandomnessSettings)).delete(MONTH)
        closed = max(job.closes for job in jobs).timestamp()
        collector = open_folder(running.folder("collector"), CollectorSettings)
        sealed = seal_epoch(collector, MONTH, epoch_directory(warehouse.home, MONTH), clock=lambda: closed)
    (released,) = release_months(warehouse, policy, {}, "crowd", [MONTH], None, tell)
    return {
        "people": len(crowd),
        "accepted": sealed.accepted,
        "rejected": sealed.rejected,
        "saw": saw,
        "read": read_artifacts(warehouse, jobs[0]),
        "release": released,
        "released": read_released(Path(released["path"]), jobs[0]),
        "page": str(directory / PAGE),
    }


def open_trial(directory: Path) -> tuple[Warehouse, Policy]:
    """A warehouse of its own with the demo's policy."""
    home = directory / "warehouse"
    home.mkdir(parents=True)
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    warehouse = Warehouse(Settings(home=home)).make()
    return warehouse, Policy.load(home / "policy.toml")


def jobs_of(policy: Policy) -> list[Job]:
    """The jobs of the demo's policy, open now and for a week of the clients' time."""
    now = datetime.now(UTC).replace(microsecond=0)
    return jobs_from_policy(policy, MONTH, now - timedelta(hours=1), now + timedelta(days=7))


def person_view(log: Any, job: Job, folder: Path) -> dict[str, Any]:
    """What one person's client shows before anything leaves."""
    from qlog_assets.crowd.mining import choose, mine

    searches = log.searches(job.epoch, folder)
    chosen = choose(mine(searches, job.application), job.artifacts_per_user, job.counts)
    return {
        "searches": searches.num_rows,
        "artifacts": [" → ".join(each) for each in chosen],
        "dummies": job.artifacts_per_user - len(chosen),
    }


def read_artifacts(warehouse: Warehouse, job: Job) -> dict[str, Any]:
    """What the collector can read once the month is over: private, and shown because these people are made up."""
    import pyarrow.parquet as pq

    found = warehouse.current("crowd_artifacts", MONTH)
    table = pq.read_table(found.files(job.application)[0]).sort_by([("users", "descending")])
    rows = [list(row.values()) for row in table.slice(0, 12).to_pylist()]
    return {"artifacts": table.num_rows, "rows": rows}


def read_released(path: Path, job: Job) -> dict[str, Any]:
    """The first rows of the published table."""
    import pyarrow.parquet as pq

    table = pq.read_table(path / f"{job.application}.parquet")
    return {"columns": table.column_names, "rows": [list(row.values()) for row in table.slice(0, 12).to_pylist()]}
