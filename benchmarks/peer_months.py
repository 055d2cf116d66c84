"""Our releases of the peers' logs: who contributes what, one draw of each method, and months that follow one another.

From the second month on a steered draw is steered by the draw of the month before in the same chain, as a publisher
would do with the last release. Chains are independent of one another. Which methods and logs there are to measure is
decided in `peers.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measuring import forget_peak, peak_mb
from benchmarks.peer_log import HEAVY_PART, PLANTED, Law, month_log, popular_queries
from benchmarks.peer_scores import DELTA, EPSILON, accuracy, line, mean_error
from qlog_assets.privacy.gaussian import gaussian_budget, new_item_threshold, noise_squared
from qlog_assets.privacy.hidden_items import hiding_threshold
from qlog_assets.privacy.randomness import SecureRandom
from qlog_assets.privacy.steered import PublicItems, release_steered
from qlog_assets.storage.engine import DuckDBEngine

ONE_ROUND, STEERED, STEERED_POOL = "weighted_gaussian", "steered", "steered, public pool"
WEIGHTED = (ONE_ROUND, "sips")
PER_USER = {ONE_ROUND: 200, STEERED: 1_000}
"""Items per user: what one round can take, and a stage's limit, which steered selection needs for nothing else."""
POOL = 100_000
"""The public pool: so many queries that are the most frequent by the law, whatever the log holds of them."""
MONTHS = (1, 2, 3)
GROUPS = ("planted", "mostly heavy", "rest")
Printed = tuple[pa.Array, np.ndarray]
"""A release: texts, and a noisy number of users for each."""


@dataclass(frozen=True)
class Chosen:
    """What reaches a draw: who contributes which item, how many contribute each, and the truth about each item.

    Items are numbered by their texts. True numbers of users are those of the log, before any limit.
    """

    user_ids: np.ndarray
    item_ids: np.ndarray
    held_by: np.ndarray
    texts: pa.Array
    true_users: np.ndarray
    heavy_users: np.ndarray
    """How many of the true users are heavy ones."""
    public: PublicItems = field(default_factory=PublicItems)
    seconds: float = 0.0
    peak_mb: float = 0.0


@dataclass(frozen=True)
class Draw:
    """What was printed, and what printing it took."""

    items: np.ndarray
    users: np.ndarray
    seconds: float
    cpu: float
    peak_mb: float


@contextmanager
def open_month(law: Law, month: int) -> Iterator[DuckDBEngine]:
    """A database of its own for one month, so that its memory is one month's: the log, and what is true of it."""
    with duckdb.connect() as connection:
        engine = DuckDBEngine(connection)
        load_month(engine, law, month)
        yield engine


def load_month(engine: DuckDBEngine, law: Law, month: int) -> None:
    with engine.table("cleaned_queries", month_log(law, month)):
        engine.connection.execute("CREATE OR REPLACE TABLE events AS SELECT DISTINCT * FROM cleaned_queries")
    engine.connection.execute(
        f"""CREATE OR REPLACE TABLE truth AS
            WITH activity AS (SELECT "user", count(*) AS items FROM events GROUP BY ALL),
            heavy AS (
                SELECT "user", row_number() OVER (ORDER BY items DESC, "user") <= {law.users // HEAVY_PART} AS is_heavy
                FROM activity
            )
            SELECT query, count(*)::BIGINT AS true_users, count(*) FILTER (is_heavy)::BIGINT AS heavy_users
            FROM events JOIN heavy USING ("user") GROUP BY query"""
    )


def choose_items(engine: DuckDBEngine, per_user: int, draw: int) -> Chosen:
    """At most so many items of each user, by our statement; another key for each draw."""
    forget_peak()
    started = time.perf_counter()
    engine.statement_table("contributions/chosen_items", "contributions", key=f"peers {draw} ", items_per_user=per_user)
    engine.statement_table("contributions/counted_items")
    pairs = engine.arrays("contributions/numbered_contributions")
    seconds, peak = time.perf_counter() - started, peak_mb()
    told = engine.connection.sql(
        "SELECT query, weight, true_users, heavy_users FROM counted_items JOIN truth USING (query) ORDER BY item_id"
    ).to_arrow_table()
    held_by, true_users, heavy_users = (told[name].to_numpy().astype(np.int64) for name in told.column_names[1:])
    texts = told["query"].combine_chunks()
    return Chosen(
        pairs["user_id"], pairs["item_id"], held_by, texts, true_users, heavy_users, seconds=seconds, peak_mb=peak
    )


def with_public(engine: DuckDBEngine, chosen: Chosen, texts: pa.Array, users: np.ndarray | None = None) -> Chosen:
    """The same with public items: known ones with the numbers of users that were published, or without them a list.

    Those that nobody contributes are numbered after all others: their order decides nothing, as nobody holds them.
    """
    with engine.table("public_texts", pa.table({"place": np.arange(len(texts)), "query": texts})):
        found = engine.connection.sql(
            "SELECT coalesce(true_users, 0) AS true_users, coalesce(heavy_users, 0) AS heavy_users "
            "FROM public_texts LEFT JOIN truth USING (query) ORDER BY place"
        ).to_arrow_table()
    numbers = pc.index_in(texts, value_set=chosen.texts).fill_null(-1).to_numpy().astype(np.int64)
    absent = np.flatnonzero(numbers < 0)
    numbers[absent] = len(chosen.texts) + np.arange(len(absent))
    truth = {name: found[name].to_numpy().astype(np.int64)[absent] for name in ("true_users", "heavy_users")}
    return Chosen(
        chosen.user_ids,
        chosen.item_ids,
        np.concatenate([chosen.held_by, np.zeros(len(absent), dtype=np.int64)]),
        pa.concat_arrays([chosen.texts, texts.take(pa.array(absent))]),
        np.concatenate([chosen.true_users, truth["true_users"]]),
        np.concatenate([chosen.heavy_users, truth["heavy_users"]]),
        PublicItems(listed=numbers) if users is None else PublicItems(known=numbers, known_users=users),
        chosen.seconds,
        chosen.peak_mb,
    )


def draw_ours(method: str, per_user: int, chosen: Chosen) -> Draw:
    """One release by one of our methods, planned anew each time: a release plans once, in a process of its own."""
    for remembered in (noise_squared, new_item_threshold, hiding_threshold):
        remembered.cache_clear()
    forget_peak()
    started, cpu = time.perf_counter(), time.process_time()
    if method in (STEERED, STEERED_POOL):
        budget = gaussian_budget(Fraction(EPSILON), Fraction(DELTA))
        drawn: Any = release_steered(
            SecureRandom(), chosen.user_ids, chosen.item_ids, len(chosen.texts), chosen.public, budget
        )
    else:
        drawn = draw_zealous(method, per_user, chosen)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Draw(drawn.items, drawn.users, seconds, cpu, max(peak_mb(), chosen.peak_mb))


def draw_zealous(method: str, per_user: int, chosen: Chosen) -> Any:
    from qlog_assets.mechanisms.zealous import noise as zealous
    from qlog_assets.mechanisms.zealous.parameters import ZealousParameters

    parameters = ZealousParameters(items_per_user=per_user, kinds=("queries",), epsilon=EPSILON, delta=DELTA)
    if method in WEIGHTED:
        changed = parameters.with_changes(method=method)
        return zealous.draw_rows(SecureRandom(), chosen.user_ids, chosen.item_ids, changed)
    variant = "sound" if method == "sound" else "modern"
    changed = parameters.with_changes(method="gaussian_counts" if method == "sound" else method)
    return zealous.draw_counts(SecureRandom(), chosen.held_by, variant, changed)


def draw_months(law: Law, draws: int, choices: int) -> Iterator[dict[str, Any]]:
    """One round and steered selection, by turns, of months that follow one another: a line for each and month.

    `choices`: for how many of the draws users' items are chosen anew; the other draws take the last choice.
    """
    last: list[Printed] = []
    for month in MONTHS:
        with open_month(law, month) as engine:
            scores, last = draw_month(engine, last, draws, choices)
        for method, scored in scores.items():
            yield line("qlog", method, PER_USER[method], scored, log=law.name, month=month)


def draw_month(
    engine: DuckDBEngine, last: list[Printed], draws: int, choices: int
) -> tuple[dict[str, list[dict[str, float]]], list[Printed]]:
    """Each method's scores in one month, and what steered selection printed; `last` is what it printed before."""
    scores: dict[str, list[dict[str, float]]] = {method: [] for method in PER_USER}
    chosen: dict[str, Chosen] = {}
    printed = []
    for draw in range(draws):
        for method, per_user in PER_USER.items():
            if draw < choices:
                chosen.pop(method, None)  # or its memory would be counted for this draw's
                chosen[method] = choose_items(engine, per_user, draw)
            rows = chosen[method]
            if method == STEERED and last:
                rows = with_public(engine, rows, *last[draw])
            drawn = draw_ours(method, per_user, rows)
            scores[method].append(score(drawn, rows))
            if method == STEERED:
                printed.append((rows.texts.take(pa.array(drawn.items)), drawn.users))
    return scores, printed


def draw_with_pool(engine: DuckDBEngine, law: Law, draws: int) -> dict[str, Any]:
    """Steered selection of a first month with a public pool: a line."""
    pool = popular_queries(law, POOL)
    scored = []
    for draw in range(draws):
        rows = with_public(engine, choose_items(engine, PER_USER[STEERED], draw), pool)
        scored.append(score(draw_ours(STEERED_POOL, PER_USER[STEERED], rows), rows))
    return line("qlog", STEERED_POOL, PER_USER[STEERED], scored, log=law.name, month=1)


def score(drawn: Draw, chosen: Chosen) -> dict[str, float]:
    """What one draw is worth and what it cost."""
    true_users = chosen.true_users[drawn.items]
    scored = {
        **accuracy(drawn.users, true_users),
        "seconds": drawn.seconds,
        "cpu": drawn.cpu,
        "choosing": chosen.seconds,
        "peak_mb": drawn.peak_mb,
    }
    planted = np.array([text.startswith(PLANTED) for text in chosen.texts.take(pa.array(drawn.items)).to_pylist()])
    if planted.any():
        mostly = 2 * chosen.heavy_users[drawn.items] > true_users
        for group, of_group in zip(GROUPS, (planted, mostly & ~planted, ~mostly & ~planted), strict=True):
            scored[f"{group}: released"] = int(of_group.sum())
            scored[f"{group}: bias"] = mean_error(drawn.users[of_group], true_users[of_group])
    return scored
