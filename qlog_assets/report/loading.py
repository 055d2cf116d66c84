"""How the tables of a release are read, in the languages that researchers use: short snippets from the manifest alone.

Datasheet and the release's README print the same ones. They read the Parquet files, which hold every text as it is, and
are meant to be run in the release's directory. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def loading_snippets(manifest: Mapping[str, Any]) -> dict[str, str]:
    """By language or library, the lines that read every table of a release, in the order the manifest has them."""
    files = {name: facts["files"]["parquet"]["path"] for name, facts in manifest["tables"].items()}
    first = next(iter(files))
    return {
        "pandas": _lines(
            "import pandas as pd",
            "",
            *(f'{name} = pd.read_parquet("{path}")' for name, path in files.items()),
            f"print({first}.head())",
        ),
        "DuckDB": _lines(
            *(f"CREATE VIEW {name} AS SELECT * FROM '{path}';" for name, path in files.items()),
            f"SELECT * FROM {first} LIMIT 5;",
        ),
        "Polars": _lines(
            "import polars as pl",
            "",
            *(f'{name} = pl.read_parquet("{path}")' for name, path in files.items()),
            f"print({first}.head())",
        ),
        "R": _lines(
            "library(arrow)",
            "",
            *(f'{name} <- read_parquet("{path}")' for name, path in files.items()),
            f"head({first})",
        ),
    }


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
