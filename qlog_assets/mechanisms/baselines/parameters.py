"""What the k-anonymity baselines may be asked to do."""

from __future__ import annotations

from pydantic import Field

from qlog_assets.privacy.parameters import Parameters


class BaselineParameters(Parameters):
    """The one parameter of the k-anonymity methods."""

    k: int = Field(50, ge=1, le=10**9)
    """How many users, or events, an item (a query, a history, a session) must have to be printed."""
