"""CrowdLogging straight from a central log, for studies: what each user's client would have sent, counted by SQL.

The statements follow the clients' rules (`qlog_assets/crowd/mining.py`): rows in the order of time and texts, without
successive duplicates, the most recent artifacts of each user. So a simulation counts what the services would count,
without a report, and the paper's policies can be drawn at scale. Nothing made here is published.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from qlog_assets.crowd.jobs import ARTIFACT_BYTES, COLUMNS, Application
from qlog_assets.mechanisms.crowd import guarantee
from qlog_assets.mechanisms.crowd.draw import noisy_table
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.mechanisms.mechanism import Drawn, DrawnTable
from qlog_assets.pipeline.cleaned_log import view_cleaned
from qlog_assets.pipeline.stage import Inputs
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.privacy.paper_selection import PaperReleased, select_then_print
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.statements import table_of

READS = ("cleaned_log",)
NO_LIMIT = 1 << 62
Counted = Literal["users", "instances"]
MINED: dict[Application, str] = {
    "queries": "crowd/mined_queries",
    "reformulations": "crowd/mined_reformulations",
    "clicks": "crowd/mined_clicks",
    "click_hosts": "crowd/mined_click_hosts",
    "urls": "crowd/mined_urls",
}
"""What a client finds in its log, by application."""
SENT: dict[Counted, str] = {"users": "crowd/recent_artifacts", "instances": "crowd/recent_instances"}
"""What a client sends: an artifact once, or each time that it was made."""
FREQUENCY = frozenset({"ft_a", "ft_u"})
BY_INSTANCES = frozenset({"ft_a", "dp_a"})


def count_sent(engine: Engine, application: Application, artifacts_per_user: int | None, counted: Counted) -> None:
    """Make the table `artifact_counts` of what every user of `cleaned_log` would send; None: without a limit."""
    make_sendable(engine, application)
    limit = NO_LIMIT if artifacts_per_user is None else artifacts_per_user
    engine.statement_table(SENT[counted], "sent", artifacts_per_user=limit)
    engine.statement_table("crowd/artifact_counts")


def make_sendable(engine: Engine, application: Application) -> None:
    """Make the table `sendable_artifacts` of what the users of `cleaned_log` could send."""
    engine.statement_view(MINED[application])
    engine.view_as("mined", table_of(MINED[application]))
    engine.statement_table("crowd/sendable_artifacts", artifact_bytes=ARTIFACT_BYTES)


def counts_from_log(
    engine: Engine,
    cleaned: Partition,
    application: Application,
    artifacts_per_user: int | None,
    counted: Counted = "users",
) -> pa.Table:
    """Every artifact that the users of a cleaned log would send, with how many sent it, or how many times: the columns
    and the order of `qlog_assets.crowd.aggregation.Aggregated.artifacts`, before any threshold."""
    view_cleaned(engine, cleaned)
    return counts_of_searches(engine, application, artifacts_per_user, counted)


def counts_of_searches(
    engine: Engine, application: Application, artifacts_per_user: int | None, counted: Counted = "users"
) -> pa.Table:
    """The same of the searches that an engine has (`view_searches`)."""
    count_sent(engine, application, artifacts_per_user, counted)
    rows = engine.arrow("crowd/counts_by_text")
    return pa.table({**{name: rows[name] for name in COLUMNS[application]}, "users": rows[counted]})


def draw_from_log(engine: Engine, inputs: Inputs, variant: str, chosen: CrowdParameters, source: RandomSource) -> Drawn:
    """`sound` and `gaussian` with the noise of a release, from what every user of the log would have sent."""
    tables: dict[str, DrawnTable] = {}
    for job in chosen.jobs:
        counts = counts_from_log(engine, inputs["cleaned_log"], job, chosen.artifacts_per_user)
        tables[job] = noisy_table(source, counts, variant, job, chosen)
    return Drawn(tables)


def draw_paper(engine: Engine, inputs: Inputs, variant: str, chosen: CrowdParameters, source: RandomSource) -> Drawn:
    """A policy as printed: each job's artifacts with exact or float counts, and how many strings stay undecrypted with
    how many instances each, which the paper publishes, too. Raw spellings are not in a cleaned log."""
    view_cleaned(engine, inputs["cleaned_log"])
    # Frequency thresholds need every instance, to print how many there are.
    counted: Counted = "users" if variant == "dp_u" else "instances"
    tables: dict[str, DrawnTable] = {}
    for job in chosen.jobs:
        count_sent(engine, job, limit_as_printed(variant, chosen), counted)
        counts = engine.arrays("crowd/counts_in_order")
        drawn = release_as_printed(source, counts["users"], counts["instances"], variant, chosen)
        rows = pa.table({"artifact_id": pa.array(drawn.indices, pa.int64()), "printed": drawn.counts})
        with engine.table("drawn_artifacts", rows):
            tables[job] = DrawnTable(engine.arrow("crowd/paper_artifacts"))
            tables[f"{job}_undecrypted"] = DrawnTable(engine.arrow("crowd/paper_undecrypted"))
    return Drawn(tables)


def as_printed(variant: str, chosen: CrowdParameters) -> Guarantee:
    """What DP_a or DP_u says of itself with these parameters."""
    return (guarantee.artifact_differential if variant in BY_INSTANCES else guarantee.user_differential)(chosen)


def limit_as_printed(variant: str, chosen: CrowdParameters) -> int | None:
    """The d of a policy: none for FT; for DP the largest that its threshold allows, which may be 0."""
    return None if variant in FREQUENCY else int(as_printed(variant, chosen).figures["artifacts_per_user"])


def release_as_printed(
    source: RandomSource, users: np.ndarray, instances: np.ndarray, variant: str, chosen: CrowdParameters
) -> PaperReleased:
    """One job by the paper's policy, from what was sent of each artifact under its limit. FT prints instances, DP_a and
    DP_u a second noise on what they tested."""
    tested = instances if variant in BY_INSTANCES else users
    if variant in FREQUENCY:
        shown = np.flatnonzero(tested >= chosen.threshold)
        return PaperReleased(shown, instances[shown])
    if limit_as_printed(variant, chosen) == 0:
        return PaperReleased(np.empty(0, np.int64), np.empty(0))
    scale = as_printed(variant, chosen).figures["noise_scale"]
    printed_scale = scale if chosen.count_scale is None else float(chosen.count_scale)
    return select_then_print(source, tested, tested, scale, printed_scale, chosen.threshold)
