"""A production instance keeps Dagster's history in PostgreSQL: an operator's own dagster.yaml, as docs/architecture.md
has it, is left alone, runs are recorded there, and the audit finds them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.cli import qlog
from support.instances import MONTHS

from qlog_assets.storage.dagster_home import open_existing

pytest_plugins = ("support.ledger_fixtures",)
pytestmark = pytest.mark.postgresql

SETTINGS = """\
telemetry:
  enabled: false
nux:
  enabled: false
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
storage:
  postgres:
    postgres_url: "{url}"
"""


@pytest.fixture
def history(postgresql_url: str) -> Iterator[str]:
    """The URL of an empty database, as dagster-postgres takes it."""
    server = sa.make_url(postgresql_url)
    name = f"history_{secrets.token_hex(6)}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        yield server.set(drivername="postgresql+psycopg2", database=name).render_as_string(hide_password=False)
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


def test_a_release_is_run_and_audited_with_its_history_in_postgresql(ingested: Path, history: str) -> None:
    pytest.importorskip("dagster_postgres", reason="the extra [postgresql] is not installed")
    settings = ingested / "dagster" / "dagster.yaml"
    settings.write_text(SETTINGS.format(url=history), encoding="utf-8")
    before = {path.name for path in (ingested / "dagster" / "history").rglob("*.db")}
    assert qlog(ingested, "release", "safelog", "--month", MONTHS[0], "--json").json["charged"] is True
    assert settings.read_text(encoding="utf-8") == SETTINGS.format(url=history)
    with open_existing(ingested / "dagster") as instance:
        assert [run.job_name for run in instance.get_runs()] == ["safelog_release"]
    assert {path.name for path in (ingested / "dagster" / "history").rglob("*.db")} == before
    (release,) = qlog(ingested, "audit", "--json").json["releases"]
    # The ingest was run under the settings before: that run is a note, and those of the release are found.
    assert release["ok"] is True
    assert not any("did not finish" in note or "cannot be looked at" in note for note in release["notes"])
