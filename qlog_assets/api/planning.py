"""What is known before anything is spent: what a mechanism promises, and settings chosen on made-up users."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qlog_assets.api.runs import Bar
from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism as known_mechanism
from qlog_assets.policy import Policy, qualify_names, read_none
from qlog_assets.privacy.parameters import exact
from qlog_assets.settings import Settings, unknown_key

LARGEST_EPSILON = 1000


def plan_mechanism(
    name: str,
    settings: Mapping[str, str],
    told: Mapping[str, Any],
    epsilon: str | None,
    plot: Path | None,
    seed: int,
    bar: Bar,
) -> dict[str, Any]:
    """A plan as values. `told` is what the owner says of the log: a preset, users and queries per user, or rows."""
    from qlog_assets.studies.planning.planner import plan, request_for

    asked = known_mechanism(name)
    policy, section = section_with(asked, settings)
    request = request_for(asked, section, policy.lists, None if epsilon is None else read_epsilon(epsilon))
    if plot is not None and not plot.parent.is_dir():
        raise QlogError(f"--plot {plot}: its directory is not there: make it first")
    bar(0, 1, "making up users")
    people, description = make_population(told, seed)
    facts = plan(request, people, seed, bar) | {"description": description, "plot": None}
    if plot is not None:
        from qlog_assets.studies.planning.plot import draw_plan

        try:
            plot.write_text(draw_plan(facts), encoding="utf-8")
        except OSError as error:
            raise QlogError(f"--plot {plot}: cannot be written ({os.strerror(error.errno or 0)})") from None
        facts["plot"] = str(plot)
    return facts


def section_with(asked: Mechanism, settings: Mapping[str, str]) -> tuple[Policy, Any]:
    """The policy and a mechanism's section with some settings; its defaults where the policy has no section for it."""
    policy = Policy.load(Settings.from_environment().policy_file)
    if asked.is_simulated:
        policy = policy.with_settings(qualify_names(settings, asked.name))
        return policy, policy.section(asked.name)
    changes = {key.removeprefix(f"{asked.name}."): read_none(text) for key, text in settings.items()}
    unknown = set(changes) - set(asked.policy_section.model_fields)
    if unknown:
        key = sorted(unknown)[0]
        raise QlogError(f"{key}: {unknown_key(key, asked.policy_section.model_fields)}")
    return policy, asked.policy_section().with_changes(**changes)


def explain_guarantee(mechanism: str, variant: str | None, settings: Mapping[str, str]) -> dict[str, Any]:
    """What a mechanism promises, from the policy's parameters where it has some and from its defaults otherwise."""
    from qlog_assets.door.expectations import known_list_rows

    asked = known_mechanism(mechanism)
    policy, chosen = section_with(asked, settings)
    variant = variant or asked.chosen_variant(chosen)
    if asked.is_simulated:
        asked.variant(variant)  # which says so where there is no such variant
        policy = policy.for_variant(asked, variant)
        chosen = asked.parameters_of(variant, policy.section(asked.name), policy.lists)
    known: dict[str, int] = {}
    off: tuple[str, ...] = ()
    if asked.is_simulated and asked.variant(variant).reads is None:
        off, known = policy.switched_off(asked), known_list_rows(policy)
    asked.refuse_unusable(variant, chosen)
    return asked.guarantee(variant, chosen).as_json() | {
        "expected": [each.as_json() for each in asked.expectations(variant, chosen, known)],
        "switched_off": list(off),
    }


def make_population(told: Mapping[str, Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """Made-up users as they were described: by a twin of so many rows, or by a preset and sizes."""
    described = [name for name in ("preset", "users", "queries_per_user") if told[name] is not None]
    if told["rows"] is not None:
        if described:
            raise QlogError("say --rows, for a synthetic twin, or --preset, --users and --queries-per-user: not both")
        if not 100 <= told["rows"] <= 50_000_000:
            raise QlogError("--rows: between 100 and 50,000,000")
        from qlog_assets.studies.planning.twin import population_of_twin

        return population_of_twin(told["rows"], seed), {"rows": told["rows"]}
    if not described:
        raise QlogError(
            "say how large a month of the log is: --preset small, or --users N --queries-per-user Q, or --rows N"
        )
    from qlog_assets.studies.planning.description import describe
    from qlog_assets.studies.planning.population import imagine

    description = describe(told["preset"], told["users"], told["queries_per_user"])
    return imagine(description, seed), description.as_public()


def read_epsilon(text: str) -> Any:
    try:
        epsilon = exact(text)
    except ValueError as error:
        raise QlogError(f"--epsilon: {error}") from None
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise QlogError(f"--epsilon: above 0 and at most {LARGEST_EPSILON}")
    return epsilon
