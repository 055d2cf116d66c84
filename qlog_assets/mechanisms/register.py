"""Finds the mechanisms: the folders beside this module, and nothing else.

A folder is a mechanism if it has a module `mechanism` with a `MECHANISM` in it. Its name is known without importing it,
so that a command that only lists names stays quick.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from qlog_assets import settings
from qlog_assets.attacks.auditor import AuditResult
from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.names import folder_names
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import RandomSource, SecureRandom, SeededRandom

_ADDED: dict[str, Mechanism] = {}


def names() -> tuple[str, ...]:
    """The names of all mechanisms."""
    return tuple(sorted({*folder_names(), *_ADDED}))


def mechanism(name: str) -> Mechanism:
    """A mechanism by name, or an error that lists the known ones."""
    if name not in names():
        raise ParameterError(f"unknown mechanism {name!r}: choose one of {', '.join(names())}")
    return _ADDED.get(name) or _load(name)


def mechanisms() -> tuple[Mechanism, ...]:
    return tuple(mechanism(name) for name in names())


def releasable() -> tuple[Mechanism, ...]:
    """The mechanisms that can be released."""
    return tuple(each for each in mechanisms() if each.is_releasable)


def releasable_mechanism(name: str) -> Mechanism:
    """A mechanism that can be released, or an error that lists those that can."""
    known = {each.name: each for each in releasable()}
    if name not in known:
        raise ParameterError(f"no mechanism {name!r} can be released: choose one of {', '.join(known)}")
    return known[name]


def simulated() -> tuple[Mechanism, ...]:
    """The mechanisms that can be drawn at all: each has a section in the policy."""
    return tuple(each for each in mechanisms() if each.is_simulated)


def guarantee(name: str, variant: str, parameters: Parameters) -> Guarantee:
    """What a mechanism promises in a variant with these parameters."""
    return mechanism(name).guarantee(variant, parameters)


def cases(name: str = "all") -> dict[str, Case]:
    """The attacks on a mechanism, on `noise`, or on all of them, by name."""
    from qlog_assets.attacks.noise import CASES

    known = {"noise": CASES, **{each.name: each.attacks() for each in mechanisms()}}
    known = {target: found for target, found in known.items() if found}
    if name not in (*known, "all"):
        raise ParameterError(f"no audits for {name!r}: choose {', '.join(sorted(known))} or all")
    return {case.name: case for target, found in known.items() if name in (target, "all") for case in found}


def run_attacks(
    name: str = "all", seed: int | None = None, bar: Callable[[int, int, str], None] = lambda done, of, step: None
) -> list[AuditResult]:
    """Every attack on a mechanism (`all`: on every one), in the order of the table in the specification, 1.8.

    Without a seed the noise comes from the operating system, as in a release; a sound variant then fails by chance with
    probability at most one in a million per case. `bar` hears how many cases are done, of how many, and the next one.
    """
    source: RandomSource = SecureRandom() if seed is None else SeededRandom(seed)
    chosen, results = cases(name), []
    for number, (words, case) in enumerate(chosen.items()):
        bar(number, len(chosen), words)
        results.append(case.run(source))
    return results


@contextmanager
def adding(added: Mechanism, files: Path | None = None) -> Iterator[None]:
    """Let the register know one more mechanism for the time of a block: how tests bring a toy.

    `files` is a directory with the `sql/` and `expectations/` of the mechanism.
    """
    _ADDED[added.name] = added
    roots = [] if files is None else [files]
    settings.SHIPPED_ROOTS.extend(roots)
    try:
        yield
    finally:
        del _ADDED[added.name]
        for root in roots:
            settings.SHIPPED_ROOTS.remove(root)


@cache
def _load(name: str) -> Mechanism:
    loaded: Mechanism = importlib.import_module(f"qlog_assets.mechanisms.{name}.mechanism").MECHANISM
    if loaded.name != name:
        raise ParameterError(f"the folder {name} holds the mechanism {loaded.name}: give both one name")
    return loaded
