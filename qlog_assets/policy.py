"""The release policy of one data set: the file `policy.toml`. Frozen models that forbid unknown keys."""

from __future__ import annotations

import os
import tomllib
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.zealous.parameters import ZealousPolicy
from qlog_assets.months import Month
from qlog_assets.privacy.parameters import Exact, Parameters, Share


class BudgetPolicy(Parameters):
    """What the data set may spend for ever. It opens the ledger; later changes go through `qlog ledger set-budget`."""

    epsilon: Exact = Field(Fraction(12), gt=0, validate_default=True)
    """Half a year at the default ε = 2 a month. More needs a recorded reason (`qlog ledger set-budget`)."""
    delta: Exact = Field(Fraction(1, 10**5), ge=0, lt=1, validate_default=True)
    """Room for ten months at the default δ = 1e-6; stays below one in ten thousand people."""
    accountant: Literal["basic", "zcdp"] = "basic"
    """How charges add up across releases: plain sums, or a zCDP filter. Both hold for adaptively chosen releases."""
    conversion_delta: Exact | None = Field(None, gt=0, lt=1)
    """With zcdp: the part of delta that turning ρ into (ε, δ) takes. None: half of it."""


class IngestPolicy(Parameters):
    """What a landing file must be like."""

    max_rejected_share: Share = Field(Fraction(1, 5), validate_default=True)
    """A file with more of its rows rejected fails a blocking check, and its months are refused; rows outside the
    policy's months do not count. Real logs reach 12 % (Excite: empty queries)."""


class AboutPolicy(Parameters):
    """What the data set's owner says of it in public: goes into manifests and datasheets as it is."""

    publisher: str | None = None
    """Who publishes the releases."""
    population: str | None = None
    """Whose searches these are, such as `visitors of the library's catalogue`."""
    contact: str | None = None
    """Where a reader can ask."""
    licence: str | None = None
    """Under which terms the releases may be used."""


class PoolPolicy(Parameters):
    """The public pool: queries that may appear whether anybody typed them or not."""

    kind: Literal["default", "ngram_file", "coca_file", "query_list", "releases"] = "default"
    """`default` is a public n-gram list that ships inside the wordsegment package."""
    path: Path | None = None
    """The file, for the kinds that read one."""
    description: str = ""
    """Where the file comes from, in the operator's words; goes into the manifest."""
    probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g: the share of the list that is kept, by a public hash."""
    release_ids: tuple[str, ...] = ()
    """For `releases`: the earlier releases whose queries form the pool, pinned by id."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.kind.endswith(("_file", "_list")) and self.path is None:
            raise ValueError(f"path: a pool of kind {self.kind} needs the file's path")
        if self.kind == "releases" and not self.release_ids:
            raise ValueError("release_ids: a pool of kind releases needs the ids of earlier releases")
        return self


class Policy(Parameters):
    """One data set's release policy: the file `policy.toml`, the `policy` resource in Dagster, and the CLI's --set."""

    dataset: str = Field("default", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    """The data set's name in the ledger and in manifests."""
    first: Month = Field(Month("1996-01"), validate_default=True)
    """The first month that may be ingested and released, inclusive. 1996: no public query log is older."""
    last: Month | None = None
    """The last month, inclusive. None: every month that has ended."""
    about: AboutPolicy = AboutPolicy()
    budget: BudgetPolicy = BudgetPolicy()
    ingest: IngestPolicy = IngestPolicy()
    pool: PoolPolicy = PoolPolicy()
    url_list: Path | None = None
    """A public list of urls: clicks are then released for listed urls only, at no cost in δ."""
    safelog: SafelogParameters = SafelogParameters()
    zealous: ZealousPolicy = ZealousPolicy()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.last is not None and self.last < self.first:
            raise ValueError(f"last: {self.last} is before first, {self.first}")
        return self

    @classmethod
    def load(cls, path: Path) -> Policy:
        """The policy in a TOML file, or the default policy where no file is. Decimals are read exactly."""
        if not path.exists():
            if os.environ.get("QLOG_POLICY"):
                raise QlogError(f"{path}: no such policy file (QLOG_POLICY names it)")
            return cls()
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise QlogError(f"{path}: not a TOML file: {error}") from None
        for table in (values, *(value for value in values.values() if isinstance(value, dict))):
            table.update({key: switched(value) for key, value in table.items()})
        try:
            policy = cls(**values)
        except ParameterError as error:
            raise QlogError(f"{path}: {error}") from None
        return policy.relative_to(path.parent)

    def relative_to(self, folder: Path) -> Policy:
        """This policy with its file names read from the folder of the policy file."""
        pool = self.pool
        if pool.path is not None:
            pool = pool.with_changes(path=folder / pool.path)
        url_list = None if self.url_list is None else folder / self.url_list
        return self.with_changes(pool=pool, url_list=url_list)

    def with_settings(self, assignments: dict[str, str]) -> Policy:
        """This policy with `key=value` changes from a person, keys as `qualified` takes them.

        `none` switches an optional part off.
        """
        changed = self.model_dump(mode="python")
        for key, text in qualified(assignments).items():
            section, _, name = key.rpartition(".")
            target = changed if not section else changed.get(section)
            if not isinstance(target, dict) or name not in target:
                raise ParameterError(f"{key}: unknown key")
            target[name] = switched(text)
        return type(self)(**changed)

    @cached_property
    def flat(self) -> dict[str, str]:
        """Every setting as `section.key: text`, for the launchpad and for manifests."""
        flat: dict[str, str] = {}
        for key, value in self.as_public().items():
            for name, inner in value.items() if isinstance(value, dict) else ((None, value),):
                flat[f"{key}.{name}" if name else key] = "none" if inner is None else str(inner)
        return flat


def switched(value: Any) -> Any:
    """What a person wrote, where the word `none` switches an optional part off: neither TOML nor a shell has a null."""
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


MECHANISMS: dict[str, type[Parameters]] = {"safelog": SafelogParameters, "zealous": ZealousPolicy}
"""The policy's sections that hold a mechanism's parameters."""


def qualified(assignments: dict[str, str], mechanism: str | None = None) -> dict[str, str]:
    """Settings by full name: a bare name is a parameter of the mechanism at hand, or of the only one that has it."""
    named = {}
    for key, text in assignments.items():
        homes = [section for section, model in MECHANISMS.items() if key in model.model_fields]
        if mechanism is not None:
            homes = [section for section in homes if section == mechanism]
        if len(homes) > 1 and key not in Policy.model_fields:
            raise ParameterError(f"{key}: say which, {' or '.join(f'{section}.{key}' for section in homes)}")
        named[f"{homes[0]}.{key}" if homes and key not in Policy.model_fields else key] = text
    return named
