"""Other people's programs on what we publish: frictionless, cffconvert and Polars. `make test-public` brings them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.door import APRIL, charges, release
from support.warehouses import build_chain

from qlog_assets.report.manifest import load_manifest

pytest_plugins = ("support.warehouse_fixtures",)
ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".cache" / "validators" / "bin" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="make test-public installs the validators"),
]


def test_the_data_package_the_citations_and_the_polars_snippet_pass_their_own_validators(released: Path) -> None:
    build_chain(released, APRIL)
    release(released, APRIL)
    script = ROOT / "tests" / "support" / "validate_public.py"
    ended = subprocess.run([PYTHON, script, released / "released"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout.splitlines()[-1])
    manifests = [load_manifest(path) for path in (released / "released").glob("*/*/*/manifest.json")]
    rows = sum(table["rows"] for manifest in manifests for table in manifest["tables"].values())
    assert answer["package"] == {"tables": 6, "rows": rows, "errors": []} and rows > 0
    assert answer["citations"]["errors"] == [] and answer["citations"]["files"] == 2
    assert all("Search statistics of small" in text for text in answer["citations"]["bibtex"])
    wanted = {
        manifest["release_id"]: {name: [facts["rows"], manifest["month"]] for name, facts in manifest["tables"].items()}
        for manifest in manifests
    }
    assert answer["polars"] == wanted and set(wanted) == {charge.release_id for charge in charges(released)}
