"""Dagster assets, thin: each joins a statement in sql/ to a function in mechanisms/ or to the door. No arithmetic here."""
