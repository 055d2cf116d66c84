"""A mechanism that the package does not know: walks through a museum, collected from visitors' own devices.

It has what the mechanisms to come will have: an input that is no month of the cleaned log, a table with a column of
lists, a table without counts and threshold, and several variants that only studies draw.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from qlog_assets.checks.suites import CheckResult, run_suite
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable, Mechanism, Variant
from qlog_assets.months import Month
from qlog_assets.pipeline.stage import Inputs, Stage, Work
from qlog_assets.privacy.guarantee import Guarantee, Part, approximate_words, counting_loss
from qlog_assets.privacy.histogram import stability_histogram, stability_threshold
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.parameters import Parameters, Scale, Share
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.account import Account
from qlog_assets.report.tables import Column, TableLayout, in_public_order
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, TableFacts
from qlog_assets.storage.warehouse import Warehouse

FILES = Path(__file__).parent


class ToyParameters(Parameters):
    """The parameters of the toy."""

    walks_per_visitor: int = Field(1, ge=1, le=10)
    """Distinct walks that are kept per visitor."""
    scale: Scale = Field(Fraction(1), validate_default=True)
    """Scale of the noise on walks; costs walks_per_visitor / scale."""
    delta: Share = Field(Fraction(1, 1000), validate_default=True)
    """δ of the release."""
    made_up_visitors: int = Field(3, ge=1, le=1000)
    """How many visitors to make up."""


def collected_file(warehouse: Warehouse, month: Month) -> Path:
    """Where the collector leaves what it was sent: one JSON array of [visitor, walk] per line."""
    return warehouse.private / "collected" / f"{month}.jsonl"


def write_walks(work: Work, inputs: Inputs, directory: Path) -> dict[str, TableFacts]:
    lines = collected_file(work.warehouse, work.month).read_text(encoding="utf-8").splitlines()
    sent = [json.loads(line) for line in lines]
    rows = pa.table({"user": [row[0] for row in sent], "walk": [json.dumps(row[1]) for row in sent]})
    with work.engine.table("sent", rows):
        limit = work.parameters.walks_per_visitor
        path = directory / "walks.parquet"
        return {"walks": work.engine.write("toy/walks", path, digest=True, walks_per_visitor=limit)}


def inspect_walks(engine: Engine, partition: Partition) -> CheckResult:
    """No visitor has more walks than the limit this partition was made with, and none twice."""
    engine.view("walks", partition.files("walks"))
    limits = {"walks_per_visitor": partition.provenance.parameters["walks_per_visitor"]}
    return run_suite("toy/walks", {"counts": engine.frame("toy/check_walks")}, parameters=limits)


WALKS = Stage(
    name="toy_walks",
    description="The walks that visitors' devices sent, a few per visitor.",
    reads=(),
    write=write_walks,
    statements=("toy/walks",),
    shaped_by=lambda chosen, _: {"walks_per_visitor": chosen.walks_per_visitor},
    inspect=inspect_walks,
    limits_users=True,
    origin=lambda warehouse, month: {"collected": file_checksum(collected_file(warehouse, month))},
)
TRAILS = TableLayout(
    "trails",
    (
        Column("rooms", "texts", "The rooms of a walk, in order."),
        Column("users", "integer", "Noisy number of visitors who took it."),
    ),
    title="Trails",
)
MADE_UP = TableLayout(
    "made_up",
    (Column("visitor", "integer", "A made-up visitor."), Column("room", "text", "A room the visitor is in.")),
    count=None,
    title="Made-up visitors",
)


def count_walks(engine: Engine, inputs: Inputs) -> tuple[list[list[str]], np.ndarray]:
    engine.view("walks", inputs["toy_walks"].files("walks"))
    counted = engine.arrow("toy/walk_counts")
    return [json.loads(walk) for walk in counted["walk"].to_pylist()], counted["users"].to_numpy()


def draw(engine: Engine, inputs: Inputs, variant: str, chosen: ToyParameters, source: RandomSource) -> Drawn:
    walks, users = count_walks(engine, inputs)
    drawn = stability_histogram(source, users, chosen.walks_per_visitor, chosen.scale, chosen.delta)
    rooms = [walks[index] for index in drawn.indices]
    trails = pa.table({"rooms": pa.array(rooms, pa.list_(pa.string())), "users": drawn.users})
    visited = sorted({room for walk in rooms for room in walk})
    # Post-processing of what was drawn: visitors are put into rooms that are public by now.
    made_up = [(visitor, visited[visitor % len(visited)]) for visitor in range(chosen.made_up_visitors) if visited]
    people = pa.table({"visitor": [row[0] for row in made_up], "room": [row[1] for row in made_up]}, MADE_UP.schema)
    threshold = stability_threshold(chosen.walks_per_visitor, chosen.scale, chosen.delta)
    return Drawn(
        {
            "trails": DrawnTable(in_public_order(trails, TRAILS), threshold),
            "made_up": DrawnTable(in_public_order(people, MADE_UP)),
        }
    )


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: ToyParameters, source: RandomSource) -> Drawn:
    walks, users = count_walks(engine, inputs)
    noisy = users + continuous_laplace(source, float(chosen.scale) * (1 if variant == "loud" else 2), len(users))
    return Drawn({"trails": DrawnTable(pa.table({"rooms": walks, "users": noisy}))})


def sound(chosen: ToyParameters) -> Guarantee:
    loss = counting_loss(chosen.walks_per_visitor, chosen.scale, chosen.delta)
    return Guarantee(
        mechanism="toy",
        variant="sound",
        claimed=loss,
        proven=loss,
        parts=(Part("trails", loss, loss, "Distinct walks per visitor over the scale."),),
        assumptions=("visitors' devices send each walk once",),
        gaps=(),
        paper="There is no paper: this is a toy.",
        sentence=approximate_words(loss),
        formula="ε = walks per visitor / scale",
        publishable=True,
        thresholds={"trails": stability_threshold(chosen.walks_per_visitor, chosen.scale, chosen.delta)},
    )


def unproven(variant: str) -> Any:
    def statement(chosen: ToyParameters) -> Guarantee:
        return Guarantee(
            mechanism="toy",
            variant=variant,
            claimed=counting_loss(chosen.walks_per_visitor, chosen.scale),
            proven=None,
            parts=(),
            assumptions=("nobody looks at the low-order bits",),
            gaps=("float noise",),
            paper="There is no paper: this is a toy.",
            sentence="Nothing is promised.",
            formula="none",
        )

    return statement


def account(manifest: Any) -> Account:
    return Account(steps=("Visitors walked, and their walks were counted.",), holds="each a walk that several took.")


TOY = Mechanism(
    name="toy",
    title="The museum toy",
    summary="Walks through a museum, and made-up visitors.",
    version=1,
    parameters=ToyParameters,
    variants={
        "sound": Variant(sound, draw),
        "loud": Variant(unproven("loud"), draw_paper),
        "quiet": Variant(unproven("quiet"), draw_paper),
    },
    stages=(WALKS,),
    tables=(TRAILS, MADE_UP),
    account=account,
)
