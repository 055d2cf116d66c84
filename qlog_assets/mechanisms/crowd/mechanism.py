"""CrowdLogging as one thing: what the register finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from qlog_assets.attacks.case import Case
from qlog_assets.mechanisms.crowd import guarantee, noise
from qlog_assets.mechanisms.crowd.account import account
from qlog_assets.mechanisms.crowd.central_log import READS, draw_from_log, draw_paper
from qlog_assets.mechanisms.crowd.draw import draw
from qlog_assets.mechanisms.crowd.expectations import expects
from qlog_assets.mechanisms.crowd.parameters import LN_10, PAPER_DELTA, PAPER_VARIANTS, CrowdParameters, CrowdPolicy
from qlog_assets.mechanisms.crowd.stages import STAGES, read_sealed
from qlog_assets.mechanisms.crowd.tables import TABLES
from qlog_assets.mechanisms.mechanism import Mechanism, Promise, Study, Variant, refusal
from qlog_assets.months import Month
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.storage.warehouse import Warehouse

TRUST = (
    "Nobody holds the log. Trust your own program; one relay of your route to keep to its task; and the server of "
    "random numbers to delete its key and not to help the collector, which sees true counts of what enough people sent."
)


def as_variant(section: CrowdPolicy, variant: str) -> CrowdPolicy:
    """The section for a study of a variant: those of the paper have the paper's ε and δ unless somebody sets them."""
    if variant not in PAPER_VARIANTS:
        return section.with_changes(variant=variant)
    return section.with_changes(**{"epsilon": LN_10, "delta": PAPER_DELTA} | section.said)


def refuses(variant: str, chosen: CrowdParameters, list_rows: Mapping[str, int]) -> str | None:
    return refusal(partial(noise.draw_nothing, variant, chosen))


def released(name: str, promise: Callable[[CrowdParameters], Guarantee]) -> Variant:
    """A variant that is released from what people sent, and studied on a log as if everybody in it had sent."""
    return Variant(
        promise,
        draw,
        study=Study(draw_from_log, READS),
        refuses=partial(refuses, name),
        expects=partial(expects, name),
    )


def promised(warehouse: Warehouse, month: Month) -> Promise:
    """The ε and δ that people read in the jobs before they sent: of several jobs the least, because each names that of
    the whole release. Refused where the sealed epoch is gone: nobody knows then what they were promised."""
    jobs = read_sealed(warehouse, month).jobs
    epsilons = [Fraction(job.epsilon) for job in jobs if job.epsilon is not None]
    deltas = [Fraction(job.delta) for job in jobs if job.delta is not None]
    return Promise(min(epsilons, default=None), min(deltas, default=None))


def attacks() -> Sequence[Case]:
    from qlog_assets.mechanisms.crowd.attacks import CASES

    return CASES


def examples() -> str:
    from qlog_assets.mechanisms.crowd.examples import examples

    return examples()


MECHANISM = Mechanism(
    name="crowd",
    title="CrowdLogging",
    summary="Queries, reformulations, clicks and addresses that many people sent from their own machines, each with a "
    "noisy number of users.",
    version=1,
    parameters=CrowdParameters,
    variants={
        "sound": released("sound", guarantee.sound),
        "gaussian": released("gaussian", guarantee.gaussian),
        "ft_a": Variant(guarantee.artifact_frequency, draw_paper, READS),
        "ft_u": Variant(guarantee.user_frequency, draw_paper, READS),
        "dp_a": Variant(guarantee.artifact_differential, draw_paper, READS),
        "dp_u": Variant(guarantee.user_differential, draw_paper, READS),
    },
    stages=STAGES,
    tables=TABLES,
    trust=TRUST,
    account=account,
    section=CrowdPolicy,
    as_variant=as_variant,
    attacks=attacks,
    examples=examples,
    promised=promised,
)
