"""The study `person`: what the register finds. Of a named person nothing is shown but where the answer lies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.studies.person.examination import (
    ATTACKERS,
    ITEMS,
    PRINTED,
    SYSTEMS,
    TABLES,
    PersonSettings,
    describe,
    drawable,
    examine,
)
from qlog_assets.studies.person.who import NAMED, digest_of_person
from qlog_assets.studies.session_logs import raw_log_of
from qlog_assets.studies.study import Step, Study, StudyWork, Tables

QUESTION = (
    "What would each system print of one person's queries and clicks, with them in the log and without them, and what "
    "do the papers' attackers learn: k - 1 fake accounts, a list of guesses, re-runs that are averaged, and queries "
    "that are linked with each other?"
)
CERTAIN = 0.999


def steps(work: StudyWork) -> Sequence[Step]:
    def measure(each: Mechanism) -> Step:
        return Step(each.name, lambda at: examine(at, each))

    return [Step("person", describe), *(measure(each) for each in drawable())]


def reads(work: StudyWork) -> dict[str, str]:
    """The log, and a digest under a key of the warehouse where a person is named."""
    named = {"person": digest_of_person(work.warehouse)} if work.settings.who == NAMED else {}
    return raw_log_of(work) | named


def withheld(settings: PersonSettings) -> Collection[str]:
    """Texts are in their file alone; of a named person, everything is."""
    return TABLES if settings.who == NAMED else (ITEMS,)


def words(tables: Tables, settings: PersonSettings) -> str:
    """Who learns for certain that the person was there, and how the systems that may be published stand."""
    if settings.who == NAMED:
        return "This is of a real person: it stands in the CSV files of this folder, and nothing of it anywhere else."
    may_be_published = {(row["system"], row["variant"]) for row in tables[SYSTEMS] if row["may_be_published"]}
    attacks = [row for row in tables[ATTACKERS] if row["right"] is not None]
    certain = {(row["system"], row["variant"]) for row in attacks if row["right"] >= CERTAIN}
    told = ", ".join(f"{system} {variant}" for system, variant in sorted(certain)) or "none"
    single = [
        row for row in attacks if (row["system"], row["variant"]) in may_be_published and row["attacker"] != "re-runs"
    ]
    sentences = [
        f"{len(tables[SYSTEMS])} systems were drawn with the person and without. Somebody is certain whether the "
        f"person was there under {len(certain)} of them: {told}."
    ]
    if single:
        worst = max(single, key=lambda row: row["right"])
        sentences.append(
            f"Of the {len(may_be_published)} that may be published, the worst is {worst['system']} {worst['variant']} "
            f"({worst['attacker']}): right in {100 * worst['right']:.0f} % of cases where a coin is right in 50 %, and "
            f"its guarantee allows {100 * worst['allowed']:.0f} %."
        )
    return " ".join(sentences)


STUDY = Study(
    name="person",
    title="What is printed of one person",
    question=QUESTION,
    settings=PersonSettings,
    steps=steps,
    columns={
        SYSTEMS: ("system", "variant", "may_be_published", "promise", "allowed"),
        PRINTED: ("system", "variant", "kind", "theirs", "with", "without", "most", "by_chance", "allowed"),
        ATTACKERS: ("system", "variant", "attacker", "with", "without", "right", "allowed"),
        ITEMS: ("system", "variant", "kind", "item", "with", "without"),
    },
    words=words,
    reads=reads,
    withheld=withheld,
)
