"""What a study is: a question about a log, answered in steps, kept in one private folder.

A folder holds `study.json` (settings, tables and where it stands), a CSV file per table, PNG pictures, pages where the
study writes some, and a short text, `study.md`. Steps that are done are kept, so a study that was interrupted goes on
where it stopped; the same question with the same settings on the same log is answered from the folder. Everything in it
is private.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError
from qlog_assets.ledger import Book
from qlog_assets.mechanisms.register import names
from qlog_assets.months import Month
from qlog_assets.pipeline.cleaned_log import CLEANED_LOG
from qlog_assets.pipeline.public_material import PUBLIC_LISTS
from qlog_assets.pipeline.stage import Work
from qlog_assets.policy import Policy
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.storage.digests import canonical_json, digest_of, file_checksum
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.partition import Partition
from qlog_assets.storage.private_files import seal, write_private
from qlog_assets.storage.scratch import hold_lock, make_private
from qlog_assets.storage.warehouse import Warehouse
from qlog_assets.studies.unreleased import unreleased_warning
from qlog_assets.version import VERSION

Row = dict[str, Any]
Tables = dict[str, list[Row]]
Progress = Callable[[int, int, str], None]
"""How many steps are done, of how many, and which one is next."""
LONGEST_STUDY_SECONDS = 24 * 3600
FACTS, TEXT, STEPS = "study.json", "study.md", "steps"


@dataclass(frozen=True)
class StudyWork:
    """What a study works on: one warehouse and, for most, one month of it."""

    warehouse: Warehouse
    engine: Engine
    policy: Policy
    settings: Any
    month: Month | None = None
    run_id: str | None = None
    reads: Mapping[str, str] = field(default_factory=dict)
    """What the study is made from, as it was when it was asked: steps read these partitions, whatever comes later."""
    book: Book | None = None
    """Where the stages that it makes are entered, so that a release can use them."""
    found: Tables = field(default_factory=dict)
    """The rows of the steps before, by table: what was chosen there is not chosen again when a study goes on."""


@dataclass(frozen=True)
class Step:
    """A part of a study that can be done by itself: its name, and what adds rows to the tables."""

    name: str
    measure: Callable[[StudyWork], Tables]


@dataclass(frozen=True)
class Study:
    """One question about a log."""

    name: str
    title: str
    question: str
    settings: type[Parameters]
    """What can be varied, the seed of the noise among it."""
    steps: Callable[[StudyWork], Sequence[Step]]
    version: int = 1
    """Raised by hand where the same settings would give another answer: what is kept then counts no more."""
    mechanism: str | None = None
    """The mechanism whose section of the policy the study reads."""
    combine: Callable[[Tables], Tables] = lambda tables: tables
    """What is made of the rows of all steps before they are shown, such as means over folds."""
    columns: Mapping[str, tuple[str, ...]] | None = None
    """The columns of each table that a terminal shows. None: all."""
    shown_rows: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Which rows of a long table a terminal shows; all of them are in its file."""
    pictures: Callable[[Tables], dict[str, bytes]] = lambda tables: {}
    """PNG files by name."""
    pages: Callable[[Tables, dict[str, bytes], StudyWork], dict[str, str]] = lambda tables, pictures, work: {}
    """HTML files by name, from the tables and the pictures."""
    words: Callable[[Tables, Any], str] = lambda tables, settings: ""
    """What was found, in a few sentences of Markdown."""
    withheld: Callable[[Any], Collection[str]] = lambda settings: ()
    """The tables that are in their files and nowhere else, by the settings: no command and no page of Dagster shows
    them, not even how many rows they have."""
    per_month: bool = True
    reads: Callable[[StudyWork], dict[str, str]] = lambda work: {}
    """What it is made from, by name: a digest each. Another log is another study."""

    @property
    def asset(self) -> str:
        """What Dagster calls it, which takes no dash in a name."""
        return f"study_{self.name.replace('-', '_')}"

    @property
    def job(self) -> str:
        return f"{self.name.replace('-', '_')}_study"


def run_study(study: Study, work: StudyWork, progress: Progress = lambda done, of, step: None) -> dict[str, Any]:
    """Answer a study's question, or find the answer; returns its facts, with the path of its folder."""
    refuse_without_pictures()
    if study.per_month and work.month is None:
        raise QlogError(f"the study {study.name} is of one month: say which, with --month YYYY-MM")
    work = replace(work, reads=study.reads(work))
    asked = _describe(study, work)
    folder = work.warehouse.studies / f"{'-'.join(filter(None, (study.name, work.month)))}-{digest_of(asked)[:12]}"
    make_private(folder / STEPS)
    with hold_lock(
        work.warehouse.locks / f"{folder.name}.lock", LONGEST_STUDY_SECONDS, f"another process runs {folder.name}"
    ):
        facts = read_facts(folder)
        if facts is None or not facts["finished"]:
            # Before the first step, so that whoever forgets a month finds the folder.
            facts = {**asked, "finished": False, "path": str(folder)}
            write_private(folder / FACTS, canonical_json(facts))
            tables = study.combine(_measure(study.steps(work), work, folder / STEPS, progress))
            _write_answer(study, work, folder, tables)
            withheld = study.withheld(work.settings)
            facts |= {"finished": True, "tables": {name: rows for name, rows in tables.items() if name not in withheld}}
        facts |= {"warning": _warning(study, work)}
        write_private(folder / FACTS, canonical_json(facts | {"answered_run": work.run_id}))
        seal(folder)
    return facts


def cleaned_month(work: StudyWork) -> Partition:
    """The month's cleaned log, made beside what releases are made from."""
    assert work.month is not None
    made_by = Work(work.warehouse, work.engine, work.month, run_id=work.run_id, make_current=False, book=work.book)
    raw = work.warehouse.partition("raw_log", work.month, work.reads["raw_log"])
    return CLEANED_LOG.make(made_by, {"raw_log": raw})[0]


def refuse_without_pictures() -> None:
    """Say before anything is measured that a study's pictures cannot be drawn here."""
    if importlib.util.find_spec("matplotlib") is None:
        raise QlogError("studies draw pictures with matplotlib, which is not installed: pip install 'qlog[studies]'")


def facts_of_run(warehouse: Warehouse, run_id: str) -> dict[str, Any]:
    """The facts of the study that a run asked for, measured by it or found."""
    every = (read_facts(path.parent) for path in warehouse.studies.glob(f"*/{FACTS}"))
    found = [facts for facts in every if facts is not None and facts.get("answered_run") == run_id]
    if not found:
        raise QlogError("another run answered the same study in between: run it again, and the answer is found")
    return found[0]


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What a study's folder says of it; None where there is nothing to go on from."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return facts


def _describe(study: Study, work: StudyWork) -> dict[str, Any]:
    """The question as a value: what must be the same for an answer to be the same."""
    section = None if study.mechanism is None else work.policy.section(study.mechanism).as_public()
    return {
        "study": study.name,
        "version": study.version,
        "qlog": VERSION,
        "month": None if work.month is None else str(work.month),
        "settings": work.settings.as_public(),
        "mechanism": study.mechanism,
        "parameters": section,
        "drawn_with": drawn_with(work.policy, study.mechanism),
        "reads": dict(work.reads),
    }


def drawn_with(policy: Policy, mechanism: str | None = None) -> str:
    """A digest of all that a policy says of draws, of one mechanism or of all: sections, and public lists with their
    files."""
    lists = policy.lists
    drawn = names() if mechanism is None else (mechanism,)
    named = {name: lists.named_file(name) for name in PUBLIC_LISTS}
    return digest_of(
        {
            "sections": {name: policy.section(name).as_public() for name in drawn},
            "pool": lists.pool.as_public(),
            "has_urls": lists.has_urls,
            "files": {name: file_checksum(found[1]) for name, found in named.items() if found is not None},
        }
    )


def _warning(study: Study, work: StudyWork) -> str | None:
    """What is said of a month that was not released when this was asked. An answer that was kept is asked anew."""
    if work.month is None:
        return None
    return unreleased_warning(work.warehouse, work.policy.dataset, work.month, study.mechanism)


def _measure(steps: Sequence[Step], work: StudyWork, folder: Path, progress: Progress) -> Tables:
    """The rows of all steps, those kept from an earlier run among them."""
    tables: Tables = {}
    for done, step in enumerate(steps):
        progress(done, len(steps), step.name)
        path = folder / f"{step.name}.json"
        if not path.exists():
            write_private(path, canonical_json(step.measure(replace(work, found=tables))))
        for table, rows in json.loads(path.read_text(encoding="utf-8")).items():
            tables.setdefault(table, []).extend(rows)
    progress(len(steps), len(steps), "writing")
    return tables


def _write_answer(study: Study, work: StudyWork, folder: Path, tables: Tables) -> None:
    """Tables as CSV, pictures, and the text that shows them."""
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            # What a terminal shows comes first, in the same order; the steps' files have lost any other.
            shown = (study.columns or {}).get(name, ())
            writer = csv.DictWriter(stream, list(dict.fromkeys((*shown, *rows[0]))) if rows else [])
            writer.writeheader()
            writer.writerows(rows)
    pictures = study.pictures(tables)
    for name, content in pictures.items():
        (folder / name).write_bytes(content)
    for name, page in study.pages(tables, pictures, work).items():
        (folder / name).write_text(page, encoding="utf-8")
    of = f" of {work.month}" if work.month else ""
    settings = ", ".join(f"{key} = {value}" for key, value in work.settings.as_public().items())
    lines = [f"# {study.title}{of}", "", study.question, "", study.words(tables, work.settings), ""]
    lines += [f"Settings: {settings}. Seeded noise, private, never charged.", ""]
    lines += [f"![{name}]({name})" for name in pictures]
    (folder / TEXT).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
