"""The stages between raw log and draw, as functions: each writes one partition with its provenance.

Assets call these and add what Dagster wants to know; studies call them too. Statements are in `sql/`, parameters come
with the policy, and what a stage depends on is what its provenance says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qlog_assets.checks.suites import CheckResult
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.mechanisms.safelog.stages import CAPPED_TABLES, inspect_capped_log
from qlog_assets.mechanisms.zealous.stages import ITEM_KINDS, inspect_zealous_items
from qlog_assets.months import Month
from qlog_assets.pipeline.inspection import view_cleaned
from qlog_assets.pipeline.public_material import build_pool, build_url_list
from qlog_assets.policy import Policy
from qlog_assets.sources.normalise import install_macros, make_normalised, normalise_url
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts, describe
from qlog_assets.storage.statements import statement_version
from qlog_assets.storage.warehouse import Warehouse

SESSION_GAP_MINUTES = 30
"""A user's searches further apart belong to different sessions. 30 minutes is what the session literature uses."""

CLEANED_VERSION = "2." + statement_version("normalise_ascii", "normalise_url_ascii", "raw_beyond_ascii", "cleaned_log")
CAPPED_VERSION = "2." + statement_version(
    "cleaned_clicks", "following_queries", *(f"capped_{table}" for table in CAPPED_TABLES)
)
AUGMENTED_VERSION = "1." + statement_version("pool_augmented")
ITEMS_VERSION = "1." + statement_version(
    "chosen_items", "cleaned_queries", "cleaned_clicks", "following_queries", *(f"events_{kind}" for kind in ITEM_KINDS)
)
CODE_VERSIONS = {
    "cleaned_log": CLEANED_VERSION,
    "capped_log": CAPPED_VERSION,
    "pool_augmented": AUGMENTED_VERSION,
    "zealous_items": ITEMS_VERSION,
}
"""What each stage must have been made by; the door refuses what an older version left behind."""


def is_of_this_version(partition: Partition) -> bool:
    """Whether a stage's partition is laid out as this version of the software reads and checks it."""
    made = partition.provenance
    return made.code_version == CODE_VERSIONS.get(made.asset, made.code_version)


@dataclass(frozen=True)
class Chain:
    """Where the stages run: one warehouse, one engine, on behalf of one run."""

    warehouse: Warehouse
    engine: Engine
    run_id: str | None = None
    make_current: bool = True
    """Whether `current` moves to what is built. A study builds beside what releases are made from."""

    def clean(self, month: Month, raw: Partition) -> tuple[Partition, bool]:
        """cleaned_log: the month's rows with normalised texts."""
        provenance = describe(
            "cleaned_log",
            month,
            code_version=CLEANED_VERSION,
            parameters={},
            upstream={"raw_log": raw},
            run_id=self.run_id,
        )

        def write(directory: Path) -> dict[str, TableFacts]:
            with raw.verifying():
                self.engine.view("raw_log", raw.files("log"))
                install_macros(self.engine.connection)
                self.engine.statement_table("raw_beyond_ascii")
                make_normalised(self.engine.connection, "raw_beyond_ascii", "query", "normalised_queries")
                make_normalised(self.engine.connection, "raw_beyond_ascii", "url", "normalised_urls", normalise_url)
                return {"log": self.engine.write("cleaned_log", directory / "log.parquet")}

        return self.warehouse.write_partition(provenance, write, make_current=self.make_current)

    def cap(self, month: Month, cleaned: Partition, chosen: SafelogParameters) -> tuple[Partition, bool]:
        """capped_log: what each user may contribute, and nothing that any other user decides.

        Of a part that is switched off nobody contributes anything; the door then refuses a request that has it on.
        """
        switched_off = {name: None for name in ("click_scale", "transition_scale") if getattr(chosen, name) is None}
        limits = {
            "queries_per_user": chosen.queries_per_user,
            "clicks_per_user": chosen.clicks_per_user,
            "session_gap_minutes": SESSION_GAP_MINUTES,
            **switched_off,
        }
        provenance = describe(
            "capped_log",
            month,
            code_version=CAPPED_VERSION,
            parameters=limits,
            upstream={"cleaned_log": cleaned},
            run_id=self.run_id,
        )
        arguments: dict[str, dict[str, Any]] = {
            "queries": {"queries_per_user": chosen.queries_per_user},
            "clicks": {"clicks_per_user": chosen.clicks_per_user},
            "transitions": {
                "transitions_per_user": chosen.transitions_per_user,
                "session_gap_minutes": SESSION_GAP_MINUTES,
            },
        }

        def write(directory: Path) -> dict[str, TableFacts]:
            with cleaned.verifying():
                view_cleaned(
                    self.engine,
                    cleaned,
                    clicks="click_scale" not in switched_off,
                    transitions="transition_scale" not in switched_off,
                )
                return {
                    table: self.engine.write(
                        f"capped_{table}",
                        directory / f"{table}.parquet",
                        digest="digest_rows",
                        **arguments[table],
                    )
                    for table in CAPPED_TABLES
                }

        return self.warehouse.write_partition(
            provenance, write, make_current=self.make_current, sound=self._keeping(inspect_capped_log)
        )

    def choose_items(self, month: Month, cleaned: Partition, items_per_user: int) -> tuple[Partition, bool]:
        """zealous_items: a few items of each kind a user, chosen by a keyed rule among that user's own."""
        provenance = describe(
            "zealous_items",
            month,
            code_version=ITEMS_VERSION,
            parameters={"items_per_user": items_per_user, "session_gap_minutes": SESSION_GAP_MINUTES},
            upstream={"cleaned_log": cleaned},
            run_id=self.run_id,
        )
        # The month is part of the key, so that a user's choices of two months are no more alike than chance makes them.
        choice: dict[str, Any] = {"key": f"zealous {month} ", "items_per_user": items_per_user}
        gap = {"session_gap_minutes": SESSION_GAP_MINUTES}

        def write(directory: Path) -> dict[str, TableFacts]:
            with cleaned.verifying():
                view_cleaned(self.engine, cleaned)
                return {
                    kind: self.engine.write(
                        "chosen_items",
                        directory / f"{kind}.parquet",
                        events=f"events_{kind}",
                        digest="digest_rows",
                        **choice,
                        **(gap if kind == "pairs" else {}),
                    )
                    for kind in ITEM_KINDS
                }

        return self.warehouse.write_partition(
            provenance, write, make_current=self.make_current, sound=self._keeping(inspect_zealous_items)
        )

    def _keeping(self, inspect: Callable[[Engine, Partition], CheckResult]) -> Callable[[Partition], bool]:
        """Whether a partition that is there keeps the limits: one changed by hand, checksums and all, is made again."""
        return lambda partition: inspect(self.engine, partition).passed

    def augment(self, month: Month, capped: Partition, policy: Policy) -> tuple[Partition, bool]:
        """pool_augmented: how many users typed each query, and the pool's queries that nobody typed."""
        pool = build_pool(self, month, policy)
        upstream: dict[str, Partition | str] = {"capped_log": capped, "pool": pool}
        if policy.url_list is not None:
            upstream["url_list"] = build_url_list(self, policy.url_list)
        provenance = describe(
            "pool_augmented",
            month,
            code_version=AUGMENTED_VERSION,
            parameters={"click_support": "stability" if policy.url_list is None else "public_list"},
            upstream=upstream,
            run_id=self.run_id,
        )

        def write(directory: Path) -> dict[str, TableFacts]:
            capped.verify()
            self.engine.view("capped_queries", capped.files("queries"))
            self.engine.view("pool", pool.files("queries"))
            return {"queries": self.engine.write("pool_augmented", directory / "queries.parquet")}

        return self.warehouse.write_partition(provenance, write, make_current=self.make_current)
