"""Has Spark draw the blocks of a synthetic log, many at once; the log is the same to the byte.

Each task writes its blocks as files to a folder that all machines share, whole or not at all, and this process puts
them together in order. A block that is drawn twice, after a machine was lost, is the same block. Workers need qlog
installed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from qlog_assets.storage.engine import EnginePolicy
from qlog_assets.storage.scratch import temporary_directory
from qlog_assets.storage.spark_session import open_spark
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.synthetic.writing import BlockPlan, DrawBlocks, Part, UserBlock, draw_in_turn

COLUMNS = "number bigint, rows bigint, users bigint, searches bigint, clicks bigint"
"""What a task says of a block that it wrote."""


def who_draws(warehouse: Warehouse, spark: EnginePolicy | None) -> DrawBlocks:
    """This process, unless Spark is given."""
    return draw_in_turn if spark is None else drawn_by_spark(warehouse, spark)


def drawn_by_spark(warehouse: Warehouse, chosen: EnginePolicy) -> DrawBlocks:
    """Who draws blocks on the machines that the policy names, or on this one."""

    def draw(plan: BlockPlan, blocks: Sequence[UserBlock]) -> Iterator[Part]:
        tasks = pa.table(
            {
                "number": [block.number for block in blocks],
                "first_user": [block.first_user for block in blocks],
                "rows_of_user": pa.array([block.rows_of_user.astype(np.int64) for block in blocks]),
            }
        )
        with (
            open_spark(warehouse, chosen.master) as engine,
            temporary_directory(warehouse.spill) as folder,
            engine.table("blocks", tasks),
        ):
            told = engine.mapped_rows("blocks", write_blocks(plan, folder), COLUMNS).to_pylist()
            facts = {each["number"]: each for each in told}
            for block in blocks:
                path, said = folder / str(block.number), facts[block.number]
                yield Part(path.read_bytes(), said["rows"], said["users"], said["searches"], said["clicks"])
                path.unlink()

    return draw


def write_blocks(plan: BlockPlan, folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: draw the blocks of its batches, write each to a file, and tell how large they are."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = plan.pieces()
        for batch in batches:
            told = []
            for task in batch.to_pylist():
                rows_of_user = np.array(task["rows_of_user"], dtype=np.int64)
                part = plan.draw(pieces, UserBlock(task["number"], task["first_user"], rows_of_user))
                partial = folder / f".{task['number']}-{uuid.uuid4().hex}"
                partial.write_bytes(part.text)
                os.replace(partial, folder / str(task["number"]))
                sizes = (part.rows, part.users, part.searches, part.clicks)
                told.append(dict(zip(("rows", "users", "searches", "clicks"), sizes, strict=True)))
                told[-1]["number"] = task["number"]
            yield pa.RecordBatch.from_pylist(
                told, pa.schema([(name.split()[0], pa.int64()) for name in COLUMNS.split(", ")])
            )

    return write
