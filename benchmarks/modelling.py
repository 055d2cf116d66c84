"""What `qlog bench --model` measures: a month of the synthetic log released at several sizes, stage by stage.

Every size has a warehouse of its own and is released by the commands a person types, in processes of their own, one
after the other. What follows from the figures is `cost_model.py`; telling it is `model_telling.py`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cost_model import (
    DRAW,
    DrawAlone,
    Engine,
    ModelError,
    Observation,
    StageCost,
    errors,
    fit_model,
    refuse_few_sizes,
    sorting_margin,
    spread,
)
from benchmarks.measuring import Cost, measure
from benchmarks.sampling import Sampler
from benchmarks.spark_demo import MONTH, POLICY
from benchmarks.stages import stages
from benchmarks.suite import CHECKOUT, Tell, fresh_warehouse, installed, landed, machine, python
from qlog_assets.settings import Settings
from qlog_assets.synthetic.writing import FEWEST_ROWS, MOST_ROWS

SIZES = {
    "duckdb": (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000),
    "spark": (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000),
}
"""What is measured if nothing is said. Spark takes minutes for a million rows on two cores."""
ASKED = (1_000_000_000, 10_000_000_000, 100_000_000_000)
"""The sizes that are predicted."""
STEPS = {
    "cleaned_log": "cleaned_log",
    "capped_log": "capped_log",
    "capped_log_contribution_limits": "check of capped_log",
    "selected": DRAW,
}
"""Which step of Dagster's is which stage of the model; all other steps of a release are its rest."""


@dataclass(frozen=True)
class ModelPlan:
    """What to measure, and which of it the laws may not see."""

    engine: str
    rows: tuple[int, ...]
    held_back: tuple[int, ...]
    cores: int
    """For how many cores a wall time is predicted beside the measured machine's."""
    seed: int = 1

    @classmethod
    def of(cls, engine: str, rows: Iterable[int], held_back: Iterable[int], cores: int, seed: int) -> ModelPlan:
        """The sizes that were named, or the usual ones; the largest is held back unless others are."""
        named = set(rows or SIZES[engine])
        held = set(held_back) or {max(named)}
        plan = cls(engine, tuple(sorted(named | held)), tuple(sorted(held)), cores, seed)
        refuse_few_sizes(plan.fitted)
        # Before the first size is measured: the last one would be refused hours later.
        for size in plan.rows:
            if not FEWEST_ROWS <= size <= MOST_ROWS:
                raise ModelError(f"a synthetic log has {FEWEST_ROWS:,} to {MOST_ROWS:,} rows, not {size:,}")
        return plan

    @property
    def fitted(self) -> tuple[int, ...]:
        return tuple(size for size in self.rows if size not in self.held_back)


def run_model(plan: ModelPlan, scratch: Path, tell: Tell, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Measure all sizes of a plan, fit the model and predict. `keep` gets what is known so far, after every size."""
    settings = Settings.from_environment()
    facts: dict[str, Any] = {
        "machine": {**machine(), **({"pyspark": installed("pyspark")} if plan.engine == "spark" else {})},
        "plan": asdict(plan),
        "settings": {name: getattr(settings, name) for name in ("memory_limit_mb", "spill_limit_gb", "threads")},
        "observations": [],
        "model": None,
    }
    observations = []
    for rows in plan.rows:
        tell_size = partial(tell_rows, tell, rows)
        observation = observe(plan.engine, rows, plan.seed, scratch, tell_size)
        observations.append(observation)
        facts["observations"].append(asdict(observation))
        keep(facts)
    facts["model"] = describe_model(plan, observations, engine_of(plan.engine, settings))
    keep(facts)
    return facts


def tell_rows(tell: Tell, rows: int, step: str) -> None:
    tell(f"{rows:,} rows: {step}")


def engine_of(name: str, settings: Settings) -> Engine:
    # DuckDB reads MB as millions of bytes, Java as 2**20.
    unit = 1e6 if name == "duckdb" else float(1 << 20)
    return Engine(name, settings.memory_limit_mb * unit, settings.threads)


def describe_model(plan: ModelPlan, observations: Sequence[Observation], engine: Engine) -> dict[str, Any]:
    """The laws, their errors on sizes they never saw, and what they predict."""
    fitted = [seen for seen in observations if seen.rows in plan.fitted]
    held_back = [seen for seen in observations if seen.rows in plan.held_back]
    model = fit_model(fitted, engine)
    predictions = [model.predict(rows) for rows in (*plan.held_back, *ASKED)]
    return {
        "laws": asdict(model),
        "growing_share": model.growing_share,
        "errors": {str(seen.rows): errors(model, seen) for seen in held_back},
        "predictions": [
            {
                **asdict(one),
                "wall_with_cores": one.wall_with(plan.cores),
                "spread": spread(fitted, engine, one.rows),
                "sorting": sorting_margin(model.largest, one.rows),
            }
            for one in predictions
        ],
    }


# One size -------------------------------------------------------------------------------------------------------------


def observe(engine: str, rows: int, seed: int, scratch: Path, tell: Tell) -> Observation:
    """One month of so many rows, from landing file to release."""
    from qlog_assets.synthetic import write_log

    log = scratch / f"month-{rows}-{seed}.txt"
    tell("writing the log")
    write_log(log, rows, seed, MONTH, MONTH)
    home = fresh_warehouse(scratch / "model", log)
    (home / "policy.toml").write_text(POLICY.format(kind=engine), encoding="utf-8")
    tell("ingest")
    ingest, seen = watched(home, ["ingest", str(landed(home, log)), "--format", "aol", "--json"])
    taken = {"ingest": whole(ingest, seen)}
    tell("release")
    release, seen = watched(home, ["release", "safelog", "--month", MONTH, "--json"])
    taken |= by_stage(home, release, seen)
    tell("the draw alone")
    alone = python(["-m", "benchmarks.draw_alone", MONTH], {"QLOG_HOME": str(home)}).answer
    shutil.rmtree(home, ignore_errors=True)
    log.unlink()
    return Observation(rows, taken, DrawAlone(alone["bytes"], alone["cpu"]))


def watched(home: Path, words: list[str]) -> tuple[Cost, Sampler]:
    """A command of `qlog`, looked at while it runs."""
    # DuckDB spills there, and Spark's local directory lies there where its master is this machine.
    sampler = Sampler(home / "private" / "spill")
    command = [sys.executable, "-m", "qlog_assets.cli", *words]
    return measure(command, env={"QLOG_HOME": str(home)}, cwd=CHECKOUT, look=sampler), sampler


def whole(cost: Cost, seen: Sampler) -> StageCost:
    """A command as one stage."""
    return StageCost(
        cost.cpu,
        cost.wall,
        max(sample.memory for sample in seen.samples),
        max(sample.scratch for sample in seen.samples),
        max(sample.shuffle for sample in seen.samples),
    )


def by_stage(home: Path, cost: Cost, seen: Sampler) -> dict[str, StageCost]:
    """A release by its stages, as Dagster's history has them. What is left is the rest, so that times add up."""
    spans = {STEPS[step.name]: (step.clock, step.clock + step.seconds) for step in stages(home) if step.name in STEPS}
    found = {
        name: StageCost(
            seen.cpu_between(*span),
            span[1] - span[0],
            seen.most_between("memory", *span),
            seen.most_between("scratch", *span),
            seen.shuffled_between(*span),
        )
        for name, span in spans.items()
    }
    everything = whole(cost, seen)
    outside = [sample for sample in seen.samples if not any(start <= sample.at <= end for start, end in spans.values())]

    def left(name: str) -> float:
        return max(0.0, getattr(everything, name) - sum(getattr(stage, name) for stage in found.values()))

    found["rest"] = StageCost(
        left("cpu"),
        left("wall"),
        max(sample.memory for sample in outside),
        max(sample.scratch for sample in outside),
        left("shuffle"),
    )
    return found
