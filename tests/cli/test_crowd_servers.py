"""`qlog crowd`: a cast is made, told its jobs and accounts, closed and sealed by commands."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from support.cli import Answer, qlog
from support.crowd_cast import QUICK, made_reports, open_job, running_cast, sealed_reports, wait_for

from qlog_assets.crowd.cast import Cast, read_secret
from qlog_assets.crowd.jobs import read_jobs


def made(home: Path, directory: Path) -> Answer:
    return qlog(home, "crowd", "init", directory, "--relays", 2, "--hops", 2, "--first-port", 9100, "--json")


def job_words(directory: Path, *further: object) -> list[object]:
    folders = ["--collector", directory / "collector", "--randomness", directory / "randomness"]
    return ["crowd", "jobs", "--epoch", "2006-03", *folders, *further]


def test_a_cast_is_made_with_one_folder_per_server(home: Path, tmp_path: Path) -> None:
    facts = made(home, tmp_path / "cast").json
    cast = Cast.read(tmp_path / "cast" / "cast.json")
    assert facts["parties"] == {party.name: party.url for party in cast.parties}
    assert [party.url.rpartition(":")[2] for party in cast.parties] == ["9100", "9101", "9102", "9103"]
    assert "is not empty" in made(home, tmp_path / "cast").refusal


def test_collector_and_randomness_server_write_their_jobs_each_on_its_own_machine(home: Path, tmp_path: Path) -> None:
    """What they compare are digests: a job that differs in anything has another one."""
    made(home, tmp_path / "cast")
    words = ("crowd", "jobs", "--epoch", "2006-03")
    assert "--collector" in qlog(home, *words).refusal
    told = []
    for role in ("collector", "randomness"):
        other = ({"collector", "randomness"} - {role}).pop()
        (tmp_path / "cast" / other).rename(tmp_path / "away")
        told.append(qlog(home, *words, f"--{role}", tmp_path / "cast" / role).success)
        (tmp_path / "away").rename(tmp_path / "cast" / other)
    folders = [tmp_path / "cast" / role / "jobs" for role in ("collector", "randomness")]
    assert read_jobs(folders[0]) == read_jobs(folders[1]) != ()
    assert told[0] == told[1] and all(job.digest.hex() in told[0] for job in read_jobs(folders[0]))


def test_accounts_are_added_and_their_secrets_told_once(home: Path, tmp_path: Path) -> None:
    made(home, tmp_path / "cast")
    words = ("crowd", "account", "add", "ada", "grace", "--randomness", tmp_path / "cast" / "randomness")
    secrets = qlog(home, *words, "--json").json["secrets"]
    assert set(secrets) == {"ada", "grace"} and len(set(secrets.values())) == 2
    assert "there is an account of that name" in qlog(home, *words).refusal


def write_policy(home: Path, **section: object) -> None:
    home.mkdir(exist_ok=True)
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
    (home / "policy.toml").write_text(f"[crowd]\n{lines}")


def test_jobs_are_written_for_both_servers_as_the_policy_says_and_never_changed(home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "cast"
    made(home, directory)
    write_policy(home, jobs="queries,urls", share_threshold=7, variant="sound", epsilon="1.5", delta="1e-7")
    words = job_words(directory)
    digests = qlog(home, *words, "--json").json["jobs"]
    for name in ("collector", "randomness"):
        jobs = read_jobs(directory / name / "jobs")
        assert {job.application: job.digest.hex() for job in jobs} == digests
        assert set(digests) == {"queries", "urls"}
        shown = {(job.share_threshold, job.policy, job.epsilon, job.delta) for job in jobs}
        assert shown == {(7, "sound", "1.5", "1E-7")}
    assert "What is mined: search queries" in qlog(home, *words).success
    write_policy(home, jobs="queries,urls", share_threshold=8)
    assert "a job never changes" in qlog(home, *words).refusal


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--closes", "soon"], "is no moment"),
        (["--closes", "2006-01-01"], "closes must be later than opens"),
    ],
)
def test_jobs_that_make_no_sense_are_refused(home: Path, tmp_path: Path, words: list[str], complaint: str) -> None:
    made(home, tmp_path / "cast")
    assert complaint in qlog(home, *job_words(tmp_path / "cast", *words)).refusal


def test_an_epoch_is_closed_when_it_is_over_or_early_if_told_so(home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "cast"
    made(home, directory)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    qlog(home, *job_words(directory, "--closes", tomorrow.isoformat()))
    words = ("crowd", "close-epoch", "--epoch", "2006-03", "--randomness", directory / "randomness")
    assert "still open" in qlog(home, *words).refusal
    assert (directory / "randomness" / "epochs" / "2006-03.key").exists()
    assert qlog(home, *words, "--early", "--json").json["state"] == "deleted"
    assert not list((directory / "randomness" / "epochs").iterdir())
    for further in ((), ("--early",)):
        assert "no job is about it" in qlog(home, *words[:3], "2007-01", *words[4:], *further).refusal
    qlog(home, "crowd", "jobs", "--epoch", "2007-01", *job_words(directory)[4:], "--closes", tomorrow.isoformat())
    assert "still open" in qlog(home, *words[:3], "2007-01", *words[4:]).refusal


def test_a_server_needs_a_folder_of_its_own_role(home: Path, tmp_path: Path) -> None:
    made(home, tmp_path / "cast")
    for command, folder in (("relay", "collector"), ("collect", "relay-1"), ("oprf", "nowhere")):
        assert "party.toml" in qlog(home, "crowd", command, tmp_path / "cast" / folder).refusal


def test_certificates_that_are_not_there_are_told_in_one_line(home: Path, tmp_path: Path) -> None:
    made(home, tmp_path / "cast")
    party = tmp_path / "cast" / "relay-1" / "party.toml"
    party.write_text(party.read_text() + 'trusted_certificates = "trusted.pem"\n')
    assert "trusted.pem: cannot be read" in qlog(home, "crowd", "relay", party.parent).refusal


def test_a_missing_library_is_told_in_one_line(home: Path, tmp_path: Path) -> None:
    made(home, tmp_path / "cast")
    # A package that cannot be found, before the one that is installed.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['voprf'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "qlog_assets.cli", "crowd", "relay", str(tmp_path / "cast" / "relay-1")],
        env={"PYTHONPATH": str(tmp_path), "QLOG_HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "qlog: voprf: not installed: pip install 'qlog[crowd]'\n"


@pytest.mark.slow
def test_the_servers_are_up_seal_an_epoch_and_end_by_a_signal(tmp_path: Path) -> None:
    job = open_job(closes=datetime.now(UTC) + timedelta(seconds=8))
    with running_cast(tmp_path / "cast", relays=1, hops=1, jobs=[job], settings=QUICK) as cast:
        words = ("crowd", "status", cast.directory, "--json")
        assert qlog(cast.home, *words).json["parties"] == dict.fromkeys(("relay-1", "collector", "randomness"), True)
        bodies = sealed_reports(cast.cast, made_reports(cast.folder("collector"), job, 6))
        assert httpx.post(f"{cast.cast.collector.url}/reports", content=b"".join(bodies)).status_code == 200
        seal = ("crowd", "seal", "--epoch", "2006-03", "--collector", cast.folder("collector"))
        wait_for(lambda: cast.metrics("collector")["reports_waiting"] == 0)
        wait_for(lambda: datetime.now(UTC) > job.closes)
        facts = qlog(cast.home, *seal, "--json").json
        assert (facts["accepted"], facts["rejected"]) == (6, {})
        assert json.loads((Path(facts["directory"]) / "epoch.json").read_text())["accepted"] == 6
        assert [cast.stop(name) for name in ("relay-1", "collector", "randomness")] == [143] * 3
        assert cast.log("collector").read_text() == f"collector: ready at {cast.cast.collector.url}\n"
        answer = qlog(cast.home, *words)
        assert answer.code == 1 and not any(json.loads(answer.out)["parties"].values())


@pytest.mark.parametrize("words", ["crowd", "crowd account"])
def test_a_group_without_a_further_word_tells_the_words_there_are(home: Path, words: str) -> None:
    said = qlog(home, *words.split()).success
    assert "Usage: " in said and ("close-epoch" in said or "add" in said)


def test_parties_of_different_people_make_one_directory_without_showing_a_key(home: Path, tmp_path: Path) -> None:
    ports = {"relay": 9200, "randomness": 9201, "collector": 9202, "server": 9203}

    def party(role: str, *further: object) -> Answer:
        words = ("--host", "127.0.0.1", "--port", ports[role], *further, "--json")
        return qlog(home, "crowd", "party", role, tmp_path / role, *words)

    lines = [Path(party(role).json["line"]) for role in ("relay", "randomness")]
    assert "--token-seed" in party("collector").refusal and not (tmp_path / "collector").exists()
    lines.append(Path(party("collector", "--token-seed", tmp_path / "randomness" / "token.seed").json["line"]))
    assert "is not empty" in party("relay").refusal
    assert "role: is one of" in party("server").refusal
    outputs = [tmp_path / "one.json", tmp_path / "two.json"]
    for output, joined in zip(outputs, (lines, lines[::-1]), strict=True):
        told = qlog(home, "crowd", "join", *joined, "--hops", 1, "--output", output).success
        assert hashlib.sha256(output.read_bytes()).hexdigest() in told, "what people compare"
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    cast = Cast.read(outputs[0])
    assert {each.role for each in cast.parties} == {"relay", "randomness", "collector"}
    for role in ("relay", "randomness", "collector"):
        secret = (tmp_path / role / "private.key").read_text().strip()
        assert secret not in outputs[0].read_text() and secret not in (tmp_path / role / "public.json").read_text()
    seeds = [read_secret(tmp_path / role / "token.seed") for role in ("collector", "randomness")]
    assert seeds[0] == seeds[1]
    too_many = qlog(home, "crowd", "join", *lines, "--hops", 2, "--output", tmp_path / "none.json").refusal
    assert "2 hops need as many relays" in too_many and not (tmp_path / "none.json").exists()


def test_a_host_that_others_reach_has_https(home: Path, tmp_path: Path) -> None:
    words = ("crowd", "party", "relay", tmp_path / "relay", "--host", "relay.example", "--port", 8443, "--json")
    assert qlog(home, *words).json["url"] == "https://relay.example:8443"
    assert "name:" in qlog(home, *words[:3], tmp_path / "other", *words[4:], "--name", "A relay").refusal
    assert not (tmp_path / "other").exists()
