"""What commands and Python callers do: run the jobs, then read the answer back from warehouse and ledger as values.

No parsing and no printing (that is `cli/`), and no decision that a job, the door or the ledger should make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qlog_assets.api.runs import Bar, JobRun, RunFailedError, Tell, get_ready, ignore, run, run_all
from qlog_assets.checks.beside import checking_beside
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger, MissingLedgerError
from qlog_assets.months import Month
from qlog_assets.pipeline.batches import (
    LANDING_BATCH,
    batch_counts,
    count_reasons,
    count_rows,
    discarding_unread,
    identity_of,
    is_ingested,
    left_out,
    months_of,
    note_no_search,
    readable_batches,
    warn_of_rejected,
    warn_of_urls,
)
from qlog_assets.pipeline.decided_months import COMMANDS, describe_late_rows, describe_left_out
from qlog_assets.pipeline.landing import Batch, batch_of, land, source_of
from qlog_assets.pipeline.steering import UnpublishedError
from qlog_assets.pipeline.withdrawal import refuse_withdrawn
from qlog_assets.policy import Policy, qualify_names
from qlog_assets.privacy.bounds import double_at_least
from qlog_assets.privacy.guarantee import printed
from qlog_assets.report.public_zone import release_path
from qlog_assets.sources.readers import LogSource, refuse_unreadable
from qlog_assets.storage.engine import Engine, EnginePolicy
from qlog_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from qlog_assets.mechanisms.mechanism import Mechanism


def write_synthetic_log(
    warehouse: Warehouse,
    rows: int,
    seed: int,
    first: Month,
    last: Month,
    tell: Tell,
    world_version: int = 1,
    spark: EnginePolicy | None = None,
) -> Path:
    """The synthetic log in the landing zone, drawn by Spark if given; its world's lists beside the private zones."""
    from qlog_assets.synthetic import public_queries, site_directory, write_log
    from qlog_assets.synthetic.spark_blocks import who_draws

    warehouse.make()
    version = "" if world_version == 1 else f"-world{world_version}"
    path = warehouse.landing / "aol" / f"synthetic-{rows}-{seed}-{first}-{last}{version}.txt"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        write_log(
            path,
            rows,
            seed,
            first,
            last,
            world_version=world_version,
            progress=lambda done: tell(f"writing the synthetic log: {done:,} rows"),
            draw_blocks=who_draws(warehouse, spark),
        )
    public = warehouse.home / "public"
    public.mkdir(exist_ok=True)
    for name, lines in (("queries.txt", public_queries), ("urls.txt", site_directory)):
        if not (public / name).exists():
            (public / name).write_text("\n".join(lines(world_version)) + "\n", encoding="utf-8")
    return path


def ingest_files(
    warehouse: Warehouse,
    policy: Policy,
    paths: Sequence[Path],
    format: str,
    columns: Path | None,
    tell: Tell,
    *,
    again_because: str | None = None,
    bring_back: bool = False,
    bar: Bar | None = None,
) -> dict[str, Any]:
    """Ingest files one after the other; what was ingested before is named and adds nothing.

    `again_because` is the reason for using files again that were withdrawn. With `bring_back`, rows of forgotten months
    are kept; without it they are counted and left out.
    """
    from qlog_assets.door.ledgers import open_ledger
    from qlog_assets.orchestration.resources import BATCHES

    warehouse.make()
    # One that is not what the ledger says was read counts no more: its file is read again.
    book = Book(open_ledger(warehouse, policy), policy.dataset)
    known = [batch for batch in readable_batches(warehouse) if not book.contradicts(batch)]
    answer: dict[str, Any] = {
        "read": 0,
        "accepted": 0,
        "rejected": Counter(),
        "months": Counter(),
        "already_ingested": [],
        "batches": [],
        "left_out": Counter(),
        "notes": [],
        "warnings": [],
    }
    brought: list[Path] = []
    landed = land(warehouse, paths, format, columns, brought)
    reading = closing(batches_ahead(warehouse, landed, format))
    done: list[str] = []
    sources: list[LogSource] = []
    with (
        discarding_unread(warehouse, brought, format),
        telling_what_is_in(done),
        checking_beside(),
        reading as batches,
    ):
        withdrawals = book.withdrawals()
        # All of them before any is read: what is refused leaves nothing half done.
        if len(landed) > 1:
            for path in landed:
                refuse_unreadable(source_of(path, format))
        if withdrawals and again_because is None:
            for path in landed:
                refuse_withdrawn(book, batch_of(path, format), "say why with --again-because")
        for path, batch in zip(landed, batches, strict=True):
            is_withdrawn = identity_of(batch) in withdrawals
            if not is_withdrawn and is_ingested(warehouse, known, batch, policy.admission, bring_back):
                answer["already_ingested"].append(path.name)
                continue
            tell(f"reading {path.name}")
            said = {"again_because": again_because} if is_withdrawn else {}
            config = {"ops": {LANDING_BATCH: {"config": said | {"bring_back_forgotten": bring_back}}}}
            run(warehouse, JobRun("ingest", batch.key, config, new_in=BATCHES.name), tell, bar)
            partition = warehouse.current(LANDING_BATCH, batch.key)
            known.append(partition)
            facts = batch_counts(partition)
            done.append(f"{path.name} ({count_rows(facts['read'])})")
            answer["read"] += facts["read"]
            answer["accepted"] += facts["accepted"]
            with Engine.open(warehouse) as engine:
                reasons = count_reasons(engine, partition)
                warning = warn_of_rejected(warehouse, engine, partition, policy.admission.max_rejected_share)
            answer["warnings"] += [warning] if warning else []
            sources.append(batch.source)
            answer["rejected"].update(reasons)
            columns_read = partition.provenance.parameters.get("columns", {})
            answer["notes"] += [f"{path.name}: {note}" for note in note_no_search(columns_read, facts["read"], reasons)]
            answer["months"].update({month: partition.rows(month) for month in months_of(partition)})
            answer["batches"].append(batch.key)
            answer["left_out"].update(left_out(partition))
            answer["notes"] += describe_late_rows(warehouse, book, partition, COMMANDS)
            answer["notes"] += describe_left_out(warehouse, partition, COMMANDS)
    answer["warnings"] += warn_of_urls(sources, policy.has_urls)
    return answer | {key: dict(sorted(answer[key].items())) for key in ("rejected", "months", "left_out")}


@contextmanager
def telling_what_is_in(done: Sequence[str]) -> Iterator[None]:
    """Where a block fails after it ingested files, say so with the reason: those files stay in."""
    try:
        yield
    except QlogError as error:
        if not done:
            raise
        raise RunFailedError(f"{error}; ingested before it: {', '.join(done)}: see qlog ingest list") from error


def batches_ahead(warehouse: Warehouse, landed: Sequence[Path], format: str) -> Generator[Batch]:
    """The batches of landing files, in order: a file is hashed while Dagster gets ready or the file before is read."""
    with ThreadPoolExecutor(1) as hashing:
        ahead = hashing.map(lambda path: batch_of(path, format), landed)
        get_ready(warehouse)
        yield from ahead


def release_months(
    warehouse: Warehouse,
    policy: Policy,
    settings: Mapping[str, str],
    mechanism: str,
    months: Sequence[Month],
    again: str | None,
    tell: Tell,
    before_charging: Callable[[str], None] = ignore,
) -> list[dict[str, Any]]:
    """Release months, side by side where there are several: each is checked, charged and published.

    What is released already is served without a run, and what may not be had is refused before anything runs; both are
    decided again at the door. `before_charging` hears what the rest will cost, and may raise.
    """
    from qlog_assets.door.asking import ask
    from qlog_assets.door.expectations import public_expectations
    from qlog_assets.door.ledgers import open_ledger
    from qlog_assets.mechanisms.register import releasable_mechanism

    released = releasable_mechanism(mechanism)
    chosen = policy.with_run_changes(settings, mechanism)
    before = charged_releases(warehouse, policy)
    config = {
        "resources": policy_config(settings, mechanism),
        "ops": {released.draw_asset: {"config": {} if again is None else {"again": again}}},
    }
    months, ledger = sorted(set(months)), read_ledger(warehouse) or open_ledger(warehouse, chosen)
    refused: dict[str, str] = {}
    works, new = [], []
    for month in months:
        try:
            charge = ask(warehouse, chosen, ledger, released, month, again)
        except UnpublishedError as error:
            if error.month not in months:
                refused[month] = str(error)
                continue
            charge = None  # the month that steers it comes before it in this very command
        except QlogError as error:
            refused[month] = str(error)
            continue
        if charge is not None and charge.state == "published":
            serve(warehouse, chosen, mechanism, month)
            continue
        works.append(JobRun(f"{mechanism}_release", month, config))
        new += [month] if charge is None else []
    if refused:
        others = ", ".join(month for month in months if month not in refused)
        undone = f"; nothing was charged, for {others} neither: ask for it without the rest" if others else ""
        raise RunFailedError(failures_in_words(refused, months) + undone)
    refuse_beyond_budget_together(chosen, ledger, released, new)
    if new:
        each = "each month: " if len(new) > 1 else ""
        before_charging(f"{', '.join(new)}: {each}{public_expectations(released, chosen)}")
    failures: dict[str, str] = {}
    if works:
        tell("starting")
        failures = run_all(
            warehouse, works, tell, in_order=released.is_steered(chosen.variant(released), chosen.parameters(released))
        )
    if failures:
        finished = [
            f"{answer['month']} is released as {answer['release_id']}"
            for month in months
            if month not in failures
            for answer in [describe_release(warehouse, policy, mechanism, month, before)]
        ]
        raise RunFailedError("; ".join([failures_in_words(failures, months), *finished]))
    return [describe_release(warehouse, policy, mechanism, month, before) for month in months]


def refuse_beyond_budget_together(
    policy: Policy, ledger: Ledger, mechanism: Mechanism, months: Sequence[Month]
) -> None:
    """Refuse months that fit the budget one by one and not all together, before any of them is charged."""
    from qlog_assets.door.due import release_cost

    if len(months) < 2 or all(dataset.name != policy.dataset for dataset in ledger.datasets()):
        return
    loss = release_cost(policy, mechanism)
    if not ledger.fit_together(policy.dataset, loss.epsilon, loss.delta, loss.rho, months):
        raise QlogError(
            f"{', '.join(months)}: each of them fits the budget of {policy.dataset}, and all of them together do not: "
            "ask for fewer months; nothing was charged (qlog ledger shows what is left)"
        )


def failures_in_words(failures: Mapping[str, str], asked: Sequence[str]) -> str:
    """Why months failed, in one line. A month is named once, and not at all where one reason holds for all asked."""
    if len(failures) == len(asked) and len(set(failures.values())) == 1:
        return next(iter(failures.values()))
    return "; ".join(reason if month in reason else f"{month}: {reason}" for month, reason in sorted(failures.items()))


def serve(warehouse: Warehouse, policy: Policy, mechanism: str, month: Month) -> None:
    """Have the door look at a release that is public already, and mend what is missing of it."""
    from qlog_assets.door.door import Door
    from qlog_assets.door.ledgers import open_ledger

    Door(warehouse, policy, open_ledger(warehouse, policy)).publish(mechanism, month)


def read_ledger(warehouse: Warehouse) -> Ledger | None:
    """The ledger for questions only, if there is one."""
    try:
        return Ledger.read(warehouse.make().ledger_url)
    except MissingLedgerError:
        return None


def charged_releases(warehouse: Warehouse, policy: Policy) -> set[str]:
    """The releases that were charged so far; none where no ledger is yet."""
    ledger = read_ledger(warehouse)
    return set() if ledger is None else {charge.release_id for charge in ledger.charges(policy.dataset)}


def describe_release(
    warehouse: Warehouse, policy: Policy, mechanism: str, month: Month, before: set[str]
) -> dict[str, Any]:
    """A month's current release as the contract of `qlog release --json` has it."""
    from qlog_assets.door.publication import Publication

    ledger = Ledger.read(warehouse.ledger_url)
    charge = ledger.live(policy.dataset, month, mechanism)[-1]
    path = release_path(warehouse, charge)
    left = ledger.left(policy.dataset, month)
    return {
        "release_id": charge.release_id,
        "month": charge.month,
        "mechanism": charge.mechanism,
        "variant": charge.variant,
        "epsilon": printed(charge.epsilon),
        "delta": printed(charge.delta),
        "charged": charge.release_id not in before,
        "rows": Publication.read(path).rows,
        "path": str(path),
        "left": {"epsilon": double_at_least(left.epsilon), "delta": double_at_least(left.delta)},
    }


def simulate_month(
    warehouse: Warehouse,
    policy: Policy,
    settings: Mapping[str, str],
    mechanism: str,
    month: Month,
    variant: str | None,
    seed: int,
    tell: Tell,
) -> dict[str, Any]:
    """A seeded draw into private/studies, as a Dagster run."""
    from qlog_assets.studies.simulation import read_simulation, simulated_mechanism

    drawn_by = simulated_mechanism(mechanism)
    if variant is not None:
        drawn_by.variant(variant)
    policy.with_settings(qualify_names(settings, mechanism))
    config = {
        "resources": policy_config(settings, mechanism),
        "ops": {f"simulated_{mechanism}": {"config": {"seed": seed} | ({"variant": variant} if variant else {})}},
    }
    run_id = run(warehouse, JobRun(f"{mechanism}_simulation", month, config, evaluates_checks=False), tell)
    return read_simulation(warehouse, run_id)


def run_study_job(
    warehouse: Warehouse,
    policy: Policy,
    name: str,
    month: Month | None,
    settings: Mapping[str, str],
    tell: Tell,
    bar: Bar,
) -> dict[str, Any]:
    """A study as a Dagster run. A setting that is not the study's is one of the policy."""
    from qlog_assets.studies.register import study
    from qlog_assets.studies.study import facts_of_run

    asked = study(name)
    if asked.per_month and month is None:
        raise QlogError(f"the study {name} is of one month: say which, with --month YYYY-MM")
    own = {key: text for key, text in settings.items() if key in asked.settings.model_fields}
    asked.settings(**own)
    others = {key: text for key, text in settings.items() if key not in own}
    policy.with_settings(qualify_names(others, asked.mechanism))
    config = {
        "resources": policy_config(others, asked.mechanism),
        "ops": {asked.asset: {"config": {"settings": own}}},
    }
    partition = month if asked.per_month else None
    run_id = run(warehouse, JobRun(asked.job, partition, config, evaluates_checks=False), tell, bar)
    return facts_of_run(warehouse, run_id)


def policy_config(settings: Mapping[str, str], mechanism: str | None) -> dict[str, Any]:
    """What a run says to the policy resource."""
    return {"policy": {"config": {"settings": qualify_names(settings, mechanism)}}}


def attack_mechanism(mechanism: str, seed: int | None, bar: Bar) -> dict[str, Any]:
    """The attacks on a mechanism as a table."""
    from qlog_assets.mechanisms.register import run_attacks

    results = run_attacks(mechanism, seed, bar)
    return {"audits": [result.row() for result in results], "ok": all(result.as_expected for result in results)}
