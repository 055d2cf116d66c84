"""`qlog crowd demo`: the whole cast on one machine, a release, and a page of what each party saw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import qlog

PEOPLE = 24


@pytest.mark.slow
def test_the_demo_leaves_a_release_and_a_page_of_what_each_party_saw(home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    facts = qlog(home, "crowd", "demo", directory, "--people", PEOPLE, "--json").json
    collector, read = facts["saw"]["collector"], facts["read"]
    assert facts["people"] == PEOPLE and facts["rejected"] == {}
    assert facts["accepted"] == collector["reports"] == 10 * PEOPLE
    assert read["artifacts"] == sum(tags for times, tags in collector["by_reports"] if times >= 3)
    assert (Path(facts["release"]["path"]) / "datasheet.html").is_file()
    assert not (directory / "everybody.txt").exists()
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert page.count("<section") == 8 and not re.search(r"(src|href)=", page)
    assert facts["saw"]["person"]["artifacts"][0] in page
    assert "is not empty" in qlog(home, "crowd", "demo", directory).refusal
