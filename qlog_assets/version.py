"""The version of this package: goes into manifests, the ledger and studies. A test holds it against pyproject.toml."""

VERSION = "0.4.0"
