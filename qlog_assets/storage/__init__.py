"""Files and engines: the warehouse, partitions with their provenance, scratch directories, digests, DuckDB and its statements."""
