"""The sanitized log of its paper: how large, how faithful and how diverse it can be under its own constraints."""
