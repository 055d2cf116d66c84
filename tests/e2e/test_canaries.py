"""Canaries: strings that look like somebody's secrets, typed by one user each, must never be seen outside `private/`.

Small runs with different seeds, through ingest, release, simulation and refusals, with so little noise that queries of
five users are released: a canary is as near to being published as it can be. A draw may release a canary with
probability δ = 1e-6 per run, and that is the false-alarm rate: 3 in 100,000 for all runs together.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cli import Answer, qlog
from support.instances import edit_policy

from qlog_assets.ledger.records import STEERING
from qlog_assets.synthetic import plant

ROWS = 12_000
MONTH, NEXT_MONTH = "2006-03", "2006-04"
SYNTH = ("synth", ROWS, "--first", MONTH, "--last", MONTH, "--json")
POLICY = """\
dataset = "canaries"
first = "2006-03"
last = "2006-03"

[budget]
epsilon = 1000
delta = "0.01"

[pool]
kind = "query_list"
path = "pool.txt"

[safelog]
variant = "sound"
queries_per_user = 40
clicks_per_user = 40
selection_scale = "0.25"
click_scale = "0.25"
transition_scale = "0.25"
threshold = 2
delta = "1e-6"

[zealous]
items_per_user = 40
epsilon = 160
delta = "1e-6"
"""
STEERED = (
    POLICY.partition("[safelog]")[0].replace('last = "2006-03"', 'last = "2006-04"')
    + '[safelog]\nepsilon = 160\ndelta = "1e-6"\n'
)
"""Modern Safelog with as little noise, two months: the second is steered by what the first published."""


def secrets_of(seed: int, rows: int = ROWS) -> list[str]:
    """What was planted: queries and the sites that their users click."""
    return [text for canary in plant(rows, seed) for text in (canary.query, canary.url)]


def texts_in(folder: Path) -> Iterator[str]:
    """Everything that a reader of these files sees: names, tables decoded, databases and logs as bytes."""
    for path in sorted(folder.rglob("*")):
        yield path.name
        if path.suffix == ".parquet":
            yield str(pq.read_table(path).to_pylist())
        elif path.is_file() and not path.is_symlink():
            yield path.read_bytes().decode("utf-8", errors="replace")


def leaked(seed: int, texts: Iterator[str], rows: int = ROWS) -> set[str]:
    seen = "\n".join(texts).lower()
    return {secret for secret in secrets_of(seed, rows) if secret.lower() in seen}


def make_home(home: Path, policy: str = POLICY) -> Path:
    home.mkdir()
    (home / "policy.toml").write_text(policy, encoding="utf-8")
    (home / "pool.txt").write_text("weather\nnews\nchess\nmap\n", encoding="utf-8")
    return home


def outside_private(home: Path) -> Iterator[str]:
    """What may be seen: releases, Dagster's databases and logs, the ledger."""
    for zone in ("released", "dagster"):
        yield from texts_in(home / zone)
    yield from (path.read_bytes().decode("utf-8", errors="replace") for path in home.glob("ledger.db*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [31, 32, 33])
def test_no_canary_is_seen_where_one_month_of_modern_safelog_steers_the_next(tmp_path: Path, seed: int) -> None:
    home = make_home(tmp_path / "warehouse", STEERED)
    answers = [
        qlog(home, "synth", 2 * ROWS, "--first", MONTH, "--last", NEXT_MONTH, "--seed", seed, "--json"),
        qlog(home, "release", "safelog", "--month", MONTH, "--json"),
        qlog(home, "release", "safelog", "--month", NEXT_MONTH, "--json"),
        qlog(home, "audit"),
    ]
    assert [answer.code for answer in answers] == [0] * len(answers), answers[-1].err
    folders = [Path(answer.json["path"]) for answer in answers[1:3]]
    manifests = [json.loads((folder / "manifest.json").read_text(encoding="utf-8")) for folder in folders]
    assert [manifest["variant"] for manifest in manifests] == ["modern", "modern"]
    assert [STEERING in {pool["kind"] for pool in manifest["pools"]} for manifest in manifests] == [False, True]
    assert all(sum(answer.json["rows"].values()) >= 5 for answer in answers[1:3]), "a release of nothing proves nothing"
    assert leaked(seed, texts_in(home / "private"), 2 * ROWS) == set(secrets_of(seed, 2 * ROWS)), (
        "they were there to be found"
    )
    assert leaked(seed, outside_private(home), 2 * ROWS) == set()
    assert leaked(seed, (answer.out + answer.err for answer in answers), 2 * ROWS) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 25))
def test_no_canary_is_seen_in_releases_metadata_or_logs(tmp_path: Path, seed: int) -> None:
    home = make_home(tmp_path / "warehouse")
    mechanism = "zealous" if seed % 6 == 0 else "safelog"
    answers = [
        qlog(home, *SYNTH, "--seed", seed),
        qlog(home, "release", mechanism, "--month", MONTH, "--json"),
        qlog(home, "audit"),
    ]
    assert [answer.code for answer in answers] == [0, 0, 0], answers[-1].err
    rows = answers[1].json["rows"]
    assert sum(rows.values()) >= 5, "a release of nothing proves nothing"
    assert leaked(seed, outside_private(home)) == set()
    assert leaked(seed, (answer.out + answer.err for answer in answers)) == set()


@pytest.mark.slow
def test_the_search_for_canaries_finds_them_where_they_are(tmp_path: Path) -> None:
    """The test of the test: every canary of a month is in its private tables, and the same search sees it there."""
    home = make_home(tmp_path / "warehouse")
    assert qlog(home, *SYNTH, "--seed", 3).success
    assert leaked(3, texts_in(home / "private")) == set(secrets_of(3))
    assert leaked(3, texts_in(home / "landing")) == set(secrets_of(3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 102])
def test_no_canary_is_seen_in_what_goes_wrong(tmp_path: Path, seed: int) -> None:
    """Refusals, failed checks and broken files: the messages name keys, counts and files, never a value."""
    home = make_home(tmp_path / "warehouse")
    answers: list[Answer] = []

    def fail(*words: object) -> None:
        answers.append(qlog(home, *words))
        assert answers[-1].code == 2, (words, answers[-1])

    answers.append(qlog(home, *SYNTH, "--seed", seed))
    log = next((home / "landing" / "aol").glob("*.txt"))
    # A file that is read in a wrong way is told, and stops nothing.
    answers.append(qlog(home, "ingest", log, "--format", "excite"))
    assert "warning" in answers[-1].success
    columns = tmp_path / "columns.toml"
    columns.write_text('user = "Query"\nquery = "AnonID"\ntime = "ClickURL"\n', encoding="utf-8")
    answers.append(qlog(home, "ingest", log, "--format", "table", "--columns", columns))
    assert "warning" in answers[-1].success
    columns.write_text('user = "Query"\nquery = "Session"\ntime = "QueryTime"\n', encoding="utf-8")
    fail("ingest", log, "--format", "table", "--columns", columns)
    fail("release", "safelog", "--month", MONTH, "--set", f"pool.path={log}")
    good = (home / "policy.toml").read_text(encoding="utf-8")
    edit_policy(home, pool=f'path = "{log}"')
    fail("release", "safelog", "--month", MONTH)
    (home / "policy.toml").write_text(good, encoding="utf-8")
    edit_policy(home, top='dataset = "poor"', budget="epsilon = 1")
    fail("release", "safelog", "--month", MONTH)
    (home / "policy.toml").write_text(good, encoding="utf-8")
    # Files that were cut or replaced after they were written.
    answers.append(qlog(home, "simulate", "safelog", "--month", MONTH))
    assert answers[-1].code == 0, answers[-1]
    (cleaned,) = (home / "private" / "cleaned_log" / MONTH).glob("*/log.parquet")
    cut = cleaned.read_bytes()[: cleaned.stat().st_size // 2]
    (raw,) = (home / "private" / "raw_log" / MONTH).glob("*/*.parquet")
    shutil.copyfile(raw, scratch := tmp_path / "good.parquet")
    for broken in (raw, *(home / "private" / "landing_batch").rglob(f"{MONTH}/*.parquet")):
        broken.unlink()
        broken.write_bytes(scratch.read_bytes()[:-100] + cut[:100])
    answers.append(qlog(home, "release", "safelog", "--month", MONTH))
    assert answers[-1].code != 0
    answers.append(qlog(home, "simulate", "safelog", "--month", MONTH, "--variant", "paper"))
    assert leaked(seed, (answer.out + answer.err for answer in answers)) == set()
    assert leaked(seed, outside_private(home)) == set()
