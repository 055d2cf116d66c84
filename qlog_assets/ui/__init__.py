"""Dagster's web UI behind a lock: who may look and launch, from which page, and who asked for a run."""
