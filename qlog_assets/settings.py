"""The machine's side: which warehouse, which ledger, how much memory, and where the files lie that ship with the code.

Frozen models that forbid unknown keys; reads nothing but the environment. What a data set's owner chose is `policy`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from qlog_assets.errors import ParameterError, QlogError

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent


LOCKED = "QLOG_UI_LOCKED"
"""What `qlog ui` says to the processes it starts: the web server before them has a lock."""


class FrozenModel(BaseModel):
    """Base of all settings: frozen, no unknown keys, errors that name the key in one line."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ParameterError(one_line(error, self.known_keys())) from None

    @classmethod
    def known_keys(cls) -> list[str]:
        """What may be written."""
        return list(cls.model_fields)


def one_line(error: ValidationError, known: Iterable[str]) -> str:
    """The first complaints of pydantic about a model with these keys as one line: `key: what is wrong`."""
    problems = []
    for item in error.errors(include_url=False, include_context=False)[:3]:
        key = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            message = unknown_key(key, known)
        problems.append(f"{key}: {message}" if key else message)
    return "; ".join(problems)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What is said of a key that is not there: the one that was meant, or all there are."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(key, names, 1)
    return f"unknown key: {f'perhaps {near[0]}' if near else 'there are ' + ', '.join(names)}"


VARIABLES = {
    "ledger_url": "QLOG_LEDGER_URL",
    "partitions": "QLOG_PARTITIONS",
    "memory_limit_mb": "QLOG_MEMORY_MB",
    "spill_limit_gb": "QLOG_SPILL_GB",
    "threads": "QLOG_THREADS",
    "landing_seconds": "QLOG_LANDING_SECONDS",
}
"""The environment variables of settings, by field."""


PLACES = {"s3": "s3://BUCKET/PREFIX", "file": "file:///DIRECTORY"}
"""Where partitions may lie, by scheme: how it is written."""
PLACE_PATTERNS = {"s3": r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=+-]+)*", "file": r"(/[^/\x00-\x1f]+)+"}
"""What stands behind the scheme."""


class Settings(FrozenModel):
    """Which warehouse, which ledger, how much memory. Read from the environment."""

    home: Path
    """QLOG_HOME: one warehouse is one data set. Default: `warehouse/` in the checkout or the working directory."""
    ledger_url: str | None = None
    """QLOG_LEDGER_URL: an SQLAlchemy URL. Default: `ledger.db` in the warehouse."""
    partitions: str | None = None
    """QLOG_PARTITIONS: where the tables of new private partitions lie, `s3://BUCKET/PREFIX` or `file:///DIRECTORY`; a
    server other than Amazon's, a region and credentials come from the usual AWS variables. Default: the warehouse."""
    memory_limit_mb: int = Field(3072, ge=128, le=1 << 30)
    """QLOG_MEMORY_MB: what DuckDB may hold in one process; past it, it spills. Below 4 GB with Python beside it."""
    spill_limit_gb: int = Field(64, ge=1, le=1 << 20)
    """QLOG_SPILL_GB: what DuckDB may write to its temporary directory before it gives up."""
    threads: int = Field(default_factory=lambda: os.cpu_count() or 2, ge=1, le=1024)
    """QLOG_THREADS: DuckDB's threads. It starts as many as it is told, and hangs on some millions."""
    landing_seconds: int = Field(60, ge=5, le=86_400)
    """QLOG_LANDING_SECONDS: how often the sensor looks into the landing zone. Two looks must find a file the same."""

    @field_validator("partitions")
    @classmethod
    def _check_partitions(cls, given: str | None) -> str | None:
        return None if given is None else checked_place(given)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        scheme, _, path = (self.partitions or "").partition("://")
        if scheme == "file" and Path(path).resolve().is_relative_to(self.home.resolve()):
            raise ValueError("partitions: lies in the warehouse, where they lie without it: name another directory")
        return self

    @classmethod
    def from_environment(cls) -> Settings:
        given = {field: os.environ[name] for field, name in VARIABLES.items() if os.environ.get(name)}
        try:
            return cls(home=home_from_environment(), **given)
        except ParameterError as error:
            field, sign, reason = str(error).partition(":")
            raise ParameterError(f"{VARIABLES.get(field, field)}{sign}{reason}") from None

    def for_scratch(self, home: Path) -> Settings:
        """The same for a warehouse that is removed whole after use: nothing of it lies elsewhere."""
        return self.model_copy(update={"home": home, "partitions": None})

    @property
    def policy_file(self) -> Path:
        """QLOG_POLICY, or `policy.toml` in the warehouse."""
        return Path(os.environ.get("QLOG_POLICY") or self.home / "policy.toml")


def checked_place(given: str) -> str:
    """The one text of a place that partitions may lie in. One that is refused is not repeated: it may hold a secret."""
    scheme, sign, rest = given.strip().partition("://")
    rest = rest.rstrip("/")
    if not sign or scheme not in PLACES:
        raise ValueError(f"names no place that partitions can lie in: write {' or '.join(PLACES.values())}")
    if any(mark in rest for mark in "@?#"):
        raise ValueError(
            "holds more than a place: credentials come from AWS_ACCESS_KEY_ID and the other AWS variables, the "
            "server's address from AWS_ENDPOINT_URL"
        )
    if not re.fullmatch(PLACE_PATTERNS[scheme], rest) or {"", ".", ".."} & set(rest.strip("/").split("/")):
        raise ValueError(f"is no {PLACES[scheme]}")
    return f"{scheme}://{rest}"


def home_from_environment() -> Path:
    """The warehouse that QLOG_HOME names, which is a directory or not there yet. Links are followed."""
    named = Path(os.environ.get("QLOG_HOME") or (CHECKOUT if is_checkout() else Path.cwd()) / "warehouse")
    advice = "name the directory of a warehouse"
    try:
        str(named).encode("utf-8")
        home = named.resolve()
        is_wrong = not stat.S_ISDIR(home.stat().st_mode)
    except FileNotFoundError:
        return home
    except UnicodeEncodeError:
        raise QlogError(f"QLOG_HOME: {named}: is no UTF-8, which DuckDB's file names are: {advice}") from None
    except RuntimeError:  # how a loop of links is told
        raise QlogError(f"QLOG_HOME: {named}: is a link that leads back to itself: {advice}") from None
    except OSError as error:
        raise QlogError(f"QLOG_HOME: {named}: cannot be used ({error.strerror}): {advice}") from None
    if is_wrong:
        raise QlogError(f"QLOG_HOME: {named}: is no directory: {advice}")
    return home


def is_checkout() -> bool:
    """Whether this is a checkout. Beside an installed package lie other people's directories."""
    return (CHECKOUT / "pyproject.toml").is_file()


SHIPPED_ROOTS: list[Path] = []
"""Further directories with `sql/` and `expectations/`, for a mechanism that a test brings."""


def shipped_file(kind: str, name: str) -> Path:
    """A file that ships with the code, such as `sql`, `safelog/query_counts.sql`; it may not be there.

    A checkout keeps these directories at its top level, where people look for them; a wheel carries them in the
    package.
    """
    roots = [PACKAGE / kind, *([CHECKOUT / kind] if is_checkout() else [])]
    found = next((root for root in roots if root.is_dir()), None)
    if found is None:
        raise QlogError(f"{kind}: this installation lacks its {kind} files: install the package again")
    places = [found / name, *(root / kind / name for root in SHIPPED_ROOTS)]
    return next((place for place in places if place.is_file()), places[0])
