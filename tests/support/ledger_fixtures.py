"""Fixtures: a place for a fresh ledger on either database. Taken with `pytest_plugins = ("support.ledger_fixtures",)`.

A test that asks for `ledger_place` runs once per database. PostgreSQL's runs are marked `postgresql`; they use the
server that QLOG_TEST_POSTGRESQL names, or start one of their own, or are skipped with the reason.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from support import postgresql


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A PostgreSQL server."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    if os.environ.get(postgresql.VARIABLE):
        yield os.environ[postgresql.VARIABLE]
        return
    with ExitStack() as stack:
        try:
            url = stack.enter_context(postgresql.temporary_server())
        except postgresql.UnavailableError as error:
            pytest.skip(f"no PostgreSQL server: {error}; name one in {postgresql.VARIABLE}")
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def ledger_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a ledger may be made: a path, or the URL of a schema of its own in PostgreSQL."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    yield request.getfixturevalue("postgresql_schema")


@pytest.fixture
def postgresql_schema(postgresql_url: str) -> Iterator[str]:
    """The URL of a schema of its own in PostgreSQL."""
    server = sa.make_url(postgresql_url)
    schema = f"ledger_{secrets.token_hex(6)}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {schema}"))
        url = server.update_query_dict({"options": f"-csearch_path={schema}"})
        yield url.render_as_string(hide_password=False)
        connection.execute(sa.text(f"DROP SCHEMA {schema} CASCADE"))
    engine.dispose()
