"""Utility-maximizing sanitization (Hong, Vaidya, Lu, Wu 2012) and its synthetic counterpart."""
