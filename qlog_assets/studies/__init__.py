"""Seeded draws, comparisons and measures. Private, never published, never charged."""
