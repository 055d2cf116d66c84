"""What a plan tries of each mechanism: a module of the mechanism's name has its `settings` and its `trial`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qlog_assets.studies.planning.settings import Settings, Tried
from qlog_assets.studies.planning.trials import Trial


@dataclass(frozen=True)
class Planned:
    """How a mechanism is planned."""

    settings: Tried
    """The settings that are tried at one ε and δ."""
    trial: Trial
    """One release of made-up users."""
    compared: Callable[[int], Settings] = lambda users: {}
    """From about how many users a month has to what a section says where all is released that searches can be measured
    on, and nothing else."""
    printed: Mapping[str, Settings] = field(default_factory=dict)
    """What the paper's own experiments set, by variant, where the defaults of the parameters are something else."""


def planned_names() -> list[str]:
    """The mechanisms that a plan can draw, without importing any: the modules beside this one."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def planned(name: str) -> Planned:
    """How a mechanism that can be planned is tried."""
    module = importlib.import_module(f"{__name__}.{name}")
    told = {name: getattr(module, name) for name in ("compared", "printed") if hasattr(module, name)}
    return Planned(module.settings, module.trial, **told)
