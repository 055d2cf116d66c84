"""A mechanism that is brought from outside is released, refused, audited, simulated and documented like any other.

The toy's shapes are those of mechanisms to come. Nothing in the package is edited for it: the register is told by its
hook, and everything that names mechanisms iterates the register.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.door import MARCH, door_at, warehouse_at
from support.instances import load_definitions, make_home
from support.tampering import vouch_for
from support.toy import FILES, TOY, TRAILS, WALKS, collected_file

from qlog_assets.api.planning import explain_guarantee
from qlog_assets.door.inputs import DoorError
from qlog_assets.errors import ParameterError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.mechanisms import register
from qlog_assets.mechanisms.mechanism import Drawn, Mechanism
from qlog_assets.mechanisms.register import adding, names
from qlog_assets.mechanisms.safelog import guarantee as safelog
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.pipeline.public_material import PublicLists
from qlog_assets.pipeline.stage import Inputs, Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.tables import read_csv
from qlog_assets.storage.engine import Engine
from qlog_assets.verify.audit import audit_warehouse
from tools import guarantees_page, policy_page

TAKEN = (["hall", "whales"], ["hall", "minerals", "café"])
VISITORS = 40


@pytest.fixture
def museum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A warehouse whose collector was sent a month of walks, and a package that knows the toy."""
    home = make_home(tmp_path / "museum")
    path = collected_file(warehouse_at(home), MARCH)
    path.parent.mkdir(parents=True)
    sent = [[f"visitor {number}", walk] for number in range(VISITORS) for walk in TAKEN]
    sent.append(["visitor 1", ["staff door", "archive"]])
    path.write_text("".join(json.dumps(row) + "\n" for row in sent), encoding="utf-8")
    monkeypatch.setenv("QLOG_HOME", str(home))
    with adding(TOY, FILES):
        yield home
    # The definitions of this process are loaded anew without the toy by whoever wants them next.
    importlib.reload(importlib.import_module("qlog_assets.definitions"))


def run_job(home: Path, name: str, patch: pytest.MonkeyPatch, config: dict | None = None) -> dg.ExecuteInProcessResult:
    definitions = load_definitions(home, patch)
    with dg.DagsterInstance.ephemeral() as instance:
        return definitions.resolve_job_def(name).execute_in_process(
            partition_key=MARCH, run_config=config, instance=instance
        )


def test_the_toy_is_released_audited_and_served(museum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_job(museum, "toy_release", monkeypatch, {"ops": {"toy_selected": {"config": {}}}}).success
    (charge,) = door_at(museum).ledger.charges()
    path = museum / "released" / "toy" / MARCH / charge.release_id
    trails = pq.read_table(path / "trails.parquet")
    assert trails.schema.field("rooms").type == pa.list_(pa.string())
    # Of two walks per visitor the limit keeps one, the same for everybody, and nobody's own.
    assert trails["rooms"].to_pylist() == [sorted(TAKEN, key=json.dumps)[0]]
    manifest = load_manifest(path / "manifest.json")
    assert manifest["tables"]["made_up"]["threshold"] is None and manifest["tables"]["made_up"]["rows"] == 3
    assert manifest["tables"]["trails"]["threshold"] > 1
    assert read_csv(path / "trails.csv", TRAILS.with_month()).equals(trails)
    assert "Visitors walked, and their walks were counted." in (path / "datasheet.html").read_text()
    report = audit_warehouse(warehouse_at(museum))
    assert report.ok, report.all_findings
    assert not any("collected" in note for note in report.releases[0].notes)
    assert door_at(museum).draw("toy", MARCH).charged is False
    assert door_at(museum).publish("toy", MARCH).path == path


def test_a_deep_audit_computes_the_stages_of_a_mechanism_that_the_package_does_not_know(
    museum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_job(museum, "toy_release", monkeypatch).success
    (verdict,) = audit_warehouse(warehouse_at(museum), deep=PublicLists()).releases
    assert verdict.findings == [] and "toy_walks 2006-03, from what was collected" in verdict.recomputed
    # Rows that fit the ledger and not what was collected: as code that is wrong would have written them.
    partition = warehouse_at(museum).current("toy_walks", MARCH)
    (file,) = partition.files("walks")
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    vouch_for(museum, partition, entered=True)
    door_at(museum).draw("toy", MARCH, again="with a walk less")
    door_at(museum).publish("toy", MARCH)
    findings = audit_warehouse(warehouse_at(museum), deep=PublicLists()).all_findings
    assert any("toy_walks 2006-03 does not follow from what was collected: walks differs" in each for each in findings)


def test_the_audit_says_when_what_was_collected_is_gone(museum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_job(museum, "toy_release", monkeypatch).success
    path = collected_file(warehouse_at(museum), MARCH)
    path.write_text(path.read_text() + json.dumps(["visitor 99", ["hall"]]) + "\n")
    (verdict,) = audit_warehouse(warehouse_at(museum)).releases
    assert "the collected of 2006-03 is no longer there as it was read" in verdict.notes


def test_the_door_refuses_the_toy_when_a_limit_is_broken(museum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_job(museum, "toy_release", monkeypatch).success
    partition = warehouse_at(museum).current("toy_walks", MARCH)
    (file,) = partition.files("walks")
    rows = pq.read_table(file)
    more = pa.table({"user": ["visitor 1"] * 5, "walk": [f'["room {number}"]' for number in range(5)]}, rows.schema)
    pq.write_table(pa.concat_tables([rows, more]), file)
    vouch_for(museum, partition, entered=True)
    with pytest.raises(DoorError, match=r"toy_walks breaks the contribution limits \(toy/walks: 1 of 2"):
        door_at(museum).draw("toy", MARCH, again="with more walks")


@pytest.mark.parametrize("variant", ["sound", "loud", "quiet"])
def test_every_variant_of_the_toy_is_simulated_by_its_name(
    museum: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    config = {"ops": {"simulated_toy": {"config": {"variant": variant, "seed": 7}}}}
    assert run_job(museum, "toy_simulation", monkeypatch, config).success
    (facts,) = (json.loads(path.read_text()) for path in (museum / "private" / "studies").glob("toy-*/study.json"))
    assert (facts["variant"], facts["charged"]) == (variant, False)
    assert facts["rows"]["trails"] >= 1
    assert door_at(museum).ledger.charges() == []


def test_a_paper_variant_of_the_toy_never_passes_the_door(museum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_job(museum, "toy_release", monkeypatch).success
    with pytest.raises(DoorError, match="for studies alone"):
        door_at(museum).draw("toy", MARCH, variant="loud", again="as printed")


def failing(error: Exception, *, after_noise: bool) -> Mechanism:
    """The toy, whose draw raises before it took a random bit, or after it drew everything."""

    def fail(engine: Engine, inputs: Inputs, variant: str, chosen: Any, source: RandomSource) -> Drawn:
        if after_noise:
            TOY.draw(engine, inputs, variant, chosen, source)
        raise error

    return replace(TOY, variants={"sound": replace(TOY.variants["sound"], draw=fail)})


@pytest.fixture
def ready(museum: Path) -> Path:
    """The museum with its walks made, as the release's first step leaves them."""
    warehouse, policy = warehouse_at(museum), Policy.load(museum / "policy.toml")
    with Engine.open(warehouse) as engine:
        book = Book(Ledger.open(warehouse.ledger_url), policy.dataset)
        WALKS.make(Work(warehouse, engine, MARCH, policy.section("toy"), policy.lists, book=book), {})
    return museum


def test_a_draw_that_fails_after_its_noise_is_kept_as_failed_and_never_drawn_again(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = failing(ValueError("visitor 7 was here"), after_noise=True)
    with monkeypatch.context() as patch:
        patch.setitem(register._ADDED, "toy", broken)
        with pytest.raises(DoorError, match=r"failed \(ValueError in test_toy.py, line \d+\)") as refused:
            door_at(ready).draw("toy", MARCH)
    assert "visitor" not in str(refused.value)
    # The mended mechanism is not asked: the request has its draw, and its charge stays.
    (charge,) = door_at(ready).ledger.charges()
    assert charge.state == "drawn"
    for ask in (door_at(ready).draw, door_at(ready).publish):
        with pytest.raises(DoorError, match="after its noise was drawn, so its charge stays"):
            ask("toy", MARCH)
    with pytest.raises(DoorError, match="has a stored draw"):
        door_at(ready).abandon(charge.release_id, "it failed")
    assert "failed" in audit_warehouse(warehouse_at(ready)).releases[0].findings[0]
    assert door_at(ready).withdraw(charge.release_id, "its draw failed").state == "withdrawn"
    assert door_at(ready).draw("toy", MARCH, again="the fault is mended").charged is True
    assert door_at(ready).publish("toy", MARCH).charge.draw_number == 2
    report = audit_warehouse(warehouse_at(ready))
    assert report.ok, report.all_findings


@pytest.mark.parametrize(
    ("error", "after_noise"),
    [(ValueError("no bit was taken"), False), (OSError(28, "no space"), True), (MemoryError(), True)],
)
def test_a_failure_without_noise_or_of_the_machine_is_tried_again_at_no_new_charge(
    ready: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, after_noise: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(register._ADDED, "toy", failing(error, after_noise=after_noise))
        with pytest.raises(type(error)):
            door_at(ready).draw("toy", MARCH)
    (charge,) = door_at(ready).ledger.charges()
    assert charge.state == "reserved"
    assert door_at(ready).draw("toy", MARCH).charged is False
    assert door_at(ready).publish("toy", MARCH).charge.release_id == charge.release_id


def test_policy_pages_and_guarantees_know_the_toy_while_it_is_there(museum: Path) -> None:
    policy = Policy(toy={"walks_per_visitor": 2}).with_settings({"toy.scale": "4"})
    assert policy.parameters(TOY).as_public()["scale"] == "4"
    with pytest.raises(ParameterError, match="toy: walks: unknown key"):
        Policy(toy={"walks": 2})
    assert "### toy, quiet\n" in guarantees_page.page()
    assert "## `[toy]`" in policy_page.page()
    assert explain_guarantee("toy", None, {"scale": "2"})["proven"]["epsilon"] == 0.5


def test_the_toy_is_gone_afterwards_and_an_unnamed_limit_is_refused() -> None:
    assert "toy" not in names()
    with pytest.raises(ParameterError, match="unknown key"):
        Policy(toy={})
    for stages in ((), (replace(WALKS, inspect=None),), (WALKS, replace(WALKS, name="second"))):
        with pytest.raises(ValueError, match="exactly one inspected stage"):
            replace(TOY, stages=stages)
    aside = replace(WALKS, name="aside", limits_users=False, origin=None, reads=("cleaned_log",))
    with pytest.raises(ValueError, match="aside reads more than toy_walks and public lists"):
        replace(TOY, stages=(WALKS, aside))
    variants = {"sound": replace(TOY.variants["sound"], guarantee=safelog.sound)}
    borrowed = replace(TOY, variants=variants, parameters=SafelogParameters)
    with pytest.raises(ParameterError, match="toy sound states the guarantee of safelog sound"):
        borrowed.guarantee("sound", SafelogParameters())
