"""The study `safelog-pool`: what the register finds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from qlog_assets.studies import retrieval_plots
from qlog_assets.studies.retrieval_plots import Line, Panel
from qlog_assets.studies.retrieval_rows import by_fold_and_over_folds, split_words
from qlog_assets.studies.safelog_pool.months import EARLIER, OWN, logs_until, measure_months
from qlog_assets.studies.safelog_pool.settings import PAPER, PoolSettings
from qlog_assets.studies.safelog_pool.shares import KEYS, measure_shares
from qlog_assets.studies.study import Row, Step, Study, StudyWork, Tables

QUESTION = (
    "What does Safelog's public pool cost, and what does it buy? As the paper prints it, the share p_g of the pool is "
    "in the price, and pool queries that nobody typed are printed. As it may be released, queries of the pool need "
    "fewer users than others. And what do earlier releases give, as the pool of the next month?"
)


def steps(work: StudyWork) -> Sequence[Step]:
    shares = [Step(f"shares-{part}", partial(measure_shares, part=part)) for part in range(work.settings.folds)]
    return [*shares, Step("months", measure_months)]


def combine(tables: Tables) -> Tables:
    return by_fold_and_over_folds("shares", tables, KEYS)


def pictures(tables: Tables) -> dict[str, bytes]:
    rows = tables["shares"]
    names = list(dict.fromkeys(name_of(row) for row in rows))
    lines = {name: [row for row in rows if name_of(row) == name] for name in names}
    panels = [
        Panel(
            title,
            "p_g",
            [Line(name, [(row["p_g"], row[column]) for row in line]) for name, line in lines.items()],
        )
        for title, column in (
            ("ε as claimed", "epsilon"),
            ("printed, though nobody typed them", "fakes"),
            ("queries of the pool that somebody typed", "found_in_pool"),
        )
    ]
    searched = Panel(
        "nDCG@10, zero for missing",
        "p_g",
        [
            Line(
                name,
                [(row["p_g"], row["with_zeros"]) for row in line],
                [None if row["zeros_low"] is None else (row["zeros_low"], row["zeros_high"]) for row in line],
                [f"{row['evaluated']:,}" for row in line],
            )
            for name, line in lines.items()
        ],
    )
    title = (
        f"A share p_g of the pool, split by {rows[0]['split']}. Beside the points of the last: queries evaluated of "
        f"{rows[0]['tested']:,}"
    )
    return {"shares.png": retrieval_plots.line_panels([[*panels, searched]], title)}


def name_of(row: Row) -> str:
    """A variant, and of the paper's its K."""
    return f"{row['variant']}, K = {row['K']}" if row["variant"] == PAPER else str(row["variant"])


def words(tables: Tables, settings: PoolSettings) -> str:
    """Both ends of p_g for every variant, and the last month with its own pool and with earlier releases."""
    sentences = [f"Split by {split_words(settings)}, {settings.folds} of five folds."]
    for name in dict.fromkeys(name_of(row) for row in tables["shares"]):
        line = sorted((row for row in tables["shares"] if name_of(row) == name), key=lambda row: row["p_g"])
        ends = [
            f"at p_g = {row['p_g']:g} ε is {row['epsilon']:.2f}, {row['queries']:,} queries are printed, "
            f"{row['found_in_pool']:,} of the pool that somebody typed and {row['fakes']:,} that nobody did, nDCG@10 "
            f"with zeros {row['with_zeros'] or 0:.4f} over {row['evaluated']:,} of {row['tested']:,} queries"
            for row in (line[0], line[-1])
        ]
        sentences.append(f"{name}: {'; '.join(ends)}.")
    last = max(row["month"] for row in tables["months"])
    if last == min(row["month"] for row in tables["months"]):
        return " ".join([*sentences, "There is no earlier month: nothing could be the pool of the next."])
    for row in tables["months"]:
        if row["month"] == last and row["pool"] in (OWN, EARLIER):
            sentences.append(
                f"{row['variant']} in {last} with {row['pool']} as the pool ({row['pool_queries']:,} queries): "
                f"{row['queries']:,} queries, {row['fakes']:,} that nobody typed, nDCG@10 with zeros "
                f"{row['with_zeros'] or 0:.4f}."
            )
    return " ".join(sentences)


SHOWN = (
    "pool_queries", "pool_typed", "queries", "found_in_pool", "fakes", "pairs", "tested", "with_zeros", "zeros_low",
    "zeros_high", "evaluated", "as_paper",
)  # fmt: skip
PRICE = ("epsilon", "epsilon_tight", "delta", "proven")
STUDY = Study(
    name="safelog-pool",
    title="What Safelog's pool costs and buys",
    question=QUESTION,
    settings=PoolSettings,
    steps=steps,
    mechanism="safelog",
    combine=combine,
    columns={
        "shares": (*KEYS, *PRICE, *SHOWN),
        "shares_by_fold": ("fold", *KEYS, *PRICE, *SHOWN),
        "months": ("split", "variant", "pool", "month", "K", *PRICE, *SHOWN),
    },
    shown_rows={"shares_by_fold": lambda row: False},
    pictures=pictures,
    words=words,
    reads=logs_until,
)
