"""What partitions tell a mechanism that reads them: which public lists they were made with, and by which version."""

from __future__ import annotations

from collections.abc import Iterator

from qlog_assets.mechanisms.register import mechanisms
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.public_material import PUBLIC_LISTS
from qlog_assets.pipeline.stage import Inputs, Stage
from qlog_assets.storage.partition import PUBLIC_MATERIAL, Partition
from qlog_assets.storage.warehouse import Warehouse


def stages() -> Iterator[Stage]:
    """Every stage there is: the log's own and those of all mechanisms."""
    yield CLEANED_LOG
    for mechanism in mechanisms():
        yield from mechanism.stages


def is_of_this_version(partition: Partition) -> bool:
    """Whether a stage's partition is laid out as this version of the software reads and checks it."""
    made = partition.provenance
    return all(stage.code_version == made.code_version for stage in stages() if stage.name == made.asset)


def public_inputs(warehouse: Warehouse, inputs: Inputs) -> dict[str, Partition]:
    """The public lists that partitions were made with, by the shape their provenance names, verified."""
    found: dict[str, Partition] = {}
    for partition in inputs.values():
        for name in PUBLIC_LISTS:
            shape = partition.provenance.upstream.get(name)
            if shape is not None and name not in found:
                found[name] = warehouse.partition(name, PUBLIC_MATERIAL, shape)
                found[name].verify()
    return found
