"""What each policy releases at each threshold k, from counts alone. Pure: arrays in, rows out.

An artifact's share of the log can be told in two ways, and they tell different stories (docs/crowd-study.md):
`impressions` are all instances in the log of the artifacts that are released; `sent_impressions` are only those that
clients sent within their limit d, which is all that a server without the log can count. FT has no limit: the two are
the same there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from qlog_assets.mechanisms.crowd.guarantee import largest_allowed
from qlog_assets.mechanisms.crowd.noise import draw_counts
from qlog_assets.mechanisms.crowd.parameters import CrowdParameters
from qlog_assets.privacy.paper_noise import continuous_laplace
from qlog_assets.privacy.randomness import SeededRandom
from qlog_assets.studies.crowd.counting import Sent

Row = dict[str, Any]
DifferentialPolicy = Literal["dp_a", "dp_u"]
SOUND = ("sound", "gaussian")


@dataclass(frozen=True)
class Truth:
    """What the log holds: the instances of every artifact, by its number, and which of them the planted person has."""

    instances: np.ndarray
    hers: np.ndarray

    @property
    def impressions(self) -> int:
        return int(self.instances.sum())

    def tell(self, released: int, impressions: float, sent_impressions: float, hers: int) -> Row:
        """The columns of one row of results."""
        return {
            "released": released,
            "distinct_share": released / max(len(self.instances), 1),
            "impressions": int(impressions),
            "impressions_share": impressions / max(self.impressions, 1),
            "sent_impressions": int(sent_impressions),
            "sent_impressions_share": sent_impressions / max(self.impressions, 1),
            "of_person": hers if len(self.hers) else None,
        }


def released_above(values: np.ndarray, thresholds: Sequence[int], weights: Iterable[np.ndarray]) -> list[np.ndarray]:
    """For each weight its sum over the values that reach each threshold (ascending). One pass, whatever the number."""
    reached = np.searchsorted(np.asarray(thresholds), values, side="right")
    passing = reached > 0
    reached = reached[passing]
    # bincount by how many thresholds a value reaches; whoever reaches the j-th reaches all before it.
    sums = (np.bincount(reached, weight[passing], minlength=len(thresholds) + 1) for weight in weights)
    return [np.cumsum(each[::-1])[::-1][1:] for each in sums]


def apply_thresholds(
    truth: Truth, artifacts: np.ndarray, tested: np.ndarray, sent: np.ndarray, thresholds: Sequence[int]
) -> Iterator[Row]:
    """One row per threshold: what is released of these artifacts where the tested value reaches it."""
    hers = np.isin(artifacts, truth.hers, assume_unique=True).astype(np.int64)
    weights = (np.ones(len(artifacts), np.int64), truth.instances[artifacts], sent, hers)
    sums = released_above(tested, thresholds, weights)
    for released, impressions, sent_impressions, of_hers in zip(*(each.tolist() for each in sums), strict=True):
        yield truth.tell(int(released), impressions, sent_impressions, int(of_hers))


def frequency_rows(truth: Truth, counts: Mapping[str, np.ndarray], thresholds: Sequence[int]) -> Iterator[Row]:
    """FT_a and FT_u: `counts` by policy is what each tests, of every artifact."""
    everything = np.arange(len(truth.instances))
    for policy, tested in counts.items():
        found = apply_thresholds(truth, everything, tested, truth.instances, thresholds)
        for threshold, row in zip(thresholds, found, strict=True):
            yield {"policy": policy, "k": threshold, "d": None} | row


def limits_by_threshold(
    policy: DifferentialPolicy, thresholds: Sequence[int], epsilon: Fraction, delta: Fraction
) -> dict[int, list[int]]:
    """The thresholds by the d that each allows: few different ones, and 0 where nothing may be sent."""
    found: dict[int, list[int]] = {}
    for threshold in thresholds:
        limit = largest_allowed(threshold, float(epsilon), float(delta), count_users=policy == "dp_u")
        found.setdefault(limit, []).append(threshold)
    return found


def differential_rows(
    truth: Truth,
    policy: DifferentialPolicy,
    thresholds: Mapping[int, Sequence[int]],
    sent: Iterable[Sent],
    epsilon: Fraction,
    seed: int,
) -> Iterator[Row]:
    """DP_a or DP_u: one draw of selection noise per d, tested against every k that allows this d."""
    for threshold in thresholds.get(0, ()):
        yield {"policy": policy, "k": threshold, "d": 0, **truth.tell(0, 0, 0, 0), "sent_share": 0.0}
    for each in sent:
        source = SeededRandom(seed)
        noisy = each.reports + continuous_laplace(source, each.limit / float(epsilon), len(each.reports))
        ks = thresholds[each.limit]
        found = apply_thresholds(truth, each.artifacts, noisy, each.reports, ks)
        share = int(each.reports.sum()) / max(truth.impressions, 1)
        for threshold, row in zip(ks, found, strict=True):
            yield {"policy": policy, "k": threshold, "d": each.limit, **row, "sent_share": share}


def releasable_rows(truth: Truth, each: Sent, chosen: CrowdParameters, seed: int) -> Iterator[Row]:
    """`sound` and `gaussian` from the users of each artifact under their d; k is the least count that is printed."""
    for variant in SOUND:
        drawn = draw_counts(SeededRandom(seed), each.reports, variant, chosen)
        named = each.artifacts[drawn.artifacts]
        row = truth.tell(
            len(named),
            int(truth.instances[named].sum()),
            int(each.reports[drawn.artifacts].sum()),
            int(np.isin(named, truth.hers).sum()),
        )
        share = int(each.reports.sum()) / max(truth.impressions, 1)
        yield {"policy": variant, "k": drawn.threshold, "d": each.limit, **row, "sent_share": share}
