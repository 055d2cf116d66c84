"""The audits A1 to A10 (PRIVACY 1.8) and their like, against this project's own mechanisms. `run_audits` runs them.

A case is an unsound variant that must fail its claim or a sound one that must pass; a module a mechanism. The
statistics are in `audit`, the mechanisms in `mechanisms`. Nothing here is used by a release.
"""

from __future__ import annotations

from qlog_assets.attacks import noise
from qlog_assets.attacks.auditor import AuditResult
from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.crowd.paper import attacks as crowd
from qlog_assets.mechanisms.safelog.noise import attacks as safelog
from qlog_assets.mechanisms.sanitized.paper import attacks as sanitized
from qlog_assets.mechanisms.sessions.noise import attacks as sessions
from qlog_assets.mechanisms.zealous.noise import attacks as zealous
from qlog_assets.privacy.randomness import RandomSource, SecureRandom, SeededRandom

AUDITS: dict[str, Case] = {
    case.name: case for module in (safelog, sessions, crowd, sanitized, noise, zealous) for case in module.CASES
}
MECHANISMS = tuple(sorted({case.mechanism for case in AUDITS.values()}))


def run(name: str, source: RandomSource) -> AuditResult:
    """One case by name, such as ``A1 frequency filter before the cap``."""
    if name not in AUDITS:
        raise ParameterError(f"there is no audit called {name!r}")
    return AUDITS[name].run(source)


def run_audits(mechanism: str = "all", seed: int | None = None) -> list[AuditResult]:
    """Every case of a mechanism (`all`: of every one), in the order of the table in PRIVACY 1.8.

    Without a seed the noise comes from the operating system, as in a release; a sound variant then fails by chance with
    probability at most one in a million a case.
    """
    if mechanism not in (*MECHANISMS, "all"):
        raise ParameterError(f"no audits for {mechanism!r}: choose {', '.join(MECHANISMS)} or all")
    source: RandomSource = SecureRandom() if seed is None else SeededRandom(seed)
    return [case.run(source) for case in AUDITS.values() if mechanism in (case.mechanism, "all")]
