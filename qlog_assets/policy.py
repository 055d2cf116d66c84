"""The release policy of one data set: the file `policy.toml`. Frozen models that forbid unknown keys.

Reads nothing but the policy file. A mechanism's section is the mechanism's own model; its name comes from the register.
"""

from __future__ import annotations

import os
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger.windows import LONGEST_WINDOW
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import simulated
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import Admission, IngestPolicy
from qlog_assets.pipeline.public_material import PoolPolicy, PublicLists
from qlog_assets.privacy.parameters import Exact, Parameters
from qlog_assets.sources.readers import MonthRange

LAST_MONTH = Month("9999-11")
"""Stands for a policy without a last month."""


class BudgetPolicy(Parameters):
    """What the data set may spend: for ever, or per window of months where `[unit]` says so. It opens the ledger; later
    changes go through `qlog ledger set-budget`."""

    epsilon: Exact = Field(Fraction(12), gt=0, validate_default=True)
    """Half a year at the default ε = 2 per month. More needs a recorded reason (`qlog ledger set-budget`)."""
    delta: Exact = Field(Fraction(1, 10**5), ge=0, lt=1, validate_default=True)
    """Room for ten months at the default δ = 1e-6; stays below one in ten thousand people."""
    accountant: Literal["basic", "zcdp"] = "basic"
    """How charges add up across releases: plain sums, or a zCDP filter. Both hold for adaptively chosen releases."""
    conversion_delta: Exact | None = Field(None, gt=0, lt=1)
    """With zcdp: the part of delta that turning ρ into (ε, δ) takes. None: half of it."""


class UnitPolicy(Parameters):
    """Whom the budget protects. Fixed when the account is opened; `qlog ledger set-unit` records a change."""

    window_months: int | None = Field(None, ge=1, le=LONGEST_WINDOW)
    """None: all that one user ever searched shares the budget, so releases end when it is spent. A whole number: what
    one user searched in any so many consecutive months does, so a budget renews as months pass; a user active for
    longer is protected by the sum over windows, which datasheets print."""


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


class Policy(Parameters):
    """One data set's release policy: the file `policy.toml`, the `policy` resource in Dagster, and the CLI's --set.

    Beside the keys below it has a section per mechanism that can be drawn, such as `[safelog]`: the register knows
    which, and `section` gives them.
    """

    dataset: str = Field("default", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    """The data set's name in the ledger and in manifests."""
    first: Month = Field(Month("1996-01"), validate_default=True)
    """The first month that may be ingested and released, inclusive. 1996: no public query log is older."""
    last: Month | None = None
    """The last month, inclusive. None: every month that has ended."""
    about: AboutPolicy = AboutPolicy()
    budget: BudgetPolicy = BudgetPolicy()
    unit: UnitPolicy = UnitPolicy()
    ingest: IngestPolicy = IngestPolicy()
    pool: PoolPolicy = PoolPolicy()
    url_list: Path | None = None
    """A public list of urls: clicks are then released for listed urls only, at no cost in δ."""
    mechanisms: dict[str, Parameters] = Field(default_factory=dict, exclude=True)
    """The mechanisms' sections, by name."""

    def __init__(self, **values: Any) -> None:
        given: dict[str, Any] = values.pop("mechanisms", {})
        sections = {}
        for each in simulated():
            chosen = values.pop(each.name, given.get(each.name, {}))
            if not isinstance(chosen, Parameters | dict):
                raise ParameterError(f"{each.name}: write its parameters as a section, [{each.name}]")
            try:
                sections[each.name] = each.policy_section(**dict(chosen))
            except ParameterError as error:
                raise ParameterError(f"{each.name}: {error}") from None
        super().__init__(**{**values, "mechanisms": sections})

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
        if "mechanisms" in values:
            raise QlogError(f"{path}: mechanisms: unknown key: a mechanism has a section of its own name")
        for table in (values, *(value for value in values.values() if isinstance(value, dict))):
            table.update({key: read_none(value) for key, value in table.items()})
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

    def section(self, mechanism: str) -> Parameters:
        """What the policy says of a mechanism."""
        if mechanism not in self.mechanisms:
            raise ParameterError(f"the policy has no section {mechanism!r}: it has {', '.join(self.mechanisms)}")
        return self.mechanisms[mechanism]

    @property
    def lists(self) -> PublicLists:
        """The public lists that the policy names."""
        return PublicLists(self.pool, self.url_list)

    @property
    def admission(self) -> Admission:
        """What the policy lets in."""
        return Admission(MonthRange(self.first, self.last or LAST_MONTH), self.ingest.max_rejected_share)

    def parameters(self, mechanism: Mechanism) -> Parameters:
        """The parameters of a release of a mechanism under this policy."""
        return mechanism.chosen_parameters(self.section(mechanism.name), self.lists)

    def variant(self, mechanism: Mechanism) -> str:
        """The variant of a mechanism that a release under this policy uses."""
        return mechanism.chosen_variant(self.section(mechanism.name))

    def with_settings(self, assignments: dict[str, str]) -> Policy:
        """This policy with `key=value` changes from a person, keys as `qualify_names` takes them.

        `none` switches an optional part off.
        """
        changed = {name: getattr(self, name) for name in type(self).model_fields if name != "mechanisms"}
        changed |= {name: dict(section) for name, section in self.mechanisms.items()}
        for key, text in qualify_names(assignments).items():
            section, _, name = key.rpartition(".")
            target = changed if not section else _as_values(changed.get(section))
            if target is None or name not in target:
                raise ParameterError(f"{key}: unknown key")
            target[name] = read_none(text)
            if section:
                changed[section] = target
        return type(self)(**changed)

    def as_public(self) -> dict[str, Any]:
        """The policy as JSON values, every section under its name."""
        return super().as_public() | {name: section.as_public() for name, section in self.mechanisms.items()}


def _as_values(section: Any) -> dict[str, Any] | None:
    return dict(section) if isinstance(section, dict | Parameters) else None


def read_none(value: Any) -> Any:
    """What a person wrote, where the word `none` switches an optional part off: neither TOML nor a shell has a null."""
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def qualify_names(assignments: dict[str, str], mechanism: str | None = None) -> dict[str, str]:
    """Settings by full name: a bare name is a parameter of the mechanism at hand, or of the only one that has it."""
    named = {}
    for key, text in assignments.items():
        homes = [each.name for each in simulated() if key in each.policy_section.model_fields]
        if mechanism is not None:
            homes = [section for section in homes if section == mechanism]
        if len(homes) > 1 and key not in Policy.model_fields:
            raise ParameterError(f"{key}: say which, {' or '.join(f'{section}.{key}' for section in homes)}")
        named[f"{homes[0]}.{key}" if homes and key not in Policy.model_fields else key] = text
    return named
