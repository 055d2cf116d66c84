"""The tampering matrix: what a hand may change in a warehouse, who notices, and in which words.

Each row is done and looked at. `docs/tampering.md` shows the same rows to auditors: running this file as a program
writes its table anew.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from support.door import MARCH, charges, door_at, release, warehouse_at
from support.ledgers import hand_in
from support.stages import Stages
from support.tampering import edit_json, flip, vouch_for
from support.warehouses import build_chain

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book, Ledger
from qlog_assets.ledger.store import EVENTS
from qlog_assets.mechanisms.register import mechanism
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.raw_log import assemble_raw_log
from qlog_assets.pipeline.stage import Work, make_stages
from qlog_assets.policy import Policy
from qlog_assets.settings import Settings
from qlog_assets.storage.digests import file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition, shape_of
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.verify.audit import AuditReport, audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)

PAGE = Path(__file__).parents[2] / "docs" / "tampering.md"
BEGIN, END = "<!-- The table is written by tests/faults/test_tampering.py. -->", "<!-- End of the table. -->"
Hand = Callable[[Path], object]


# What a hand does -----------------------------------------------------------------------------------------------------


def policy_of(home: Path) -> Policy:
    return Policy.load(home / "policy.toml")


def book_of(home: Path) -> Book:
    return Book(Ledger.open(warehouse_at(home).ledger_url), policy_of(home).dataset)


def partition(home: Path, asset: str) -> Partition:
    return warehouse_at(home).current(asset, "public" if asset == "pool" else MARCH)


def batch(home: Path) -> Partition:
    (key,) = (path.parent.name for path in (home / "private" / "landing_batch").glob("*/current"))
    return warehouse_at(home).current("landing_batch", key)


def reseal(asset: str, table: str, column: str, *, entered: bool = False) -> Hand:
    """Change a column of a table and everything beside it that vouches for it."""

    def hand(home: Path) -> None:
        made = batch(home) if asset == "landing_batch" else partition(home, asset)
        path = made.files(table)[0]
        rows = pq.read_table(path)
        old = rows[column]
        new = pc.multiply(old, 1000) if pa.types.is_integer(old.type) else pc.binary_join_element_wise(old, "x", "")
        path.unlink()  # A raw log's file has another name in its batch.
        changed = rows.set_column(rows.column_names.index(column), rows.schema.field(column), new.cast(old.type))
        pq.write_table(changed, path)
        path.chmod(0o600)
        vouch_for(home, made, entered=entered)

    return hand


def swap_pool(home: Path) -> None:
    """Another list in the place of the one that counts were made with."""
    made = partition(home, "pool")
    (path,) = made.files("queries")
    rows = pq.read_table(path)
    path.unlink()  # The loaded copy is another name of the same file.
    texts = pa.array([f"planted {number}" for number in range(rows.num_rows)])
    pq.write_table(rows.set_column(rows.column_names.index("query"), "query", texts), path)
    path.chmod(0o600)
    facts = replace(made.provenance.tables["queries"], files={path.name: file_checksum(path)})
    replace(made.provenance, tables={"queries": facts}).write(made.path / "provenance.json")


def drop_month_of_batch(home: Path) -> None:
    made = batch(home)
    warehouse_at(home).drop_tables(made, [str(MARCH)])


def make_zealous(home: Path) -> None:
    warehouse, policy = warehouse_at(home), policy_of(home)
    with Engine.open(warehouse) as engine:
        work = Work(warehouse, engine, MARCH, policy.section("zealous"), policy.lists, book=book_of(home))
        raw = warehouse.current("raw_log", MARCH)
        make_stages((CLEANED_LOG, *mechanism("zealous").stages), work, {"raw_log": raw})


def reseal_items(home: Path) -> None:
    make_zealous(home)
    reseal("zealous_items", "queries", "query")(home)


def point_current_back(home: Path) -> None:
    """`current` of the capped log at one that was made with another limit."""
    shape = partition(home, "capped_log").provenance.shape
    build_chain(home, queries_per_user=3)
    write_private(home / "private" / "capped_log" / MARCH / "current", shape)


def plant_batch(home: Path) -> None:
    """A batch that nobody ingested, with fitting provenance, and a release made from it."""
    made = batch(home)
    draft = replace(made.provenance, month="planted-aol-0123456789ab", upstream={"landing": "f" * 64})
    draft = replace(draft, shape=shape_of(draft))
    base = home / "private" / "landing_batch" / draft.month
    shutil.copytree(made.path, base / draft.shape)
    draft.write(base / draft.shape / "provenance.json")
    write_private(base / "current", draft.shape)
    build_chain(home)
    release(home)


def edit_landing(home: Path) -> None:
    (path,) = (home / "landing" / "aol").iterdir()
    path.write_text(path.read_text().replace("weather", "whether", 1))


def month_folder(home: Path) -> Path:
    return home / "released" / "safelog" / MARCH


def release_folder(home: Path) -> Path:
    return month_folder(home) / charges(home)[0].release_id


def point_latest(home: Path, target: str) -> None:
    pointer = month_folder(home) / "latest"
    pointer.unlink()
    pointer.symlink_to(target)


def point_latest_back(home: Path) -> None:
    old = charges(home)[0].release_id
    release(home, again="one more")
    point_latest(home, old)


def stray_draw(home: Path) -> None:
    (draw,) = (home / "private" / "draws").iterdir()
    shutil.copytree(draw, draw.with_name("0" * 64))


def drop_triggers(home: Path) -> None:
    with hand_in(str(home / "ledger.db")):
        pass


def edit_ledger(home: Path) -> None:
    with hand_in(str(home / "ledger.db")) as connection:
        row = sa.update(EVENTS).where(EVENTS.c.kind == "reserved")
        connection.execute(row.values(payload=sa.func.replace(EVENTS.c.payload, '"epsilon":"20"', '"epsilon":"2"')))


def edit_entry(home: Path) -> None:
    with hand_in(str(home / "ledger.db")) as connection:
        row = sa.update(EVENTS).where(EVENTS.c.kind == "made")
        connection.execute(row.values(payload=sa.func.replace(EVENTS.c.payload, "raw_log", "raw_lag")))


def cut_ledger(home: Path) -> None:
    with hand_in(str(home / "ledger.db")) as connection:
        connection.execute(sa.delete(EVENTS).where(EVENTS.c.kind == "published"))


def forge_release(home: Path) -> None:
    """A public table and the manifest that vouches for it, both changed so that they fit."""
    folder = release_folder(home)
    (folder / "queries.csv").write_text((folder / "queries.csv").read_text() + "invented,999\n")
    path = folder / "queries.csv"
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["queries"]["files"]["csv"] |= {"sha256": file_checksum(path), "bytes": path.stat().st_size}
    (folder / "manifest.json").write_text(json.dumps(manifest, sort_keys=True, ensure_ascii=False, indent=1) + "\n")


def replace_tombstone(home: Path) -> None:
    (charge,) = charges(home)
    door_at(home).withdraw(charge.release_id, "a name was in it")
    edit_json(month_folder(home) / f"{charge.release_id}.withdrawn.json", "text", value="nothing happened")


def edit_index(home: Path) -> None:
    path = home / "released" / "index.html"
    path.write_text(path.read_text(encoding="utf-8").replace("ε = ", "ε = 0."), encoding="utf-8")


def change_cached_pool(home: Path) -> None:
    """A query added to the loaded pool, with fitting description, before the month is made anew and released."""
    (path,) = (home / "private" / "public_lists").glob("*.parquet")
    rows = pq.read_table(path)
    more = pa.Table.from_pylist([{"pool_id": rows.num_rows, "query": "zzz planted"}], rows.schema)
    path.unlink()
    pq.write_table(pa.concat_tables([rows, more]), path)
    described = path.with_suffix(".json")
    edit_json(described, "provenance", "sha256", value=file_checksum(path))
    edit_json(described, "provenance", "rows", value=rows.num_rows + 1)
    build_chain(home)
    release(home)


def count_for_more(home: Path) -> None:
    """Whoever may write tables and add to the ledger changes counts, enters them, and has them released."""
    reseal("pool_augmented", "queries", "users", entered=True)(home)
    release(home)


def restore_snapshot(home: Path) -> None:
    """Release, then put ledger and private zone back to what they were, and take away what was published."""
    before = home.with_name("snapshot")
    shutil.copytree(home, before, symlinks=True)
    release(home)
    shutil.rmtree(home)
    shutil.copytree(before, home, symlinks=True)


def release_in_1999(home: Path) -> None:
    door = door_at(home, clock=lambda: datetime(1999, 1, 1, tzinfo=UTC))
    door.draw("safelog", MARCH)
    door.publish("safelog", MARCH)


def change_policy(home: Path) -> None:
    path = home / "policy.toml"
    path.write_text(path.read_text().replace("threshold = 10", "threshold = 12"))


def raise_budget(home: Path) -> None:
    Ledger.open(home / "ledger.db").set_budget("small", 10**6, "0.5", "because I can")


# What is asked afterwards ---------------------------------------------------------------------------------------------


def draw_zealous(home: Path) -> object:
    return door_at(home).draw("zealous", MARCH)


def cap_alone(home: Path) -> object:
    with Engine.open(warehouse_at(home)) as engine:
        stages = Stages(warehouse_at(home), engine, book=book_of(home))
        return stages.cap(MARCH, partition(home, "cleaned_log"), policy_of(home).section("safelog"))


def clean_alone(home: Path) -> object:
    with Engine.open(warehouse_at(home)) as engine:
        return Stages(warehouse_at(home), engine, book=book_of(home)).clean(MARCH, partition(home, "raw_log"))


def assemble(home: Path) -> object:
    return assemble_raw_log(warehouse_at(home), MARCH, book=book_of(home))


def draw_safelog(home: Path) -> object:
    return door_at(home).draw("safelog", MARCH)


# The matrix -----------------------------------------------------------------------------------------------------------

REFUSED, AUDIT, DEEP, TOLD, NOBODY = "refused", "audit", "audit --deep", "told as believed", "nobody"
WHO = {
    REFUSED: "refused before anything is drawn",
    AUDIT: "`qlog audit`",
    DEEP: "`qlog audit --deep`",
    TOLD: "`qlog audit`, among what it believed",
    NOBODY: "nobody",
}


@dataclass(frozen=True)
class Case:
    """One row: what is changed, in which warehouse, who notices, and what is said, or why nothing can be."""

    change: str
    noticed: str
    says: str
    hand: Hand | None
    start: str = "released"
    ask: Hand = draw_safelog


RESEALED = "is not what the ledger says was written"
CASES = (
    # Before the draw.
    Case("counts in `pool_augmented` times 1,000, resealed", REFUSED, f"pool_augmented 2006-03 {RESEALED}",
         reseal("pool_augmented", "queries", "users"), "chained"),
    Case("a text in `capped_log`, resealed", REFUSED, f"capped_log 2006-03 {RESEALED}",
         reseal("capped_log", "queries", "query"), "chained"),
    Case("an item in `zealous_items`, resealed", REFUSED, f"zealous_items 2006-03 {RESEALED}",
         reseal_items, "chained", draw_zealous),
    Case("the public list that a release reads, swapped and resealed", REFUSED, f"pool public {RESEALED}",
         swap_pool, "chained"),
    Case("`cleaned_log`, resealed, then `capped_log` asked for alone", REFUSED, f"cleaned_log 2006-03 {RESEALED}",
         reseal("cleaned_log", "log", "query"), "chained", cap_alone),
    Case("`raw_log`, resealed, then `cleaned_log` asked for alone", REFUSED, f"raw_log 2006-03 {RESEALED}",
         reseal("raw_log", "log", "query"), "chained", clean_alone),
    Case("an ingested batch, resealed", REFUSED, "is not what the ledger says was read",
         reseal("landing_batch", str(MARCH), "query"), "chained", assemble),
    Case("`current` of `capped_log` at a table made with another limit", REFUSED, "no longer current",
         point_current_back, "chained"),
    Case("`current` of `capped_log` at nothing", REFUSED, "no provenance, so the partition cannot be used",
         lambda home: write_private(home / "private" / "capped_log" / MARCH / "current", "f" * 20), "chained"),
    Case("the data set's name in `private/dataset`", REFUSED, "this warehouse holds the data set other",
         lambda home: write_private(home / "private" / "dataset", "other\n")),
    # After the release: private tables.
    Case("counts in `pool_augmented`, resealed", AUDIT, f"pool_augmented 2006-03 {RESEALED}",
         reseal("pool_augmented", "queries", "users")),
    Case("`capped_log`, resealed", AUDIT, "capped_log 2006-03 is not what was released from: its rows differ",
         reseal("capped_log", "queries", "query")),
    Case("`cleaned_log`, resealed", AUDIT, f"cleaned_log 2006-03 {RESEALED}", reseal("cleaned_log", "log", "query")),
    Case("`raw_log`, resealed", AUDIT, f"raw_log 2006-03 {RESEALED}", reseal("raw_log", "log", "query")),
    Case("an ingested batch, resealed", AUDIT, RESEALED, reseal("landing_batch", str(MARCH), "query")),
    Case("a month taken out of a batch, resealed", AUDIT, RESEALED, drop_month_of_batch),
    Case("a landing file, edited in place", AUDIT, "lies there with another content than was read", edit_landing),
    Case("one more file inside a private table", AUDIT, "file(s) its provenance does not know",
         lambda home: write_private(partition(home, "cleaned_log").path / "more.parquet", "x")),
    # After the release: draws.
    Case("a table of the stored draw", AUDIT, "draw: it is not the one the ledger recorded",
         lambda home: flip(next((home / "private" / "draws").glob("*/queries.parquet")))),
    Case("`draw.json`", AUDIT, "draw: it is not the one the ledger recorded",
         lambda home: edit_json(next((home / "private" / "draws").glob("*/draw.json")), "release", "salt", value="ab")),
    Case("a draw in `private/draws` that no charge accounts for", AUDIT, "draw(s) that no charge accounts for",
         stray_draw),
    # After the release: what is public.
    Case("a public table", AUDIT, "queries.parquet is not the file that was published",
         lambda home: flip(release_folder(home) / "queries.parquet")),
    Case("a public table with a manifest made to fit", AUDIT, "manifest.json is not the one the ledger recorded",
         forge_release),
    Case("a release's directory, deleted", AUDIT, "published, but its files are gone",
         lambda home: shutil.rmtree(release_folder(home))),
    Case("`latest` at a superseded draw", AUDIT, "the newest release: run the release again", point_latest_back),
    Case("`latest` deleted", AUDIT, "does not point at safelog-2006-03-",
         lambda home: (month_folder(home) / "latest").unlink()),
    Case("`latest` at something elsewhere", AUDIT, "points at nothing that the ledger",
         lambda home: point_latest(home, "../../../private")),
    Case("the index of all releases", AUDIT, "does not say what the ledger and the manifests say", edit_index),
    Case("the tombstone of a withdrawn release", AUDIT, "its tombstone was changed", replace_tombstone),
    # After the release: ledger, pins, modes.
    Case("a row of the ledger", AUDIT, "was altered: its hash does not fit its fields", edit_ledger),
    Case("a table's entry in the ledger", AUDIT, "was altered: its hash does not fit its fields", edit_entry),
    Case("the ledger's last row, deleted", AUDIT, "does not know it", cut_ledger),
    Case("the ledger, deleted", AUDIT, "there is no ledger at", lambda home: (home / "ledger.db").unlink()),
    Case("the ledger, overwritten with something else", AUDIT, "file is not a database",
         lambda home: (home / "ledger.db").write_bytes(b"nothing of the kind" * 100)),
    Case("the triggers that keep rows from being changed", AUDIT, "its trigger events_no_update is gone",
         drop_triggers),
    Case("the pin `private/dataset`, deleted", AUDIT, "private/dataset is gone",
         lambda home: (home / "private" / "dataset").unlink()),
    Case("the pin `private/dataset`, edited", AUDIT, "private/dataset does not name small",
         lambda home: write_private(home / "private" / "dataset", "other\n")),
    Case("the private zone, opened for others", AUDIT, "private: others than its owner may enter or read it",
         lambda home: (home / "private").chmod(0o755)),
    Case("a private file, opened for others", AUDIT, "private file(s) have a mode for others",
         lambda home: partition(home, "cleaned_log").files("log")[0].chmod(0o644)),
    Case("the ledger, opened for others", AUDIT, "ledger.db: others than its owner may enter or read it",
         lambda home: (home / "ledger.db").chmod(0o644)),
    Case("a public file, opened for others to write", AUDIT, "public file(s) may be written by others",
         lambda home: (release_folder(home) / "queries.csv").chmod(0o666)),
    # By somebody who may also add to the ledger, or who came before the first entry.
    Case("counts in `pool_augmented`, resealed and entered in the ledger, then released", DEEP,
         "pool_augmented 2006-03 does not follow from capped_log and pool: queries differs", count_for_more, "chained"),
    Case("the loaded copy of a public list, changed before it is entered", DEEP,
         "pool public does not follow from the file that the policy names: queries differs",
         change_cached_pool, "chained"),
    Case("a batch that nobody ingested, put there before a release", TOLD,
         "landing_batch planted-aol-0123456789ab: its own provenance, because the ledger has no entry of it",
         plant_batch, "ingested"),
    # Out of reach.
    Case("ledger, private zone and public zone, all put back to an earlier day", NOBODY,
         "Inside the warehouse nothing remembers the day that is gone. A witness outside does, and so does whoever "
         "kept a manifest.", restore_snapshot, "chained"),
    Case("an event added to the ledger by its own rules, such as a higher budget", NOBODY,
         "Whoever may write the ledger's database may add to it. The event stays, with who asked for it.",
         raise_budget),
    Case("Dagster's history, deleted or edited", NOBODY,
         "It belongs to Dagster and has no chain. The door ran the checks itself; the audit says that it believes the "
         "history, or that it is gone.", lambda home: shutil.rmtree(home / "dagster")),
    Case("the policy, changed after a release", NOBODY,
         "That is no tampering. Releases are compared with the parameters in the ledger, never with today's policy.",
         change_policy),
    Case("the machine's clock", NOBODY,
         "Events are ordered by their numbers. A date says what the clock said; nothing here knows better.",
         release_in_1999, "chained"),
    Case("a file in the private zone that nothing reads", NOBODY,
         "It has no effect. What is read is looked at: tables, draws, batches.",
         lambda home: write_private(home / "private" / "note.txt", "x")),
    Case("the software itself: code, `sql/`, `expectations/`", NOBODY,
         "The audit is that software, so it cannot vouch for itself. Audit with a copy of your own.", None),
)  # fmt: skip


def audited(home: Path, deep: bool = False) -> AuditReport:
    # As the command does, without making or tidying anything first: that would close what was opened.
    warehouse = Warehouse(Settings(home=home, memory_limit_mb=512, threads=2))
    return audit_warehouse(warehouse, "small", deep=policy_of(home).lists if deep else None)


def name_of(case: Case) -> str:
    return f"{case.noticed}: {case.change}"


@pytest.mark.faults
@pytest.mark.parametrize("case", [case for case in CASES if case.hand is not None], ids=name_of)
def test_what_a_hand_changes_is_noticed_by_whom_the_page_says(copied: Callable[[str], Path], case: Case) -> None:
    home = copied(case.start)
    assert case.hand is not None
    case.hand(home)
    if case.noticed == REFUSED:
        before = len(charges(home))
        with pytest.raises(QlogError) as refused:
            case.ask(home)
        assert case.says in str(refused.value) and len(charges(home)) == before
        return
    found = audited(home)
    assert found.failures == []
    if case.noticed == AUDIT:
        assert any(case.says in finding for finding in found.all_findings), found.all_findings
        return
    assert found.all_findings == []
    deep = audited(home, deep=True).all_findings
    assert deep == [] if case.noticed != DEEP else any(case.says in finding for finding in deep), deep
    if case.noticed == TOLD:
        assert case.says in found.releases[0].believed


@pytest.mark.faults
@pytest.mark.parametrize("asset", ["cleaned_log", "raw_log", "capped_log", "pool_augmented"])
def test_a_resealed_table_is_made_again_by_the_next_run_of_its_stage(chained: Path, asset: str) -> None:
    """A whole run mends what a single step would refuse: what was released is what the landing file says."""
    column, table = {"pool_augmented": ("users", "queries")}.get(
        asset, ("query", "queries" if asset == "capped_log" else "log")
    )
    rows = sorted(map(str, pq.read_table(partition(chained, asset).files(table)[0]).to_pylist()))
    reseal(asset, table, column)(chained)
    build_chain(chained)
    assert sorted(map(str, pq.read_table(partition(chained, asset).files(table)[0]).to_pylist())) == rows
    release(chained)
    assert audited(chained, deep=True).ok


# The page -------------------------------------------------------------------------------------------------------------


def table() -> str:
    """The matrix as the page shows it."""
    rows = []
    for case in CASES:
        told = case.says if case.noticed == NOBODY else f"“… {case.says} …”"
        when = {"released": "after a release"}.get(case.start, "before a release")
        rows.append(f"| {case.change} | {when} | {WHO[case.noticed]} | {told} |")
    head = "| what is changed | when | who notices | what is said, or why nothing can be |\n|---|---|---|---|"
    return "\n".join([BEGIN, "", head, *rows, "", END])


def test_the_page_for_auditors_shows_this_very_matrix() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"run {sys.executable} {os.path.relpath(__file__)}"


def write_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + table() + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    write_page()
