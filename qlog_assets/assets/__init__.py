"""Dagster assets, thin: each joins a statement in sql/ to a pure function or to the door. No arithmetic here."""
