"""Finds the files that ship beside the code: statements in `sql/`, suites in `expectations/`. It reads none of them.

A checkout keeps these directories at its top level, where people look for them; a wheel carries them in the package.
"""

from __future__ import annotations

from pathlib import Path

from qlog_assets.privacy.errors import QlogError

PACKAGE = Path(__file__).resolve().parent


def resource_dir(kind: str) -> Path:
    """The directory of the shipped files of a kind, such as `sql` or `expectations`."""
    in_wheel = PACKAGE / kind
    if in_wheel.is_dir():
        return in_wheel
    # Beside an installed package lie other people's directories: only a checkout has this one next to the package.
    in_checkout = PACKAGE.parent / kind
    if (PACKAGE.parent / "pyproject.toml").is_file() and in_checkout.is_dir():
        return in_checkout
    raise QlogError(f"{kind}: this installation lacks its {kind} files: install the package again")
