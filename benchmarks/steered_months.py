"""Three months of the demo's log at ε = 2: what each variant of Safelog releases, month by month, beside the truth.

The whole way of a release up to the door: ingest, stages, draws by the mechanism from the operating system's entropy,
each month of a chain steered by the one before. Truth is the number of users in the cleaned log, nobody limited.
Run from the root of the checkout: `python -m benchmarks.steered_months [--json]`; it writes the picture of the page on
selection.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from qlog_assets.cli.demo import FIRST, LAST, POLICY
from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.months import Month, months_between
from qlog_assets.pipeline.stage import Inputs, Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import SecureRandom
from qlog_assets.settings import Settings
from qlog_assets.storage.engine import DuckDBEngine, open_duckdb
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.simulation import simulation_inputs

ROWS, SEED, DRAWS = 3_500_000, 1, 5
NEAR = 0.2
"""A count within this part of the truth is near it."""
PICTURE = Path("docs/pictures/steered-months.png")
TRUTH = {
    "queries": 'SELECT query, count(DISTINCT "user") AS true_users FROM cleaned_log GROUP BY query',
    "clicks": 'SELECT query, url, count(DISTINCT "user") AS true_users FROM cleaned_log WHERE url IS NOT NULL '
    "GROUP BY query, url",
    "transitions": 'SELECT query, next_query, count(DISTINCT "user") AS true_users FROM following_queries '
    "WHERE next_query <> query AND pause <= to_minutes(30) GROUP BY query, next_query",
}


@dataclass(frozen=True)
class LastMonth:
    """What a chain printed the month before, as a draw reads a published release."""

    tables: dict[str, pa.Table]

    def rows(self, table: str) -> pa.Table | None:
        return self.tables.get(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    chosen = parser.parse_args()
    lines = measure(chosen.rows, chosen.draws)
    draw_picture(lines, chosen.picture)
    print(json.dumps(lines, indent=1) if chosen.json else as_table(lines))


def measure(rows: int, draws: int) -> list[dict[str, Any]]:
    """A line for each variant, month and table: means over the draws."""
    from qlog_assets.api.operations import ingest_files, write_synthetic_log

    with tempfile.TemporaryDirectory() as folder:
        os.environ["QLOG_HOME"] = folder
        warehouse = Warehouse(Settings.from_environment()).make()
        log = write_synthetic_log(warehouse, rows, SEED, FIRST, LAST, lambda step: None)
        warehouse.settings.policy_file.write_text(POLICY, encoding="utf-8")
        policy = Policy.load(warehouse.settings.policy_file)
        ingest_files(warehouse, policy, [log], "aol", None, lambda step: None)
        assemble(warehouse)
        return [line for variant in ("sound", "modern") for line in measure_variant(warehouse, policy, variant, draws)]


def assemble(warehouse: Warehouse) -> None:
    from qlog_assets.pipeline.raw_log import assemble_raw_log

    for month in months_between(FIRST, LAST):
        assemble_raw_log(warehouse, month)


def measure_variant(warehouse: Warehouse, policy: Policy, variant: str, draws: int) -> list[dict[str, Any]]:
    safelog = mechanism("safelog")
    policy = policy.for_variant(safelog, variant)
    chains: list[LastMonth | None] = [None] * draws
    lines = []
    for month in months_between(FIRST, LAST):
        with open_duckdb(warehouse) as engine:
            work = Work(warehouse, engine, month, policy.section("safelog"), policy.lists, "benchmark", False)
            inputs = simulation_inputs(safelog, variant, work)
            name_truth(engine, inputs)
            drawn = [draw_month(engine, safelog, inputs, variant, policy, chain) for chain in chains]
            scores = [score(engine, tables) for tables in drawn]
        if variant == "modern":
            chains = [LastMonth(tables) for tables in drawn]
        for table in scores[0]:
            told = {name: float(np.mean([each[table][name] for each in scores])) for name in scores[0][table]}
            lines.append({"variant": variant, "month": str(month), "table": table, **told})
    return lines


def draw_month(
    engine: DuckDBEngine, safelog: Mechanism, inputs: Inputs, variant: str, policy: Policy, last: LastMonth | None
) -> dict[str, pa.Table]:
    steering: Any = last  # it has the rows of a release, which is all that a draw asks of one
    drawn = safelog.draw(engine, inputs, variant, policy.parameters(safelog), SecureRandom(), steering)
    return {name: table.rows for name, table in drawn.tables.items()}


def name_truth(engine: DuckDBEngine, inputs: Inputs) -> None:
    """Tables of the true number of users of every item of a month."""
    engine.view("cleaned_log", inputs["cleaned_log"].files("log"))
    engine.statement_view("log/following_queries")
    for table, text in TRUTH.items():
        engine.connection.execute(f"CREATE OR REPLACE TEMP TABLE true_{table} AS {text}")


def score(engine: DuckDBEngine, tables: dict[str, pa.Table]) -> dict[str, dict[str, float]]:
    """How many rows each table has, their median error, and the part that is near the truth."""
    scores = {}
    for name, rows in tables.items():
        with engine.table("printed", rows):
            found = engine.connection.sql(
                f"SELECT users, coalesce(true_users, 0) AS true_users FROM printed NATURAL LEFT JOIN true_{name}"
            ).fetchnumpy()
        errors = np.abs(found["users"] - found["true_users"])
        scores[name] = {
            "released": float(len(errors)),
            "median_error": float(np.median(errors)),
            "near": float(np.mean(errors <= NEAR * found["true_users"])),
        }
    return scores


def as_table(lines: list[dict[str, Any]]) -> str:
    told = ["| variant | month | table | rows | median error | within 20 % |", "|---|---|---|---|---|---|"]
    for line in lines:
        told.append(
            f"| {line['variant']} | {line['month']} | {line['table']} | {line['released']:,.0f} "
            f"| {line['median_error']:.1f} | {line['near']:.0%} |"
        )
    return "\n".join(told)


def draw_picture(lines: list[dict[str, Any]], path: Path) -> None:
    """Rows of each table by month, the part near the truth dark."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    colours = {"sound": "#8a8a8a", "modern": "#1b6ca8"}
    for axes, table in zip(figure.subplots(1, 3), TRUTH, strict=True):
        for shift, (variant, colour) in zip((-0.2, 0.2), colours.items(), strict=True):
            shown = [line for line in lines if (line["table"], line["variant"]) == (table, variant)]
            places = np.arange(len(shown)) + shift
            axes.bar(places, [line["released"] for line in shown], 0.36, color=colour, alpha=0.35)
            axes.bar(
                places,
                [line["released"] * line["near"] for line in shown],
                0.36,
                color=colour,
                label=f"variant {variant}",
            )
            for place, line in zip(places, shown, strict=True):
                label = f"{line['released']:,.0f}\n±{line['median_error']:.0f}"
                axes.text(place, line["released"], label, ha="center", va="bottom", fontsize=7)
        axes.set_xticks(range(3), [str(month) for month in months_between(Month(FIRST), Month(LAST))], fontsize=8)
        axes.set_title(f"{table} (dark: within 20 %; ± median error)", fontsize=8)
        axes.margins(y=0.2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", labelsize=7)
    figure.axes[0].legend(fontsize=7, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
