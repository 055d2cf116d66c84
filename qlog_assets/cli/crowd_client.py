"""`qlog crowd client`: what a person who takes part in CrowdLogging types. Parsing, asking and printing only.

The person's own queries are shown on the person's own terminal, by `show` and `run`. No error and no line on standard
error holds any of them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qlog_assets.cli.arguments import format_names
from qlog_assets.cli.output import Json, bold, console, printable, show, show_table, somebody_answers, stderr_line
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from qlog_assets.crowd.client import Client, Preview
    from qlog_assets.crowd.client_servers import Offers
    from qlog_assets.crowd.jobs import Job
    from qlog_assets.crowd.local_log import LocalLog

HOME, SECRET = "QLOG_CROWD_HOME", "QLOG_CROWD_SECRET"
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 600.0
"""Between tries to send what a relay did not take; each pause is twice the one before."""
LONGEST_SLEEP_SECONDS = 60.0
"""After which the clock is looked at again: a machine that was suspended did not count the time."""
LARGEST_SECRET = 1024

StateFolder = Annotated[Path | None, typer.Option("--state", help=f"The client's folder; default: {HOME}")]
JobNames = Annotated[list[str] | None, typer.Option("--job", help="queries-2006-03; repeat for several; default: all")]
LogFile = Annotated[Path | None, typer.Option("--log", help="Your log: a file that qlog ingest reads")]
LogFormat = Annotated[
    str | None,
    typer.Option("--format", help="What the file is: aol, excite, table, json, access", autocompletion=format_names),
]
Columns = Annotated[Path | None, typer.Option(help="Column map of a table, json or access log, in TOML")]
LogUser = Annotated[str | None, typer.Option("--user", help="Whose rows of the file are yours, if it holds several")]
Chromium = Annotated[Path | None, typer.Option(help="Your log: a Chromium profile's folder, or its History")]
Firefox = Annotated[Path | None, typer.Option(help="Your log: a Firefox profile's folder, or its places.sqlite")]
SearchUrls = Annotated[
    list[str] | None,
    typer.Option("--search-url", help="A search engine beyond the common ones: https://search.example/find?q="),
]

client_app = typer.Typer(
    no_args_is_help=True,
    help="Take part in CrowdLogging with your own log: see what would leave, and send it.",
    rich_markup_mode=None,
)


def register(crowd_app: typer.Typer) -> None:
    """Add the client's commands to `qlog crowd`."""
    crowd_app.add_typer(client_app, name="client")


@client_app.command("init")
def init_client(
    cast: Annotated[Path, typer.Option(help="The servers' public directory: cast.json")],
    account: Annotated[str, typer.Option(help="Your account with the randomness server")],
    secret_file: Annotated[
        Path | None, typer.Option(help=f"A file with the account's secret; default: {SECRET}, or a question")
    ] = None,
    state: StateFolder = None,
    as_json: Json = False,
) -> None:
    """Set a client up: the servers' directory and your account. Nothing is sent.

    Once more with the same account, it takes a new directory and a new secret, and forgets nothing.
    """
    from qlog_assets.crowd.cast import CAST_FILE, Cast
    from qlog_assets.crowd.client_state import FILE, ClientState
    from qlog_assets.storage.private_files import write_private

    folder = find_folder(state)
    directory = Cast.read(cast)
    if not account.strip():
        raise QlogError("--account: name the account that you were given")
    secret = read_secret(secret_file)
    if (folder / FILE).exists():
        with ClientState.open(folder) as known:
            known.change_secret(account.strip(), secret)
    else:
        ClientState.create(folder, account.strip(), secret)
    write_private(folder / CAST_FILE, directory.as_json())
    facts = {
        "state": str(folder),
        "account": account.strip(),
        "relays": len(directory.relays),
        "hops": directory.hops,
        "cast_sha256": directory.digest,
    }
    show(facts, as_json, init_lines)


@client_app.command("jobs")
def list_jobs(state: StateFolder = None, as_json: Json = False) -> None:
    """Ask through relays which jobs there are, and show them in words. Nothing of your log is looked at."""
    with opened_client(state) as client:
        facts = {"jobs": [job_facts(client, job) for job in client.poll().jobs]}
    show(facts, as_json, job_lines)


@client_app.command("show")
def show_artifacts(
    jobs: JobNames = None,
    log: LogFile = None,
    format: LogFormat = None,
    columns: Columns = None,
    user: LogUser = None,
    chromium: Chromium = None,
    firefox: Firefox = None,
    search_url: SearchUrls = None,
    state: StateFolder = None,
    as_json: Json = False,
) -> None:
    """Show what would leave for each job. Nothing is sent but the question which jobs there are."""
    local = parse_log(log, format, columns, user, chromium, firefox, search_url)
    with opened_client(state) as client:
        wanted = choose_jobs(client, client.poll().jobs, jobs, ("open", "not open yet"))
        facts = {"jobs": [preview_facts(client, client.preview(job, local)) for job in wanted]}
    show(facts, as_json, preview_lines)


@client_app.command("run")
def run_jobs(
    jobs: JobNames = None,
    log: LogFile = None,
    format: LogFormat = None,
    columns: Columns = None,
    user: LogUser = None,
    chromium: Chromium = None,
    firefox: Firefox = None,
    search_url: SearchUrls = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take part without asking")] = False,
    state: StateFolder = None,
    as_json: Json = False,
) -> None:
    """Show what would leave, ask, plan its messages at random times, and send those that are due.

    The others leave with `qlog crowd client send`. A job that was interrupted is gone on with, as it was agreed to,
    without what client.toml opts out of by now. A message that is planned is sealed: a new pattern does not stop it,
    opting out of its job does.
    """
    local = parse_log(log, format, columns, user, chromium, firefox, search_url)
    if not yes and (as_json or not somebody_answers()):
        raise QlogError("nobody is there to agree to this: look at it with `qlog crowd client show`, and give --yes")
    with opened_client(state) as client:
        offers = client.poll()
        with client.state.hold():
            resumed, failures = resume_all(client, offers)
        previews = [client.preview(job, local) for job in choose_jobs(client, offers.jobs, jobs, ("open",))]
        if not as_json:
            preview_lines({"jobs": [preview_facts(client, preview) for preview in previews]})
        if previews and not yes and not typer.confirm("Take part with what is shown above?", err=True):
            raise QlogError("nothing was sent")
        with client.state.hold():
            for preview in previews:
                client.take_part(preview, offers)
        sent = client.send_due()
        facts = status_facts(client) | {"entered": len(previews), "resumed": resumed, "sent_now": sent.sent}
    show(facts, as_json, run_lines)
    for failure in failures:
        stderr_line(f"qlog: {failure}")
    if failures:
        raise typer.Exit(1)


@client_app.command("send")
def send_messages(
    wait: Annotated[bool, typer.Option("--wait", help="Stay until all messages are sent")] = False,
    state: StateFolder = None,
    as_json: Json = False,
) -> None:
    """Send the messages that are due. One that a relay did not confirm is sent again, byte for byte.

    Let it run with --wait, or start it every hour: messages that are late by more get new times, so that they do not
    arrive together, and those that are not sent when their job closes are given up.
    """
    with opened_client(state) as client:
        sent = missed = 0
        pause = FIRST_PAUSE_SECONDS
        while True:
            found = client.send_due()
            sent, missed = sent + found.sent, missed + found.missed
            seconds = client.seconds_to_next()
            if not wait or seconds is None:
                break
            # What failed is due: it is tried again after a pause, not at once.
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS) if found.failed else FIRST_PAUSE_SECONDS
            time.sleep(min(max(seconds, pause if found.failed else 0.0), LONGEST_SLEEP_SECONDS))
        facts = status_facts(client) | {"sent_now": sent, "missed_now": missed, "failed_now": found.failed}
    show(facts, as_json, send_lines)
    if found.failed:
        stderr_line(f"qlog: {found.failed:,} message(s) could not be sent and are kept: {found.reason}")
        raise typer.Exit(1)


@client_app.command("status")
def show_status(state: StateFolder = None, as_json: Json = False) -> None:
    """Show in which jobs this client took part, and how many of their messages are sent. Nobody is asked.

    Opting out of a job stops what is to be sent for it; a new pattern does not, because messages are sealed.
    """
    with opened_client(state) as client:
        facts = status_facts(client)
    show(facts, as_json, status_lines)


# What the commands share ----------------------------------------------------------------------------------------------


def find_folder(given: Path | None) -> Path:
    named = given or (Path(os.environ[HOME]) if os.environ.get(HOME) else None)
    if named is None:
        raise QlogError(f"name the client's folder with --state or {HOME}")
    return named


@contextlib.contextmanager
def opened_client(given: Path | None) -> Iterator[Client]:
    """The client of a folder."""
    from qlog_assets.cli.crowd import need_extra

    need_extra()
    import httpx

    from qlog_assets.crowd.cast import CAST_FILE, Cast
    from qlog_assets.crowd.client import Client
    from qlog_assets.crowd.client_servers import SECONDS, Servers
    from qlog_assets.crowd.client_settings import ClientSettings
    from qlog_assets.crowd.client_state import ClientState

    folder = find_folder(given)
    with ClientState.open(folder) as state:
        settings, cast = ClientSettings.read(folder), Cast.read(folder / CAST_FILE)
        with httpx.Client(verify=settings.trust(folder), timeout=SECONDS, trust_env=False) as http:
            yield Client(state, Servers(cast, http), settings)


def read_secret(path: Path | None) -> str:
    """The account's secret: a file's first line, the environment's, or what somebody types."""
    if path is not None:
        from qlog_assets.storage.plain_files import open_plain

        with os.fdopen(open_plain(path, "name a file with the secret"), "rb") as stream:
            found = stream.read(LARGEST_SECRET).decode("utf-8", "replace").partition("\n")[0].strip()
    elif os.environ.get(SECRET):
        found = os.environ[SECRET]
    elif somebody_answers():
        import getpass

        found = getpass.getpass("Secret of the account: ")
    else:
        found = sys.stdin.readline().rstrip("\n") if sys.stdin is not None else ""
    if not found:
        raise QlogError(f"the account's secret is missing: give --secret-file or {SECRET}, or type it")
    return found


def parse_log(
    log: Path | None,
    format: str | None,
    columns: Path | None,
    user: str | None,
    chromium: Path | None,
    firefox: Path | None,
    search_urls: list[str] | None,
) -> LocalLog:
    """The one log that was named."""
    from qlog_assets.crowd.local_log import Kind, LocalLog
    from qlog_assets.crowd.search_urls import parse_search_url

    places: dict[Kind, Path | None] = {"file": log, "chromium": chromium, "firefox": firefox}
    named = [(kind, path) for kind, path in places.items() if path is not None]
    if len(named) != 1:
        raise QlogError("name one log that is yours: --log FILE, --chromium PROFILE or --firefox PROFILE")
    (kind, path), engines = named[0], [parse_search_url(text) for text in search_urls or []]
    return LocalLog(path, kind, format, columns, user, engines)


def choose_jobs(client: Client, shown: Sequence[Job], named: list[str] | None, standings: tuple[str, ...]) -> list[Job]:
    """The jobs that were named, or all, as far as they stand so that something can be done."""
    from qlog_assets.crowd.client_settings import job_name

    by_name = {job_name(job): job for job in shown}
    for name in named or []:
        if name not in by_name:
            raise QlogError(f"--job: there is no job of that name: there are {', '.join(by_name) or 'none'}")
        if (standing := client.standing(by_name[name])) not in standings:
            raise QlogError(f"--job: {name}: {standing}: choose another job")
    return [by_name[name] for name in named or by_name if client.standing(by_name[name]) in standings]


def resume_all(client: Client, offers: Offers) -> tuple[int, list[QlogError]]:
    """Go on with jobs that were interrupted; one that cannot be keeps no other from being. Returns how many were gone
    on with, and why others were not."""
    done, failures = 0, []
    for participation in client.state.unfinished():
        try:
            client.resume(participation, offers)
            done += 1
        except QlogError as error:
            failures.append(error)
    return done, failures


def job_facts(client: Client, job: Job) -> dict[str, Any]:
    from qlog_assets.crowd.client_settings import job_name

    facts = {"name": job_name(job), "standing": client.standing(job), "about": job.describe()}
    return facts | job.model_dump(mode="json") | {"digest": job.digest.hex()}


def preview_facts(client: Client, preview: Preview) -> dict[str, Any]:
    facts = job_facts(client, preview.job)
    return facts | {"artifacts": [list(each) for each in preview.artifacts], "dummies": preview.dummies}


def status_facts(client: Client) -> dict[str, Any]:
    from qlog_assets.crowd.client_settings import job_name

    jobs = [
        {"name": job_name(each.job), "standing": client.standing(each.job), **each.messages}
        | {"next_due": each.next_due.isoformat() if each.next_due else None, "closes": each.job.closes.isoformat()}
        for each in client.state.progress()
    ]
    return {"jobs": jobs}


# In words -------------------------------------------------------------------------------------------------------------


def init_lines(facts: dict[str, Any]) -> None:
    console.print(f"{facts['state']}: a client of {facts['account']}, by {facts['hops']} of {facts['relays']} relays")
    console.print(f"SHA-256 of cast.json, to compare with others who take part: {facts['cast_sha256']}")
    console.print("nothing was sent; qlog crowd client jobs shows what is asked for")


def job_lines(facts: dict[str, Any]) -> None:
    for job in facts["jobs"]:
        console.print(bold(job["name"], f" ({job['standing']})"))
        for line in job["about"]:
            console.print(f"  {line}")
    if not facts["jobs"]:
        console.print("there are no jobs")


def preview_lines(facts: dict[str, Any]) -> None:
    for job in facts["jobs"]:
        job_lines({"jobs": [job]})
        console.print(f"  From your log ({len(job['artifacts'])} of {job['artifacts_per_user']}):")
        for artifact in job["artifacts"]:
            console.print("    " + "  →  ".join(printable(text) for text in artifact))
        if job["dummies"]:
            console.print(f"  Filled up with {job['dummies']} dummies that hold nothing.")
    if not facts["jobs"]:
        console.print("there is no job to take part in")


def run_lines(facts: dict[str, Any]) -> None:
    console.print(f"jobs entered: {facts['entered']}, gone on with: {facts['resumed']}; sent now: {facts['sent_now']}")
    status_lines(facts)


def send_lines(facts: dict[str, Any]) -> None:
    missed = f", given up because their job is over: {facts['missed_now']}" if facts["missed_now"] else ""
    console.print(f"sent now: {facts['sent_now']}{missed}")
    status_lines(facts)


def status_lines(facts: dict[str, Any]) -> None:
    shown = ("name", "standing", "planned", "sent", "missed")
    rows = [[*(job[key] for key in shown), (job["next_due"] or "")[:16]] for job in facts["jobs"]]
    if rows:
        show_table(["job", "standing", "to send", "sent", "missed", "next at (UTC)"], rows)
    else:
        console.print("this client took part in no job yet")
