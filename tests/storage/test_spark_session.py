"""What is said before Spark starts: no Spark is needed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage import spark_session
from qlog_assets.storage.engine import Engine, EnginePolicy
from qlog_assets.storage.spark_workers import refuse_open_network
from qlog_assets.storage.warehouse import Warehouse

SPARK = EnginePolicy(kind="spark")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(Settings(home=tmp_path / "home", threads=2)).make()


def test_without_the_extra_one_line_says_what_to_install(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "NEEDED", ("no_such_package",))
    wanted = r"no_such_package is not installed: pip install 'qlog\[spark\]'"
    with pytest.raises(QlogError, match=wanted) as caught, Engine.open(warehouse, SPARK):
        pytest.fail("an engine was opened")
    assert "\n" not in str(caught.value)
    assert list(warehouse.spill.iterdir()) == []


def test_the_driver_gets_the_memory_of_the_settings_and_never_more(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, memory_limit_mb=2048, threads=2)
    for master in ("local[2]", "spark://master:7077"):
        told = spark_session.application_settings(settings, master, tmp_path)
        assert told["spark.driver.memory"] == "2048m" and told["spark.driver.maxResultSize"] == "1024m"
    with pytest.raises(QlogError, match=r"^QLOG_MEMORY_MB: Spark needs 512 MB"):
        spark_session.application_settings(Settings(home=tmp_path, memory_limit_mb=300), "local[2]", tmp_path)


def test_nothing_of_the_log_is_shown_or_kept_by_spark_itself(tmp_path: Path) -> None:
    told = spark_session.application_settings(Settings(home=tmp_path), "local[2]", tmp_path / "scratch")
    assert told["spark.ui.enabled"] == told["spark.eventLog.enabled"] == "false"
    assert told["spark.authenticate"] == "true"
    assert told["spark.io.encryption.enabled"] == "true"
    assert told["spark.network.crypto.saslFallback"] == "false"
    assert Path(told["spark.local.dir"]).is_relative_to(tmp_path / "scratch")


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077", "spark://localhost:1,[::1]:2"])
def test_no_other_machine_can_speak_to_a_driver_whose_spark_is_all_here(tmp_path: Path, master: str) -> None:
    told = spark_session.application_settings(Settings(home=tmp_path), master, tmp_path)
    assert told["spark.driver.host"] == told["spark.driver.bindAddress"] == "127.0.0.1"
    far = spark_session.application_settings(Settings(home=tmp_path), "spark://master:7077", tmp_path)
    assert "spark.driver.bindAddress" not in far


def test_the_policy_file_alone_chooses_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[engine]\nkind = "spark"\nmaster = "sc://host:15002/;token=secret"\n')
    policy = Policy.load(file)
    assert policy.engine.kind == "spark" and policy.engine.master == "sc://host:15002/;token=secret"
    assert "secret" not in f"{policy!r} {policy.as_public()} {policy.engine.as_public()}"
    for change in (policy.with_settings, policy.with_run_changes):
        with pytest.raises(ParameterError, match=r"^engine\.kind: .* the policy file alone"):
            change({"engine.kind": "duckdb"})
    assert policy.with_settings({"safelog.epsilon": "1"}).engine.master == policy.engine.master


def test_a_master_without_spark_is_a_mistake_that_is_named() -> None:
    with pytest.raises(ParameterError, match='master: is of no use without kind = "spark"'):
        Policy(engine={"master": "local[2]"})


SAFE = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "settings"),
    [
        ("spark://master:7077", {}),
        ("spark://master:7077", {"spark.authenticate": "true"}),
        ("spark://127.0.0.1:7077,other:7077", {}),
        ("spark://127.0.0.1:1@other:7077", {}),
        ("yarn", {"spark.network.crypto.enabled": "true"}),
        ("k8s://https://127.0.0.1:6443", {}),
        ("sc://host:15002", SAFE),
        ("sc://host:15002/;use_ssl=false", SAFE),
        ("sc://host:15002/;use_ssl=true;use_ssl=false", SAFE),
        ("sc://host:15002/?/;use_ssl=true", SAFE),
    ],
)
def test_rows_do_not_pass_a_network_as_they_are(master: str, settings: dict[str, str]) -> None:
    with pytest.raises(QlogError, match=r"^\[engine\] master: rows would pass the network as they are"):
        refuse_open_network(master, settings.get)


@pytest.mark.parametrize("settings", [{}, {"spark.authenticate": "false"}, {"spark.network.crypto.enabled": "true"}])
def test_other_users_of_this_machine_get_no_row_from_a_cluster_on_it(settings: dict[str, str]) -> None:
    with pytest.raises(QlogError, match=r"^\[engine\] master: every user of this machine could ask for rows"):
        refuse_open_network("spark://127.0.0.1:7077", settings.get)


@pytest.mark.parametrize(
    ("master", "settings"),
    [
        ("local", {}),
        ("local[4]", {}),
        ("spark://127.0.0.1:7077", {"spark.authenticate": "true"}),
        ("sc://localhost:15002/;token=x", {}),
        ("sc://host:15002/;token=x;use_ssl=true", {}),
        ("spark://master:7077", SAFE),
        ("yarn", {"spark.authenticate": "true", "spark.ssl.rpc.enabled": "true"}),
    ],
)
def test_what_is_encrypted_or_stays_on_this_machine_is_let_through(master: str, settings: dict[str, str]) -> None:
    refuse_open_network(master, settings.get)
