"""The protocol's modules are loaded by a mechanism on machines that have none of the extra's packages."""

from __future__ import annotations

import subprocess
import sys

MODULES = ("aggregation", "decoding", "envelopes", "field", "guessing", "jobs", "keys", "messages", "shares", "tokens")


def test_no_module_of_the_protocol_needs_the_extras_to_be_loaded() -> None:
    imports = "; ".join(f"import qlog_assets.crowd.{module}" for module in MODULES)
    code = f"import sys; sys.modules['voprf'] = sys.modules['httpx'] = sys.modules['rbcl'] = None; {imports}"
    subprocess.run([sys.executable, "-c", code], check=True)
