"""What a release looks like when it is public: from a stored draw to a directory of files, the same bytes every time.

The door decides whether and when; nothing here is called by anybody else. Everything written is a function of the
draw, its charge and the ledger's event that recorded it, so a publication that was interrupted can be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qlog_assets.checks.personal_data import suppression_mask
from qlog_assets.checks.released import ERRORS_SUITE, NEVER, released_frames
from qlog_assets.checks.suites import run_suite
from qlog_assets.door.draws import Draw
from qlog_assets.errors import QlogError
from qlog_assets.ledger import Charge, SaltedHead
from qlog_assets.mechanisms.mechanism import Drawn, Mechanism
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.report.datasheet import reading_order, write_datasheet
from qlog_assets.report.manifest import MANIFEST_NAME, ManifestTable, build_manifest, load_manifest, write_manifest
from qlog_assets.report.release_files import write_release_files
from qlog_assets.report.tables import TableLayout, add_month, flatten_lists, read_csv, write_table
from qlog_assets.storage.scratch import sync_directory

MONTH_WORDS_SINCE = 4
"""The version of the public words since which tables have a column for their month."""

FILES_SINCE = 4
"""The same for a README and a citation file beside the tables."""


class PublicationError(QlogError):
    """A draw that may not be published as it is."""


@dataclass(frozen=True)
class Publication:
    """What a published release says of itself, read back from its manifest."""

    path: Path
    rows: dict[str, int]
    thresholds: dict[str, int]
    """The least noisy counts, of tables that have counts."""

    @classmethod
    def read(cls, path: Path) -> Publication:
        tables = load_manifest(path / "manifest.json")["tables"]
        return cls(
            path,
            {name: int(table["rows"]) for name, table in tables.items()},
            {name: int(table["threshold"]) for name, table in tables.items() if table["threshold"] is not None},
        )


def stage(
    directory: Path,
    mechanism: Mechanism,
    charge: Charge,
    draw: Draw,
    guarantee: Guarantee,
    head: SaltedHead,
    reached: Callable[[str], None],
) -> Path:
    """Fill a directory with the release's public files; returns the manifest."""
    drawn = draw.read()
    public, suppressed = suppress_personal_data(drawn, mechanism)
    reached("personal_data_suppressed")
    layouts = [layout.fitting(public[layout.name]) for layout in mechanism.tables if layout.name in public]
    for layout in layouts:
        check_output(mechanism, layout, public[layout.name], drawn)
    reached("outputs_checked")
    # After the checks, which look at what was drawn: the month is nothing that was drawn.
    public = {name: show_month(rows, draw) for name, rows in public.items()}
    layouts = [layout.fitting(public[layout.name]) for layout in layouts]
    manifest = build_manifest(
        release_id=charge.release_id,
        dataset=charge.dataset,
        month=charge.month,
        mechanism_version=charge.mechanism_version,
        draw_number=charge.draw_number,
        drawn_on=(charge.drawn_at or "")[:10],
        parameters=mechanism.printed_parameters(charge.variant, charge.parameters, draw.release.words),
        guarantee=guarantee,
        words=draw.release.words,
        budget=draw.release.budget,
        tables=[
            ManifestTable(
                layout,
                public[layout.name].num_rows,
                write_table(public[layout.name], layout, directory),
                drawn.tables[layout.name].threshold,
                drawn.tables[layout.name].threshold_outside_pool,
                suppressed[layout.name],
                drawn.tables[layout.name].noise,
            )
            for layout in layouts
        ],
        pools=draw.release.public_material,
        ledger_seq=head.seq,
        ledger_salt=head.salt,
        ledger_salted_head=head.digest,
        witnessed=draw.release.witnessed,
        one_user=draw.release.one_user,
        about=draw.release.about,
        software=draw.release.software,
    )
    # The account names tables in the order in which a reader meets them.
    names = reading_order(manifest, mechanism.titles)
    in_order = {name: manifest["tables"][name] for name in names}
    told = mechanism.account({**manifest, "tables": in_order})
    datasheet = write_datasheet(manifest, public, directory, told, mechanism.titles)
    beside = write_release_files(manifest, names, directory) if draw.release.words >= FILES_SINCE else []
    path = write_manifest(manifest, directory, [datasheet, *beside])
    for file in directory.iterdir():
        file.chmod(0o644)
    sync_directory(directory)
    return path


def differences_from_draw(directory: Path, draw: Draw, mechanism: Mechanism) -> list[str]:
    """In what the public tables differ from what was drawn; empty if they do not.

    Checksums tell that files are those of a manifest; only the draw tells that the manifest is of this release. Rows
    are compared, not bytes, and which rows are suppressed is not decided again: a later version may write other bytes
    and know more patterns.
    """
    drawn, tables = draw.read(), load_manifest(directory / MANIFEST_NAME)["tables"]
    sentences = []
    for table in mechanism.tables:
        if (table.name in tables) != (table.name in drawn.tables):
            sentences.append(f"{table.name} was drawn or is public, and not both")
        elif table.name in tables:
            rows = show_month(drawn.tables[table.name].rows, draw)
            layout = table.fitting(rows)
            rows = rows.cast(layout.schema)
            try:
                public = pq.read_table(directory / f"{layout.name}.parquet").cast(layout.schema)
                text = read_csv(directory / f"{layout.name}.csv", layout)
            except (pa.ArrowException, ValueError, KeyError):
                sentences.append(f"{layout.name} cannot be read as the table it should be")
                continue
            unknown = count_unknown_rows(public, rows, layout)
            if unknown or public.num_rows + tables[layout.name]["suppressed_rows"] != rows.num_rows:
                sentences.append(f"{layout.name}.parquet does not say what was drawn")
            if not text.equals(public):
                sentences.append(f"{layout.name}.csv does not say what {layout.name}.parquet says")
            known = drawn.tables[layout.name].noise
            if tables[layout.name].get("noise") != (known and known.as_json()):
                sentences.append(f"{layout.name}: its manifest does not say what the draw does of its noise")
    return sentences


def show_month(rows: pa.Table, draw: Draw) -> pa.Table:
    """Drawn rows as they are published: with their month, unless the draw's words had no such column."""
    return add_month(rows, draw.release.month) if draw.release.words >= MONTH_WORDS_SINCE else rows


def count_unknown_rows(public: pa.Table, drawn: pa.Table, layout: TableLayout) -> int:
    """How many public rows were never drawn, or not so often."""
    names = layout.schema.names
    flat = [flatten_lists(rows, layout) for rows in (public, drawn)]
    there, known = (rows.group_by(names).aggregate([([], "count_all")]) for rows in flat)
    joined = there.join(known, keys=names, join_type="left outer", right_suffix="_drawn")
    often = pc.fill_null(joined["count_all_drawn"], 0)
    return int(pc.sum(pc.max_element_wise(pc.subtract(joined["count_all"], often), 0)).as_py() or 0)


def suppress_personal_data(drawn: Drawn, mechanism: Mechanism) -> tuple[dict[str, pa.Table], dict[str, int]]:
    """The tables without rows that look like somebody's data and were not public before; how many rows that took.

    Post-processing of what was drawn: it looks at released texts and the public pool, never at the log.
    """
    kept: dict[str, pa.Table] = {}
    suppressed: dict[str, int] = {}
    for layout in mechanism.tables:
        if layout.name not in drawn.tables:
            continue
        rows = drawn.tables[layout.name].rows
        personal = suppression_mask([rows[name] for name in layout.text_columns], drawn.public_texts)
        kept[layout.name] = rows.filter(pa.array(~personal))
        suppressed[layout.name] = int(personal.sum())
    return kept, suppressed


def check_output(mechanism: Mechanism, layout: TableLayout, rows: pa.Table, drawn: Drawn) -> None:
    """Run the released table's suite; raise with its reason if anything in it may not be public."""
    table = drawn.tables[layout.name]
    thresholds: dict[str, int | str | float] = {}
    if table.threshold is not None:
        outside = NEVER if table.only_public else table.threshold_outside_pool or table.threshold
        thresholds = {"threshold": table.threshold, "threshold_outside_pool": outside}
    frames = released_frames(rows, layout, drawn.public_texts)
    suites = [f"{mechanism.name}/released_{layout.name}", *([] if layout.error is None else [ERRORS_SUITE])]
    for suite in suites:
        result = run_suite(suite, frames, parameters=thresholds)
        if not result.passed:
            raise PublicationError(f"the door refuses to publish: {result.reason}")
