"""The benchmark of share recovery on few groups: that both ways find the secrets. No figure is asserted."""

from __future__ import annotations

import pytest

from benchmarks import crowd_shares


@pytest.mark.parametrize("shares", [3, 5])
def test_both_ways_find_the_secrets_that_were_shared(shares: int) -> None:
    assert crowd_shares.time_limbs(300, shares, 3)["groups"] == 300
    assert crowd_shares.time_integers(300, shares, 3)["measured_groups"] == 3
