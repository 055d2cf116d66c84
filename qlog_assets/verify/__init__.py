"""Auditing releases without trusting who made them, following them back, and forgetting what they were made from."""
