"""Hooks of MkDocs: the repository's own Markdown files as pages, under the paths that they have there.

Also every file that a page links to, so that no link leads out of the site. Whatever is linked and is not there stops
the build, because the build is strict.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = expand(config.nav or [])
    return config


def expand(entries: list[Any]) -> list[Any]:
    """The navigation with every pattern replaced by the pages that it finds: a README first, the others by name."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            found.append({title: expand(at) if isinstance(at, list) else at for title, at in entry.items()})
        elif "*" in entry:
            pages = sorted(ROOT.glob(entry), key=lambda page: (page.name != "README.md", page.name))
            found.extend(page.relative_to(ROOT).as_posix() for page in pages)
        else:
            found.append(entry)
    return found


def pages_of(entries: list[Any]) -> list[Path]:
    """The pages of a navigation, in its order."""
    pages: list[Path] = []
    for entry in entries:
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            pages.extend(pages_of(value) if isinstance(value, list) else [ROOT / value])
    return pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every Markdown page of docs/ and of the navigation, and what they link to."""
    pages = {*ROOT.glob("docs/**/*.md"), *(page for page in pages_of(config.nav or []) if page.is_file())}
    linked = {
        target
        for page in pages
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if (target := (page.parent / link).resolve()).is_file() and target.is_relative_to(ROOT)
    }
    for path in sorted(pages | linked):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """The empty corner of a table heads nothing, and is told as a cell to people who hear the page."""
    return re.sub(r"<th( style=\"[^\"]*\")?></th>", r"<td\1></td>", html)


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    return name_dialog(output)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return name_dialog(output) if template_name == "404.html" else output


def name_dialog(output: str) -> str:
    """The theme's search opens as a dialog without a name, which people who hear the page need."""
    dialog = 'data-md-component="search" role="dialog"'
    assert dialog in output, "the theme's search has another form than it had"
    return output.replace(dialog, f'{dialog} aria-label="Search"')
