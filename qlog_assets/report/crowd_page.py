"""The page of `qlog crowd demo`: who saw what, in boxes along the way of a report. For made-up people alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEMPLATE_NAME = "crowd_page.html.jinja"


def write_crowd_page(path: Path, facts: Mapping[str, Any]) -> None:
    """Write the page from the demo's facts; everything on it is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    path.write_text(environment.get_template(TEMPLATE_NAME).render(facts), encoding="utf-8")
