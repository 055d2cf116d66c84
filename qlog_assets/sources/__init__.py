"""Where logs and public lists come from: readers of raw logs, column maps, normalisation, pools and url lists."""
