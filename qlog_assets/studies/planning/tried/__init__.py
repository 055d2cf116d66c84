"""What a plan tries of each mechanism: a module of the mechanism's name has its `settings` and its `trial`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from qlog_assets.studies.planning.settings import Tried
from qlog_assets.studies.planning.trials import Trial


@dataclass(frozen=True)
class Planned:
    """How a mechanism is planned."""

    settings: Tried
    """The settings that are tried at one ε and δ."""
    trial: Trial
    """One release of made-up users."""


def planned_names() -> list[str]:
    """The mechanisms that a plan can draw, without importing any: the modules beside this one."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def planned(name: str) -> Planned:
    """How a mechanism that can be planned is tried."""
    module = importlib.import_module(f"{__name__}.{name}")
    return Planned(module.settings, module.trial)
