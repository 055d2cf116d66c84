"""The cost model: what was measured of a few sizes goes in, laws and what they predict of larger logs come out.

Pure arithmetic: nothing here runs, reads or prints anything. Measuring is `modelling.py`, telling `model_telling.py`.

The laws are the simplest that hold on the sizes measured, each fitted with relative weights so that a small log counts
as much as a large one:

* **Time** (of a clock, of processors) and **shuffled bytes**, per stage: a fixed part and a part per row, neither
  negative. Sorting grows faster than rows; `sorting_margin` says by how much at most.
* **Memory**, per stage: a fixed part, what the engine holds per row up to its limit, and what numpy holds per row
  without any limit. Only the draw has the last, of the items that may be named; it is measured alone
  (`draw_alone.py`). Counts and pairs come to it in parts, which are as large in every larger log.
* **Scratch**, of the whole release: a line over the sizes that wrote any, cut at nothing. An engine spills what its
  memory does not hold, so the line may begin below nothing. Where fewer than two sizes spilled, or the larger ones did
  not spill more, there is no law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qlog_assets.storage.answers import ROWS_AT_ONCE

DRAW = "draw"
STAGES = ("ingest", "cleaned_log", "capped_log", "check of capped_log", DRAW, "rest")
TIMES = ("cpu", "wall")
LEAST_SIZES = 2
"""A fixed part and a part per row are two unknowns."""
BYTES_IN_PART = 145
"""What numpy holds at most of one row of an answer that comes in parts: a pair of a user and an item, from two full
parts of them. Of a sum it is half of that. A test measures it again."""
PART_BYTES = BYTES_IN_PART * ROWS_AT_ONCE
NEAR_ENOUGH = 0.05
"""A relative error of memory up to which a line is kept. Peaks of equal runs differ by as much."""


class ModelError(ValueError):
    """Observations that no law can be fitted to."""


@dataclass(frozen=True)
class StageCost:
    """What one stage took: seconds, and the most bytes at one moment."""

    cpu: float
    wall: float
    memory: float
    scratch: float = 0.0
    shuffle: float = 0.0
    """Bytes written for other tasks to read; Spark alone does."""


@dataclass(frozen=True)
class DrawAlone:
    """The draw's numbers apart from the engine's: the bytes that numpy held of all items that may be named, without
    those of the part that was being looked at, and processor seconds."""

    bytes: float
    cpu: float


@dataclass(frozen=True)
class Observation:
    """One release of one month of so many rows."""

    rows: int
    stages: Mapping[str, StageCost]
    draw: DrawAlone

    def total(self, quantity: str) -> float:
        """Of the whole release: times and shuffled bytes add up, of memory and scratch the largest counts."""
        values = [getattr(stage, quantity) for stage in self.stages.values()]
        return float(sum(values) if quantity in (*TIMES, "shuffle") else max(values))


@dataclass(frozen=True)
class Engine:
    """What is known of the engine before anything is measured."""

    name: str
    limit: float
    """Bytes that it may hold in memory."""
    cores: int


# Laws -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """fixed + per_row · rows."""

    fixed: float
    per_row: float

    def at(self, rows: float) -> float:
        return self.fixed + self.per_row * rows


@dataclass(frozen=True)
class MemoryLaw:
    """fixed + min(limit, engine_per_row · rows) + numpy's own law, which has no limit."""

    fixed: float
    engine_per_row: float
    numpy: Law

    def at(self, rows: float, limit: float) -> float:
        return self.fixed + min(limit, self.engine_per_row * rows) + self.numpy.at(rows)


@dataclass(frozen=True)
class ScratchLaw:
    """max(0, per_row · rows + offset): what is kept in memory is not written."""

    offset: float
    per_row: float

    def at(self, rows: float) -> float:
        return max(0.0, self.offset + self.per_row * rows)


NOTHING = Law(0.0, 0.0)


def fit_law(rows: Sequence[float], values: Sequence[float]) -> Law:
    """The law with the least sum of squared relative errors of those that are never negative."""
    from scipy.optimize import nnls

    refuse_few_sizes(rows)
    if not any(values):
        return NOTHING
    # A stage that was too short to be seen has the weight of the smallest that was.
    weights = 1 / np.maximum(values, min(value for value in values if value > 0))
    # Rows in units of the largest size: else one column is millions of times the other.
    unit = max(rows)
    design = np.column_stack([np.ones(len(rows)), np.asarray(rows, dtype=float) / unit])
    (fixed, slope), _ = nnls(design * weights[:, None], np.asarray(values, dtype=float) * weights)
    return Law(float(fixed), float(slope / unit))


def fit_memory(rows: Sequence[float], values: Sequence[float], limit: float, numpy: Law = NOTHING) -> MemoryLaw:
    """A plain line if it is near enough; else the engine is taken to have reached its limit on the largest sizes, on as
    many of them as fit best. numpy's part is known, and taken off before."""
    refuse_few_sizes(rows)
    order = sorted(range(len(rows)), key=lambda place: rows[place])
    sizes, peaks = [rows[place] for place in order], [values[place] for place in order]
    laws = [_fit_memory_below(sizes, peaks, limit, numpy, below) for below in range(len(sizes), 0, -1)]
    errors = [_worst_error([law.at(size, limit) for size in sizes], peaks) for law in laws]
    return laws[0] if errors[0] <= NEAR_ENOUGH else laws[errors.index(min(errors))]


def _fit_memory_below(
    sizes: Sequence[float], peaks: Sequence[float], limit: float, numpy: Law, below: int
) -> MemoryLaw:
    """The law if the engine is below its limit on the first so many sizes, and at it on the others."""
    from scipy.optimize import nnls

    unit = max(sizes)
    weights = 1 / np.maximum(peaks, 1.0)
    growing = np.array([size / unit if place < below else 0.0 for place, size in enumerate(sizes)])
    held = [numpy.at(size) + (0.0 if place < below else limit) for place, size in enumerate(sizes)]
    design = np.column_stack([np.ones(len(sizes)), growing]) * weights[:, None]
    (fixed, slope), _ = nnls(design, np.maximum(np.subtract(peaks, held), 0.0) * weights)
    return MemoryLaw(float(fixed), float(slope / unit), numpy)


def _worst_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    return max(abs(one - other) / max(other, 1.0) for one, other in zip(predicted, measured, strict=True))


def fit_scratch(rows: Sequence[float], values: Sequence[float]) -> ScratchLaw | None:
    """A line through the sizes that wrote scratch; None if fewer than two did, or if it did not grow with the rows."""
    spilled = [(size, value) for size, value in zip(rows, values, strict=True) if value > 0]
    if len({size for size, _ in spilled}) < LEAST_SIZES:
        return None
    sizes, written = (np.array(column, dtype=float) for column in zip(*spilled, strict=True))
    slope, offset = np.polyfit(sizes / sizes.max(), written, 1, w=1 / written)
    return ScratchLaw(float(offset), float(slope / sizes.max())) if slope > 0 else None


def refuse_few_sizes(rows: Sequence[float]) -> None:
    if len(set(rows)) < LEAST_SIZES:
        raise ModelError(
            f"a cost model needs at least {LEAST_SIZES} sizes that are fitted, besides those held back, and got "
            f"{len(set(rows))}: name more"
        )


# The model ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """What a release of a month of so many rows would cost. Seconds and bytes."""

    rows: int
    times_measured: float
    """How many times the largest size that was fitted."""
    cpu: float
    wall: float
    """With the cores of the measured machine, as busy as it was."""
    cores: int
    """Of the measured machine."""
    serial: float
    """Processor seconds that more cores do not divide."""
    memory: float
    draw_memory: float
    """numpy's part of it, with a whole part of an answer: the draw's numbers in one process."""
    scratch: float | None
    """None: no law, because nothing or too little was spilled where it was measured."""
    shuffle: float

    def wall_with(self, cores: int) -> float:
        """Amdahl's law: at best, with work that divides evenly and nothing to wait for.

        More cores than were measured take no longer than those: part of starting is on several cores, too.
        """
        divided = self.serial + (self.cpu - self.serial) / cores
        return min(divided, self.wall) if cores >= self.cores else divided


@dataclass(frozen=True)
class Model:
    """The laws of one engine on one machine."""

    engine: Engine
    largest: int
    """Rows of the largest size that was fitted."""
    cpu: Mapping[str, Law]
    wall: Mapping[str, Law]
    shuffle: Mapping[str, Law]
    memory: Mapping[str, MemoryLaw]
    scratch: ScratchLaw | None
    draw_cpu: Law
    draw_bytes: Law

    def memory_at(self, rows: float) -> float:
        """The most of any stage. Where one of them has reached the engine's limit, the draw is taken to have, too: on a
        small log its own part per row may be too little to be seen."""
        limit = self.engine.limit
        draw = self.memory[DRAW]
        reached = any(law.engine_per_row * rows >= limit for law in self.memory.values())
        full = draw.fixed + limit + PART_BYTES + draw.numpy.at(rows) if reached else 0.0
        return max(full, *(law.at(rows, limit) for law in self.memory.values()))

    @property
    def growing_share(self) -> float:
        """Which part of the processor time of the largest fitted size grows with the rows."""
        growing = sum(law.per_row for law in self.cpu.values()) * self.largest
        return growing / max(sum(law.at(self.largest) for law in self.cpu.values()), 1e-9)

    def predict(self, rows: int) -> Prediction:
        cpu = sum(law.at(rows) for law in self.cpu.values())
        serial = sum(law.fixed for law in self.cpu.values()) + self.draw_cpu.per_row * rows
        return Prediction(
            rows=rows,
            times_measured=rows / self.largest,
            cpu=cpu,
            # On small logs a stage's wall time may hardly grow: cores cannot do more than they can.
            wall=max(sum(law.at(rows) for law in self.wall.values()), cpu / self.engine.cores),
            cores=self.engine.cores,
            serial=min(serial, cpu),
            memory=self.memory_at(rows),
            draw_memory=PART_BYTES + self.draw_bytes.at(rows),
            scratch=None if self.scratch is None else self.scratch.at(rows),
            shuffle=sum(law.at(rows) for law in self.shuffle.values()),
        )


def fit_model(observations: Sequence[Observation], engine: Engine) -> Model:
    """The laws of what was measured. Held-back sizes are not among the observations: they are for `errors`."""
    rows = [observation.rows for observation in observations]
    refuse_few_sizes(rows)

    def measured(stage: str, quantity: str) -> list[float]:
        return [getattr(observation.stages[stage], quantity) for observation in observations]

    draw_bytes = fit_law(rows, [observation.draw.bytes for observation in observations])
    return Model(
        engine=engine,
        largest=max(rows),
        cpu={stage: fit_law(rows, measured(stage, "cpu")) for stage in STAGES},
        wall={stage: fit_law(rows, measured(stage, "wall")) for stage in STAGES},
        shuffle={stage: fit_law(rows, measured(stage, "shuffle")) for stage in STAGES},
        memory={
            stage: fit_memory(rows, measured(stage, "memory"), engine.limit, draw_bytes if stage == DRAW else NOTHING)
            for stage in STAGES
        },
        scratch=fit_scratch(rows, [observation.total("scratch") for observation in observations]),
        draw_cpu=fit_law(rows, [observation.draw.cpu for observation in observations]),
        draw_bytes=draw_bytes,
    )


# How far to believe it ------------------------------------------------------------------------------------------------


def errors(model: Model, observation: Observation) -> dict[str, float | None]:
    """Predicted beside measured, as a relative error with its sign: per quantity, and of processor time per stage.

    None where nothing was measured or nothing can be predicted.
    """
    predicted = model.predict(observation.rows)
    pairs: dict[str, tuple[float | None, float]] = {
        quantity: (getattr(predicted, quantity), observation.total(quantity))
        for quantity in ("cpu", "wall", "memory", "scratch", "shuffle")
    }
    for stage in STAGES:
        pairs[f"cpu of {stage}"] = (model.cpu[stage].at(observation.rows), observation.stages[stage].cpu)
    return {name: relative_error(*pair) for name, pair in pairs.items()}


def spread(observations: Sequence[Observation], engine: Engine, rows: int) -> dict[str, tuple[float, float]] | None:
    """The least and the most that is predicted if one fitted size is left out, each in turn: how much hangs on one of
    them. None where too few would be left."""
    seen = sorted({observation.rows for observation in observations})
    if len(seen) <= LEAST_SIZES:
        return None
    predictions = [fit_model([one for one in observations if one.rows != size], engine).predict(rows) for size in seen]
    return {
        name: (min(values), max(values))
        for name in ("cpu", "wall", "memory")
        for values in [[getattr(prediction, name) for prediction in predictions]]
    }


def relative_error(predicted: float | None, measured: float) -> float | None:
    if predicted is None or measured <= 0:
        return None
    return predicted / measured - 1


def sorting_margin(largest: float, rows: float) -> float:
    """By how much n·log n at most passes a line through the largest size: the part of all that is sorted is smaller."""
    return max(0.0, math.log(rows) / math.log(largest) - 1) if largest > 1 and rows > 1 else 0.0
