"""Reports as a collector would have sealed them, made from who sent which artifact."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
from support.crowd_jobs import any_token

from qlog_assets.crowd.jobs import Job, encode
from qlog_assets.crowd.keys import KeyMaterial, derive, hashed, random_place, share_place
from qlog_assets.crowd.messages import Report, make_report

WIDTHS = {"job": 32, "tag": 32, "ciphertext": 528, "x": 16, "y": 16, "serial": 32}


def material_of(job: Job, artifact: bytes) -> KeyMaterial:
    """By the paper's hash: what is tested with it does not depend on where randomness comes from."""
    return derive(hashed(job, artifact), job, artifact)


def make_reports(
    job: Job,
    senders: Mapping[tuple[str, ...], int],
    material: Callable[[Job, bytes], KeyMaterial] = material_of,
) -> list[Report]:
    """A report of each artifact by each of so many senders."""
    reports = []
    for fields, number in senders.items():
        artifact = encode(fields)
        shared = material(job, artifact)
        for _ in range(number):
            counts_users = job.counts == "users"
            place = share_place(secrets.token_bytes(32), job, artifact) if counts_users else random_place()
            reports.append(make_report(job, artifact, shared, place, any_token()))
    return reports


def as_table(reports: Iterable[Report], chunks: int = 1) -> pa.Table:
    """Reports in the columns of a sealed epoch, in as many chunks."""
    rows = [
        {
            "job": report.job,
            "tag": report.tag,
            "ciphertext": report.ciphertext,
            "x": report.x.to_bytes(16, "big"),
            "y": report.y.to_bytes(16, "big"),
            "serial": report.token.serial,
        }
        for report in reports
    ]
    schema = pa.schema([(name, pa.binary(width)) for name, width in WIDTHS.items()])
    step = max(-(-len(rows) // chunks), 1)
    parts = [pa.Table.from_pylist(rows[at : at + step], schema) for at in range(0, len(rows), step)]
    return pa.concat_tables(parts) if parts else schema.empty_table()
