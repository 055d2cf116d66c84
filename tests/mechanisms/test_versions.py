"""A mechanism's version is pinned to the files that decide the law of its output, and those are found, not typed.

A release is drawn once for each version: a change of the law without a new version would serve old noise for new, and
a new version without a change would ask for a second charge. After a change, `python tests/mechanisms/test_versions.py`
prints the pins to put here.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism, releasable
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG

ROOT = Path(__file__).resolve().parents[2]
NAMES = [each.name for each in releasable()]

PINS = {
    "crowd": (1, "53b01cb7652830fe"),
    "safelog": (2, "ccafdf3f29b270b1"),
    "sanitized": (1, "a6a55e79ab684e66"),
    "sessions": (1, "1fd776ab26d89611"),
    "zealous": (1, "ce83c3264579cf5b"),
}

CROWD_LAW = ("aggregation", "decoding", "field", "jobs", "keys", "messages", "sealing", "shares")
"""From sealed reports to counts; what else is in the room has done its work when an epoch is sealed."""

TRANSLATION = ("qlog_assets/storage/dialects.py", "qlog_assets/storage/numbering.py")
"""What Spark is told in place of a statement; files that end in `.spark.sql` are found beside their first ones."""

# What these say is part of the request itself (parameters), of its price in words (the type of a guarantee, numbers in
# print), or is never published (what only `paper` variants and studies draw).
NOT_THE_LAW = (
    "paper.py",
    "central_log.py",
    "parameters.py",
    "privacy/guarantee.py",
    "privacy/bounds.py",
    "paper_selection.py",
    "paper_noise.py",
    "korolova.py",
)


def sources(each: Mechanism) -> list[str]:
    """The files that decide what a mechanism draws: the modules behind its draws and stages, and their statements."""
    law = (
        f"qlog_assets/mechanisms/{each.name}/",
        "qlog_assets/mechanisms/contributions.py",
        *(f"qlog_assets/crowd/{name}.py" for name in CROWD_LAW),
        "qlog_assets/mechanisms/steered_tables.py",
        "qlog_assets/pipeline/released_domain.py",
        "qlog_assets/pipeline/steering.py",
        "qlog_assets/privacy/",
        "qlog_assets/pipeline/cleaned_log.py",
        "qlog_assets/sources/normalise.py",
    )
    stages = (CLEANED_LOG, *each.stages)
    starts = [module_of(variant.draw) for variant in each.variants.values() if variant.draw is not None]
    starts += [module_of(stage.write) for stage in stages]
    modules = {path for start in starts for path in reached(start, law)}
    statements = {name for stage in stages for name in stage.statements}
    statements |= {name for path in modules for name in named_statements(path)}
    texts = {f"sql/{name}{kind}.sql" for name in statements for kind in ("", ".spark")}
    return sorted((*map(str, modules), *TRANSLATION, *(name for name in texts if (ROOT / name).is_file())))


def module_of(function: Callable[..., object]) -> Path:
    return Path(inspect.getfile(function)).relative_to(ROOT)


def reached(start: Path, law: tuple[str, ...]) -> Iterator[Path]:
    """The modules of the law that one module imports, directly or not, and that module itself."""
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in seen or path.name == "__init__.py" or not (ROOT / path).is_file():
            continue
        if not str(path).startswith(law) or str(path).endswith(NOT_THE_LAW):
            continue
        seen.add(path)
        yield path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = Path(node.module.replace(".", "/"))
                waiting += [module.with_suffix(".py"), *(module / f"{alias.name}.py" for alias in node.names)]


def named_statements(path: Path) -> Iterator[str]:
    """The statements that a module names as text. Those that only its `paper` draw runs are told by their names."""
    texts = {node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)}
    for statement in (ROOT / "sql").rglob("*.sql"):
        name = str(statement.relative_to(ROOT / "sql").with_suffix(""))
        if name in texts and not statement.name.startswith(("paper_", "check_")):
            yield name


def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def digest(each: Mechanism) -> str:
    """One digest of all files that decide what a mechanism draws."""
    texts = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in sources(each)}
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def test_every_mechanism_that_can_be_released_is_pinned() -> None:
    assert set(PINS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_version_stands_for_the_sources_as_they_are(name: str) -> None:
    each = mechanism(name)
    assert PINS[name] == (each.version, digest(each)), (
        f"what decides the law of {name} was changed: raise its version if the law of the output changed, "
        "then update the digest (python tests/mechanisms/test_versions.py prints it)"
    )


def test_only_drawn_releases_of_versions_that_promise_the_same_are_served_as_they_are() -> None:
    safelog, zealous = mechanism("safelog"), mechanism("zealous")
    assert safelog.version_asked(1) == 1 and safelog.version_asked(safelog.version) == safelog.version
    # No draw yet, or one of a version that nobody vouches for: the request names today's.
    assert safelog.version_asked(None) == safelog.version == safelog.version_asked(0)
    assert zealous.stands_for == frozenset() and all(each.version not in each.stands_for for each in releasable())


def test_noise_counting_statements_and_normalisation_are_among_the_sources() -> None:
    """What was once a list kept by hand is found: its members of old are all there."""
    found = sources(mechanism("safelog"))
    assert {
        "qlog_assets/mechanisms/safelog/draw.py",
        "qlog_assets/mechanisms/safelog/draw_modern.py",
        "qlog_assets/mechanisms/safelog/noise.py",
        "qlog_assets/mechanisms/safelog/stages.py",
        "qlog_assets/privacy/histogram.py",
        "qlog_assets/privacy/noise.py",
        "qlog_assets/privacy/noise_tables.py",
        "qlog_assets/privacy/numbers.py",
        "qlog_assets/privacy/randomness.py",
        "qlog_assets/privacy/zero_domain.py",
        "qlog_assets/pipeline/cleaned_log.py",
        "qlog_assets/sources/normalise.py",
        "sql/log/cleaned_clicks.sql",
        "sql/log/cleaned_log.sql",
        "sql/log/following_queries.sql",
        "sql/safelog/capped_queries.sql",
        "sql/safelog/chosen_queries.sql",
        "sql/safelog/listed_pair_counts.sql",
        "sql/safelog/pool_augmented.sql",
        "sql/safelog/query_counts.sql",
        "sql/safelog/released_transition_counts.sql",
        "sql/safelog/contributed_queries.sql",
        "sql/safelog/known_clicks.sql",
    } <= set(found)
    for name in (each.name for each in releasable() if each.may_be_steered):
        assert {
            "qlog_assets/mechanisms/steered_tables.py",
            "qlog_assets/pipeline/steering.py",
            "qlog_assets/privacy/hidden_items.py",
            "qlog_assets/privacy/scaled_counts.py",
            "qlog_assets/privacy/steered.py",
        } <= set(sources(mechanism(name))), name
    assert {
        "qlog_assets/mechanisms/zealous/guarantee.py",
        "qlog_assets/privacy/gaussian.py",
        "qlog_assets/privacy/selection.py",
        "qlog_assets/privacy/weighted.py",
        "sql/contributions/chosen_items.sql",
        "sql/zealous/events_pairs.sql",
        "sql/contributions/named_items.sql",
        "sql/contributions/numbered_contributions.sql",
    } <= set(sources(mechanism("zealous")))
    assert {
        "qlog_assets/crowd/aggregation.py",
        "qlog_assets/crowd/messages.py",
        "qlog_assets/crowd/sealing.py",
        "qlog_assets/crowd/shares.py",
        "qlog_assets/mechanisms/crowd/guarantee.py",
        "qlog_assets/mechanisms/crowd/noise.py",
        "qlog_assets/privacy/gaussian.py",
        "qlog_assets/privacy/selection.py",
        "sql/crowd/artifacts_by_text.sql",
        "sql/crowd/spent_tokens.sql",
    } <= set(sources(mechanism("crowd")))
    assert {
        "qlog_assets/storage/dialects.py",
        "qlog_assets/storage/numbering.py",
        "sql/sessions/subsequence_counts.spark.sql",
        "sql/sessions/chosen_subsequences.spark.sql",
    } <= set(sources(mechanism("sessions")))
    assert "sql/safelog/capped_queries.spark.sql" in sources(mechanism("safelog"))


if __name__ == "__main__":
    for each in releasable():
        print(f'    "{each.name}": ({each.version}, "{digest(each)}"),')
