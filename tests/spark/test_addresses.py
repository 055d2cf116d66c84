"""The address of a Spark Connect server says the same to qlog and to pyspark; no server is needed to see it."""

from __future__ import annotations

import pytest

from qlog_assets.storage.spark_workers import encrypts

pytestmark = pytest.mark.spark

ADDRESSES = (
    "use_ssl=true",
    "use_ssl=false",
    "token=x;use_ssl=true",
    "use_ssl=true;use_ssl=false",
    "use_ssl=false;use_ssl=true",
    "token=use_ssl",
)
"""How the address of a server may go on."""


@pytest.mark.parametrize(
    "asked", ["", "/", *(f"/;{each}" for each in ADDRESSES), "/?/;use_ssl=true", "/#;use_ssl=true"]
)
def test_an_address_is_encrypted_where_qlog_reads_that_it_is(asked: str) -> None:
    from pyspark.sql.connect.client import DefaultChannelBuilder

    assert encrypts(f"sc://host:15002{asked}") == DefaultChannelBuilder(f"sc://host:15002{asked}").use_ssl
