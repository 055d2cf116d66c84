"""The generated page of the Python API: current, and with everything that `import qlog_assets` offers."""

from __future__ import annotations

import inspect

import qlog_assets
from tools import api_page
from tools.pages import main


def test_the_page_in_the_repository_is_current() -> None:
    assert main(api_page.PAGE, api_page.page, "make docs", ["--check"]) == 0, "run make docs"


def test_every_public_function_is_explained_with_all_of_its_arguments() -> None:
    page = api_page.page()
    for name in set(qlog_assets.__all__) - {"__version__"}:
        function = getattr(qlog_assets, name)
        section = page.split(f"\n## `{name}`\n")[1].split("\n## ")[0]
        assert f"qlog.{name}(" in section and len(section.split("```")[-1].strip()) > 20, name
        for argument in inspect.signature(function).parameters:
            assert f"{argument}: " in section, (name, argument)


def test_answers_are_explained_field_by_field_also_those_imported_for_types_alone() -> None:
    page = api_page.page()
    for answer in ("Release", "AuditReport"):
        assert f"\n### `{answer}`\n" in page
    assert "| `charged` | `bool` | Whether this very call was charged for it" in page
