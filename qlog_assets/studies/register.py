"""Finds the studies: the folders beside this module that have a module `study` with a `STUDY` in it.

A study's name may have dashes, `session-loss`; its folder has underscores there, because Python imports it. So have its
asset and its job, `study_session_loss` and `session_loss_study`: Dagster takes no dash in a name.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from qlog_assets.errors import ParameterError
from qlog_assets.studies.study import Study


def names() -> tuple[str, ...]:
    """The names of all studies, without importing any."""
    return tuple(sorted(path.parent.name.replace("_", "-") for path in Path(__file__).parent.glob("*/study.py")))


def study(name: str) -> Study:
    """A study by name, or an error that lists the known ones."""
    if name not in names():
        raise ParameterError(f"no study {name!r}: choose one of {', '.join(names())}")
    return _load(name)


def studies() -> tuple[Study, ...]:
    return tuple(study(name) for name in names())


@cache
def _load(name: str) -> Study:
    folder = name.replace("-", "_")
    loaded: Study = importlib.import_module(f"qlog_assets.studies.{folder}.study").STUDY
    if loaded.name != name:
        raise ParameterError(f"the folder {folder} holds the study {loaded.name}: give both one name")
    return loaded
