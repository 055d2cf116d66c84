"""Files and engines: warehouse, partitions with provenance, scratch directories, digests, DuckDB, its statements."""
