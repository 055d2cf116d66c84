"""What all servers share: limits per peer, counts, TLS by configuration, and nothing private in what they print."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.responses import Response
from support.crowd_cast import QUICK, made_reports, open_job, running_cast, sealed_reports, wait_for

from qlog_assets.crowd import serving
from qlog_assets.crowd.cast import CollectorSettings, PartyFolder, Role, make_cast, open_folder
from qlog_assets.crowd.envelopes import wrap
from qlog_assets.crowd.serving import MOST_PEERS, Metrics, RateLimit, Refusal, make_application, repeating, serve
from qlog_assets.errors import ParameterError, QlogError


def refused(limit: RateLimit, peer: str, times: int) -> int:
    found = 0
    for _ in range(times):
        try:
            limit.take(peer)
        except Refusal as refusal:
            assert refusal.status == 429
            found += 1
    return found


def test_each_peer_has_a_rate_of_its_own_and_gets_it_back_with_time() -> None:
    now = [0.0]
    limit = RateLimit(2, lambda: now[0])
    assert refused(limit, "a", 12) == 2
    assert refused(limit, "b", 10) == 0
    now[0] = 1
    assert refused(limit, "a", 3) == 1
    now[0] = 1000
    assert refused(limit, "a", 11) == 1


def test_a_rate_below_one_per_burst_still_lets_a_request_through() -> None:
    assert refused(RateLimit(0.001, lambda: 0.0), "a", 3) == 2


def test_peers_without_number_do_not_fill_the_memory() -> None:
    limit = RateLimit(1, lambda: 0.0)
    for number in range(MOST_PEERS + 50):
        limit.take(str(number))
    assert len(limit._left) == MOST_PEERS


def test_counts_are_told_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.add("requests", 3)
    metrics.add("refused", reason="body too large")
    text = 'qlog_crowd_refused_total{reason="body too large"} 1\nqlog_crowd_requests_total 3\nqlog_crowd_waiting 7\n'
    assert metrics.text({"waiting": 7}) == text


# Rounds and slow clients ----------------------------------------------------------------------------------------------


class Rounds:
    """Work that fails as told, one round after the other."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.is_over = asyncio.Event()
        self.is_ended = False
        self.metrics = Metrics()

    async def work(self) -> bool:
        if self._failures:
            raise self._failures.pop(0)
        self.is_over.set()
        return False

    async def run(self) -> None:
        application = Starlette()
        application.state.end = self.end
        async with repeating(application, self.work, 0.001, self.metrics):
            await asyncio.wait_for(self.is_over.wait(), 10)

    def end(self) -> None:
        self.is_ended = True
        self.is_over.set()


def test_a_round_that_fails_is_counted_and_the_next_one_goes_on() -> None:
    rounds = Rounds(sqlite3.OperationalError("disk full"), QlogError("a file"), QlogError("again"), OSError())
    asyncio.run(rounds.run())
    assert not rounds.is_ended
    assert rounds.metrics.text({}).splitlines() == [
        'qlog_crowd_rounds_failed_total{reason="OSError"} 1',
        'qlog_crowd_rounds_failed_total{reason="OperationalError"} 1',
        'qlog_crowd_rounds_failed_total{reason="QlogError"} 2',
    ]


def test_rounds_that_end_by_an_error_of_ours_end_the_server(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Rounds(TypeError("canary"))
    asyncio.run(rounds.run())
    assert rounds.is_ended
    (told,) = [record.getMessage() for record in caplog.records]
    assert "TypeError" in told and "canary" not in told


def served(tmp_path: Path, use: Callable[[int], None]) -> None:
    """Serve an address that tells how much it got, while something is done with its port."""
    make_cast(tmp_path / "cast", 1, 1, settings={"collector": {"port": 0}})
    home: PartyFolder[CollectorSettings] = open_folder(tmp_path / "cast" / "collector", CollectorSettings)

    async def tell(body: bytes) -> Response:
        return Response(str(len(body)))

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.gather(*tasks, return_exceptions=True)

    tasks: list[asyncio.Future[None]] = []
    posts = {"/body": (tell, 1000)}
    application = make_application(home.settings, Metrics(), posts, {}, dict, lifespan)

    def ready(said: str) -> None:
        async def work() -> None:
            try:
                await asyncio.to_thread(use, int(said.rpartition(":")[2]))
            finally:
                application.state.end()

        tasks.append(asyncio.ensure_future(work()))

    assert serve(application, home, ready) == 1
    tasks[0].result()


def test_a_client_that_takes_too_long_to_ask_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(serving, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(serving, "TICKS_PER_LOOK", 1)
    head = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"

    def use(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as silent,
            socket.create_connection(("127.0.0.1", port), 10) as slow_head,
            socket.create_connection(("127.0.0.1", port), 10) as slow_second,
            socket.create_connection(("127.0.0.1", port), 10) as slow_body,
        ):
            slow_head.sendall(head)
            slow_second.sendall(head + b"\r\nabc")
            answer = b""
            while not answer.endswith(b"\r\n\r\n3"):  # its head and its body may come one by one
                received = slow_second.recv(1000)
                assert received, answer
                answer += received
            slow_second.sendall(head)
            slow_body.sendall(head + b"\r\na")
            assert slow_body.recv(1000).startswith(b"HTTP/1.1 408 ")
            assert [each.recv(1000) for each in (silent, slow_head, slow_second)] == [b""] * 3

    served(tmp_path, use)


def test_a_connection_that_is_idle_or_asks_again_and_again_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(serving, "TICKS_PER_LOOK", 1)
    request = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"

    def use(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), 10) as kept:
            for idle in (0.6, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05):
                kept.sendall(request)
                assert kept.recv(1000).endswith(b"3")
                kept.settimeout(idle)
                with pytest.raises(TimeoutError):
                    kept.recv(1)
                kept.settimeout(10)

    served(tmp_path, use)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_nothing_is_served_to_a_network_without_tls(tmp_path: Path, host: str) -> None:
    """Accounts' secrets would go over the wire as they are, and everybody on the way would see who speaks to whom."""
    make_cast(tmp_path / "cast", 1, 1, settings={"collector": {"host": host, "port": 0}})
    home = open_folder(tmp_path / "cast" / "collector", CollectorSettings)
    said: list[str] = []
    with pytest.raises(QlogError, match=r"tls_certificate .* host = .127\.0\.0\.1. behind a proxy"):
        serve(Starlette(), home, said.append)
    assert said == []


def test_a_certificate_comes_with_its_key() -> None:
    with pytest.raises(ParameterError, match="come together"):
        CollectorSettings(name="c", role="collector", port=1, tls_certificate="certificate.pem")


def write_certificate(folder: Path) -> None:
    """A certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "collector")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


@pytest.mark.slow
def test_a_relay_sends_on_over_tls_to_whom_it_trusts_and_servers_print_nothing_but_that_they_are_ready(
    tmp_path: Path,
) -> None:
    job = open_job()
    settings: dict[Role, dict[str, Any]] = {
        "relay": {**QUICK["relay"], "trusted_certificates": "../collector/certificate.pem"},
        "collector": {**QUICK["collector"], "tls_certificate": "certificate.pem", "tls_key": "key.pem"},
    }
    with running_cast(tmp_path / "cast", relays=1, hops=1, jobs=[job], settings=settings, start=[]) as cast:
        write_certificate(cast.folder("collector"))
        cast.start("relay-1", "collector")
        assert cast.cast.collector.url.startswith("https://")
        (sealed,) = sealed_reports(cast.cast, made_reports(cast.folder("collector"), job, 1))
        onion = wrap(cast.cast.relays, cast.cast.collector, sealed)
        assert httpx.post(f"{cast.cast.relays[0].url}/messages?q=canary", content=onion).status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{cast.cast.collector.url}/health", trust_env=False)
        wait_for(lambda: cast.metrics("relay-1").get("messages_sent_total") == 1)
        cast.stop("relay-1")  # first, because it keeps a connection to the collector open
        cast.stop("collector")
        for name in ("relay-1", "collector"):
            assert cast.log(name).read_text() == f"{name}: ready at {cast.cast.party(name).url}\n"
