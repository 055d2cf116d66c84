"""`qlog demo`: a synthetic log, three monthly releases, and what pure ε would release. Nothing but calls."""

from __future__ import annotations

from typing import Any

from qlog_assets.api.operations import ingest_files, release_months, simulate_month, write_synthetic_log
from qlog_assets.cli.output import console, progress, show, show_table
from qlog_assets.months import Month, months_between
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.plain_files import is_absent
from qlog_assets.storage.warehouse import Warehouse

FIRST, LAST = Month("2006-03"), Month("2006-05")

POLICY = """\
# The demo's release policy; `qlog demo` wrote it. Every key has a default: see docs/policy.md.
dataset = "demo"
first = "2006-03"
last = "2006-05"

[about]
publisher = "qlog demo"
population = "the made-up users of a synthetic log"
licence = "public domain"

[pool]
# What anybody could have typed in the synthetic world, whether or not somebody did.
kind = "query_list"
path = "public/queries.txt"
description = "The public query list of the synthetic world that qlog synth makes"
"""


def run_demo(rows: int, seed: int, as_json: bool) -> None:
    """Make, ingest and release three months; the second time everything is served and nothing charged."""
    warehouse = Warehouse(Settings.from_environment()).make()
    policy_file = warehouse.settings.policy_file
    if not is_absent(policy_file):
        Policy.load(policy_file)  # refused before anything is made
    with progress(as_json) as tell:
        path = write_synthetic_log(warehouse, rows, seed, FIRST, LAST, tell)
        # After the log: rows or a seed that are refused leave no policy behind.
        if is_absent(policy_file):
            policy_file.write_text(POLICY, encoding="utf-8")
        policy = Policy.load(policy_file)
        ingested = ingest_files(warehouse, policy, [path], "aol", None, tell)
        answers = release_months(warehouse, policy, {}, "safelog", months_between(FIRST, LAST), None, tell)
        pure = {"delta": "0", "url_list": str(warehouse.home / "public" / "urls.txt")}
        headline = simulate_month(warehouse, pure, "safelog", FIRST, "sound", seed, tell)
    facts = {"ingested": ingested, "releases": answers, "pure": headline}
    show(facts, as_json, lambda _: demo_lines(rows, answers, headline))


def demo_lines(rows: int, answers: list[dict[str, Any]], headline: dict[str, Any]) -> None:
    from qlog_assets.cli.app import release_table

    console.print(f"A synthetic log of {rows:,} rows, three months, released:")
    release_table(answers)
    if not any(answer["charged"] for answer in answers):
        console.print("Nothing new: the three releases were there already, and nothing was charged.")
    counts = headline["rows"]
    console.print(
        f"With delta = 0, the paper's headline, {headline['month']} would hold {counts['queries']:,} queries, all of "
        f"them from the public pool, {counts.get('clicks', 0):,} clicks on listed urls and "
        f"{counts.get('transitions', 0):,} transitions at ε = {headline['claimed']['epsilon']:g}: "
        "simulated, private, not charged."
    )
    example = answers[0]
    show_examples(example["path"])
    console.print("qlog ledger shows the account, qlog audit verifies the releases, make ui opens Dagster.")


def show_examples(path: str) -> None:
    """The first rows of a released table: public by now."""
    import pyarrow.parquet as pq

    table = pq.read_table(f"{path}/queries.parquet").slice(0, 5)
    console.print(f"The first rows of {path}/queries.csv:")
    show_table(table.column_names, [list(row.values()) for row in table.to_pylist()])
