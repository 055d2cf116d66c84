"""What the commands do: run the jobs, then read the answer back from warehouse and ledger as plain values.

No parsing and no printing (that is `cli.py`), and no decision that a job, the door or the ledger should make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from qlog_assets.api.runs import RunFailedError, Work, get_ready, run, run_all
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Ledger
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import batch_counts, is_ingested, readable_batches
from qlog_assets.pipeline.landing import Batch, batch_of, land
from qlog_assets.policy import Policy, qualified
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse

Tell = Callable[[str], None]


def write_synthetic_log(warehouse: Warehouse, rows: int, seed: int, first: Month, last: Month, tell: Tell) -> Path:
    """The synthetic log in the landing zone, and the public lists of its world beside the private zones."""
    from qlog_assets.synthetic import public_queries, site_directory, write_log

    warehouse.make()
    path = warehouse.landing / "aol" / f"synthetic-{rows}-{seed}-{first}-{last}.txt"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        write_log(
            path, rows, seed, first, last, progress=lambda done: tell(f"writing the synthetic log: {done:,} rows")
        )
    public = warehouse.home / "public"
    public.mkdir(exist_ok=True)
    for name, lines in (("queries.txt", public_queries), ("urls.txt", site_directory)):
        if not (public / name).exists():
            (public / name).write_text("\n".join(lines()) + "\n", encoding="utf-8")
    return path


def ingest_files(
    warehouse: Warehouse, policy: Policy, paths: Sequence[Path], format: str, columns: Path | None, tell: Tell
) -> dict[str, Any]:
    """Ingest files one after the other; what was ingested before is named and adds nothing."""
    from qlog_assets.orchestration.resources import BATCHES

    warehouse.make()
    known = readable_batches(warehouse)
    answer: dict[str, Any] = {
        "read": 0,
        "accepted": 0,
        "rejected": Counter(),
        "months": Counter(),
        "already_ingested": [],
    }
    landed = land(warehouse, paths, format, columns)
    with closing(batches_ahead(warehouse, landed, format)) as batches:
        for path, batch in zip(landed, batches, strict=True):
            if is_ingested(known, batch, policy):
                answer["already_ingested"].append(path.name)
                continue
            tell(f"reading {path.name}")
            run(warehouse, Work("ingest", batch.key, {}, new_in=BATCHES.name), tell)
            partition = warehouse.current("rejected_log", batch.key)
            known.append(partition)
            facts = batch_counts(partition)
            answer["read"] += facts["read"]
            answer["accepted"] += facts["accepted"]
            with Engine.open(warehouse) as engine:
                engine.view("rejected_log", partition.files("rejected"))
                answer["rejected"].update(dict(engine.run("rejected_reasons").fetchall()))
            for name, table in partition.provenance.tables.items():
                if name != "rejected":
                    answer["months"][name] += table.rows
    return answer | {key: dict(sorted(answer[key].items())) for key in ("rejected", "months")}


def batches_ahead(warehouse: Warehouse, landed: Sequence[Path], format: str) -> Generator[Batch]:
    """The batches of landing files, in order: a file is hashed while Dagster gets ready or the file before is read."""
    with ThreadPoolExecutor(1) as hashing:
        ahead = hashing.map(lambda path: batch_of(path, format), landed)
        get_ready(warehouse)
        yield from ahead


def release_months(
    warehouse: Warehouse,
    policy: Policy,
    settings: dict[str, str],
    mechanism: str,
    months: Sequence[Month],
    again: str | None,
    tell: Tell,
) -> list[dict[str, Any]]:
    """Release months through Dagster and the door, side by side where there are several."""
    from qlog_assets.mechanisms.register import mechanism as released_mechanism

    entry = released_mechanism(mechanism)
    before = charged_releases(warehouse, policy)
    config = {
        "resources": {"policy": {"config": {"settings": qualified(settings, mechanism)}}},
        "ops": {entry.draw_asset: {"config": {} if again is None else {"again": again}}},
    }
    months = sorted(set(months))
    failures = run_all(warehouse, [Work(f"{mechanism}_release", month, config) for month in months], tell)
    if failures:
        raise RunFailedError("; ".join(f"{month}: {reason}" for month, reason in sorted(failures.items())))
    return [describe_release(warehouse, policy, mechanism, month, before) for month in months]


def charged_releases(warehouse: Warehouse, policy: Policy) -> set[str]:
    return {charge.release_id for charge in Ledger.open(warehouse.make().ledger_url).charges(policy.dataset)}


def describe_release(
    warehouse: Warehouse, policy: Policy, mechanism: str, month: Month, before: set[str]
) -> dict[str, Any]:
    """A month's current release as the contract of `qlog release --json` has it."""
    from qlog_assets.door.publication import Publication

    ledger = Ledger.open(warehouse.ledger_url)
    charge = ledger.live(policy.dataset, month, mechanism)[-1]
    path = warehouse.released / mechanism / month / charge.release_id
    left = ledger.left(policy.dataset)
    return {
        "release_id": charge.release_id,
        "month": charge.month,
        "mechanism": charge.mechanism,
        "variant": charge.variant,
        "epsilon": float(charge.epsilon),
        "delta": float(charge.delta),
        "charged": charge.release_id not in before,
        "rows": Publication.read(path).rows,
        "path": str(path),
        "left": {"epsilon": float(left.epsilon), "delta": float(left.delta)},
    }


def simulate_month(
    warehouse: Warehouse, settings: dict[str, str], mechanism: str, month: Month, variant: str, seed: int, tell: Tell
) -> dict[str, Any]:
    """A seeded draw into private/studies, as a Dagster run."""
    from qlog_assets.studies.simulation import drawers, read_simulation

    if mechanism not in drawers():
        raise QlogError(f"no simulation of {mechanism!r}: choose one of {', '.join(drawers())}")
    config = {
        "resources": {"policy": {"config": {"settings": qualified(settings, mechanism)}}},
        "ops": {f"simulated_{mechanism}": {"config": {"variant": variant, "seed": seed}}},
    }
    run_id = run(warehouse, Work(f"{mechanism}_simulation", month, config, evaluates_checks=False), tell)
    return read_simulation(warehouse, run_id)


def explain_guarantee(mechanism: str, variant: str | None, assignments: dict[str, str]) -> dict[str, Any]:
    """What a mechanism promises, from the policy's parameters where it has some and from its defaults otherwise."""
    from qlog_assets.mechanisms.guarantees import guarantee, parameter_model, variants
    from qlog_assets.settings import Settings

    model = parameter_model(mechanism)
    policy = Policy.load(Settings.from_environment().policy_file)
    chosen = getattr(policy, mechanism, None) or model()
    named = {key.removeprefix(f"{mechanism}."): text for key, text in assignments.items()}
    changes = {key: None if text.lower() == "none" else text for key, text in named.items()}
    unknown = set(changes) - set(type(chosen).model_fields)
    if unknown:
        raise QlogError(f"{sorted(unknown)[0]}: unknown key of {mechanism}")
    chosen = chosen.with_changes(**changes)
    variant = variant or getattr(chosen, "variant", None) or variants(mechanism)[0]
    return guarantee(mechanism, variant, chosen).as_json()


def attack_mechanism(mechanism: str, seed: int | None) -> dict[str, Any]:
    """The audits of a mechanism as a table."""
    from qlog_assets.mechanisms.attacking import run_audits

    results = run_audits(mechanism, seed)
    return {"audits": [result.row() for result in results], "ok": all(result.as_expected for result in results)}
