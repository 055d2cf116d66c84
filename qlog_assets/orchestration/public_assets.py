"""Assets of the group `public_lists`: the pool and the url list, upstream of the stages that read them.

They belong to no month: a list was public before anything was typed, or is a release of an earlier month.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of asset functions as they are.

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from qlog_assets.ledger import Book
from qlog_assets.orchestration import words
from qlog_assets.orchestration.asking import is_refused
from qlog_assets.orchestration.metadata import OWNERS, data_version, seconds_since, to_check_result
from qlog_assets.orchestration.resources import PolicyResource, WarehouseResource
from qlog_assets.orchestration.stage_assets import Definition
from qlog_assets.pipeline.public_material import (
    PUBLIC_LIST_VERSION,
    PUBLIC_LISTS,
    build_public_list,
    inspect_public_list,
)

GROUP = "public_lists"
NO_LIST = "none"
"""The data version of a list that the policy does not name."""


def public_assets() -> list[Definition]:
    """An asset and a check per public list."""
    return [definition for name in PUBLIC_LISTS for definition in list_assets(name)]


def list_assets(name: str) -> list[Definition]:
    @dg.asset(
        name=name,
        group_name=GROUP,
        kinds={"parquet"},
        owners=OWNERS,
        code_version=PUBLIC_LIST_VERSION,
        description=words.LISTS[name],
        output_required=False,
    )
    def public_list(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, policy: PolicyResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        if is_refused(context, warehouse, policy):
            return
        started, chosen = time.monotonic(), policy.chosen()
        book = Book(warehouse.ledger(context.run), chosen.dataset)
        found = build_public_list(name, warehouse.open(), chosen.lists, run_id=context.run_id, book=book)
        if found is None:
            yield dg.MaterializeResult(metadata={"used": False}, data_version=dg.DataVersion(NO_LIST))
            return
        facts = found.provenance.parameters
        yield dg.MaterializeResult(
            metadata={
                "used": True,
                "dagster/row_count": found.rows(PUBLIC_LISTS[name]),
                "kind": str(facts["kind"]),
                "origin": str(facts["name"]),
                "description": str(facts.get("description") or "not stated"),
                "licence": str(facts.get("licence") or "not stated"),
                "seconds": seconds_since(started),
            },
            data_version=dg.DataVersion(data_version(found)),
        )

    @dg.asset_check(asset=name, blocking=True, name="texts_once", description=words.TEXTS_ONCE)
    def texts_once(warehouse: WarehouseResource, policy: PolicyResource) -> dg.AssetCheckResult:
        chosen = policy.chosen()
        book = Book(warehouse.ledger(), chosen.dataset)
        found = build_public_list(name, warehouse.open(), chosen.lists, book=book)
        if found is None:
            return dg.AssetCheckResult(passed=True, description="the policy names no such list")
        with warehouse.duckdb() as engine:
            return to_check_result(inspect_public_list(engine, found), words.TEXTS_ONCE_NEXT)

    return [public_list, texts_once]
