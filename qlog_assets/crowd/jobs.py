"""Jobs: which artifacts the clients of one epoch mine, how many each of them sends, and what is done with them.

A job is one application in one epoch, and one TOML file. Its digest goes into every key, token and message, so that
what a client sends for a job it was shown is never mixed with reports for another. Here are also the bytes of an
artifact. Nothing is mined, sent or opened here.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.settings import FrozenModel
from qlog_assets.storage.plain_files import read_toml

Application = Literal["queries", "reformulations", "clicks", "click_hosts", "urls"]
COLUMNS: Mapping[Application, tuple[str, ...]] = {
    "queries": ("query",),
    "reformulations": ("query", "next_query"),
    "clicks": ("query", "url"),
    "click_hosts": ("query", "host"),
    "urls": ("url",),
}
"""What an artifact of an application consists of, in the order of its encoding."""
MINED: Mapping[Application, str] = {
    "queries": "search queries",
    "reformulations": "pairs of a search query and the next one",
    "clicks": "pairs of a search query and the address of a page opened from its results",
    "click_hosts": "pairs of a search query and the site of a page opened from its results",
    "urls": "addresses of pages opened from search results",
}
"""The same in words, for the person whose log is mined."""
Policy = Literal["sound", "gaussian", "ft_a", "ft_u", "dp_a", "dp_u"]
INSTANCE_POLICIES = frozenset({"ft_a", "dp_a"})
"""The policies that count every instance of an artifact; the others count each user once."""
FREQUENCY_POLICIES = frozenset({"ft_a", "ft_u"})
"""The policies that add no noise: no differential privacy."""
ARTIFACT_BYTES = 510
"""The longest encoded artifact: with two bytes for its length it fills the 512 that are encrypted. A longer one is
never sent, which is a public rule for each record by itself."""
SEPARATOR = "\t"
LONGEST_JOB_TEXT = 4096
WANTED = "a job is a TOML file with application, epoch, artifacts_per_user, share_threshold, policy, opens and closes"


def as_written(value: object) -> object:
    """A number that TOML read, as the text that a person wrote."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check_decimal(text: str) -> str:
    # Short, because an exponent of many digits would be a number that fills the memory.
    if not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE]-?[0-9]{1,2})?", text) or Fraction(text) <= 0:
        raise ValueError("write a decimal above 0, such as 0.5 or 1e-8")
    return text


def in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


PositiveDecimal = Annotated[str, BeforeValidator(as_written), AfterValidator(check_decimal)]
Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]


class Job(FrozenModel):
    """What is asked of every client that takes part. The same for all: no client is asked anything of its own."""

    application: Application
    epoch: Month
    """The month whose searches are mined."""
    artifacts_per_user: int = Field(ge=1, le=1000)
    """d: reports that each client sends, no more and no fewer; what its log does not fill is padded."""
    share_threshold: int = Field(ge=1, le=1000)
    """k: distinct shares without which nobody can read an artifact."""
    policy: Policy
    opens: Moment
    """From when on reports are sent."""
    closes: Moment
    """When the epoch's key is deleted: nothing can be sent, and no guess be tested, after it."""
    epsilon: PositiveDecimal | None = None
    """What the release will promise, for the person to read. It has no role in the protocol."""
    delta: PositiveDecimal | None = None
    """The same."""

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.closes <= self.opens:
            raise ValueError("closes must be later than opens")
        return self

    @property
    def digest(self) -> bytes:
        """SHA-256 of the job as canonical JSON."""
        return compute_digest(self)

    @property
    def counts(self) -> Literal["users", "instances"]:
        """What one share stands for."""
        return "instances" if self.policy in INSTANCE_POLICIES else "users"

    def written(self) -> dict[str, str | int | None]:
        """The values as JSON and TOML have them; moments are texts."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: write_moment(v) if isinstance(v, datetime) else v for name, v in values.items()}

    def as_toml(self) -> str:
        """The job's file. Reading it gives the same job."""
        lines = []
        for name, value in self.written().items():
            if value is not None:
                quoted = isinstance(value, str) and name not in ("opens", "closes")
                lines.append(f'{name} = "{value}"' if quoted else f"{name} = {value}")
        return "\n".join(lines) + "\n"

    def describe(self) -> list[str]:
        """The job for the person who is asked to take part, one sentence per line."""
        several = "instances of it" if self.counts == "instances" else "people"
        return [
            f"What is mined: {MINED[self.application]}, from your searches in {self.epoch}.",
            f"What leaves this machine: {self.artifacts_per_user} encrypted reports; the most recent "
            f"{'instances' if self.counts == 'instances' else 'different ones'}, filled up with empty reports.",
            f"Who can read one: nobody, until {self.share_threshold} {several} have been reported.",
            f"What is promised: {self._promise()}",
            f"When: reports are sent at random times from {self.opens:%Y-%m-%d %H:%M} to "
            f"{self.closes:%Y-%m-%d %H:%M} UTC.",
        ]

    def _promise(self) -> str:
        if self.policy in FREQUENCY_POLICIES:
            return f"what enough {self.counts} share is published with its exact count; no differential privacy."
        if self.policy in ("dp_a", "dp_u"):
            return "noisy counts as the paper prints them, for study; the paper's proof has known gaps."
        stated = [f"{sign} = {value}" for sign, value in (("ε", self.epsilon), ("δ", self.delta)) if value]
        return f"differentially private counts of users{' with ' + ' and '.join(stated) if stated else ''}."


@lru_cache(64)
def compute_digest(job: Job) -> bytes:
    """The job's digest: kept, because every message of a job asks for it."""
    values = {name: value for name, value in job.written().items() if value is not None}
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).digest()


def write_moment(moment: datetime) -> str:
    return moment.isoformat().removesuffix("+00:00") + "Z"


def default_window(epoch: Month, days: int = 7) -> tuple[datetime, datetime]:
    """When a job opens and closes unless it says otherwise: the first days after its month."""
    opens = epoch.end.replace(tzinfo=UTC)
    return opens, opens + timedelta(days=days)


def parse_job(text: str) -> Job:
    """The job that a server showed. Nothing of a text that is no job is repeated."""
    try:
        if len(text) > LONGEST_JOB_TEXT:
            raise ValueError
        values = tomllib.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        raise QlogError(f"a job was shown that is no readable TOML: {WANTED}") from None
    return Job(**values)


def read_job(path: Path) -> Job:
    """The job in a file."""
    values = read_toml(path, WANTED, parse_float=str)
    try:
        return Job(**values)
    except QlogError as error:
        raise QlogError(f"{path}: {error}") from None


def read_jobs(directory: Path) -> tuple[Job, ...]:
    """The jobs in a folder's TOML files, by epoch and application."""
    found: dict[tuple[Month, Application], tuple[Path, Job]] = {}
    for path in sorted(directory.glob("*.toml")):
        job = read_job(path)
        # A client sends d reports per job: a second job on the same artifacts would have it send 2d.
        if (job.epoch, job.application) in found:
            other = found[job.epoch, job.application][0].name
            raise QlogError(f"{path}: {other} already has the job {job.application} of {job.epoch}: keep one of them")
        found[job.epoch, job.application] = (path, job)
    order = get_args(Application)
    return tuple(found[key][1] for key in sorted(found, key=lambda key: (key[0], order.index(key[1]))))


def encode(fields: Sequence[str]) -> bytes:
    """The bytes of an artifact; ValueError for one that is never sent."""
    if any(not field or SEPARATOR in field or "\n" in field for field in fields):
        raise ValueError("a field is empty or holds a tab or a line's end")
    data = SEPARATOR.join(fields).encode("utf-8")
    if len(data) > ARTIFACT_BYTES:
        raise ValueError(f"longer than {ARTIFACT_BYTES} bytes")
    return data


def decode(data: bytes, application: Application) -> tuple[str, ...]:
    """The fields of an artifact; ValueError unless they are exactly the application's, each as `encode` takes it."""
    fields = tuple(data.decode("utf-8").split(SEPARATOR))
    if len(fields) != len(COLUMNS[application]) or encode(fields) != data:
        raise ValueError(f"not {len(COLUMNS[application])} fields")
    return fields
