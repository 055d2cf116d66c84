"""qlog: monthly differentially private releases of search query logs, run and audited in Dagster.

    import qlog_assets as qlog

    qlog.ingest(["searches.parquet"], format="table", columns="columns.toml")
    qlog.simulate("safelog", "2024-05")
    released = qlog.release("safelog", "2024-05")
    qlog.load("safelog", "2024-05", "queries")
    qlog.series("weather")
    qlog.suggest("weather")

The functions do what the commands of the same names do, on the warehouse that QLOG_HOME names; see `api/functions.py`
and, for those that read public files alone, `api/public_functions.py`. They are imported on first use: whoever needs
one part of the package does not wait for all of it.
"""

from typing import TYPE_CHECKING

from qlog_assets.version import VERSION

if TYPE_CHECKING:
    from qlog_assets.api.functions import audit, guarantee, ingest, release, simulate
    from qlog_assets.api.public_functions import load, series, suggest

__version__ = VERSION
__all__ = ["__version__", "audit", "guarantee", "ingest", "load", "release", "series", "simulate", "suggest"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("load", "series", "suggest"):
        from qlog_assets.api import public_functions

        return getattr(public_functions, name)
    from qlog_assets.api import functions

    return getattr(functions, name)


def __dir__() -> list[str]:
    return __all__
