"""`qlog bench` on small logs: that it measures, and what it says. No figure is asserted: machines differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.measuring import BenchmarkError, last_object, measure
from benchmarks.suite import LIBRARIES, Plan, run_plan
from benchmarks.telling import draw_growth, tables, verdicts
from qlog_assets.cli.app import app

HOLD = "x = bytearray(64 << 20); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(0.7)"


def test_memory_and_time_of_children_are_counted() -> None:
    """A parent that holds nothing and a child that holds 64 MB and computes: both are in what the parent cost."""
    child = f"import hashlib; [hashlib.sha256(bytes(1 << 20)) for _ in range(100)]; {HOLD}"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{\"done\": 1}}')"
    cost = measure([sys.executable, "-c", parent])
    assert cost.answer == {"done": 1}
    assert cost.peak_mb is not None and cost.peak_mb > 64
    assert cost.wall > 0.7 and cost.cpu > 0.02


def test_a_failed_command_says_what_it_said_last() -> None:
    with pytest.raises(BenchmarkError, match="no such log"):
        measure([sys.executable, "-c", "import sys; sys.exit('no such log')"])


@pytest.mark.parametrize(
    ("output", "expected"),
    [('{"a": 1}', {"a": 1}), ('words\n{\n "a": {\n  "b": 2\n }\n}\n', {"a": {"b": 2}}), ("words", {}), ("[1]", {})],
)
def test_the_last_object_of_an_output_is_its_answer(output: str, expected: dict[str, object]) -> None:
    assert last_object(output) == expected


def size(rows: int, seconds: float) -> dict[str, object]:
    cost = {"wall": seconds, "cpu": seconds, "peak_mb": 100.0}
    copy = {"copy_ratio": 5.5, "copy_cpu_ratio": 5.0}
    times = {"ratio": 1.25, "cpu_ratio": 1.2, **copy}
    release = {**cost, **times, "answer": {"rows": {"2006-03": {"queries": 3, "clicks": 2}}}}
    floor = {**cost, **copy, "answer": {"stages": {"queries": 1.0}}}
    return {
        "rows": rows,
        "copy": cost,
        "floor": floor,
        "cold": release,
        "warm": release,
        "stages": {"cold": {"cleaned_log": 2.0}, "warm": {"cleaned_log": 1.0}},
    }


def test_what_is_promised_is_judged_and_what_was_not_measured_is_not(tmp_path: Path) -> None:
    facts = {"sizes": [size(1_000_000, 10.0), size(36_400_000, 400.0)], "peers": None, "skewed": None}
    told = verdicts(facts)
    assert [line.split(":")[0] for line in told] == ["MISSES", "holds", "holds", "MISSES"]
    assert "5.50 times the copy, cold" in told[0]
    assert all(len(row) == len(columns) for _, columns, rows in tables(facts) for row in rows)
    assert [row[-1] for row in tables(facts)[0][2]] == ["", "", "5", "5"] * 2
    assert verdicts({**facts, "sizes": facts["sizes"][:1]}) == []
    if draw_growth(facts, tmp_path / "growth.png"):
        assert (tmp_path / "growth.png").stat().st_size > 1_000


def test_the_command_is_there() -> None:
    assert "bare DuckDB" in CliRunner().invoke(app, ["bench", "--help"]).output


@pytest.mark.slow
def test_a_whole_plan_is_measured(tmp_path: Path) -> None:
    """Everything on 10,000 rows: copy, floor, cold, warm, the peers' task, one skewed shape after the other."""
    plan = Plan((10_000,), peer_rows=10_000, peer_users=500, peer_turns=1, skewed=True, skewed_rows=2_000)
    kept: list[str] = []
    run_plan(plan, tmp_path, lambda step: None, lambda known: kept.append(json.dumps(known)))
    facts = json.loads(kept[-1])
    (measured,) = facts["sizes"]
    assert {"landing_batch", "cleaned_log", "capped_log", "selected"} <= set(measured["stages"]["cold"])
    assert measured["cold"]["answer"]["rows"].keys() == {"2006-03", "2006-04", "2006-05"}
    assert set(measured["warm"]["answer"]["rows"]) == set(measured["cold"]["answer"]["rows"])
    assert measured["copy"]["answer"]["rows"] == 10_000 and len(measured["copy"]["turns"]) == 3
    assert measured["cold"]["copy_ratio"] == pytest.approx(measured["cold"]["wall"] / measured["copy"]["wall"], 0.01)
    for run in ("copy", "floor", "cold", "warm"):
        assert measured[run]["wall"] > 0 and measured[run]["cpu"] > 0 and measured[run]["peak_mb"] > 0
    assert {"bare", "warm", "cold", *LIBRARIES} < set(facts["peers"])
    assert list(facts["skewed"]) == ["one_user", "one_query", "long_queries", "many_users"]
    assert all(len(row) == len(columns) for _, columns, rows in tables(facts) for row in rows)
