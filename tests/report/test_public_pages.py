"""What a page was made of has a digest that every version of the software makes in the same way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from support.catalogues import example_catalogue

from qlog_assets.report.catalogue import FACTS_FORM

DIGEST = "051be436cbfc956f49a4d54175f65a473f6189b2add95305bac29121bf497bdf"


def test_the_digest_of_a_catalogue_changes_with_its_form_alone(tmp_path: Path) -> None:
    """Otherwise pages that an earlier version wrote would be called out of date: raise FACTS_FORM with it."""
    assert (FACTS_FORM, example_catalogue(tmp_path).digest) == (1, DIGEST)


def test_whatever_becomes_public_or_stops_being_so_changes_the_digest(tmp_path: Path) -> None:
    catalogue = example_catalogue(tmp_path)
    first, *others = catalogue.releases
    (skip,) = catalogue.skips
    told = replace(first.charge, public_text="Another text.")
    changed = [
        replace(catalogue, releases=tuple(others)),
        replace(catalogue, releases=(replace(first, manifest=None), *others)),
        replace(catalogue, releases=(replace(first, newest=not first.newest), *others)),
        replace(catalogue, releases=(replace(first, charge=replace(first.charge, state="withdrawn")), *others)),
        replace(catalogue, releases=(replace(first, charge=told), *others)),
        replace(catalogue, skips=()),
        replace(catalogue, skips=(replace(skip, public_text=None),)),
    ]
    assert len({each.digest for each in (catalogue, *changed)}) == 1 + len(changed)
