"""CrowdLogging's stage: what the sealed reports of a month can be opened to, and the tokens that were spent on them.

It reads no log. The collector seals an epoch after its key was deleted (`qlog crowd seal`); here its tags are grouped,
keys are put together from shares, and what enough users sent is counted. A job that people were shown is what it is:
an epoch whose jobs are not those of the policy is refused, never counted in another way.

What reads sealed reports is imported where it is used: every command knows all stages, and few open a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from qlog_assets.checks.memory import memoize_by_content
from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.crowd.jobs import Job
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.months import Month
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.privacy.parameters import decimal_text
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, WarehouseError
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from qlog_assets.crowd.sealing import SealedEpoch

ROWS_TO_KEEP = "crowd/rows_to_keep"
SPENT_TOKENS = "crowd/spent_tokens"
JOB_COLUMNS = pa.schema(
    [
        ("application", pa.string()),
        ("policy", pa.string()),
        ("accounts", pa.int64()),
        ("tokens_per_account", pa.int64()),
    ]
)
DROPPED_COLUMNS = pa.schema([("application", pa.string()), ("reason", pa.string()), ("tags", pa.int64())])


def write_crowd_artifacts(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    """A table of artifacts and users per job; beside them the jobs, the spent tokens, and how many tags were dropped
    for which reason."""
    from qlog_assets.crowd.aggregation import aggregate
    from qlog_assets.crowd.sealing import refuse_other_number

    sealed = read_sealed(work.warehouse, work.month)
    refuse_other_jobs(sealed, work.parameters)
    written: dict[str, TableFacts] = {}
    accepted, dropped = [], []

    def keep(name: str, rows: pa.Table, statement: str = ROWS_TO_KEEP, read_as: str = "found") -> None:
        with work.engine.table(read_as, rows):
            written[name] = work.engine.write(statement, directory / f"{name}.parquet", digest=True)

    for job in sealed.jobs:
        reports = sealed.reports(job)
        found = aggregate(reports, job)
        keep(job.application, found.artifacts)
        applications = pa.array([job.application] * len(reports), pa.string())
        accepted.append(pa.table({"application": applications, "serial": reports["serial"]}))
        dropped += [(job.application, reason, tags) for reason, tags in sorted(found.dropped.items())]
    spent = pa.concat_tables(accepted)
    refuse_other_number(sealed.reports_path, sealed.accepted, len(spent))
    keep("tokens", spent, SPENT_TOKENS, "accepted")
    keep("jobs", table_of(JOB_COLUMNS, list(described_jobs(sealed))))
    keep("dropped", table_of(DROPPED_COLUMNS, dropped))
    return written


def described_jobs(sealed: SealedEpoch) -> Iterator[tuple[str, str, int, int]]:
    """What the limits of each job are counted with: what people were shown, and what the issuer states."""
    for job in sealed.jobs:
        issued = sealed.issued[job.digest.hex()]
        yield job.application, job.policy, issued.accounts, issued.tokens_per_account


def table_of(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.table([[row[place] for row in rows] for place in range(len(schema))], schema)


def read_sealed(warehouse: Warehouse, month: Month) -> SealedEpoch:
    """The sealed epoch of a month, or what to do where there is none."""
    from qlog_assets.crowd.sealing import SealedEpoch, epoch_directory

    directory = epoch_directory(warehouse.home, month)
    if not directory.is_dir():
        raise WarehouseError(
            f"no reports of {month} were sealed: run qlog crowd seal --epoch {month} --collector DIR once its jobs are "
            "closed"
        )
    return SealedEpoch.read(directory)


def sealed_digest(warehouse: Warehouse, month: Month) -> dict[str, str]:
    """The digest of a month's sealed epoch; of none, where there is none: making it then says what to do."""
    from qlog_assets.crowd.sealing import SealedEpoch, epoch_directory

    directory = epoch_directory(warehouse.home, month)
    return {"sealed_epoch": SealedEpoch.read(directory).digest()} if directory.is_dir() else {}


def refuse_other_jobs(sealed: SealedEpoch, chosen: CrowdParameters) -> None:
    """Raise if people were asked for something else, or promised more, than the policy would release."""
    shown, asked = {job.application for job in sealed.jobs}, set(chosen.jobs)
    if shown != asked or len(sealed.jobs) != len(shown):
        raise WarehouseError(
            f"the sealed reports of {sealed.month} are of the jobs {','.join(sorted(shown))}, and [crowd] says jobs = "
            f"{','.join(sorted(asked))}: ask with the jobs that people were shown"
        )
    for job in sealed.jobs:
        for name, said in described_differences(job, chosen):
            raise WarehouseError(
                f"the job {job.application} of {sealed.month} was shown to people with {name} = {said[0]}, and [crowd] "
                f"says {said[1]}: ask with what they were shown"
            )


def described_differences(job: Job, chosen: CrowdParameters) -> Iterator[tuple[str, tuple[object, object]]]:
    """What the policy says otherwise than a job did, by parameter. A release may promise more than people were shown,
    that is a smaller ε or δ, and never less."""
    for name in ("artifacts_per_user", "share_threshold"):
        if getattr(job, name) != getattr(chosen, name):
            yield name, (getattr(job, name), getattr(chosen, name))
    # An audit computes the table again by what was charged, where the variant is no parameter: the draw looks again.
    variant = getattr(chosen, "variant", job.policy)
    if job.policy != variant:
        yield "policy", (job.policy, variant)
    for name in ("epsilon", "delta"):
        promised = getattr(job, name)
        if promised is not None and Fraction(promised) < getattr(chosen, name):
            yield name, (promised, decimal_text(getattr(chosen, name)))


@memoize_by_content
def inspect_crowd_artifacts(engine: Engine, partition: Partition) -> CheckResult:
    """Whether every token was spent once and no more reports were accepted than tokens were issued, the limit of
    artifacts per account; and no artifact has fewer users than its key needs. Whether it fails hangs on no report that
    one person sends or does not send: the notes in the suite say why."""
    import pandas as pd

    made = partition.provenance.parameters
    engine.view("jobs", partition.files("jobs"))
    engine.view("tokens", partition.files("tokens"))
    counts = []
    for application in str(made["jobs"]).split(","):
        engine.view("artifacts", partition.files(application))
        counts.append(
            engine.frame(
                "crowd/check_crowd_artifacts", application=application, share_threshold=made["share_threshold"]
            )
        )
    limits = {name: made[name] for name in ("artifacts_per_user", "share_threshold")} | {"jobs": len(counts)}
    return run_suite("crowd/crowd_artifacts", {"table": pd.concat(counts)}, parameters=limits)


CROWD_ARTIFACTS = Stage(
    name="crowd_artifacts",
    description="What enough users sent from their own machines, with how many they were: opened from the sealed "
    "reports of the month. Beside it the tokens that were spent: they bound what one user adds, and tell of nobody.",
    reads=(),
    write=write_crowd_artifacts,
    statements=(ROWS_TO_KEEP, SPENT_TOKENS),
    shaped_by=lambda chosen, _: {
        "jobs": ",".join(chosen.jobs),
        "artifacts_per_user": chosen.artifacts_per_user,
        "share_threshold": chosen.share_threshold,
        # What people were promised is compared when it is made, so another promise makes it anew.
        "epsilon": decimal_text(chosen.epsilon),
        "delta": decimal_text(chosen.delta),
        "policy": chosen.variant,
    },
    inspect=inspect_crowd_artifacts,
    limits_users=True,
    origin=sealed_digest,
)
STAGES = (CROWD_ARTIFACTS,)
