"""`qlog bench`: finds the checkout's benchmarks, runs them and prints what they say. A wheel does not carry them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from qlog_assets.cli.output import bold, console, progress, show_table
from qlog_assets.errors import QlogError
from qlog_assets.settings import CHECKOUT
from qlog_assets.storage.scratch import remove_leftovers, system_scratch, temporary_directory

SIZES = (1_000_000, 4_000_000, 12_000_000, 36_400_000)
"""What `make bench` measures: up to the AOL log."""


def run_bench(
    rows: list[int],
    out: Path | None,
    seed: int,
    peers: bool,
    peer_rows: int,
    skewed: bool,
    skewed_rows: int | None,
    scratch: Path | None,
) -> None:
    """Measure, print tables and verdicts; with `out`, write the figures as JSON and their growth as a picture."""
    refuse_places(out, scratch)
    refuse_without_checkout()
    from benchmarks.measuring import BenchmarkError
    from benchmarks.suite import Plan, run_plan

    plan = Plan(
        rows=tuple(sorted(rows or SIZES)),
        seed=seed,
        peers=peers,
        peer_rows=peer_rows,
        peer_users=max(1, peer_rows // 50),
        skewed=skewed,
        skewed_rows=skewed_rows,
    )
    try:
        with working_place(scratch) as folder, progress(False) as tell:
            facts = run_plan(plan, folder, tell, lambda known: write_facts(known, out))
    except BenchmarkError as error:
        raise QlogError(f"a measured run failed: {error}") from None
    print_facts(facts)
    if out is not None:
        draw_facts(facts, out)


def run_cost_model(
    rows: list[int],
    held_back: list[int],
    engine: str,
    cores: int,
    out: Path | None,
    seed: int,
    scratch: Path | None,
) -> None:
    """Measure a month at several sizes, print laws, errors and predictions; with `out`, write the figures as JSON."""
    refuse_places(out, scratch)
    refuse_without_checkout()
    from benchmarks.cost_model import ModelError
    from benchmarks.measuring import BenchmarkError
    from benchmarks.model_telling import model_notes, model_tables
    from benchmarks.modelling import ModelPlan, run_model

    try:
        plan = ModelPlan.of(engine, rows, held_back, cores, seed)
    except ModelError as error:
        raise QlogError(str(error)) from None
    if engine == "spark":
        from qlog_assets.storage.spark_session import refuse_without_extra, refuse_without_java

        refuse_without_extra()
        refuse_without_java()
    try:
        with working_place(scratch) as folder, progress(False) as tell:
            facts = run_model(plan, folder, tell, lambda known: write_facts(known, out))
    except BenchmarkError as error:
        raise QlogError(f"a measured run failed: {error}") from None
    print_tables(facts["machine"] | facts["settings"], model_tables(facts))
    for line in model_notes(facts):
        console.print(line)
    if out is not None:
        console.print(f"figures: {out}")


def refuse_without_checkout() -> None:
    """Raise where there are no benchmarks to run; else let them be imported."""
    if not (CHECKOUT / "benchmarks" / "suite.py").is_file():
        raise QlogError("qlog bench needs the project's checkout: run it there, after make demo")
    sys.path.insert(0, str(CHECKOUT))


def refuse_places(out: Path | None, scratch: Path | None) -> None:
    """Raise before hours of measuring where the figures could not be written, or there is nowhere to work."""
    if scratch is not None and not (os.path.isdir(scratch) and os.access(scratch, os.W_OK | os.X_OK)):
        raise QlogError(f"--scratch {scratch}: is no directory that can be written: make it first")
    if out is None:
        return
    if not (os.path.isdir(out.parent) and os.access(out.parent, os.W_OK | os.X_OK)):
        raise QlogError(f"--json {out}: cannot be written: {out.parent} is no directory that can be written")
    if os.path.lexists(out) and not (out.is_file() and os.access(out, os.W_OK)):
        raise QlogError(f"--json {out}: cannot be written: it is there and no file that may be replaced")


def working_place(scratch: Path | None) -> AbstractContextManager[Path]:
    """Where to work; what a killed run left there is removed first."""
    if scratch is None:
        return system_scratch()
    remove_leftovers(scratch)
    return temporary_directory(scratch)


def print_facts(facts: dict[str, Any]) -> None:
    from benchmarks.telling import tables, verdicts

    print_tables(facts["machine"], tables(facts))
    for line in verdicts(facts):
        console.print(line)


def print_tables(machine: dict[str, Any], tables: list[tuple[str, list[str], list[list[str]]]]) -> None:
    console.print("  ".join(f"{name} {value}" for name, value in machine.items()))
    for title, columns, rows in tables:
        console.print()
        console.print(bold(title))
        show_table(columns, rows)


def write_facts(facts: dict[str, Any], out: Path | None) -> None:
    if out is not None:
        out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def draw_facts(facts: dict[str, Any], out: Path) -> None:
    from benchmarks.telling import draw_growth

    console.print(f"figures: {out}")
    picture = out.with_suffix(".png")
    if len(facts["sizes"]) > 1 and draw_growth(facts, picture):
        console.print(f"growth: {picture}")
