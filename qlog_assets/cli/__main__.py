"""`python -m qlog_assets.cli` is `qlog`."""

from qlog_assets.cli.app import main

main()
