"""qlog: monthly differentially private releases of search query logs, run and audited in Dagster."""

__version__ = "0.1.0"
