"""From a job's accepted reports to the artifacts that enough of them share, and how many shares each has.

Reports are grouped by tag, the secrets recovered from their shares, and the ciphertexts opened. What opens is believed
only if it is an artifact as a client writes it. What is dropped is counted by reason, and nothing of it is kept.

Clients may lie. A report that has not the polynomial's value and the one valid ciphertext is set against one that has;
where such reports leave fewer than k, the artifact is dropped. So liars can suppress what they can guess, and k of them
can have any text counted k times, as k people could who search for it. What they cannot do is to make one person's
report count for more than 1 (`aggregate` argues it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qlog_assets.crowd.decoding import count_net
from qlog_assets.crowd.field import ELEMENT_BYTES
from qlog_assets.crowd.jobs import COLUMNS, Job, decode
from qlog_assets.crowd.keys import TAG_BYTES, tag_of
from qlog_assets.crowd.messages import CIPHERTEXT_BYTES, DIGEST_BYTES, MalformedError, open_ciphertext
from qlog_assets.crowd.shares import Polynomial, Recovered, recover
from qlog_assets.errors import QlogError
from qlog_assets.sources.normalise import normalise_text, normalise_url

Rows = NDArray[np.uint8]
Integers = NDArray[np.int64]

BELOW, WRONG, NOT_AUTHENTIC, NO_ARTIFACT = "below threshold", "wrong shares", "not authentic", "not an artifact"
REASONS = (BELOW, WRONG, NOT_AUTHENTIC, NO_ARTIFACT)
WIDTHS = {
    "job": DIGEST_BYTES,
    "tag": TAG_BYTES,
    "ciphertext": CIPHERTEXT_BYTES,
    "x": ELEMENT_BYTES,
    "y": ELEMENT_BYTES,
}
"""The columns of sealed reports that are read here, and their bytes per row."""
COMPARED_ROWS = 1 << 14
"""Ciphertexts that are compared at once: 9 MB."""


@dataclass(frozen=True)
class Aggregated:
    """What a job's reports give together."""

    artifacts: pa.Table
    """The application's columns and `users`: places with a right report, less wrong ones. Sorted by the texts."""
    dropped: dict[str, int]
    """Tags without an artifact, by reason. A private number: it holds every rare artifact and every dummy."""


def normalise_host(host: str) -> str:
    """A site's name as it is cut out of a normalised url; whatever cannot be one becomes another text."""
    return host.casefold().translate(str.maketrans("", "", "/?#")).rstrip(".")


NORMALISE: Mapping[str, Callable[[str], str]] = {
    "query": normalise_text,
    "next_query": normalise_text,
    "url": normalise_url,
    "host": normalise_host,
}


def aggregate(reports: pa.Table, job: Job) -> Aggregated:
    """The artifacts that at least k users stand for, net of lies. The answer does not depend on the reports' order.

    One user who follows the protocol moves each artifact's outcome (its count; k - 1 where it is dropped) by at most 1,
    whatever all others send:

    - Her report of an artifact lies at a place that nobody else can foresee. What other places are, right, wrong or
      contested, is decided place by place for a given polynomial and ciphertext, so hers changes none of them.
    - Her tag commits to one polynomial and one artifact (`tag_of`), with one ciphertext: hers. Only they are counted
      under it, so she is right, and no other artifact can win or lose by her.
    - Right places are those with her polynomial's value and her ciphertext, wrong ones all others that are not
      contested. She adds 1 to the right ones and none to the wrong ones: `count_net` rises by exactly 1.
    - An artifact is kept iff `count_net` is at least k. Decoding looks at shares alone; there right places are no fewer
      and wrong ones no more, so where the count is at least k, the polynomial is found (`decode_shares` says with what
      certainty above 2,048 places), and where it is not, the count drops it.
    - The same artifact under a tag that others invented: the larger count stands, and a maximum moves no further than
      what it is taken of.
    """
    check_columns(reports, job)
    tags = reports["tag"].combine_chunks().dictionary_encode()
    group_of = tags.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    # Most tags are of rare artifacts and dummies: their shares are not even looked at.
    enough = np.bincount(group_of, minlength=len(tags.dictionary)) >= job.share_threshold
    dropped = Counter(dict.fromkeys(REASONS, 0))
    dropped[BELOW] += int(np.count_nonzero(~enough))
    rows = np.flatnonzero(enough[group_of])
    groups = (np.cumsum(enough) - 1)[group_of[rows]]
    tag_bytes = tags.dictionary.filter(pa.array(enough)).to_pylist()
    places, values = (stack(reports[name])[rows] for name in ("x", "y"))
    recovered = recover(groups, places, values, job.share_threshold)
    del places, values

    counted: dict[tuple[str, ...], tuple[int, bytes]] = {}
    for group, ciphertexts in enumerate(count_ciphertexts(reports, rows, groups, recovered)):
        polynomial, tag = recovered.polynomial(group), tag_bytes[group]
        if polynomial is None:
            dropped[BELOW if recovered.places[group] < job.share_threshold else WRONG] += 1
            continue
        opened = open_valid(polynomial, job, tag, ciphertexts)
        if opened is None:
            dropped[NOT_AUTHENTIC] += 1
            continue
        artifact, right = opened
        users = count_net(right, int(recovered.right[group] + recovered.wrong[group]) - right)
        fields = read_artifact(artifact, job)
        if users < job.share_threshold or fields is None:
            dropped[NO_ARTIFACT if fields is None else NOT_AUTHENTIC] += 1
            continue
        # A second tag with the same artifact is none that its holders derive: the one with more users stands.
        found = (users, tag)
        if fields in counted:
            dropped[NOT_AUTHENTIC] += 1
        counted[fields] = max(counted.get(fields, found), found)
    return Aggregated(as_table(counted, job), dict(dropped))


def check_columns(reports: pa.Table, job: Job) -> None:
    """Raise unless these are the reports of this job, as they are sealed."""
    for name, width in WIDTHS.items():
        if reports.schema.field(name).type != pa.binary(width) or reports[name].null_count:
            raise QlogError(f"sealed reports: {name} is not {width} bytes in every row: seal the epoch again")
    if len(reports) and not pc.all(pc.equal(reports["job"], pa.scalar(job.digest, pa.binary(DIGEST_BYTES)))).as_py():
        raise QlogError("sealed reports: some are of another job than is aggregated")


def stack(column: pa.ChunkedArray) -> Rows:
    """A column's bytes as an array with a row per report."""
    return np.concatenate([view(chunk) for chunk in column.chunks] or [np.empty((0, column.type.byte_width), np.uint8)])


def view(chunk: pa.FixedSizeBinaryArray) -> Rows:
    """The same of one chunk, without a copy."""
    width = chunk.type.byte_width
    start = chunk.offset * width
    data = np.frombuffer(chunk.buffers()[1], np.uint8)
    return data[start : start + len(chunk) * width].reshape(-1, width)


def count_ciphertexts(
    reports: pa.Table, rows: Integers, groups: Integers, recovered: Recovered
) -> Iterator[dict[bytes, int]]:
    """For each group the ciphertexts that came from places with a right share, and from how many places each came.

    Holders of an artifact all send the same one, so each is compared with its group's first, many at once. Only groups
    in which they differ are counted by ciphertext.
    """
    column = reports["ciphertext"]
    fitting = np.flatnonzero(recovered.fits)
    rows, groups = rows[fitting], groups[fitting]
    first_of = np.full(len(recovered.known), -1, np.int64)
    first_of[groups[::-1]] = np.arange(len(rows))[::-1]
    known = np.flatnonzero(first_of >= 0)
    firsts = np.zeros((len(recovered.known), column.type.byte_width), np.uint8)
    firsts[known] = take(column, rows[first_of[known]])
    differing = np.zeros(len(firsts), bool)
    for at in range(0, len(rows), COMPARED_ROWS):
        part = slice(at, at + COMPARED_ROWS)
        same = (take(column, rows[part]) == firsts[groups[part]]).all(axis=1)
        differing[groups[part][~same]] = True
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(firsts) + 1))
    for group in range(len(firsts)):
        if not differing[group]:
            yield {firsts[group].tobytes(): int(recovered.right[group])}
        else:
            members = rows[order[bounds[group] : bounds[group + 1]]]
            sent = zip(take(column, members), take(reports["x"], members), strict=True)
            yield Counter(ciphertext for ciphertext, _ in {(data.tobytes(), x.tobytes()) for data, x in sent})


def take(column: pa.ChunkedArray, rows: Integers) -> Rows:
    """The bytes of some rows, ascending or not, without putting the column's chunks together."""
    out = np.empty((len(rows), column.type.byte_width), np.uint8)
    start = 0
    for chunk in column.chunks:
        here = np.flatnonzero((rows >= start) & (rows < start + len(chunk)))
        if len(here):
            out[here] = view(chunk)[rows[here] - start]
        start += len(chunk)
    return out


def open_valid(
    polynomial: Polynomial, job: Job, tag: bytes, ciphertexts: Mapping[bytes, int]
) -> tuple[bytes, int] | None:
    """The artifact that the tag commits to, and from how many places its ciphertext came; None if none holds it.

    At most one is valid, so their order does not matter: a tag has one polynomial and one artifact (`tag_of`), and
    AES-SIV one ciphertext of it. All are tried, because a limit could be reached or not by one report; each costs its
    sender a token, and about as much work as to accept the report did.
    """
    for ciphertext, places in ciphertexts.items():
        try:
            artifact = open_ciphertext(polynomial.at(0), job, tag, ciphertext)
        except MalformedError:
            continue  # what is wrong with one is no matter while another opens
        if tag_of(polynomial, job, artifact) == tag:
            return artifact, places
    return None


def read_artifact(data: bytes, job: Job) -> tuple[str, ...] | None:
    """The fields, if they are the application's and each is its own normalisation; otherwise None."""
    try:
        fields = decode(data, job.application)
    except ValueError:
        return None
    names = COLUMNS[job.application]
    return fields if all(NORMALISE[name](field) == field for name, field in zip(names, fields, strict=True)) else None


def as_table(counted: Mapping[tuple[str, ...], tuple[int, bytes]], job: Job) -> pa.Table:
    artifacts = sorted(counted)
    columns = {
        name: pa.array([fields[place] for fields in artifacts], pa.string())
        for place, name in enumerate(COLUMNS[job.application])
    }
    return pa.table({**columns, "users": pa.array([counted[fields][0] for fields in artifacts], pa.int64())})
