"""One module a published system: pure functions on tables of counts. What touches files, SQL or Dagster is elsewhere."""
