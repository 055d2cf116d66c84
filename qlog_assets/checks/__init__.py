"""Great Expectations behind an adapter that fails closed, and what it is asked of released tables."""
