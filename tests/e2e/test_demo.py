"""`qlog demo`, small: a log, three releases, what pure ε would hold, and the second time nothing new."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import qlog

MONTHS = ["2006-03", "2006-04", "2006-05"]


@pytest.mark.slow
def test_the_demo_releases_three_months_and_the_second_time_nothing(home: Path) -> None:
    first = qlog(home, "demo", "--rows", 30_000, "--json").json
    assert first["ingested"]["read"] == 30_000
    assert [release["month"] for release in first["releases"]] == MONTHS
    assert all(release["charged"] for release in first["releases"])
    assert first["pure"]["charged"] is False and first["pure"]["claimed"]["delta"] == 0
    ledger = qlog(home, "ledger", "--json").json
    assert len(ledger["charges"]) == 3 and ledger["left"]["epsilon"] >= 0

    said = qlog(home, "demo", "--rows", 30_000)
    assert said.code == 0 and "nothing was charged" in said.out
    for release in first["releases"]:
        assert release["release_id"] in said.out
    assert str(home / "released" / "safelog") in said.out
    assert qlog(home, "ledger", "--json").json == ledger
    assert qlog(home, "audit", "--json").json["ok"] is True
