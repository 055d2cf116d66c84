"""`qlog demo`: a synthetic log, three monthly releases, and what pure ε would release. Nothing but calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
URLS = "public/urls.txt"
PURE_NAME = "pure.toml"
PURE_HEAD = """\
# The demo's policy with a public list of urls, for a simulation alone; `qlog demo` wrote it. To try it by hand, in this
# directory: QLOG_POLICY={} qlog simulate safelog --month 2006-03 --variant sound --set safelog.delta=0
url_list = "{}"

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
        with listing_urls(policy_file) as pure:
            headline = simulate_month(warehouse, pure, {"safelog.delta": "0"}, "safelog", FIRST, "sound", seed, tell)
    facts = {"ingested": ingested, "releases": answers, "pure": headline}
    show(facts, as_json, lambda _: demo_lines(rows, answers, headline))


@contextmanager
def listing_urls(policy_file: Path) -> Iterator[Policy]:
    """The demo's policy with a list of urls, for the time of a block: a policy file names files, a run does not.

    It is the policy file that is there, plus the list; one that names a list already, or is not the demo's, is taken as
    it is.
    """
    text = policy_file.read_text(encoding="utf-8")
    ours = text.startswith(POLICY.partition("\n")[0]) and (policy_file.parent / URLS).is_file()
    if not ours or Policy.load(policy_file).url_list is not None:
        yield Policy.load(policy_file)
        return
    pure_file = policy_file.with_name(PURE_NAME)
    pure_file.write_text(PURE_HEAD.format(pure_file.name, URLS) + text, encoding="utf-8")
    before = os.environ.get("QLOG_POLICY")
    os.environ["QLOG_POLICY"] = str(pure_file)
    try:
        yield Policy.load(pure_file)
    finally:
        os.environ.pop("QLOG_POLICY")
        if before is not None:
            os.environ["QLOG_POLICY"] = before


def demo_lines(rows: int, answers: list[dict[str, Any]], headline: dict[str, Any]) -> None:
    from qlog_assets.cli.releases import release_table
    from qlog_assets.privacy.bounds import at_most

    console.print(f"A synthetic log of {rows:,} rows, three months, released:")
    release_table(answers)
    if not any(answer["charged"] for answer in answers):
        console.print("Nothing new: the three releases were there already, and nothing was charged.")
    counts = headline["rows"]
    console.print(
        f"With delta = 0, the paper's headline, {headline['month']} would hold {counts['queries']:,} queries, all of "
        f"them from the public pool, {counts.get('clicks', 0):,} clicks on listed urls and "
        f"{counts.get('transitions', 0):,} transitions at ε = {at_most(headline['claimed']['epsilon'], 6)}: "
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
