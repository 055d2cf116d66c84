"""The release policy of one data set: the file `policy.toml`. Frozen models that forbid unknown keys.

Reads nothing but the policy file. A mechanism's section is the mechanism's own model; its name comes from the register.

Also here: what a run may change of it. What charges may change a mechanism's parameters (`with_run_changes`), what is
never charged anything but files (`with_settings`); either way the policy goes on knowing what its file says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, PrivateAttr, model_validator

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.ledger.windows import LONGEST_WINDOW
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import simulated
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import Admission, IngestPolicy
from qlog_assets.pipeline.public_material import PoolPolicy, PublicLists
from qlog_assets.privacy.parameters import Exact, Parameters
from qlog_assets.settings import unknown_key
from qlog_assets.sources.readers import MonthRange
from qlog_assets.storage.engine import EnginePolicy
from qlog_assets.storage.plain_files import is_absent, read_toml

LAST_MONTH = Month("9999-11")
"""Stands for a policy without a last month."""
FILE_ALONE = "budget, data set, months, files and pools come from the policy file alone"
"""What every refusal of a change says."""


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


class LimitsPolicy(Parameters):
    """The most that one release may cost, whatever a run asks for. A run may always ask for less."""

    epsilon: Exact | None = Field(None, gt=0)
    """The largest ε of one release. None: what this file's own parameters of the mechanism cost."""
    delta: Exact | None = Field(None, ge=0, lt=1)
    """The largest δ of one release. None: what this file's own parameters of the mechanism cost."""


class LedgerPolicy(Parameters):
    """How the ledger is kept from forgetting. Read from the policy file alone: no run may change it."""

    witness: str | None = Field(None, min_length=1, repr=False, exclude=True)
    """Where a copy of each charge goes before noise is drawn: a file that is only appended to, outside the warehouse,
    or the URL of a second database (sqlite:///FILE or postgresql://USER@HOST/NAME). None: an old copy of the ledger
    that is put in its place cannot be told from the ledger."""

    def as_public(self) -> dict[str, Any]:
        """Whether there is a witness. Where it is stays private: a URL may hold a password."""
        return {"witness": None if self.witness is None else "named"}

    def relative_to(self, folder: Path) -> LedgerPolicy:
        """The same with a file's name read from the folder of the policy file."""
        if self.witness is None:
            return self
        scheme = "sqlite:///" if self.witness.startswith("sqlite:///") else ""
        if "://" in self.witness and not scheme:
            return self
        return LedgerPolicy(witness=f"{scheme}{(folder / self.witness.removeprefix(scheme)).resolve()}")


class UnitPolicy(Parameters):
    """Whom the budget protects. Fixed when the account is opened; `qlog ledger set-unit` records a change."""

    window_months: int | None = Field(None, ge=1, le=LONGEST_WINDOW)
    """None: all that one user ever searched shares the budget, so releases end when it is spent. A whole number: what
    one user searched in any so many consecutive months does, so a budget renews as months pass; a user active for
    longer is protected by the sum over windows, which datasheets print."""
    one_user: Literal["user_id", "address_and_agent"] = "user_id"
    """Who is one user. `user_id`: one id of the log. `address_and_agent`: one network address with one user agent, for
    access logs of a web server that knows no names; manifests and datasheets then say so."""


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
    """One data set's release policy: the file `policy.toml`, with what a run changed of it.

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
    limits: LimitsPolicy = LimitsPolicy()
    unit: UnitPolicy = UnitPolicy()
    ingest: IngestPolicy = IngestPolicy()
    ledger: LedgerPolicy = LedgerPolicy()
    engine: EnginePolicy = EnginePolicy()
    pool: PoolPolicy = PoolPolicy()
    url_list: Path | None = None
    """A public list of urls: clicks are then released for listed urls only, at no cost in δ."""
    has_urls: bool = True
    """Whether the log has a column of urls. `false` switches tables of clicks off, which could not hold a row and would
    cost all the same. A statement about the log's columns, so that no row decides it."""
    public_directories: tuple[Path, ...] = ()
    """Further directories whose files `pool.path` and `url_list` may name, such as `["/srv/lists"]`. Files beside the
    policy file or below its directory need no such entry."""
    mechanisms: dict[str, Parameters] = Field(default_factory=dict, exclude=True)
    """The mechanisms' sections, by name."""

    _source: Path | None = PrivateAttr(None)
    _in_file: Policy | None = PrivateAttr(None)

    def __init__(self, **values: Any) -> None:
        given: dict[str, Any] = values.pop("mechanisms", {})
        sections = {}
        for each in simulated():
            chosen = values.pop(each.name, given.get(each.name, {}))
            if not isinstance(chosen, Parameters | dict):
                raise ParameterError(f"{each.name}: write its parameters as a section, [{each.name}]")
            try:
                given_values = chosen.said if isinstance(chosen, Parameters) else chosen
                sections[each.name] = each.policy_section(**given_values)
            except ParameterError as error:
                raise ParameterError(f"{each.name}: {error}") from None
        super().__init__(**{**values, "mechanisms": sections})

    @classmethod
    def known_keys(cls) -> list[str]:
        return [*(name for name in cls.model_fields if name != "mechanisms"), *(each.name for each in simulated())]

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.last is not None and self.last < self.first:
            raise ValueError(f"last: {self.last} is before first, {self.first}")
        if self.url_list is not None and not self.has_urls:
            raise ValueError("url_list: has_urls = false says that the log has no urls: leave one of the two out")
        return self

    @classmethod
    def load(cls, path: Path) -> Policy:
        """The policy in a TOML file, or the default policy where no file is. Decimals are read exactly."""
        if is_absent(path):
            if os.environ.get("QLOG_POLICY"):
                raise QlogError(f"{path}: no such policy file (QLOG_POLICY names it)")
            return cls()
        values = read_toml(path, "the policy is a TOML file; QLOG_POLICY may name another", parse_float=Decimal)
        if "mechanisms" in values:
            raise QlogError(f"{path}: mechanisms: unknown key: a mechanism has a section of its own name")
        for table in (values, *(value for value in values.values() if isinstance(value, dict))):
            table.update({key: read_none(value) for key, value in table.items()})
        try:
            policy = cls(**values)
        except ParameterError as error:
            raise QlogError(f"{path}: {error}") from None
        policy = policy.relative_to(path.parent)
        policy._source = path
        return policy

    def relative_to(self, folder: Path) -> Policy:
        """This policy with its file names read from the folder of the policy file."""
        pool = self.pool
        if pool.path is not None:
            pool = pool.with_changes(path=folder / pool.path)
        url_list = None if self.url_list is None else folder / self.url_list
        directories = tuple(folder / directory for directory in self.public_directories)
        return self.with_changes(
            pool=pool, url_list=url_list, public_directories=directories, ledger=self.ledger.relative_to(folder)
        )

    @property
    def source(self) -> str:
        """Where this policy was read, in words."""
        return "the default policy" if self._source is None else str(self._source)

    @property
    def in_file(self) -> Policy:
        """The policy as its file has it, without what a run changed: the file's owner wrote this one."""
        return self if self._in_file is None else self._in_file

    def with_changes(self, **changes: Any) -> Self:
        """This policy with some values replaced. What a run had changed before still counts as changed by a run."""
        changed = super().with_changes(**changes)
        changed._source, changed._in_file = self._source, self._in_file
        return changed

    def section(self, mechanism: str) -> Parameters:
        """What the policy says of a mechanism."""
        if mechanism not in self.mechanisms:
            raise ParameterError(f"the policy has no section {mechanism!r}: it has {', '.join(self.mechanisms)}")
        return self.mechanisms[mechanism]

    @property
    def lists(self) -> PublicLists:
        """The public lists that the policy names."""
        beside = () if self._source is None else (self._source.parent,)
        return PublicLists(self.pool, self.url_list, (*beside, *self.public_directories), self.has_urls)

    @property
    def admission(self) -> Admission:
        """What the policy lets in."""
        months = MonthRange(self.first, self.last or LAST_MONTH)
        return Admission(months, self.ingest.max_rejected_share, self.unit.one_user)

    def parameters(self, mechanism: Mechanism) -> Parameters:
        """The parameters of a release of a mechanism under this policy."""
        return mechanism.chosen_parameters(self.section(mechanism.name), self.lists)

    def variant(self, mechanism: Mechanism) -> str:
        """The variant of a mechanism that a release under this policy uses."""
        return mechanism.chosen_variant(self.section(mechanism.name))

    def for_variant(self, mechanism: Mechanism, variant: str) -> Policy:
        """This policy for a study of a variant of a mechanism, whichever a release would use."""
        if variant == self.variant(mechanism):
            return self
        section = mechanism.as_variant(self.section(mechanism.name), variant)
        return self.with_changes(mechanisms={**self.mechanisms, mechanism.name: section})

    def stage_parameters(self, mechanism: Mechanism) -> Parameters:
        """What a mechanism's stages are shaped by: its section as it is written, as it always was; where the log has no
        urls, as a release takes it, which leaves clicks out."""
        section = self.section(mechanism.name)
        return section if self.has_urls else mechanism.resolve(section, self.lists)

    def switched_off(self, mechanism: Mechanism) -> tuple[str, ...]:
        """The parts of a release that the policy switches off because they could not hold a row, and why."""
        return tuple(mechanism.switched_off(self.section(mechanism.name), self.lists))

    def with_run_changes(self, changes: Mapping[str, Any], mechanism: str | None = None) -> Policy:
        """This policy with what a run that may charge says: parameters of a mechanism, and nothing else.

        Keys as `qualify_names` takes them; `none` switches an optional part off. With a mechanism, only its own
        parameters may be named. Whether the changed policy costs too much is for the door to say.
        """
        named = qualify_names(changes, mechanism)
        for key in named:
            section, _, name = key.rpartition(".")
            if section not in self.mechanisms and self._has_key(section, name):
                raise ParameterError(
                    f"{key}: a release may be asked for other parameters of its mechanism: {FILE_ALONE}"
                )
            if mechanism is not None and section in self.mechanisms and section != mechanism:
                raise ParameterError(f"{key}: is no parameter of {mechanism}, which is to be released")
        return self._with_values(named, mechanism)

    def with_settings(self, changes: Mapping[str, Any]) -> Policy:
        """This policy with what somebody wants to try who is never charged: anything but files, data set and ledger.

        A study would otherwise read any file of the machine that its name is given of.
        """
        named = qualify_names(changes)
        for key in named:
            section, _, name = key.rpartition(".")
            if not self._has_key(section, name):
                continue
            model = type(getattr(self, section) if section else self)
            if key in ("dataset", "ledger", "engine") or section in ("ledger", "engine"):
                raise ParameterError(f"{key}: comes from the policy file alone: what was made is accounted for by it")
            if not section and isinstance(getattr(self, name), Parameters):
                raise ParameterError(f"{key}: is a section: set its keys one by one, as {key}.KEY")
            if names_files(model, name):
                raise ParameterError(f"{key}: names a file, and files come from the policy file alone: write it there")
        return self._with_values(named)

    def _has_key(self, section: str, name: str) -> bool:
        """Whether the policy has a key outside the mechanisms' sections."""
        model = getattr(self, section, None) if section in type(self).model_fields else None if section else self
        return isinstance(model, Parameters) and name != "mechanisms" and name in type(model).model_fields

    def _with_values(self, named: Mapping[str, Any], mechanism: str | None = None) -> Policy:
        changed = {name: getattr(self, name) for name in type(self).model_fields if name != "mechanisms"}
        changed |= self.mechanisms
        before = dict(changed)
        for key, value in named.items():
            section, _, name = key.rpartition(".")
            known = before if not section else _as_values(before.get(section))
            if known is None or name not in known:
                raise ParameterError(f"{key}: {self._unknown(key, before, mechanism)}")
            if section:
                there = changed[section]
                said = there.said if isinstance(there, Parameters) else there
                changed[section] = {**said, name: read_none(as_written(value))}
            else:
                changed[name] = read_none(as_written(value))
        policy = type(self)(**changed)
        policy._source, policy._in_file = self._source, self.in_file
        return policy

    def _unknown(self, key: str, values: Mapping[str, Any], mechanism: str | None) -> str:
        """What is said of a key that these values of a policy do not have; a bare one was meant for the mechanism."""
        section, _, name = key.rpartition(".")
        if section and (there := _as_values(values.get(section))) is not None:
            return unknown_key(name, there)
        if section:
            return unknown_key(section, (name for name, value in values.items() if _as_values(value) is not None))
        if mechanism is not None:
            return unknown_key(name, self.section(mechanism).known_keys())
        parameters = {name: None for each in self.mechanisms.values() for name in type(each).model_fields}
        near = unknown_key(name, (*parameters, *values))
        wanted = "unknown key: a parameter of a mechanism is written by its name, others as section.key"
        return near if "perhaps" in near else f"{wanted} (docs/policy.md has them all)"

    def as_public(self) -> dict[str, Any]:
        """The policy as JSON values, every section under its name."""
        return super().as_public() | {name: section.as_public() for name, section in self.mechanisms.items()}


def _as_values(section: Any) -> dict[str, Any] | None:
    return dict(section) if isinstance(section, dict | Parameters) else None


def read_none(value: Any) -> Any:
    """What a person wrote, where the word `none` switches an optional part off: neither TOML nor a shell has a null."""
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def as_written(value: Any) -> Any:
    """A number that somebody wrote, before YAML or JSON made a double of it: the shortest decimal that reads as it."""
    return repr(value) if isinstance(value, float) else value


def names_files(model: type[Parameters], name: str) -> bool:
    """Whether a key of the policy holds file names."""

    def mentions_path(annotation: Any) -> bool:
        return annotation is Path or any(map(mentions_path, get_args(annotation)))

    return mentions_path(model.model_fields[name].annotation)


def qualify_names(assignments: Mapping[str, Any], mechanism: str | None = None) -> dict[str, Any]:
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
