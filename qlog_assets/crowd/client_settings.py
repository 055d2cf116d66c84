"""What a person decides about taking part: `client.toml` in the client's folder. Nothing of it ever leaves.

```toml
[opt_out]
jobs = ["clicks", "queries-2006-03"]   # an application, or one month of it
patterns = ["smith", "^my "]           # regular expressions; what has to do with a matching query or url stays here
share_threshold_below = 5              # no job in which fewer people could make an artifact readable; default 2

[network]
trusted_certificates = "servers.pem"   # whose certificates are accepted; default: those that the machine trusts
```

A pattern is compared with a text as it was written and as it would leave, whatever the case and the Unicode form of
either. A query that led to a matching url stays, wherever it stands in the month, and so does all that it led to. A job
that is opted out of sends nothing more, although it was entered before. A new pattern does not stop messages that are
planned already: they are sealed, and not even the client can look into them. In a job that was interrupted earlier, it
stops the texts that match; the queries and urls that they come from are not known any more.
"""

from __future__ import annotations

import re
import ssl
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from qlog_assets.crowd.folded_patterns import compile_pattern
from qlog_assets.crowd.jobs import COLUMNS, Job
from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.months import Month
from qlog_assets.settings import FrozenModel
from qlog_assets.sources.normalise import normalise_text
from qlog_assets.storage.plain_files import is_absent, read_toml

FILE = "client.toml"
WANTED = "it holds [opt_out] with jobs, patterns and share_threshold_below, and [network] with trusted_certificates"


def job_name(job: Job) -> str:
    """What a person calls a job: `queries-2006-03`."""
    return f"{job.application}-{job.epoch}"


def check_job_name(name: str) -> str:
    application, _, month = name.partition("-")
    if application not in COLUMNS:
        raise ValueError(f"name an application ({', '.join(COLUMNS)}) or one month of it, such as queries-2006-03")
    if month:
        Month(month)
    return name


JobName = Annotated[str, AfterValidator(check_job_name)]


class OptOut(FrozenModel):
    """What a person does not take part in, and what never leaves whatever the job is."""

    jobs: tuple[JobName, ...] = ()
    patterns: tuple[str, ...] = ()
    share_threshold_below: int = Field(2, ge=1, le=1000)
    """With a threshold of 1 every report could be read by itself: nobody takes part in that without saying so."""

    @field_validator("patterns")
    @classmethod
    def _check_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for number, pattern in enumerate(patterns, 1):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError):
                # Not the pattern itself: it may be the very name that must not be seen.
                raise ValueError(f"number {number} is no regular expression") from None
            if re.search(pattern, "") is not None:
                raise ValueError(f"number {number} matches everything: opt out of the jobs instead")
        return patterns

    @cached_property
    def _compiled(self) -> list[re.Pattern[str]]:
        return [compiled for pattern in self.patterns for compiled in compile_pattern(pattern)]

    def leaves_out(self, text: str) -> bool:
        """Whether nothing may leave that has to do with a text, as it is written or normalised."""
        return any(pattern.search(each) for each in {text, normalise_text(text)} for pattern in self._compiled)

    def declines(self, job: Job) -> bool:
        """Whether the person takes no part in a job."""
        is_named = job.application in self.jobs or job_name(job) in self.jobs
        return is_named or job.share_threshold < self.share_threshold_below


class Network(FrozenModel):
    """How the servers are reached."""

    trusted_certificates: Path | None = None
    """Relative to the client's folder."""


class ClientSettings(FrozenModel):
    """The whole file."""

    opt_out: OptOut = OptOut()
    network: Network = Network()

    @classmethod
    def read(cls, folder: Path) -> ClientSettings:
        """The settings in a client's folder; the defaults if there is no file."""
        path = folder / FILE
        if is_absent(path):
            return cls()
        # Not quoting: patterns are private.
        values = read_toml(path, WANTED, quoting=False)
        try:
            return cls(**values)
        except ParameterError as error:
            raise QlogError(f"{path}: {error}") from None

    def trust(self, folder: Path) -> ssl.SSLContext | bool:
        """What httpx takes as `verify`."""
        if self.network.trusted_certificates is None:
            return True
        path = folder / self.network.trusted_certificates
        try:
            return ssl.create_default_context(cafile=str(path))
        except OSError:  # what ssl.SSLError is, too
            raise QlogError(f"{path}: holds no certificates in PEM: name another file in {FILE}") from None
