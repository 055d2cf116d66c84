"""One module a published system: pure functions on arrays of counts. Files, SQL and Dagster are elsewhere."""
