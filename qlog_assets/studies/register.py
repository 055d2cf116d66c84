"""Finds the studies: the folders beside this module that have a module `study` with a `STUDY` in it."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from qlog_assets.errors import ParameterError
from qlog_assets.studies.study import Study


def names() -> tuple[str, ...]:
    """The names of all studies, without importing any."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/study.py")))


def study(name: str) -> Study:
    """A study by name, or an error that lists the known ones."""
    if name not in names():
        raise ParameterError(f"no study {name!r}: choose one of {', '.join(names())}")
    return _load(name)


def studies() -> tuple[Study, ...]:
    return tuple(study(name) for name in names())


@cache
def _load(name: str) -> Study:
    loaded: Study = importlib.import_module(f"qlog_assets.studies.{name}.study").STUDY
    if loaded.name != name:
        raise ParameterError(f"the folder {name} holds the study {loaded.name}: give both one name")
    return loaded
