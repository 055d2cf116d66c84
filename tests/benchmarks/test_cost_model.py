"""The cost model's arithmetic on figures that are made up, and the whole command on tiny logs. No time is asserted."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import qlog

from benchmarks.cost_model import (
    BYTES_IN_PART,
    DRAW,
    PART_BYTES,
    STAGES,
    DrawAlone,
    Engine,
    Law,
    Model,
    ModelError,
    Observation,
    StageCost,
    errors,
    fit_law,
    fit_memory,
    fit_model,
    fit_scratch,
    sorting_margin,
    spread,
)
from benchmarks.draw_alone import WatchedHoldings, draw_once
from benchmarks.measuring import Held, measure
from benchmarks.model_telling import model_notes, model_tables
from benchmarks.modelling import ModelPlan, describe_model
from benchmarks.sampling import Sample, Sampler
from qlog_assets.mechanisms.contributions import view_items
from qlog_assets.mechanisms.steered_tables import WEIGHED_ITEMS, CountedHoldings, no_known_rows, weigh_items
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import open_duckdb
from qlog_assets.storage.warehouse import Warehouse

GB = 1e9
DUCKDB = Engine("duckdb", 3 * GB, cores=2)
SPARK = Engine("spark", 8 * GB, cores=2)
FITTED = (1_000_000, 2_000_000, 4_000_000)
PER_STAGE = {stage: Law(0.5 * place, 1e-6 * place) for place, stage in enumerate(STAGES, 1)}
NUMPY_BYTES = 50
"""What numpy holds per row in these figures."""


def observed(rows: int, *, scratch: float = 0.0) -> Observation:
    """A size that follows the laws of PER_STAGE exactly."""
    stages = {}
    for name, law in PER_STAGE.items():
        numpy = NUMPY_BYTES * rows if name == DRAW else 0.0
        memory = 0.5 * GB + 200 * rows + numpy
        stages[name] = StageCost(law.at(rows), 2 * law.at(rows), memory, scratch, shuffle=10.0 * rows)
    return Observation(rows, stages, DrawAlone(NUMPY_BYTES * rows, 1e-7 * rows))


def slower(seen: Observation, times: float) -> Observation:
    """The same with everything so many times as much."""
    stages = {
        name: StageCost(times * cost.cpu, times * cost.wall, times * cost.memory, 0.0, times * cost.shuffle)
        for name, cost in seen.stages.items()
    }
    return replace(seen, stages=stages)


def fitted(engine: Engine = DUCKDB, sizes: Sequence[int] = FITTED) -> Model:
    return fit_model([observed(rows) for rows in sizes], engine)


# Laws -----------------------------------------------------------------------------------------------------------------


def test_a_law_that_figures_follow_is_found_again() -> None:
    law = fit_law(FITTED, [3 + 2e-6 * rows for rows in FITTED])
    assert law.fixed == pytest.approx(3) and law.per_row == pytest.approx(2e-6)


def test_small_logs_count_as_much_as_large_ones() -> None:
    """With absolute weights a tenth of the largest figure would hide the smallest."""
    law = fit_law((1e3, 1e6, 1e9), [10.0, 10.0 + 1e-3 * 1e6, 1.1 * (10.0 + 1e-3 * 1e9)])
    assert law.at(1e3) == pytest.approx(11, rel=0.1)


MEASURED = st.one_of(st.just(0.0), st.floats(1e-3, 1e12))
"""Nothing, or what a clock and a file system can tell."""


@given(st.dictionaries(st.integers(1, 10**9), MEASURED, min_size=2, max_size=8))
def test_no_law_is_negative_or_falls_whatever_was_measured(seen: dict[int, float]) -> None:
    rows, values = list(seen), list(seen.values())
    law, memory, scratch = fit_law(rows, values), fit_memory(rows, values, 1e9), fit_scratch(rows, values)
    for smaller, larger in ((0, 1), (10**3, 10**6), (10**9, 10**11)):
        assert 0 <= law.at(smaller) <= law.at(larger)
        assert 0 <= memory.at(smaller, 1e9) <= memory.at(larger, 1e9)
        if scratch is not None:
            assert 0 <= scratch.at(smaller) <= scratch.at(larger)


@given(st.floats(0, 1e4), st.floats(1e-12, 1e-2))
def test_every_line_is_found_again(fixed: float, per_row: float) -> None:
    sizes = (*FITTED, 64_000_000)
    law = fit_law(sizes, [fixed + per_row * rows for rows in sizes])
    for rows in sizes:
        assert law.at(rows) == pytest.approx(fixed + per_row * rows, rel=1e-6)


def test_an_engine_at_its_limit_holds_no_more_and_numpy_does() -> None:
    sizes, numpy = (1e6, 2e6, 4e6, 8e6), Law(0.0, 50.0)
    peaks = [0.5 * GB + min(3 * GB, 1_000 * rows) + 50 * rows for rows in sizes]
    law = fit_memory(sizes, peaks, 3 * GB, numpy)
    assert law.fixed == pytest.approx(0.5 * GB) and law.engine_per_row == pytest.approx(1_000)
    assert law.at(1e9, 3 * GB) == pytest.approx(0.5 * GB + 3 * GB + 50 * 1e9)


def test_what_is_spilled_is_a_line_that_begins_where_memory_ends() -> None:
    law = fit_scratch((1e6, 2e6, 4e6, 8e6), [0.0, 0.0, 1 * GB, 5 * GB])
    assert law is not None
    assert law.at(1e6) == 0 and law.at(16e6) == pytest.approx(13 * GB)


def test_where_hardly_anything_was_spilled_nothing_is_predicted() -> None:
    assert fit_scratch(FITTED, [0.0, 0.0, 1 * GB]) is None
    assert fit_scratch(FITTED, [2 * GB, 2 * GB, 1 * GB]) is None
    assert fitted().predict(10**9).scratch is None


@pytest.mark.parametrize("sizes", [(), (1_000_000,), (1_000_000, 1_000_000)])
def test_fewer_than_two_fitted_sizes_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="at least 2 sizes"):
        fit_model([observed(rows) for rows in sizes], DUCKDB)


# Predictions ----------------------------------------------------------------------------------------------------------


def test_a_billion_rows_cost_what_the_laws_of_all_stages_say() -> None:
    predicted = fitted().predict(10**9)
    assert predicted.cpu == pytest.approx(sum(law.at(10**9) for law in PER_STAGE.values()))
    assert predicted.wall == pytest.approx(2 * predicted.cpu)
    assert predicted.shuffle == pytest.approx(10.0 * 10**9 * len(STAGES))
    assert predicted.times_measured == 250
    # What starts, what DuckDB may hold, and what numpy holds of a part and of items.
    assert predicted.memory == pytest.approx(0.5 * GB + 3 * GB + PART_BYTES + NUMPY_BYTES * 10**9)
    assert predicted.draw_memory == pytest.approx(PART_BYTES + NUMPY_BYTES * 10**9)


def test_no_wall_time_is_below_what_the_cores_of_the_machine_can_do() -> None:
    seen = [
        Observation(one.rows, {name: replace(cost, wall=1.0) for name, cost in one.stages.items()}, one.draw)
        for one in (observed(rows) for rows in FITTED)
    ]
    predicted = fit_model(seen, DUCKDB).predict(10**9)
    assert predicted.wall == pytest.approx(predicted.cpu / DUCKDB.cores)


def test_more_cores_do_not_divide_starting_and_the_numbers_of_the_draw() -> None:
    predicted = fitted().predict(10**9)
    serial = sum(law.fixed for law in PER_STAGE.values()) + 1e-7 * 10**9
    assert predicted.serial == pytest.approx(serial)
    assert predicted.wall_with(1) == pytest.approx(predicted.cpu)
    assert predicted.wall_with(DUCKDB.cores) <= predicted.wall
    assert predicted.wall_with(10**9) == pytest.approx(serial, rel=1e-3)


def test_the_error_of_a_held_back_size_is_what_was_predicted_over_what_was_measured() -> None:
    """Held-back figures a quarter above the laws: every prediction is a fifth too low."""
    found = errors(fitted(), slower(observed(8_000_000), 1.25))
    for name in ("cpu", "wall", "memory", "shuffle", *(f"cpu of {stage}" for stage in STAGES)):
        assert found[name] == pytest.approx(-0.2), name
    assert found["scratch"] is None


def test_how_much_hangs_on_one_size_needs_a_third_one() -> None:
    seen = [observed(rows) for rows in FITTED]
    assert spread(seen[:2], DUCKDB, 10**9) is None
    found = spread(seen, DUCKDB, 10**9)
    assert found is not None
    exact = fitted().predict(10**9).cpu
    assert found["cpu"] == pytest.approx((exact, exact))


def test_sorting_all_of_a_larger_log_costs_more_than_a_line_says() -> None:
    assert sorting_margin(10**6, 10**9) == pytest.approx(0.5)
    assert sorting_margin(10**6, 10**6) == 0


# Measuring ------------------------------------------------------------------------------------------------------------


def test_what_fell_into_a_span_is_read_off_between_looks(tmp_path: Path) -> None:
    looks = [Sample(0, 0, 5, 0, 0), Sample(1, 2, 9, 7, 10), Sample(2, 4, 6, 3, 30), Sample(3, 3, 1, 0, 30)]
    seen = Sampler(tmp_path, looks)
    assert seen.cpu_between(0.5, 2) == pytest.approx(3)
    assert seen.cpu_between(2, 3) == 0  # a child that nobody waited for took its seconds with it
    assert seen.shuffled_between(1, 2) == pytest.approx(20)
    assert seen.most_between("memory", 0.5, 2.5) == 9
    assert seen.most_between("scratch", 1.9, 1.95) == 3  # no look inside: the nearest


def test_a_command_is_watched_with_its_scratch_and_what_was_written_for_others(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time, hashlib\n"
        "folder = pathlib.Path(sys.argv[1]) / 'blockmgr'; folder.mkdir()\n"
        "for n in range(2):\n"
        "    file = folder / f'shuffle_{n}_0_0.data'; file.write_bytes(bytes(1 << 20))\n"
        "    time.sleep(0.6); file.unlink()\n"
        "[hashlib.sha256(bytes(1 << 20)) for _ in range(300)]\n"
        "time.sleep(0.5)\n"
    )
    seen = Sampler(tmp_path)
    cost = measure([sys.executable, "-c", script, str(tmp_path)], look=seen)
    assert max(sample.shuffle for sample in seen.samples) == 2 << 20
    assert 1 << 20 <= max(sample.scratch for sample in seen.samples) < 2 << 20
    assert cost.peak_mb == pytest.approx(max(sample.memory for sample in seen.samples) / (1 << 20))
    assert seen.samples[-1].cpu > 0


def test_a_child_that_has_its_parents_memory_until_it_starts_a_program_is_counted_once() -> None:
    parent = Held("5500-7fff", resident=500_000, proportional=499_000)
    assert Held("5500-7fff", 500_100, 499_100).is_same_memory(parent)
    forked = Held("5500-7fff", 500_000, 250_000)
    another = Held("5600-7fff", 500_000, 499_000)
    own_pages = Held("5500-7fff", 700_000, 690_000)
    assert not any(held.is_same_memory(parent) for held in (forked, another, own_pages))


# Telling --------------------------------------------------------------------------------------------------------------


def facts_of(
    engine: Engine, sizes: Sequence[int], held_back: Sequence[int], *, held_back_slower: float = 1.0
) -> dict[str, object]:
    plan = ModelPlan.of(engine.name, sizes, held_back, 64, 1)
    seen = [slower(observed(rows), held_back_slower if rows in plan.held_back else 1.0) for rows in plan.rows]
    text = json.dumps(
        {
            "machine": {},
            "plan": {**plan.__dict__},
            "settings": {"memory_limit_mb": 3072, "spill_limit_gb": 64, "threads": 2},
            "observations": [
                {"rows": one.rows, "stages": {name: cost.__dict__ for name, cost in one.stages.items()}}
                | {"draw": one.draw.__dict__}
                for one in seen
            ],
            "model": describe_model(plan, seen, engine),
        }
    )
    return dict(json.loads(text))


@pytest.mark.parametrize("engine", [DUCKDB, SPARK], ids=lambda engine: engine.name)
def test_what_is_extrapolated_or_unknown_is_said_so(engine: Engine) -> None:
    facts = facts_of(engine, FITTED, [8_000_000])
    told = model_tables(facts)
    assert all(len(row) == len(columns) for _, columns, rows in told for row in rows)
    predicted = {row[0]: row for row in told[-1][2]}
    assert list(predicted) == ["8,000,000", "1,000,000,000", "10,000,000,000", "100,000,000,000"]
    assert predicted["8,000,000"][1] == "held back, 2 × fitted"
    assert predicted["1,000,000,000"][1] == "extrapolated 250 ×"
    notes = "\n".join(model_notes(facts))
    assert "nothing above 8,000,000 rows was measured" in notes
    assert "scratch: unknown" in notes and "50.00 bytes a row, without a limit" in notes
    assert ("No cluster was measured" in notes) == (engine is SPARK)


def test_logs_in_which_starting_is_most_are_said_to_be_too_small_and_predict_no_time() -> None:
    small = facts_of(DUCKDB, (1_000, 2_000), [4_000])
    assert "TOO SMALL" in "\n".join(model_notes(small))
    held_back, billion, *_ = model_tables(small)[-1][2]
    assert "unknown" not in held_back[2:5] and billion[2:5] == ["unknown"] * 3
    assert "TOO SMALL" not in "\n".join(model_notes(facts_of(DUCKDB, FITTED, [8_000_000])))


def test_a_held_back_size_far_above_the_laws_makes_every_prediction_a_lower_bound() -> None:
    assert "lower bound" not in "\n".join(model_notes(facts_of(DUCKDB, FITTED, [8_000_000])))
    notes = "\n".join(model_notes(facts_of(DUCKDB, FITTED, [8_000_000], held_back_slower=2.0)))
    assert "TOO LOW: at 8,000,000 rows the laws are 50% below" in notes and "lower bound" in notes


# The command ----------------------------------------------------------------------------------------------------------


def test_the_largest_size_is_held_back_unless_others_are_named() -> None:
    plan = ModelPlan.of("duckdb", [], [], 64, 1)
    assert plan.held_back == (8_000_000,) and plan.fitted == (500_000, 1_000_000, 2_000_000, 4_000_000)
    plan = ModelPlan.of("duckdb", [3_000, 1_000], [2_000], 64, 1)
    assert plan.held_back == (2_000,) and plan.fitted == (1_000, 3_000) and plan.rows == (1_000, 2_000, 3_000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "--rows", "1000", "--rows", "2000"), "needs at least 2 sizes that are fitted"),
        (("--model", "--rows", "1000", "--rows", "2000", "--rows", "200000000"), "a synthetic log has 1,000 to"),
        (("--model", "--skewed"), "--skewed: is no part of --model"),
        (("--engine", "spark"), "--engine: is of no use without --model"),
        (("--held-back", "1000"), "--held-back: is of no use without --model"),
    ],
)
def test_a_model_that_could_not_be_fitted_is_refused_in_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in qlog(tmp_path, "bench", *words, cwd=tmp_path).refusal


@pytest.mark.skipif(find_spec("pyspark") is not None, reason="Spark is installed here")
def test_spark_that_is_not_installed_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    assert "is not installed" in qlog(tmp_path, "bench", "--model", "--engine", "spark", cwd=tmp_path).refusal


def test_a_part_of_an_answer_takes_what_the_model_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes and no seconds. 16,384 users of 16 items each, 120 per item: most are asked about twice."""
    items, number = 2_185, np.arange(1 << 18)
    pairs = pa.table({"user": pa.array(number // 16).cast("string"), "query": pa.array(number * 61 % items)})
    peaks = []
    with open_duckdb(Warehouse(Settings(home=tmp_path / "home")).make()) as engine, engine.table("typed", pairs):
        view_items(engine, "typed")
        weigh_items(engine, no_known_rows(engine), WEIGHED_ITEMS)
        held = WatchedHoldings(CountedHoldings(engine, items))
        draw_once(held)
        for rows in (1 << 12, 1 << 17):
            monkeypatch.setattr("qlog_assets.storage.engine.ROWS_AT_ONCE", rows)
            tracemalloc.start()
            draw_once(held)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / ((1 << 17) - (1 << 12)) == pytest.approx(BYTES_IN_PART, rel=0.15)


@pytest.mark.slow
def test_a_model_is_measured_fitted_and_told(tmp_path: Path) -> None:
    """Three tiny logs by the command itself: every stage of every size is measured, and the file holds all of it."""
    out = tmp_path / "model.json"
    sizes = [word for rows in (2_000, 4_000, 8_000) for word in ("--rows", str(rows))]
    done = measure([sys.executable, "-m", "qlog_assets.cli", "bench", "--model", *sizes, "--json", str(out)])
    assert done.wall > 0
    facts = json.loads(out.read_text(encoding="utf-8"))
    assert [seen["rows"] for seen in facts["observations"]] == [2_000, 4_000, 8_000]
    for seen in facts["observations"]:
        assert set(seen["stages"]) == set(STAGES)
        assert 0 < seen["draw"]["bytes"] < PART_BYTES and seen["draw"]["cpu"] > 0
        assert all(cost["memory"] > 0 and cost["wall"] > 0 for cost in seen["stages"].values())
    assert list(facts["model"]["errors"]) == ["8000"]
    assert [one["rows"] for one in facts["model"]["predictions"]] == [8_000, 10**9, 10**10, 10**11]
    assert all(len(row) == len(columns) for _, columns, rows in model_tables(facts) for row in rows)
    assert any(note.startswith("TOO SMALL") for note in model_notes(facts))
