"""The randomness server over HTTP: tokens once per account and job, evaluations for a token, keys that are deleted."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.crowd_cast import QUICK, made_tokens, open_job, read_metrics, serving, wait_for

from qlog_assets.crowd import randomness
from qlog_assets.crowd.cast import Cast, PartyFolder, RandomnessSettings, make_cast, open_folder, read_secret
from qlog_assets.crowd.envelopes import make_request, read_bytes, read_response, write_bytes
from qlog_assets.crowd.epochs import DeletedEpochError, Epochs
from qlog_assets.crowd.issuing import ISSUED_HEADER, Accounts, Issued, issued_proof
from qlog_assets.crowd.job_list import write_jobs
from qlog_assets.crowd.jobs import Job
from qlog_assets.crowd.keys import ANSWER_BYTES, BlindedBatch, public_key_of
from qlog_assets.crowd.randomness import RandomnessServer, open_epochs
from qlog_assets.crowd.tokens import Purse, Token, check, token_evaluator, tokens_per_account
from qlog_assets.errors import QlogError
from qlog_assets.months import Month

MONTH = Month("2006-03")


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC).timestamp()

    def __call__(self) -> float:
        return self.now


class Scene:
    """The folder of a randomness server with one account, and a clock that is set by hand."""

    def __init__(self, directory: Path) -> None:
        self.cast: Cast = make_cast(directory, 1, 1, settings=QUICK)
        self.folder = directory / "randomness"
        self.job: Job = open_job()
        write_jobs([self.job], [self.folder / "jobs"])
        self.home: PartyFolder[RandomnessSettings] = open_folder(self.folder, RandomnessSettings)
        self.secret = Accounts(self.folder).add(["ada"])["ada"]
        self.clock = Clock()
        self.server = RandomnessServer(self.home, self.clock)

    @property
    def key_file(self) -> Path:
        return self.folder / "epochs" / f"{MONTH}.key"

    def token(self) -> Token:
        """A token for one evaluation, made with the epoch's own secret."""
        self.server.epochs.statement(MONTH)
        return made_tokens(read_secret(self.key_file), "evaluate", self.job, 1)[0]

    def question(self, token: Token, blinded: list[bytes], /, **changes: Any) -> dict[str, Any]:
        asked = {
            "op": "evaluate",
            "epoch": str(MONTH),
            "job": self.job.digest.hex(),
            "token": [token.serial, token.output],
            "blinded": blinded,
        }
        return {**asked, **changes}

    def ask(self, client: httpx.Client, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        request, key = make_request([], self.cast.randomness, body)
        answer = client.post("/ask", content=request)
        return answer.status_code, read_response(key, answer.content) if answer.status_code == 200 else {}

    def ask_issued(self, client: httpx.Client, proof: str | None = None) -> httpx.Response:
        shown = issued_proof(self.home.token_seed(), self.job.digest) if proof is None else proof
        return client.get(f"/issued/{self.job.digest.hex()}", headers={ISSUED_HEADER: shown})

    def issued(self, client: httpx.Client) -> Issued:
        """What is stated once the epoch has closed."""
        self.clock.now = self.job.closes.timestamp()
        return Issued(**self.ask_issued(client).json())

    def request(self, **changes: Any) -> tuple[tuple[Purse, Purse], dict[str, Any]]:
        evaluate, blinded = Purse.blind(1)
        report, reports = Purse.blind(self.job.artifacts_per_user)
        asked = {
            "account": "ada",
            "secret": self.secret,
            "job": self.job.digest.hex(),
            "evaluate": [write_bytes(each) for each in blinded],
            "report": [write_bytes(each) for each in reports],
        }
        return (evaluate, report), {**asked, **changes}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "cast")


@pytest.fixture
def client(scene: Scene) -> Iterator[httpx.Client]:
    with serving(scene.server.application()) as client:
        yield client


# Tokens ---------------------------------------------------------------------------------------------------------------


def test_an_account_gets_tokens_that_the_collector_accepts(scene: Scene, client: httpx.Client) -> None:
    (evaluate, report), asked = scene.request()
    answer = client.post("/tokens", json=asked).json()
    _, keys = scene.ask(client, {"op": "keys", "epoch": str(MONTH)})
    public = {name: read_bytes(key) for name, key in keys["token_keys"][scene.job.digest.hex()].items()}
    tokens = report.finish(read_bytes(answer["report"]), public["report"])
    evaluator = token_evaluator(scene.home.token_seed(), "report", scene.job)
    assert len(tokens) == scene.job.artifacts_per_user and all(check(evaluator, token) for token in tokens)
    assert len(evaluate.finish(read_bytes(answer["evaluate"]), public["evaluate"])) == 1


def test_the_same_request_gets_the_same_tokens_and_another_one_none(scene: Scene, client: httpx.Client) -> None:
    (_, report), asked = scene.request()
    answers = [client.post("/tokens", json=asked).json() for _ in range(2)]
    _, keys = scene.ask(client, {"op": "keys", "epoch": str(MONTH)})
    public = read_bytes(keys["token_keys"][scene.job.digest.hex()]["report"])
    first, second = (report.finish(read_bytes(answer["report"]), public) for answer in answers)
    assert first == second
    assert client.post("/tokens", json=scene.request()[1]).status_code == 409
    assert scene.issued(client) == Issued(1, scene.job.artifacts_per_user)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"secret": "wrong"}, 401),
        ({"account": "nobody"}, 401),
        ({"account": None}, 400),
        ({"account": "\ud800"}, 400),
        ({"secret": "\ud800"}, 401),
        ({"job": "00" * 32}, 404),
        ({"job": 7}, 404),
        ({"report": []}, 400),
        ({"report": None}, 400),
        ({"evaluate": ["AAAA"]}, 400),
        ({"evaluate": [write_bytes(b"\xff" * 32)]}, 400),
        ({"evaluate": [write_bytes(bytes(32))]}, 400),
    ],
)
def test_requests_for_tokens_that_do_not_fit_are_refused_and_nothing_is_issued(
    scene: Scene, client: httpx.Client, changes: dict[str, Any], status: int
) -> None:
    _, asked = scene.request(**changes)
    assert client.post("/tokens", content=json.dumps(asked)).status_code == status
    assert scene.issued(client).accounts == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_request_that_is_no_json_object_is_refused(client: httpx.Client, body: bytes) -> None:
    assert client.post("/tokens", content=body).status_code == 400


def test_how_many_took_part_is_told_to_the_collector_alone_and_after_the_key_is_deleted(
    scene: Scene, client: httpx.Client
) -> None:
    client.post("/tokens", json=scene.request()[1])
    for wrong in ("", "00" * 32, issued_proof(bytes(32), scene.job.digest), issued_proof(b"", b"")):
        assert scene.ask_issued(client, wrong).status_code == 403
    assert client.get(f"/issued/{scene.job.digest.hex()}").status_code == 403
    early = scene.ask_issued(client)
    assert early.status_code == 409 and "1" not in early.text
    assert scene.issued(client).accounts == 1


def test_of_an_epoch_whose_key_is_deleted_only_the_number_of_accounts_is_kept(
    scene: Scene, client: httpx.Client
) -> None:
    client.post("/tokens", json=scene.request()[1])
    token, (_, blinded) = scene.token(), BlindedBatch.blind([b"a", b"b", b"c"])
    assert scene.ask(client, scene.question(token, blinded))[0] == 200
    issuer, database = scene.server._issuer, scene.server._database
    issuer.forget_deleted()
    rows = "SELECT (SELECT count(*) FROM issued) + (SELECT count(*) FROM spent)"
    assert database.execute(rows).fetchone() == (2,), "it is still open"
    before = scene.issued(client)
    issuer.forget_deleted()
    assert database.execute(rows).fetchone() == (0,)
    stored = b"".join(path.read_bytes() for path in scene.folder.glob("issuer.db*"))
    assert token.serial not in stored and b"ada" not in stored
    assert scene.issued(client) == before == Issued(1, scene.job.artifacts_per_user)
    with pytest.raises(DeletedEpochError):  # a request that was signed as the key was deleted
        issuer.record("grace", scene.job, {"evaluate": [], "report": []})
    assert scene.issued(client) == before


def test_secrets_are_not_stored(scene: Scene) -> None:
    assert all(scene.secret.encode() not in path.read_bytes() for path in scene.folder.rglob("*") if path.is_file())


def test_accounts_are_made_all_or_none_and_once(scene: Scene) -> None:
    accounts = Accounts(scene.folder)
    for names in (["grace", "ada"], ["grace", "two words"]):
        with pytest.raises(QlogError):
            accounts.add(names)
    assert accounts.number() == 1


# Evaluations ----------------------------------------------------------------------------------------------------------


def test_the_same_question_gets_the_same_answer_and_a_spent_token_no_other(scene: Scene, client: httpx.Client) -> None:
    token, inputs = scene.token(), [b"a", b"b", b"c"]
    batch, blinded = BlindedBatch.blind(inputs)
    _, keys = scene.ask(client, {"op": "keys", "epoch": str(MONTH)})
    outputs = []
    for _ in range(2):
        status, answer = scene.ask(client, scene.question(token, blinded))
        assert status == 200
        outputs.append(batch.finish(read_bytes(answer["answer"]), read_bytes(keys["public_key"])))
    assert outputs[0] == outputs[1] and len(set(outputs[0])) == 3
    _, others = BlindedBatch.blind(inputs)
    assert scene.ask(client, scene.question(token, others))[0] == 409


def test_one_token_is_answered_a_few_times_only(scene: Scene, client: httpx.Client) -> None:
    token, (_, blinded) = scene.token(), BlindedBatch.blind([b"a", b"b", b"c"])
    statuses = [scene.ask(client, scene.question(token, blinded))[0] for _ in range(11)]
    assert statuses == [200] * 10 + [429]


def test_questions_that_do_not_fit_are_refused_and_leave_the_token_unspent(scene: Scene, client: httpx.Client) -> None:
    token, (_, blinded) = scene.token(), BlindedBatch.blind([b"a", b"b", b"c"])
    forged = Token(token.serial, os.urandom(64))
    report_token = made_tokens(scene.home.token_seed(), "report", scene.job, 1)[0]
    wrong = [
        (scene.question(forged, blinded), 403),
        (scene.question(report_token, blinded), 403),
        (scene.question(token, blinded[:2]), 400),
        (scene.question(token, [*blinded, blinded[0]]), 400),
        (scene.question(token, [*blinded[:2], b"\xff" * 32]), 400),
        (scene.question(token, [*blinded[:2], bytes(32)]), 400),
        (scene.question(token, blinded, token="x"), 400),
        (scene.question(token, blinded, job="00"), 404),
        (scene.question(token, blinded, epoch="2006-04"), 404),
        (scene.question(token, blinded, epoch=None), 404),
        (scene.question(token, blinded, op=["evaluate"]), 400),
    ]
    assert [scene.ask(client, body)[0] for body, _ in wrong] == [status for _, status in wrong]
    status, answer = scene.ask(client, scene.question(token, blinded))
    assert status == 200 and len(read_bytes(answer["answer"])) == 3 * ANSWER_BYTES


def test_nothing_that_the_collector_has_makes_a_token_for_an_evaluation(scene: Scene, client: httpx.Client) -> None:
    """It checks reports' tokens, so it can make them; with tokens for evaluations it could test any number of guesses
    against the reports that it holds."""
    _, blinded = BlindedBatch.blind([b"a", b"b", b"c"])
    collector = scene.folder.parent / "collector"
    secrets = [read_secret(path) for path in collector.iterdir() if path.suffix in (".key", ".seed")]
    assert len(secrets) == 2
    for secret, purpose in itertools.product(secrets, tokens_per_account(scene.job)):
        (token,) = made_tokens(secret, purpose, scene.job, 1)
        assert scene.ask(client, scene.question(token, blinded))[0] == 403
    metrics = read_metrics(client.get("/metrics").text)
    assert "evaluations_total" not in metrics and metrics['refused_total{reason="forged token"}'] == 4


def test_tokens_for_evaluations_are_of_one_epoch_and_their_key_dies_with_it(scene: Scene, client: httpx.Client) -> None:
    stated = client.get(f"/epochs/{MONTH}").json()["token_keys"]
    evaluator = token_evaluator(read_secret(scene.key_file), "evaluate", scene.job)
    assert stated == {scene.job.digest.hex(): write_bytes(public_key_of(evaluator))}
    _, keys = scene.ask(client, {"op": "keys", "epoch": str(MONTH)})
    assert keys["token_keys"][scene.job.digest.hex()]["evaluate"] == stated[scene.job.digest.hex()]
    scene.clock.now = scene.job.closes.timestamp()
    assert client.get(f"/epochs/{MONTH}").json()["token_keys"] == {}
    assert scene.ask(client, {"op": "keys", "epoch": str(MONTH)})[0] == 410


# Keys -----------------------------------------------------------------------------------------------------------------


def test_a_key_is_made_when_it_is_first_needed_and_stays_the_same_over_restarts(scene: Scene) -> None:
    assert not scene.key_file.exists()
    stated = scene.server.epochs.statement(MONTH)
    assert scene.key_file.stat().st_mode & 0o077 == 0
    assert RandomnessServer(scene.home, scene.clock).epochs.statement(MONTH) == stated


def test_when_an_epoch_closes_its_key_is_gone_and_never_made_again(scene: Scene, client: httpx.Client) -> None:
    token, unspent, (_, blinded) = scene.token(), scene.token(), BlindedBatch.blind([b"a", b"b", b"c"])
    assert scene.ask(client, scene.question(token, blinded))[0] == 200
    before = client.get(f"/epochs/{MONTH}").json()
    assert before["state"] == "open" and scene.key_file.exists()
    held = scene.key_file.open("rb")  # a descriptor that somebody kept: the bytes behind it are overwritten, too
    seed = scene.key_file.read_bytes()

    scene.clock.now = scene.job.closes.timestamp()
    assert scene.ask(client, scene.question(token, blinded))[0] == 410
    assert scene.ask(client, scene.question(unspent, blinded))[0] == 410
    assert client.post("/tokens", json=scene.request()[1]).status_code == 410
    assert not scene.key_file.exists() and held.read() != seed
    held.close()
    after = client.get(f"/epochs/{MONTH}").json()
    assert after["state"] == "deleted" and after["public_key"] == before["public_key"] and after["deleted_at"]

    scene.clock.now -= timedelta(days=2).total_seconds()  # not even if the clock is set back
    for epochs in (scene.server.epochs, RandomnessServer(scene.home, scene.clock).epochs):
        with pytest.raises(DeletedEpochError):
            epochs.evaluator(MONTH)
    assert not scene.key_file.exists()
    assert all(seed not in path.read_bytes() for path in scene.folder.rglob("*") if path.is_file())


def test_the_key_is_deleted_by_the_server_itself_when_nobody_asks(scene: Scene) -> None:
    scene.server.epochs.statement(MONTH)
    scene.clock.now = scene.job.closes.timestamp()
    assert scene.server.epochs.delete_closed() == [MONTH]
    assert not scene.key_file.exists()


def test_a_job_file_that_breaks_or_goes_away_does_not_let_the_key_live_longer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomness, "LOOK_SECONDS", 0.02)
    with serving(scene.server.application()) as client:
        assert client.get(f"/epochs/{MONTH}").json()["state"] == "open"
        (scene.home.jobs / "next.toml").write_text('application = "quer')
        wait_for(lambda: read_metrics(client.get("/metrics").text)["job_files_left_out"] == 1)
        assert scene.ask(client, {"op": "keys", "epoch": str(MONTH)})[0] == 200, "the other jobs go on"
        shutil.rmtree(scene.home.jobs)
        assert client.get(f"/epochs/{MONTH}").json()["state"] == "open"
        scene.clock.now = scene.job.closes.timestamp()
        wait_for(lambda: not scene.key_file.exists())
        assert client.get(f"/epochs/{MONTH}").json()["state"] == "deleted"


def test_a_key_is_deleted_as_people_were_told_also_if_a_job_comes_later_that_closes_later(scene: Scene) -> None:
    scene.server.epochs.statement(MONTH)
    later = open_job(application="urls", closes=scene.job.closes + timedelta(days=5))
    write_jobs([later], [scene.home.jobs])
    scene.clock.now = scene.job.closes.timestamp()
    assert scene.server.epochs.delete_closed() == [MONTH]


def test_a_server_notices_that_a_command_beside_it_deleted_the_key(scene: Scene, client: httpx.Client) -> None:
    token, (_, blinded) = scene.token(), BlindedBatch.blind([b"a", b"b", b"c"])
    assert scene.ask(client, scene.question(token, blinded))[0] == 200
    open_epochs(scene.home, scene.clock).delete(MONTH)
    assert scene.ask(client, scene.question(token, blinded))[0] == 410


def test_a_deletion_that_was_interrupted_is_finished_by_the_next_process(scene: Scene) -> None:
    scene.server.epochs.statement(MONTH)
    scene.server._database.execute("UPDATE epochs SET state = 'deleting'")
    with pytest.raises(DeletedEpochError):
        RandomnessServer(scene.home, scene.clock).epochs.evaluator(MONTH)
    assert not scene.key_file.exists()


def test_a_key_file_that_somebody_removed_is_not_replaced(scene: Scene) -> None:
    epochs: Epochs = scene.server.epochs
    epochs.statement(MONTH)
    scene.key_file.unlink()
    with pytest.raises(DeletedEpochError):
        epochs.evaluator(MONTH)
    assert not scene.key_file.exists()


def test_no_key_is_made_for_an_epoch_without_a_job(scene: Scene, client: httpx.Client) -> None:
    assert client.get("/epochs/2006-04").status_code == 404
    assert client.get("/epochs/nonsense").status_code == 404
    assert not list(scene.folder.rglob("2006-04*"))


def test_what_it_stores_of_a_question_is_no_input_and_no_account(scene: Scene, client: httpx.Client) -> None:
    token, (_, blinded) = scene.token(), BlindedBatch.blind([b"canary one", b"b", b"c"])
    scene.ask(client, scene.question(token, blinded))
    stored = b"".join(path.read_bytes() for path in scene.folder.rglob("*.db*"))
    assert token.serial in stored
    assert not any(each in stored for each in (b"canary one", token.output, *blinded))
    assert "canary" not in client.get("/metrics").text
