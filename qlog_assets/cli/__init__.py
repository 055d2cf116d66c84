"""The `qlog` command: parses, runs and prints. Decides nothing."""
