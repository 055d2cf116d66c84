"""The k-anonymity methods people still use: for studies, never published."""
