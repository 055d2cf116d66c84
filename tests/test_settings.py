"""The machine's side: which warehouse, ledger and limits the environment names, and where shipped files lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qlog_assets import settings as settings_module
from qlog_assets.errors import ParameterError
from qlog_assets.settings import CHECKOUT, PACKAGE, Settings, shipped_file

# The environment -----------------------------------------------------------------------------------------------------


def test_the_environment_chooses_warehouse_ledger_and_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"HOME": tmp_path, "LEDGER_URL": "postgresql://x/y", "MEMORY_MB": 512, "THREADS": 1}.items():
        monkeypatch.setenv(f"QLOG_{key}", str(value))
    settings = Settings.from_environment()
    assert settings.home == tmp_path and settings.policy_file == tmp_path / "policy.toml"
    assert (settings.ledger_url, settings.memory_limit_mb, settings.threads) == ("postgresql://x/y", 512, 1)
    monkeypatch.setenv("QLOG_MEMORY_MB", "plenty")
    with pytest.raises(ParameterError, match="QLOG_MEMORY_MB"):
        Settings.from_environment()


def test_in_a_checkout_the_warehouse_is_the_checkouts_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QLOG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment().home == CHECKOUT / "warehouse"


# Files that ship with the code ---------------------------------------------------------------------------------------


def test_statements_and_suites_are_found_by_folder_and_name() -> None:
    assert shipped_file("sql", "safelog/query_counts.sql") == CHECKOUT / "sql" / "safelog" / "query_counts.sql"
    assert shipped_file("expectations", "log/raw_log.json").is_file()
    assert not shipped_file("sql", "safelog/no_such_statement.sql").exists()


def test_a_mechanism_of_somebody_else_brings_its_files_and_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("toy/counts.sql", "safelog/query_counts.sql"):
        (tmp_path / "sql" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sql" / name).write_text("-- A toy.\nSELECT 1", encoding="utf-8")
    assert not shipped_file("sql", "toy/counts.sql").exists()
    monkeypatch.setattr(settings_module, "SHIPPED_ROOTS", [tmp_path])
    assert shipped_file("sql", "toy/counts.sql") == tmp_path / "sql" / "toy" / "counts.sql"
    assert shipped_file("sql", "safelog/query_counts.sql").is_relative_to(CHECKOUT)


def test_suites_are_found_from_a_wheel_and_never_beside_it(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "qlog_assets" / "expectations" / "log").mkdir(parents=True)
    for part in ("__init__.py", "version.py", "settings.py", "errors.py"):
        shutil.copy(PACKAGE / part, site / "qlog_assets" / part)
    (site / "qlog_assets" / "expectations" / "log" / "raw_log.json").write_text("{}", encoding="utf-8")
    (site / "sql" / "log").mkdir(parents=True)
    (site / "sql" / "log" / "raw.sql").write_text("-- Somebody else's.", encoding="utf-8")
    code = (
        "from qlog_assets.settings import *\n"
        f"assert PACKAGE.is_relative_to({str(site)!r})\n"
        "found = shipped_file('expectations', 'log/raw_log.json')\n"
        "assert found == PACKAGE / 'expectations' / 'log' / 'raw_log.json' and found.is_file()\n"
        "try: shipped_file('sql', 'log/raw.sql')\n"
        "except QlogError as error: assert 'install the package again' in str(error)\n"
        "else: raise SystemExit('took a directory of somebody else')"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=site, env=environment)
