"""Logs that are nothing like AOL's, in its format: what breaks a pipeline that was only measured on a well-behaved one.

One user with a million rows; one query that is half of the log; queries of 4,000 characters; five million users with
one row each. Seeded, written in blocks. Usage, from the root of the checkout:

    python -m benchmarks.skewed one_user OUT.txt [--rows N] [--seed S]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
MONTHS_START = np.datetime64("2006-03-01T00:00:00")
MONTHS_SECONDS = 92 * 86_400
FIRST_USER = 10_000_000
LONG_QUERY = 4_000
"""Characters; the reader takes 4,096."""


class Block(NamedTuple):
    """Consecutive rows of a log: the number of the first, how many, and how many the log has."""

    start: int
    size: int
    rows: int


class Shape(NamedTuple):
    """One kind of skewed log."""

    rows: int
    """Of the full size that the issue names."""
    users: Callable[[np.random.Generator, Block], np.ndarray]
    queries: Callable[[np.random.Generator, Block], list[str]]
    block_rows: int = 100_000


def few_users(generator: np.random.Generator, block: Block) -> np.ndarray:
    return generator.integers(0, 50_000, block.size)


def one_user(generator: np.random.Generator, block: Block) -> np.ndarray:
    """User 0 has the first half of the log, a million rows of two million; the others share the rest."""
    others = generator.integers(1, 50_000, block.size)
    return np.where(np.arange(block.start, block.start + block.size) < block.rows // 2, 0, others)


def own_user(generator: np.random.Generator, block: Block) -> np.ndarray:
    return np.arange(block.start, block.start + block.size)


def ordinary_queries(generator: np.random.Generator, block: Block) -> list[str]:
    """Zipf-like: some words with a number."""
    return [f"query number {number}" for number in generator.zipf(1.3, block.size) % 1_000_000]


def half_the_same(generator: np.random.Generator, block: Block) -> list[str]:
    rare = ordinary_queries(generator, block)
    return ["google" if same else text for same, text in zip(generator.random(block.size) < 0.5, rare, strict=True)]


def long_queries(generator: np.random.Generator, block: Block) -> list[str]:
    """Words of six letters; every query is typed twice, so that there is something to count."""
    letters = generator.integers(ord("a"), ord("z") + 1, (block.size // 2 + 1, LONG_QUERY), dtype=np.uint8)
    letters[:, 6::7] = ord(" ")
    letters[:, -1] = ord("z")
    texts = [row.tobytes().decode("ascii") for row in letters]
    return [texts[index // 2] for index in range(block.size)]


SHAPES = {
    "one_user": Shape(2_000_000, one_user, ordinary_queries),
    "one_query": Shape(4_000_000, few_users, half_the_same),
    "long_queries": Shape(200_000, few_users, long_queries, block_rows=2_000),
    "many_users": Shape(5_000_000, own_user, ordinary_queries),
}


def write_skewed_log(path: Path, name: str, rows: int | None = None, seed: int = 1) -> int:
    """Write a skewed log of three months in the AOL format; returns its rows."""
    shape = SHAPES[name]
    rows = shape.rows if rows is None else rows
    generator = np.random.default_rng(seed)
    with path.open("w", encoding="ascii", newline="") as out:
        out.write(HEADER)
        for start in range(0, rows, shape.block_rows):
            block = Block(start, min(shape.block_rows, rows - start), rows)
            users, queries = shape.users(generator, block), shape.queries(generator, block)
            seconds = generator.integers(0, MONTHS_SECONDS, len(users))
            times = np.datetime_as_string(MONTHS_START + seconds.astype("timedelta64[s]")).tolist()
            clicked = (generator.random(len(users)) < 0.5).tolist()
            ranks = generator.integers(1, 11, len(users)).tolist()
            out.writelines(
                f"{FIRST_USER + user}\t{query}\t{time.replace('T', ' ')}\t"
                + (f"{rank}\thttp://www.site{rank}.example\n" if click else "\t\n")
                for user, query, time, click, rank in zip(users.tolist(), queries, times, clicked, ranks, strict=True)
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(write_skewed_log(options.out, options.shape, options.rows, options.seed))


if __name__ == "__main__":
    main()
