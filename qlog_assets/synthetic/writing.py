"""Writing the synthetic log to its landing file: checking the request, cutting users into blocks, joining, renaming.

Each block has a stream of draws of its own, so whoever draws it, in whatever order, draws the same.

Belongs here: the one function that writes, and nothing about what people search or how lines are worded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.synthetic.behaviour import AOL_ROWS, AOL_USERS, Numbers, rows_of_users
from qlog_assets.synthetic.drawing import draw_block
from qlog_assets.synthetic.person import ROWS_OF_THE_PERSON, person_rows
from qlog_assets.synthetic.pieces import Pieces, user_number
from qlog_assets.synthetic.planted import ROWS_OF_A_CANARY, Canary, TypedRow, canary_rows, plant

HEADER = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
FEWEST_ROWS, MOST_ROWS = 1_000, 100_000_000
MOST_MONTHS = 120
# Small enough that a block's arrays stay in the processor's cache, large enough that numpy's calls cost little.
ROWS_PER_BLOCK = 1 << 15
# Streams of draws that never meet: the plan, the blocks, the canaries' rows (their strings have a stream of their own),
# the planted person.
PLAN_STREAM, BLOCK_STREAM, CANARY_ROWS_STREAM, PERSON_STREAM = 0, 2, 3, 4
WORLDS = (1, 2, 3)


@dataclass(frozen=True)
class SyntheticFacts:
    """What was written. Synthetic, so none of it is private."""

    path: Path
    rows: int
    users: int
    searches: int
    clicks: int
    first: str
    last: str
    seed: int
    canaries: tuple[Canary, ...]
    world_version: int


@dataclass(frozen=True)
class Part:
    """Some whole users of the log, ready to be written."""

    text: bytes | memoryview
    rows: int
    users: int
    searches: int
    clicks: int


@dataclass(frozen=True)
class BlockPlan:
    """What blocks are drawn by, the same for all of them."""

    seed: int
    first_day: date
    days: int
    most_users: int
    world_version: int

    def pieces(self) -> Pieces:
        return Pieces(
            self.first_day,
            self.days,
            self.most_users,
            typed_raw=self.world_version == 2,
            ambiguous=self.world_version == 3,
        )

    def draw(self, pieces: Pieces, block: UserBlock) -> Part:
        users = len(block.rows_of_user)
        drawn = draw_block(_stream(self.seed, BLOCK_STREAM, block.number), block.rows_of_user, pieces, self.days)
        pieces.name_users(block.first_user, users)
        return Part(pieces.join(drawn.lines), len(drawn.lines), users, drawn.searches, drawn.clicks)


@dataclass(frozen=True)
class UserBlock:
    """Some users of the log that are drawn together."""

    number: int
    first_user: int
    rows_of_user: Numbers


DrawBlocks = Callable[[BlockPlan, Sequence[UserBlock]], Iterator[Part]]
"""Draws blocks and gives them in their order."""


def draw_in_turn(plan: BlockPlan, blocks: Sequence[UserBlock]) -> Iterator[Part]:
    """One after the other, in this process."""
    pieces = plan.pieces()
    for block in blocks:
        yield plan.draw(pieces, block)


def write_log(
    path: Path,
    rows: int,
    seed: int,
    first: str = "2006-03",
    last: str = "2006-05",
    *,
    canaries: int | None = None,
    world_version: int = 1,
    progress: Callable[[int], None] | None = None,
    draw_blocks: DrawBlocks = draw_in_turn,
) -> SyntheticFacts:
    """Write a log of exactly so many rows over these months (inclusive), sorted by user and then time, as AOL's is.

    The same arguments write the same bytes. `canaries` is how many to plant (None: by size, see `default_count`);
    `world_version` 2 has raw spellings, urls with paths and a planted person, 3 has ambiguous queries and portals (see
    the package's docstring); `progress` is called after each block with the rows written so far; `draw_blocks` is who
    draws them. The file appears under its name only when it is whole; a file that is already there is not touched.
    """
    if world_version not in WORLDS:
        raise ParameterError(f"the synthetic world has the versions {', '.join(map(str, WORLDS))}, not {world_version}")
    months = _months(first, last)
    planted = _planted(rows, seed, canaries)
    if path.exists():
        raise QlogError(f"{path.name} is already there and landing files are never changed: choose another name")
    written = users = searches = clicks = 0
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as out:
            out.write(HEADER)
            for part in _parts(rows, seed, months, planted, world_version, draw_blocks):
                out.write(part.text)
                written += part.rows
                users += part.users
                searches += part.searches
                clicks += part.clicks
                if progress is not None:
                    progress(written)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
    return SyntheticFacts(path, written, users, searches, clicks, first, last, seed, tuple(planted), world_version)


def _stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _months(first: str, last: str) -> list[date]:
    """The first days of the months, and of the one after the last."""
    try:
        begin, end = date.fromisoformat(f"{first}-01"), date.fromisoformat(f"{last}-01")
    except ValueError as error:
        raise ParameterError(f"months are written like 2006-03, not {first!r} and {last!r}") from error
    count = 12 * (end.year - begin.year) + end.month - begin.month + 1
    if not 1 <= count <= MOST_MONTHS:
        raise ParameterError(f"from {first} to {last} is {count} months: between 1 and {MOST_MONTHS} are possible")
    numbers = range(12 * begin.year + begin.month - 1, 12 * begin.year + begin.month + count)
    return [date(number // 12, number % 12 + 1, 1) for number in numbers]


def _users(rows: int) -> int:
    return round(rows * AOL_USERS / AOL_ROWS)


def _planted(rows: int, seed: int, count: int | None) -> list[Canary]:
    if not FEWEST_ROWS <= rows <= MOST_ROWS:
        raise ParameterError(f"a synthetic log has {FEWEST_ROWS:,} to {MOST_ROWS:,} rows, not {rows:,}")
    if seed < 0:
        raise ParameterError("a seed is a whole number, zero or more")
    # A canary is a user with a few rows; at least half of the users and rows stay ordinary ones.
    most = min(_users(rows) // 2, rows // (2 * ROWS_OF_A_CANARY))
    if count is not None and not 0 <= count <= most:
        raise ParameterError(f"a log of {rows:,} rows has room for 0 to {most:,} canaries, not {count:,}")
    return plant(rows, seed, count)


def _blocks(rows_of_user: Numbers) -> Iterator[slice]:
    """Cut the users into blocks of about ROWS_PER_BLOCK rows."""
    block = (np.cumsum(rows_of_user) - 1) // ROWS_PER_BLOCK
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    for begin, end in zip(begins, np.append(begins[1:], len(block)), strict=True):
        yield slice(int(begin), int(end))


def _parts(
    rows: int, seed: int, months: list[date], planted: list[Canary], world_version: int, draw_blocks: DrawBlocks
) -> Iterator[Part]:
    days = (months[-1] - months[0]).days
    with_person = world_version == 2
    rows_of_user = rows_of_users(
        _stream(seed, PLAN_STREAM),
        rows - len(planted) * ROWS_OF_A_CANARY - with_person * ROWS_OF_THE_PERSON,
        _users(rows) - len(planted) - with_person,
        len(months) - 1,
    )
    cuts = list(_blocks(rows_of_user))

    # Canaries live among the other users: each block is followed by its share of them. So may the person be.
    def share(number: int) -> slice:
        return slice(number * len(planted) // len(cuts), (number + 1) * len(planted) // len(cuts))

    def has_person(number: int) -> bool:
        return with_person and number == len(cuts) // 2

    blocks, index = [], 0
    for number, cut in enumerate(cuts):
        blocks.append(UserBlock(number, index, rows_of_user[cut]))
        index += cut.stop - cut.start + len(planted[share(number)]) + has_person(number)
    plan = BlockPlan(seed, months[0], days, max(cut.stop - cut.start for cut in cuts), world_version)
    canary_rng = _stream(seed, CANARY_ROWS_STREAM)
    for block, part in zip(blocks, draw_blocks(plan, blocks), strict=True):
        yield part
        people = [canary_rows(canary, canary_rng, months[0], days) for canary in planted[share(block.number)]]
        if has_person(block.number):
            people.insert(0, person_rows(_stream(seed, PERSON_STREAM), months[0], (months[1] - months[0]).days))
        for place, typed in enumerate(people):
            yield _typed_part(block.first_user + part.users + place, typed)


def _typed_part(index: int, typed: list[TypedRow]) -> Part:
    """The lines of one user whose rows are written out one by one."""
    text = "".join(f"{user_number(index)}\t{row.text()}\n" for row in typed).encode("ascii")
    clicks = sum(row.click is not None for row in typed)
    return Part(text, len(typed), 1, len({(row.time, row.query) for row in typed}), clicks)
