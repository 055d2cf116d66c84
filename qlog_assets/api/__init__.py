"""What commands and Python callers do: run the jobs, then read the answers back."""
