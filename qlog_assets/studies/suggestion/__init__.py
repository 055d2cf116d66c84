"""Table 5 of the session logs' paper: how well each log suggests the next query."""
