"""Where a web server's access log keeps a search: the url parameter that holds the query, and who is one user."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from qlog_assets.sources.column_map import LogMap

ADDRESS_AND_AGENT = "address_and_agent"
"""Who is one user where nobody logs in: one network address with one user agent."""
AUTH_USER = "auth_user"


class AccessMap(LogMap):
    """How to read an access log in the combined format. Requests that are no searches are passed over and counted."""

    user: Literal["auth_user", "address_and_agent"]
    """`auth_user`: the name that the server logged, its third field; a request without one has no user.
    `address_and_agent`: a keyed hash of network address and user agent. Then these two together are what is protected,
    and `unit.one_user` in the policy must say so: manifests and datasheets do."""
    query_parameter: str = Field(min_length=1, max_length=100)
    """The url parameter that holds the query, such as `q` in `/search?q=tea`."""
    path: str | None = Field(None, min_length=1, pattern="^/")
    """How the path of a search begins, such as `/search`. Default: any path with the parameter."""

    @property
    def one_user(self) -> str:
        return ADDRESS_AND_AGENT if self.user == ADDRESS_AND_AGENT else super().one_user
