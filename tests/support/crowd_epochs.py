"""Sealed epochs as a collector leaves them, made by the protocol's own functions without its servers.

The oblivious function is replaced by the paper's hash, which needs no server and derives tags and shares all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from qlog_assets.crowd.jobs import Application, Job, default_window, encode
from qlog_assets.crowd.keys import derive, hashed, share_place
from qlog_assets.crowd.messages import CIPHERTEXT_BYTES, Report, make_dummy, make_report
from qlog_assets.crowd.sealing import Issued, SealedEpoch, epoch_directory, write_sealed
from qlog_assets.crowd.tokens import Token
from qlog_assets.months import Month

Sent = Mapping[str, Iterable[tuple[str, ...]]]
"""The artifacts of one job that each account sends."""
REPORTS = pa.schema(
    [
        ("job", pa.binary(32)),
        ("tag", pa.binary(32)),
        ("ciphertext", pa.binary(CIPHERTEXT_BYTES)),
        ("x", pa.binary(16)),
        ("y", pa.binary(16)),
        ("serial", pa.binary(32)),
    ]
)


def job_of(application: Application, month: Month, **settings: object) -> Job:
    """A job of a month with the window that jobs have."""
    opens, closes = default_window(month)
    chosen = {"artifacts_per_user": 4, "share_threshold": 5, "policy": "gaussian", **settings}
    return Job(application=application, epoch=month, opens=opens, closes=closes, **chosen)


def reports_of(job: Job, sent: Sent) -> list[Report]:
    """What honest clients send: a report per artifact, filled up with dummies."""
    reports = []
    for account, artifacts in sent.items():
        tokens = [
            Token(hashlib.sha256(f"{account} {place}".encode() + job.digest).digest(), bytes(64))
            for place in range(job.artifacts_per_user)
        ]
        for artifact in artifacts:
            data = encode(artifact)
            place = share_place(account.encode(), job, data)
            reports.append(make_report(job, data, derive(hashed(job, data), job, data), place, tokens.pop()))
        reports += [make_dummy(job, token) for token in tokens]
    return reports


def table_of(reports: Iterable[Report]) -> pa.Table:
    """Reports as they are sealed."""
    rows = [
        (each.job, each.tag, each.ciphertext, each.x.to_bytes(16, "big"), each.y.to_bytes(16, "big"), each.token.serial)
        for each in reports
    ]
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(REPORTS)]
    return pa.table(columns, schema=REPORTS).sort_by([("job", "ascending"), ("tag", "ascending"), ("x", "ascending")])


def seal(home: Path, month: Month, sent: Mapping[Job, Sent], **stated: int) -> SealedEpoch:
    """Seal an epoch in a warehouse; `stated` is what the issuer says otherwise than is true."""
    reports = table_of(report for job, each in sent.items() for report in reports_of(job, each))
    issued = {
        job.digest.hex(): Issued(
            stated.get("accounts", len(each)), stated.get("tokens_per_account", job.artifacts_per_user)
        )
        for job, each in sent.items()
    }
    return write_sealed(
        epoch_directory(home, month), month, tuple(sent), reports, len(reports), {}, issued, "2006-04-08T00:00:00Z"
    )
