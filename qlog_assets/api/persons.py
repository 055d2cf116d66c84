"""What each system would print of one person: the study `person`, with an id that stands on no command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qlog_assets.api.operations import run_study_job
from qlog_assets.api.runs import Bar, Tell
from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.storage.warehouse import Warehouse


def examine_person(
    warehouse: Warehouse,
    policy: Policy,
    month: Month,
    settings: Mapping[str, str],
    user_file: Path | None,
    typed: str | None,
    tell: Tell,
    bar: Bar,
) -> dict[str, Any]:
    """The planted person, or the one whose id is in a file or was typed in: of that one, only where the answer lies."""
    from qlog_assets.studies.person.who import NAMED, PLANTED, handing_over, read_user_file

    if "who" in settings:
        raise QlogError("who it is follows from --user-file and --ask, and is no setting here")
    text = read_user_file(user_file) if user_file is not None else typed

    def run(who: str) -> dict[str, Any]:
        return run_study_job(warehouse, policy, "person", month, {**settings, "who": who}, tell, bar)

    if text is None:
        return run(PLANTED)
    with handing_over(warehouse.make(), text):
        return run(NAMED)
