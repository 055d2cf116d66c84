"""The peers' task: logs of Zipf queries by log-normal users, the same for every library. It makes logs and no more.

The task's first month has five million rows, 100,000 users, 1.4 million distinct queries, the most frequent of which
has 1 % of the rows. Further months are drawn from the same law with other seeds. Nobody tuned for `OTHER_LAWS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ROWS, USERS = 5_000_000, 100_000
DISTINCT, HEAD = 1_400_000, 0.01
SIZE, EXPONENT = 2_232_140, 0.7884352935478092
"""What `solve_shape` finds for these: kept here because finding it takes half a minute."""
SEED = 20241
SYLLABLES = np.array([*map("".join, zip(*[iter("bacodifugehajikolumenopiqurosutaviwoxezu")] * 2, strict=True))])
HEAVY_PART = 10
"""One in so many users, the most active, is a heavy user."""
LEAST_TYPED, MOST_TYPED = 100, 1_000
"""How many heavy users type each planted query: from what is sometimes named to what always is."""
PLANTED = "only heavy users type "


@dataclass(frozen=True)
class Law:
    """What the logs of all months of one kind are drawn from."""

    name: str = "task"
    rows: int = ROWS
    users: int = USERS
    size: int = SIZE
    """How many different queries there are to type."""
    exponent: float = EXPONENT
    even_users: bool = False
    """Everybody types equally many rows, instead of a log-normal number."""
    replaced: float = 0.0
    """The part of the queries that are other queries from one month to the next."""
    planted: int = 0
    """How many queries are added that only heavy users type, the same in every month."""


OTHER_LAWS = (
    Law("Zipf exponent 0.8", exponent=0.8),
    Law("Zipf exponent 1", exponent=1.0),
    Law("1 million users of 3 queries", rows=3_000_000, users=1_000_000, even_users=True),
    Law("30 % of the queries replaced each month", replaced=0.3),
    Law("200 queries that only heavy users type", planted=200),
)


def zipf(size: int, exponent: float) -> np.ndarray:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def exponent_of(size: int) -> float:
    """The exponent at which the first of `size` queries has its share of the rows."""
    low, high = 0.3, 1.3
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if zipf(size, middle)[0] > HEAD else (middle, high)
    return middle


def solve_shape() -> tuple[int, float]:
    """The size and exponent of the law for which a log of ROWS rows holds about DISTINCT different queries."""
    low, high = float(DISTINCT), 2e7
    for _ in range(14):
        size = int((low + high) / 2)
        law = zipf(size, exponent_of(size))
        low, high = (low, size) if (1 - np.exp(-ROWS * law)).sum() > DISTINCT else (size, high)
    return size, exponent_of(size)


def names(ranks: np.ndarray) -> np.ndarray:
    """A pronounceable text for each rank, different for different ranks."""
    mixed = (ranks * np.int64(2654435761)) & 0xFFFFFF
    first, second, third, fourth = (SYLLABLES[(mixed // 20**place) % 20] for place in range(4))
    words = np.char.add(np.char.add(first, second), np.char.add(" ", np.char.add(third, fourth)))
    return np.char.add(np.char.add(words, " "), ranks.astype("U8"))


def peer_log(rows: int = ROWS, users: int = USERS) -> pa.Table:
    """The log of the task's first month: user and query, in the order of time."""
    return month_log(Law(rows=rows, users=users))


def month_log(law: Law, month: int = 1) -> pa.Table:
    """The log of one month, counted from 1: user and query, in the order of time."""
    random = np.random.default_rng(SEED + month - 1)
    typed = np.searchsorted(_cumulated(zipf(law.size, law.exponent)), random.random(law.rows)).astype(np.int64)
    if law.even_users:
        activity = np.ones(law.users)
        owners = np.arange(law.rows, dtype=np.int64) % law.users
    else:
        activity = random.lognormal(0, 1.2, law.users)
        owners = np.searchsorted(_cumulated(activity / activity.sum()), random.random(law.rows)).astype(np.int64)
    ranks, places = np.unique(typed, return_inverse=True)
    texts = pa.array(names(queries_of(law, month)[ranks]), pa.string()).take(pa.array(places))
    log = pa.table({"user": pa.array(owners).cast(pa.string()), "query": texts})
    return pa.concat_tables([log, planted_log(law, activity, random)]) if law.planted else log


def queries_of(law: Law, month: int) -> np.ndarray:
    """The query that is typed at each rank of popularity: another one where it was replaced since the first month."""
    generations = np.zeros(law.size, dtype=np.int64)
    for later in range(2, month + 1):
        generations += np.random.default_rng([SEED, later]).random(law.size) < law.replaced
    return np.arange(law.size) + generations * law.size


def popular_queries(law: Law, most: int) -> pa.Array:
    """The texts of the queries that are most often typed in a first month, by the law and not by any log."""
    return pa.array(names(np.arange(min(most, law.size), dtype=np.int64)), pa.string())


def planted_log(law: Law, activity: np.ndarray, random: np.random.Generator) -> pa.Table:
    """Rows of queries that only the most active users type, each user once."""
    heavy = np.argsort(-activity, kind="stable")[: max(law.users // HEAVY_PART, 1)]
    sizes = np.minimum(np.geomspace(LEAST_TYPED, MOST_TYPED, law.planted).astype(np.int64), len(heavy))
    owners = np.concatenate([random.choice(heavy, size, replace=False) for size in sizes])
    texts = np.repeat([f"{PLANTED}{number}" for number in range(law.planted)], sizes)
    return pa.table({"user": pa.array(owners).cast(pa.string()), "query": pa.array(texts, pa.string())})


def _cumulated(law: np.ndarray) -> np.ndarray:
    total = np.cumsum(law)
    total[-1] = 1
    return total
