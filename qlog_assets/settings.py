"""Where things live, and the release policy. Frozen models that forbid unknown keys; reads nothing but the policy file.

The mechanisms' own parameters are in `privacy/parameters.py`; this module says which of them a data set's owner chose.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import Field

from qlog_assets.errors import QlogError
from qlog_assets.privacy.parameters import Parameters

CHECKOUT = Path(__file__).resolve().parent.parent


class Settings(Parameters):
    """The machine's side: which warehouse, which ledger, how much memory. Read from the environment."""

    home: Path
    """QLOG_HOME: one warehouse is one data set. Default: `warehouse/` in the checkout or the working directory."""
    ledger_url: str | None = None
    """QLOG_LEDGER_URL: an SQLAlchemy URL. Default: `ledger.db` in the warehouse."""
    memory_limit_mb: int = Field(3072, ge=128)
    """QLOG_MEMORY_MB: what DuckDB may hold in one process; past it, it spills. Below 4 GB with Python beside it."""
    spill_limit_gb: int = Field(64, ge=1)
    """QLOG_SPILL_GB: what DuckDB may write to its temporary directory before it gives up."""
    threads: int = Field(default_factory=lambda: os.cpu_count() or 2, ge=1)
    """QLOG_THREADS: DuckDB's threads."""

    @classmethod
    def from_environment(cls) -> Settings:
        in_checkout = (CHECKOUT / "pyproject.toml").exists()
        default_home = (CHECKOUT if in_checkout else Path.cwd()) / "warehouse"
        values: dict[str, Any] = {"home": Path(os.environ.get("QLOG_HOME") or default_home).resolve()}
        for field, variable in (
            ("ledger_url", "QLOG_LEDGER_URL"),
            ("memory_limit_mb", "QLOG_MEMORY_MB"),
            ("spill_limit_gb", "QLOG_SPILL_GB"),
            ("threads", "QLOG_THREADS"),
        ):
            if os.environ.get(variable):
                values[field] = os.environ[variable]
        return cls(**values)

    @property
    def policy_file(self) -> Path:
        """QLOG_POLICY, or `policy.toml` in the warehouse."""
        return Path(os.environ.get("QLOG_POLICY") or self.home / "policy.toml")


PACKAGE = Path(__file__).resolve().parent


def resource_dir(kind: str) -> Path:
    """The directory of the shipped files of a kind, such as `sql` or `expectations`."""
    in_wheel = PACKAGE / kind
    if in_wheel.is_dir():
        return in_wheel
    # Beside an installed package lie other people's directories: only a checkout has this one next to the package.
    in_checkout = PACKAGE.parent / kind
    if (PACKAGE.parent / "pyproject.toml").is_file() and in_checkout.is_dir():
        return in_checkout
    raise QlogError(f"{kind}: this installation lacks its {kind} files: install the package again")
