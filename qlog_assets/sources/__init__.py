"""Where logs and pools come from: readers of raw logs, the synthetic log, public query pools."""
