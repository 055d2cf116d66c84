"""An example or two for every command, shown at the end of its help. A test asks the parser whether it takes them."""

from __future__ import annotations

import typer
from typer.models import CommandInfo

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("qlog demo --rows 100000",),
    "synth": ("qlog synth 100000 --first 2006-03 --last 2006-05",),
    "ingest": (
        "qlog ingest searches-2006-03.txt --format aol",
        "qlog ingest searches.parquet --format table --columns columns.toml",
        "qlog ingest --check searches.jsonl.zst --format json --columns columns.toml",
    ),
    "ingest list": ("qlog ingest list",),
    "ingest withdraw": ("qlog ingest withdraw searches-2006-03.txt --reason 'the wrong export'",),
    "release": (
        "qlog release safelog --month 2006-03",
        "qlog release safelog --month 2006-03 --again 'a late file came in'",
        "qlog release zealous --month 2006-03 --month 2006-04 --set epsilon=1 --json",
    ),
    "show": (
        "qlog show safelog 2006-03",
        "qlog show safelog 2006-03 queries --rows 10",
        "qlog show safelog 2006-03 clicks --home downloads/released --json",
    ),
    "series": (
        "qlog series 'weather'",
        "qlog series 'weather' --mechanism safelog --plot weather.png",
        "qlog series 'weather' --url 'http://www.weather.com'",
        "qlog series 'weather' --next 'weather radar' --json",
    ),
    "simulate": ("qlog simulate safelog --month 2006-03 --variant paper --seed 7",),
    "guarantee": (
        "qlog guarantee safelog --set epsilon=1",
        "qlog guarantee safelog --variant sound --set queries_per_user=10",
    ),
    "audit-mechanism": ("qlog audit-mechanism safelog", "qlog audit-mechanism all --seed 1 --json"),
    "ledger": ("qlog ledger", "qlog ledger --json"),
    "ledger set-unit": ("qlog ledger set-unit --window-months 12 --reason 'monthly releases for years'",),
    "ledger set-budget": ("qlog ledger set-budget --epsilon 12 --delta 1e-5 --reason 'agreed with the board'",),
    "ledger abandon": ("qlog ledger abandon safelog-2006-03-1f2e3d4c5b6a --reason 'its run was killed'",),
    "ledger recover": ("qlog ledger recover --reason 'restored the backup of Monday'",),
    "ledger witness": ("qlog ledger witness", "qlog ledger witness --reset 'its disk is gone'"),
    "audit": ("qlog audit", "qlog audit safelog-2006-03-1f2e3d4c5b6a --deep"),
    "withdraw": ("qlog withdraw safelog-2006-03-1f2e3d4c5b6a --reason 'made from the wrong file'",),
    "skip": (
        "qlog skip safelog --month 2006-04 --reason 'half of the log is missing'",
        "qlog skip --month 2006-04 --month 2006-05 --reason 'nothing was logged'",
    ),
    "forget": ("qlog forget --before 2006-03 --landing",),
    "study": ("qlog study", "qlog study zealous --month 2006-03 --seed 7"),
    "compare": (
        "qlog compare --month 2006-03",
        "qlog compare --month 2006-03 --epsilon 1 --delta 1e-7 --set folds=5",
    ),
    "person": ("qlog person --month 2006-03", "qlog person --month 2006-03 --user-file asked-by-ada.txt"),
    "suggest": ("qlog suggest 'weather'", "qlog suggest 'weather' --release sessions-2006-03-1f2e3d4c5b6a --count 10"),
    "plan": (
        "qlog plan safelog --preset library",
        "qlog plan zealous --rows 1000000",
        "qlog plan budget --rows 1000000",
    ),
    "crowd": ("qlog crowd",),
    "crowd init": ("qlog crowd init cast --relays 5 --hops 3",),
    "crowd party": (
        "qlog crowd party relay relay-a --host relay.example --port 8443 --name relay-a",
        "qlog crowd party collector collector --host collect.example --port 8443 --token-seed token.seed",
    ),
    "crowd join": ("qlog crowd join relay-a.json collector.json randomness.json --hops 1 --output cast.json",),
    "crowd account": ("qlog crowd account",),
    "crowd account add": ("qlog crowd account add ada grace --randomness cast/randomness",),
    "crowd demo": ("qlog crowd demo crowd-demo --people 100",),
    "crowd jobs": ("qlog crowd jobs --epoch 2006-03 --collector cast/collector --randomness cast/randomness",),
    "crowd relay": ("qlog crowd relay cast/relay-1",),
    "crowd collect": ("qlog crowd collect cast/collector",),
    "crowd oprf": ("qlog crowd oprf cast/randomness",),
    "crowd close-epoch": ("qlog crowd close-epoch --epoch 2006-03 --randomness cast/randomness",),
    "crowd seal": ("qlog crowd seal --epoch 2006-03 --collector cast/collector",),
    "crowd status": ("qlog crowd status cast --json",),
    "crowd client": ("qlog crowd client jobs --state ~/.qlog-crowd",),
    "crowd client init": ("qlog crowd client init --cast cast.json --account ada --state ~/.qlog-crowd",),
    "crowd client jobs": ("qlog crowd client jobs",),
    "crowd client show": (
        "qlog crowd client show --chromium ~/.config/chromium/Default",
        "qlog crowd client show --log searches.txt --format aol --user 7 --job queries-2006-03",
    ),
    "crowd client run": (
        "qlog crowd client run --chromium ~/.config/chromium/Default",
        "qlog crowd client run --firefox ~/.mozilla/firefox/x.default --search-url 'https://search.example/?q=' --yes",
    ),
    "crowd client send": ("qlog crowd client send", "qlog crowd client send --wait"),
    "crowd client status": ("qlog crowd client status --json",),
    "ui": ("qlog ui", "qlog ui --port 3001 --passwords /etc/qlog/passwords"),
    "ui-password": ("qlog ui-password ada --passwords /etc/qlog/passwords",),
    "bench": ("qlog bench --rows 100000 --no-peers", "qlog bench --model --json model.json"),
}
"""By the command's words. What is in quotes is a person's own."""


def add_examples(app: typer.Typer, path: str = "") -> None:
    """Put the examples into the help of each command below an app."""
    for command in app.registered_commands:
        # A group's hidden command is what the group does without a further word.
        words = path.strip() if command.hidden else f"{path}{command_name(command)}"
        command.epilog = epilog(words)
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name:
            group.epilog = epilog(f"{path}{group.name}")
            add_examples(group.typer_instance, f"{path}{group.name} ")


def command_name(command: CommandInfo) -> str:
    """What a command is called on the command line."""
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")


def epilog(words: str) -> str | None:
    """The end of a command's help; None where nobody wrote an example."""
    # The help joins single lines into one: a paragraph each.
    return "\n\n".join(["Examples:", *EXAMPLES[words]]) if words in EXAMPLES else None
