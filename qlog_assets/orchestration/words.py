"""What Dagster's pages say of assets, checks, jobs, schedules and the sensor: sentences for whoever opens them first.

Everyday words: a reader of these pages has read none of our own. What a table of a mechanism holds is said where the
table is; here is what is said of all of them alike. No value of the log is in any of it.
"""

from __future__ import annotations

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.pipeline.stage import Stage
from qlog_assets.report.tables import TableLayout
from qlog_assets.studies.study import Study

PRIVATE = "Private: it stays in the warehouse and is never published."
UNCHARGED = "It is never published and costs nothing of the privacy budget."

# Assets --------------------------------------------------------------------------------------------------------------

LANDING_BATCH = (
    "One log file as it was read: its usable rows by month, and for each rejected row the line and the reason, never "
    f"what the row says. {PRIVATE}"
)
RAW_LOG = f"All usable rows of one month, from every log file that was read, as they came. {PRIVATE}"
LISTS = {
    "pool": "A public list of queries. A query on it is no secret, so a release may name it more easily, even if "
    "nobody typed it. It is not used where the policy file names no such list.",
    "url_list": "A public list of web addresses. If the policy file names one, releases count clicks on these "
    "addresses alone.",
}
BUDGET = (
    "The account of the privacy budget: what each month has cost in ε and δ, what is left, and the next month that can "
    "be paid for. It only reads: looking costs nothing."
)
AUDIT = (
    "Checks every published release once more: against the records of what was spent, its own files, the private "
    "tables that it was made from and the history of runs, as the command `qlog audit` does. Fails if anything does "
    "not agree."
)


def stage(made: Stage, mechanism: Mechanism | None) -> str:
    """A private table on the way to a release."""
    used = "every kind of release" if mechanism is None else f"releases by {mechanism.title}"
    return f"{made.description} {PRIVATE} Used for {used}."


def draw(mechanism: Mechanism) -> str:
    return (
        f"The month's tables by {mechanism.title} with random noise in them, made once for all. First the private "
        "tables are checked and the cost in ε and δ is booked against the privacy budget. Running it again gives the "
        "same numbers and costs nothing. Nobody sees them before the `released_` assets publish them."
    )


def released(mechanism: Mechanism, layout: TableLayout) -> str:
    title = f"{layout.title[:1].lower()}{layout.title[1:]}" or layout.name
    named = f"the table {layout.name}" if title == layout.name else f"the table {layout.name} ({title})"
    return (
        f"Public: {named} of the month's release by {mechanism.title}, as Parquet and CSV beside a page that explains "
        "it, datasheet.html. It publishes numbers that were made before: running it again changes nothing and costs "
        "nothing."
    )


def simulated(mechanism: Mechanism) -> str:
    return (
        f"A trial of {mechanism.title} on one month, as it would be released or as its paper describes it. Its noise "
        f"has a fixed seed, so that it can be repeated. {UNCHARGED}"
    )


def study(asked: Study) -> str:
    return f"{asked.title}. {asked.question} An experiment with a fixed seed, so that it can be repeated. {UNCHARGED}"


# Checks: what each looks for, and what to do next where it failed -----------------------------------------------------

REPORT = "if it fails again, report the sentence before this one as a fault of qlog: it holds no value of the log"
ROWS_ACCOUNTED_FOR = "Every row of the file was either kept or rejected for a stated reason. If not, nothing follows."
FEW_ROWS_REJECTED = (
    "No file in use had more rejected rows than the policy file expects. A warning: releases go on without those rows."
)
ONE_ID_PER_PERSON = (
    "Every user id is written in one form, so that one person is not counted as two. A warning: it stops nothing."
)
ROWS_OF_THE_MONTH = "Every row has a user, a query and a time within the month. If not, nothing is made from it."
TEXTS_ONCE = "The public list holds every text once. If not, nothing is made from it."
NO_MONTH_LOST = (
    "Every complete month of a kind of release that is in use was released, withdrawn, or left out on purpose with a "
    "recorded reason. In use is what was released before or has its schedule switched on. A month counts from 30 hours "
    "after its end."
)
LIMITS = (
    "No person counts for more in this table than the limits allow that the promise of privacy is computed from. "
    "It is counted again right before noise is added; if it fails, nothing is released."
)
STAGE_CHECK = (
    "The table holds rows of its month alone, in the form that the next steps expect. If not, nothing is made from it."
)

ROWS_ACCOUNTED_FOR_NEXT = "withdraw the file by the job withdraw_batch and report the fault; no release uses it then"
FEW_ROWS_REJECTED_NEXT = (
    "look at the reasons on the file's page; take a bad file out by the job withdraw_batch, or raise "
    "ingest.max_rejected_share in the policy file if so many are normal"
)
ONE_ID_PER_PERSON_NEXT = (
    "read the named files again, so that ids get their form: job withdraw_batch, then ingest with again_because"
)
TEXTS_ONCE_NEXT = f"mend the list that the policy file names and materialize this asset again; {REPORT}"


def stage_check(made: Stage) -> str:
    """What the check of a private table looks for."""
    return LIMITS if made.limits_users else STAGE_CHECK


def stage_next(asset: str) -> str:
    """What to do where a month's private table failed its check."""
    return f"nothing was published or charged; materialize {asset} of the month again; {REPORT}"


# Jobs, schedules and the sensor --------------------------------------------------------------------------------------

INGEST_JOB = (
    "Reads one log file of the folder landing/: keeps its usable rows by month, and counts rejected rows by reason. A "
    "file is read once."
)
AUDIT_JOB = "Checks every published release again, as the command `qlog audit` does; fails if anything does not agree."
BUDGET_JOB = "Shows what was spent of the privacy budget, month by month, and what is left. Looking costs nothing."
BUDGET_SCHEDULE = (
    "Every morning at 7: shows what is left of the privacy budget, and warns of a complete month that has neither a "
    "release nor a recorded reason. It releases nothing and costs nothing."
)


def release_job(mechanism: Mechanism) -> str:
    return (
        f"Releases a month by {mechanism.title}: makes and checks the private tables, books the cost in ε and δ, adds "
        "the noise once and publishes. A month that has this release already is not charged again."
    )


def simulation_job(mechanism: Mechanism) -> str:
    return f"A trial of {mechanism.title} on one month, with a fixed seed. {UNCHARGED}"


def study_job(asked: Study) -> str:
    return f"The experiment “{asked.title}”, with a fixed seed. {UNCHARGED}"


def monthly_schedule(mechanism: Mechanism) -> str:
    return (
        "On the second of each month at 3 in the morning: releases the newest complete month that was neither released "
        f"by {mechanism.title} nor left out on purpose, if the privacy budget allows it. If not, it releases nothing, "
        "says why, and tries again the next time. Off until somebody switches it on."
    )


def landing_sensor(every_seconds: int) -> str:
    return (
        f"Looks into the folders landing/<format>/ about every {every_seconds} seconds and reads new log files once "
        "they no longer grow. It releases nothing and costs nothing. Off until somebody switches it on."
    )
