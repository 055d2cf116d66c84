"""Where JSON lines keep user, query, time, rank and url: paths into the object that each line is."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from qlog_assets.sources.column_map import LogMap, check_encoding, check_time_format

SEGMENT = re.compile(r'(?:([^."\[\]*\\\0]+)|"([^"*\\\0]+)")((?:\[[0-9]{1,6}\])*)(?:\.|$)')
"""A key, in quotes where it has a dot in it, and the places in lists that follow it."""


def json_path(path: str) -> str:
    """A path such as `_source."user.id"` or `fields.query[0]` as DuckDB writes it."""
    steps, position = ["$"], 0
    while position < len(path) and (match := SEGMENT.match(path, position)):
        steps.append(f'."{match[1] or match[2]}"{match[3]}')
        position = match.end()
    if not path or position < len(path) or path.endswith("."):
        raise ValueError(
            f"{path!r} is no path: write keys with dots between them, such as request.q; a key that has a dot in "
            'double quotes, "user.id"; a place in a list as fields.query[0]'
        )
    return "".join(steps)


def _checked(path: str) -> str:
    json_path(path)
    return path


JsonPath = Annotated[str, Field(max_length=1000), AfterValidator(_checked)]


class JsonMap(LogMap):
    """How to read JSON lines: one object per line, one record of one user at one time."""

    user: JsonPath
    query: JsonPath
    time: JsonPath
    rank: JsonPath | None = None
    url: JsonPath | None = None
    time_format: str = "iso"
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        check_encoding(self.encoding)
        check_time_format(self.time_format)
        return self

    @property
    def paths(self) -> dict[str, str]:
        """The paths that the map names, by what they lead to, as DuckDB writes them."""
        named = {"user": self.user, "query": self.query, "time": self.time, "rank": self.rank, "url": self.url}
        return {name: json_path(path) for name, path in named.items() if path is not None}
