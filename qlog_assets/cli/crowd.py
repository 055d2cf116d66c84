"""The command `qlog crowd` and what it has below it: CrowdLogging's servers, folders and epochs. Printing only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qlog_assets.cli.arguments import opened, parse_month
from qlog_assets.cli.output import Json, console, say_now, show, show_table
from qlog_assets.errors import QlogError

if TYPE_CHECKING:
    from qlog_assets.crowd.cast import PartyFolder
    from qlog_assets.crowd.jobs import Job

EXTRA = ("httpx", "voprf")

crowd_app = typer.Typer(
    invoke_without_command=True, help="CrowdLogging: collect from users' own machines what no collector may see."
)
account_app = typer.Typer(invoke_without_command=True, help="Whom the randomness server issues tokens to.")
crowd_app.add_typer(account_app, name="account")


@crowd_app.callback()
@account_app.callback()
def show_help(context: typer.Context) -> None:
    """Without a further word: the words there are."""
    if context.invoked_subcommand is None:
        print(context.get_help())


Folder = Annotated[Path, typer.Argument(help="The server's own folder, as `qlog crowd init` made it")]
Epoch = Annotated[str, typer.Option(help="YYYY-MM: the month whose searches are mined")]
RandomnessFolder = Annotated[Path, typer.Option("--randomness", help="The randomness server's folder")]


def need_extra() -> None:
    """Refuse where the libraries of the servers and clients are not installed."""
    from importlib.util import find_spec

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise QlogError(f"{' and '.join(missing)}: not installed: pip install 'qlog[crowd]'")


@crowd_app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Made anew; one folder per server in it")],
    relays: Annotated[int, typer.Option(help="How many relays there are", min=1, max=100)] = 3,
    hops: Annotated[int, typer.Option(help="How many of them every message passes", min=1, max=8)] = 3,
    host: Annotated[str, typer.Option(help="Where all of them listen; by HTTPS, unless on this machine")] = "127.0.0.1",
    first_port: Annotated[
        int | None, typer.Option(help="The first one's port; the others follow", min=1, max=65_000)
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the folders of a whole cast: keys, settings, and the directory that everybody gets."""
    from qlog_assets.crowd.cast import FIRST_PORT, make_cast

    start = FIRST_PORT if first_port is None else first_port
    cast = make_cast(directory, relays, hops, host, range(start, start + relays + 2))
    facts = {"directory": str(directory), "hops": cast.hops, "parties": {each.name: each.url for each in cast.parties}}
    show(facts, as_json, lambda _: show_table(["name", "role", "url"], [[p.name, p.role, p.url] for p in cast.parties]))


@crowd_app.command()
def party(
    role: Annotated[str, typer.Argument(help="relay, collector or randomness")],
    folder: Annotated[Path, typer.Argument(help="Made anew; it stays with whoever runs the party")],
    host: Annotated[str, typer.Option(help="Where everybody reaches it")],
    port: Annotated[int, typer.Option(help="The same", min=1, max=65_535)],
    name: Annotated[str | None, typer.Option(help="What everybody calls it. Default: its role")] = None,
    token_seed: Annotated[
        Path | None, typer.Option(help="For the collector: a copy of the randomness server's token.seed")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the folder of one party, where different people run them. Its public.json goes to everybody."""
    from qlog_assets.crowd.cast import SETTINGS
    from qlog_assets.crowd.joining import LINE_FILE, make_party

    if role not in SETTINGS:
        raise QlogError(f"role: is one of {', '.join(SETTINGS)}")
    made = make_party(folder, role, name or role, host, port, token_seed)  # type: ignore[arg-type]
    facts = {"name": made.name, "role": made.role, "url": made.url, "line": str(folder / LINE_FILE)}
    show(facts, as_json, lambda _: console.print(f"{made.name} at {made.url}: give everybody {folder / LINE_FILE}"))


@crowd_app.command()
def join(
    lines: Annotated[list[Path], typer.Argument(help="The public.json of every party")],
    output: Annotated[Path, typer.Option(help="The directory that everybody gets: cast.json")],
    hops: Annotated[int, typer.Option(help="How many relays every message passes", min=1, max=8)] = 3,
    as_json: Json = False,
) -> None:
    """Put the lines of all parties together. Each party puts the result into its folder, as cast.json."""
    from qlog_assets.crowd.joining import join_parties

    cast = join_parties(lines, hops, output)
    parties = {each.name: each.url for each in cast.parties}
    facts = {"cast": str(output), "hops": cast.hops, "parties": parties, "sha256": cast.digest}

    def lines_of(facts: dict[str, Any]) -> None:
        show_table(["name", "role", "url"], [[p.name, p.role, p.url] for p in cast.parties])
        console.print(f"SHA-256 of {facts['cast']}, the same for everybody: {facts['sha256']}")

    show(facts, as_json, lines_of)


@account_app.command("add")
def add_account(
    names: Annotated[list[str], typer.Argument(help="One name per user")],
    randomness: RandomnessFolder,
    as_json: Json = False,
) -> None:
    """Make accounts, and print the secret of each: it is stored nowhere. One user is to have one account."""
    from qlog_assets.crowd.cast import RandomnessSettings, open_folder
    from qlog_assets.crowd.issuing import Accounts

    made = Accounts(open_folder(randomness, RandomnessSettings).folder).add(names)
    show({"secrets": made}, as_json, lambda _: show_table(["account", "secret"], list(made.items())))


@crowd_app.command()
def jobs(
    epoch: Epoch,
    collector: Annotated[Path | None, typer.Option(help="The collector's folder, if it is on this machine")] = None,
    randomness: Annotated[
        Path | None, typer.Option(help="The randomness server's folder, if it is on this machine")
    ] = None,
    opens: Annotated[str | None, typer.Option(help="When reports may come. Default: as the month ends")] = None,
    closes: Annotated[str | None, typer.Option(help="When the key is deleted. Default: 7 days later")] = None,
    as_json: Json = False,
) -> None:
    """Write the jobs of an epoch, as the policy's [crowd] says, for collector and randomness server to show.

    Each of them on its own machine, by the same policy: both compare the digests.
    """
    from qlog_assets.api.crowd_jobs import jobs_from_policy
    from qlog_assets.crowd.cast import CollectorSettings, RandomnessSettings, open_folder
    from qlog_assets.crowd.job_list import write_jobs
    from qlog_assets.crowd.jobs import default_window

    if collector is None and randomness is None:
        raise QlogError("name the folder of a server that is to know the jobs: --collector, --randomness or both")
    month = parse_month(epoch)
    usual = default_window(month)
    _, policy = opened()
    made = jobs_from_policy(
        policy,
        month,
        usual[0] if opens is None else parse_moment(opens),
        usual[1] if closes is None else parse_moment(closes),
    )
    folders = [] if collector is None else [open_folder(collector, CollectorSettings).jobs]
    folders += [] if randomness is None else [open_folder(randomness, RandomnessSettings).jobs]
    write_jobs(made, folders)
    facts = {"jobs": {job.application: job.digest.hex() for job in made}}
    show(facts, as_json, lambda _: job_lines(made))


def job_lines(made: list[Job]) -> None:
    for job in made:
        for line in job.describe():
            console.print(line)
        console.print(f"Digest, the same at both servers: {job.digest.hex()}")


def parse_moment(text: str) -> datetime:
    """A moment as ISO 8601 writes it; UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise QlogError(f"{text!r} is no moment: write it as 2006-04-01T00:00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@crowd_app.command()
def relay(folder: Folder) -> None:
    """Run a relay: it takes messages, mixes them with others, and sends them on later."""
    need_extra()
    from qlog_assets.crowd.cast import RelaySettings, open_folder
    from qlog_assets.crowd.relay import Relay

    home = open_folder(folder, RelaySettings)
    run(home, lambda: Relay(home).application())


@crowd_app.command()
def collect(folder: Folder) -> None:
    """Run the collector: it stores sealed reports, opens them and checks their tokens."""
    need_extra()
    from qlog_assets.crowd.cast import CollectorSettings, open_folder
    from qlog_assets.crowd.collector import Collector

    home = open_folder(folder, CollectorSettings)
    run(home, lambda: Collector(home).application())


@crowd_app.command()
def oprf(folder: Folder) -> None:
    """Run the randomness server: it issues tokens, and evaluates blinded artifacts until the epoch closes."""
    need_extra()
    from qlog_assets.crowd.cast import RandomnessSettings, open_folder
    from qlog_assets.crowd.randomness import RandomnessServer

    home = open_folder(folder, RandomnessSettings)
    run(home, lambda: RandomnessServer(home).application())


def run(home: PartyFolder[Any], application: Callable[[], Any]) -> None:
    from qlog_assets.crowd.serving import serve

    raise typer.Exit(serve(application(), home, say_now))


@crowd_app.command("close-epoch")
def close_epoch(
    epoch: Epoch,
    randomness: RandomnessFolder,
    early: Annotated[
        bool, typer.Option("--early", help="Even before it closes; clients that have not asked yet cannot take part")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete an epoch's key for good. The randomness server does it by itself when the epoch closes."""
    need_extra()
    from qlog_assets.crowd.cast import RandomnessSettings, open_folder
    from qlog_assets.crowd.randomness import open_epochs
    from qlog_assets.errors import RefusedError

    month = parse_month(epoch)
    epochs = open_epochs(open_folder(randomness, RandomnessSettings))
    stated = epochs.statement(month)
    if stated.state == "open":
        if not early:
            raise RefusedError(f"{month}: it is still open: wait until its jobs close, or say --early")
        stated = epochs.delete(month)
    facts = {"epoch": month, "state": stated.state, "deleted_at": stated.deleted_at}
    show(facts, as_json, lambda _: console.print(f"the key of {month} was deleted at {stated.deleted_at}"))


@crowd_app.command()
def seal(
    epoch: Epoch,
    collector: Annotated[Path, typer.Option(help="The collector's folder")],
    as_json: Json = False,
) -> None:
    """Put an epoch's reports into the warehouse, once the key is deleted and no report is on its way any more."""
    need_extra()
    from qlog_assets.crowd.cast import CollectorSettings, open_folder
    from qlog_assets.crowd.sealing import epoch_directory, seal_epoch
    from qlog_assets.settings import home_from_environment

    month = parse_month(epoch)
    target = epoch_directory(home_from_environment(), month)
    sealed = seal_epoch(open_folder(collector, CollectorSettings), month, target)
    facts = {
        "epoch": sealed.month,
        "directory": str(target),
        "accepted": sealed.accepted,
        "rejected": sealed.rejected,
        "key_deleted_at": sealed.key_deleted_at,
        "digest": sealed.digest(),
    }
    show(facts, as_json, seal_lines)


def seal_lines(facts: dict[str, Any]) -> None:
    console.print(f"{facts['accepted']:,} reports of {facts['epoch']} are sealed in {facts['directory']}")
    for reason, reports in facts["rejected"].items():
        console.print(f"not among them: {reports:,} ({reason})")


@crowd_app.command()
def status(
    directory: Annotated[Path, typer.Argument(help="A folder with a cast.json: a server's own, or the one above")],
    as_json: Json = False,
) -> None:
    """Ask every server of the directory whether it is up. Exit code 1 if one is not."""
    need_extra()
    from qlog_assets.crowd.cast import CAST_FILE, Cast
    from qlog_assets.crowd.health import ask_health

    found = ask_health(Cast.read(directory / CAST_FILE))
    rows = [[name, "up" if is_up else "does not answer"] for name, is_up in found.items()]
    show({"parties": found}, as_json, lambda _: show_table(["name", "state"], rows))
    if not all(found.values()):
        raise typer.Exit(1)
