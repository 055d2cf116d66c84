"""Private session logs (Zhang and Yang 2017)."""
