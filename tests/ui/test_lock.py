"""The lock before Dagster's application, asked as browsers, scripts and strangers would."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from support.asgi import Heard, Pairs, Reply, ask

from qlog_assets.ui.asked import Seal
from qlog_assets.ui.hosts import Hosts
from qlog_assets.ui.lock import Lock
from qlog_assets.ui.passwords import LOWEST_COST, Passwords, hash_password, write_password
from qlog_assets.ui.sessions import SESSION_SECONDS, TRIES_PER_NAME, WINDOW_SECONDS, Gate

HOST = ("Host", "127.0.0.1:3000")
OWN = ("Origin", "http://127.0.0.1:3000")
JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
SEAL = Seal(b"k" * 32)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Locked:
    """A lock with nothing but a listener behind it."""

    def __init__(self, passwords: Passwords | None = None, allowed: tuple[str, ...] = (), host: str = "127.0.0.1"):
        self.behind = Heard()
        self.clock = Clock()
        self.gate = Gate("operator", passwords, clock=self.clock)
        self.app = Lock(self.behind, self.gate, Hosts.of(host, 3000, allowed), 3000, SEAL.headers)

    def ask(self, method: str, address: str = "/", *headers: tuple[str, str], body: bytes = b"") -> Reply:
        return ask(self.app, method, address, headers, body)

    def websocket(self, *headers: tuple[str, str]) -> bool:
        return ask(self.app, "", "/graphql", headers, websocket=True).status == 101

    def cookie(self, *more: tuple[str, str]) -> tuple[str, str]:
        """What a browser sends after it opened the printed address."""
        return cookie_of(self.ask("GET", f"/?token={self.gate.token}", HOST, *more))

    def login(self, name: str, password: str, *more: tuple[str, str]) -> Reply:
        form = urlencode({"name": name, "password": password}).encode()
        return self.ask("POST", "/login", HOST, OWN, FORM, *more, body=form)


def cookie_of(reply: Reply) -> tuple[str, str]:
    return ("Cookie", reply.header("set-cookie").partition(";")[0])


@pytest.fixture
def locked() -> Locked:
    return Locked()


@pytest.fixture
def shared(tmp_path: Path) -> Locked:
    """With a password file."""
    path = tmp_path / "users"
    path.touch(0o600)
    path.write_text("".join(f"{name}:{hashed}\n" for name, hashed in cheap_hashes().items()), encoding="utf-8")
    return Locked(Passwords(path))


@cache
def cheap_hashes() -> dict[str, str]:
    """At the lowest cost that a file may have."""
    known = {"alice": "correct horse", "bob": "battery staple"}
    return {name: hash_password(password, LOWEST_COST, 8, 1) for name, password in known.items()}


# The token -----------------------------------------------------------------------------------------------------------


def test_the_printed_address_becomes_a_cookie_and_loses_the_token(locked: Locked) -> None:
    reply = locked.ask("GET", f"/runs?view=all&token={locked.gate.token}&x=1", HOST)
    assert (reply.status, reply.header("location")) == (303, "/runs?view=all&x=1")
    cookie = reply.header("set-cookie")
    assert cookie.startswith("qlog-ui-3000=") and locked.gate.token not in str(reply)
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert reply.header("referrer-policy") == "no-referrer"
    assert not locked.behind.scopes, "what is behind never sees the token"
    assert locked.ask("GET", "/", HOST, cookie_of(reply)).text == "behind the lock"


def test_every_start_has_another_token_and_the_old_cookie_opens_nothing(locked: Locked) -> None:
    cookie, again = locked.cookie(), Locked()
    assert again.gate.token != locked.gate.token and len(again.gate.token) >= 40
    assert again.ask("GET", "/graphql", HOST, cookie).status == 401
    assert again.ask("GET", f"/?token={locked.gate.token}", HOST).header("location").startswith("/login")


def test_the_token_is_not_a_cookie_and_the_cookie_is_not_a_token(locked: Locked) -> None:
    _, cookie = locked.cookie()
    assert locked.ask("GET", "/x", HOST, ("Cookie", f"qlog-ui-3000={locked.gate.token}")).status == 401
    secret = cookie.partition("=")[2]
    assert locked.ask("GET", f"/?token={secret}", HOST).header("location").startswith("/login")
    assert locked.ask("POST", "/graphql", HOST, JSON, ("Authorization", f"Bearer {secret}")).status == 403


def test_a_stale_token_in_a_bookmark_does_not_log_out_who_is_logged_in(locked: Locked) -> None:
    reply = locked.ask("GET", "/runs?token=old", HOST, locked.cookie())
    assert (reply.status, reply.header("location"), reply.all("set-cookie")) == (303, "/runs", [])


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example", "/\\evil.example", "//evil.example/..//x"])
def test_no_address_leads_to_another_server_after_logging_in(locked: Locked, path: str) -> None:
    there = locked.ask("GET", f"{path}?token={locked.gate.token}", HOST).header("location")
    assert re.match(r"/(?![/\\])", there), there
    form = urlencode({"token": locked.gate.token, "next": path}).encode()
    there = locked.ask("POST", "/login", HOST, OWN, FORM, body=form).header("location")
    assert re.match(r"/($|[^/\\])", there), there
    for given in (f"https:{path}", "https://evil.example", "javascript:alert(1)", "/x\r\nSet-Cookie: a=b"):
        form = urlencode({"token": locked.gate.token, "next": given}).encode()
        assert locked.ask("POST", "/login", HOST, OWN, FORM, body=form).header("location") == "/"


def test_the_login_page_takes_the_token_and_says_nothing_more_than_that_it_was_wrong(locked: Locked) -> None:
    page = locked.ask("GET", "/login?next=/runs", HOST)
    assert page.status == 200 and 'name="token"' in page.text and 'value="/runs"' in page.text
    assert "<script" not in page.text and "default-src 'none'" in page.header("content-security-policy")
    assert page.header("referrer-policy") == "same-origin", "with no-referrer the form's Origin would be null"
    wrong = locked.ask("POST", "/login", HOST, OWN, FORM, body=b"token=guess&next=/runs")
    assert wrong.status == 401 and not wrong.all("set-cookie") and "guess" not in wrong.text
    form = urlencode({"token": locked.gate.token, "next": "/runs?a=b"}).encode()
    right = locked.ask("POST", "/login", HOST, OWN, FORM, body=form)
    assert (right.status, right.header("location")) == (303, "/runs?a=b")
    assert locked.ask("GET", "/x", HOST, cookie_of(right)).status == 200


def test_what_was_asked_for_cannot_write_into_the_login_page(locked: Locked) -> None:
    page = locked.ask("GET", "/login?" + urlencode({"next": '/"><script>alert(1)</script>'}), HOST)
    assert "<script" not in page.text


# Default-deny --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/server_info"),
        ("GET", "/dagit_info"),
        ("GET", "/graphql"),
        ("POST", "/graphql"),
        ("GET", "/logs/a/b.out"),
        ("GET", "/notebook?path=x.ipynb&repoLocName=y"),
        ("GET", "/download_debug/abc"),
        ("GET", "/main.js"),
        ("GET", "/login/"),
        ("GET", "/login/../graphql"),
        ("GET", "/loginx"),
        ("GET", "//login"),
        ("HEAD", "/"),
        ("POST", "/report_asset_materialization/selected"),
        ("POST", "/report_asset_check/selected"),
        ("POST", "/report_asset_observation/selected"),
        ("GET", "/whatever/a/later/version/adds"),
    ],
)
def test_nothing_but_the_login_page_is_open(locked: Locked, method: str, path: str) -> None:
    assert locked.ask(method, path, HOST, OWN, JSON).status == 401
    assert not locked.behind.scopes


def test_a_person_is_led_to_the_login_page_and_back(locked: Locked) -> None:
    navigates = ("Sec-Fetch-Mode", "navigate")
    reply = locked.ask("GET", "/runs/1?tab=a%20b", HOST, navigates)
    assert (reply.status, reply.header("location")) == (303, "/login?next=%2Fruns%2F1%3Ftab%3Da%2Bb")
    assert locked.ask("GET", "/runs", HOST, ("Accept", "text/html")).status == 303
    assert locked.ask("GET", "/runs", HOST, ("Accept", "text/html"), ("Sec-Fetch-Mode", "cors")).status == 401


def test_what_is_behind_sees_who_asks_and_no_secret(locked: Locked) -> None:
    forged = [("X-Qlog-Asked-By", "root"), ("x-qlog-asked-by-proof", "1" * 64), ("X-QLOG-Other", "1")]
    locked.ask("GET", "/", HOST, *forged, locked.cookie(), ("Authorization", "Basic eDp5"), ("Accept", "text/html"))
    (scope,) = locked.behind.scopes
    seen = [(key.decode(), value.decode()) for key, value in scope["headers"]]
    assert [pair for pair in seen if pair[0] == "accept"] == [("accept", "text/html")]
    assert {key for key, _ in seen} == {"host", "accept", "x-qlog-asked-by", "x-qlog-asked-by-proof"}
    assert len(seen) == 4 and SEAL.requester(dict(seen)) == "operator"


# Host and Origin -----------------------------------------------------------------------------------------------------

OWN_NAMES = ["127.0.0.1:3000", "localhost:3000", "[::1]:3000", "LOCALHOST:3000"]
FOREIGN_NAMES = [
    *("evil.example", "evil.example:3000", "127.0.0.1", "127.0.0.1:3001", "localhost", "localhost.:3000"),
    *("127.0.0.1:3000.evil.example", "evil.example@127.0.0.1:3000", "0.0.0.0:3000", "127.0.0.2:3000", "", "127.1:3000"),
]


@pytest.mark.parametrize("name", FOREIGN_NAMES)
def test_a_name_that_is_not_the_servers_is_refused_whatever_else_is_right(locked: Locked, name: str) -> None:
    """DNS rebinding: the stranger's page is same-origin with itself, and its Host is the stranger's name."""
    cookie = locked.cookie()
    for method, path in itertools.product(("GET", "POST", "HEAD"), ("/", "/graphql", "/login", "/server_info")):
        page = ("Origin", f"http://{name}")
        assert locked.ask(method, path, ("Host", name), page, cookie, JSON).status == 400
    assert not locked.websocket(("Host", name), ("Origin", f"http://{name}"), cookie)
    assert not locked.behind.scopes


@pytest.mark.parametrize("name", OWN_NAMES)
def test_the_names_of_this_machine_are_the_servers_own(locked: Locked, name: str) -> None:
    cookie, page = locked.cookie(), ("Origin", f"http://{name.lower()}")
    assert locked.ask("POST", "/graphql", ("Host", name), page, cookie, JSON).status == 200
    assert locked.websocket(("Host", name), page, cookie)


@pytest.mark.parametrize("hosts", [[], [HOST, HOST], [HOST, ("Host", "evil.example")]])
def test_a_request_has_exactly_one_host(locked: Locked, hosts: list[tuple[str, str]]) -> None:
    assert locked.ask("GET", "/login", *hosts).status == 400


FOREIGN_ORIGINS = [
    *("null", "", "http://evil.example", "http://127.0.0.1:3001", "http://127.0.0.1", "https://127.0.0.1:3000"),
    *("http://localhost:3000", "http://127.0.0.1:3000.evil.example", "http://127.0.0.1:3000/", "file://"),
    *("http://127.0.0.1:3000@evil.example", "ftp://127.0.0.1:3000", "http://[::1]:3000", "http://127.0.0.1:3000 "),
]


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_can_do_nothing_with_the_victims_cookie(locked: Locked, origin: str) -> None:
    """Another port of the same host gets the cookie sent along: the Origin is what tells it from our own page."""
    cookie, page = locked.cookie(), ("Origin", origin)
    kinds = [JSON, FORM, ("Content-Type", "text/plain"), ("Content-Type", "multipart/form-data; boundary=x")]
    for kind, path in itertools.product(kinds, ("/graphql", "/report_asset_materialization/x", "/login", "/logout")):
        assert locked.ask("POST", path, HOST, page, cookie, kind).status == 403
    assert not locked.websocket(HOST, page, cookie)
    assert not locked.behind.scopes
    assert locked.ask("GET", "/", HOST, cookie).status == 200, "the session is still there"


def test_two_origins_are_none(locked: Locked) -> None:
    assert locked.ask("POST", "/graphql", HOST, OWN, OWN, locked.cookie(), JSON).status == 400


@pytest.mark.parametrize(
    ("site", "mode", "dest", "method", "passes"),
    [
        ("same-origin", "cors", "empty", "GET", True),
        ("same-origin", "cors", "empty", "POST", True),
        ("none", "navigate", "document", "GET", True),
        ("cross-site", "navigate", "document", "GET", True),
        ("same-site", "navigate", "document", "GET", True),
        *(
            (site, mode, dest, method, False)
            for site in ("cross-site", "same-site")
            for mode, dest, method in (
                ("navigate", "iframe", "GET"),
                ("navigate", "document", "POST"),
                ("no-cors", "image", "GET"),
                ("no-cors", "script", "GET"),
                ("no-cors", "empty", "POST"),
                ("cors", "empty", "GET"),
                ("cors", "empty", "POST"),
                ("navigate", "embed", "GET"),
            )
        ),
    ],
)
def test_another_site_may_lead_a_person_here_and_nothing_else(
    locked: Locked, site: str, mode: str, dest: str, method: str, passes: bool
) -> None:
    fetch = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)]
    status = locked.ask(method, "/graphql", HOST, OWN, JSON, locked.cookie(), *fetch).status
    assert status == (200 if passes else 403)


def test_a_post_without_an_origin_needs_the_token_or_the_browsers_word(locked: Locked) -> None:
    cookie = locked.cookie()
    bearer = ("Authorization", f"Bearer {locked.gate.token}")
    assert locked.ask("POST", "/graphql", HOST, JSON, cookie).status == 403
    assert locked.ask("POST", "/graphql", HOST, JSON, cookie, ("Sec-Fetch-Site", "same-origin")).status == 200
    assert locked.ask("POST", "/graphql", HOST, JSON, ("Sec-Fetch-Site", "same-origin")).status == 401
    assert locked.ask("POST", "/graphql", HOST, JSON, bearer).status == 200
    assert locked.ask("POST", "/graphql", HOST, JSON, ("Authorization", "Bearer guess")).status == 403
    assert locked.ask("POST", "/graphql", HOST, JSON, ("Authorization", "Bearer ")).status == 403
    assert not locked.websocket(HOST, cookie), "browsers always say it for a websocket"
    assert not locked.websocket(HOST, OWN), "and the cookie is needed, too"
    assert locked.websocket(HOST, bearer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND"])
def test_only_three_methods_are_answered_so_no_preflight_is_ever_granted(locked: Locked, method: str) -> None:
    reply = locked.ask(method, "/graphql", HOST, OWN, JSON, locked.cookie())
    assert reply.status == 405 and not [key for key, _ in reply.headers if key.startswith("access-control")]
    assert not locked.behind.scopes


# GraphQL -------------------------------------------------------------------------------------------------------------

MUTATION = "/graphql?query=" + quote("mutation { launchRun }")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_nothing_is_launched_by_an_address(locked: Locked, method: str) -> None:
    """Dagster runs what stands in the address, for a GET and for a POST whose body is no JSON."""
    cookie, html = locked.cookie(), ("Accept", "text/html")
    for address in (MUTATION, MUTATION.replace("/graphql", "/graphql/"), "/graphql?x"):
        assert locked.ask(method, address, HOST, OWN, JSON, cookie, html).status == 405
    assert not locked.behind.scopes
    named = locked.ask(method, "/graphql?op=LaunchRun", HOST, OWN, JSON, cookie).status
    assert named == (200 if method == "POST" else 405), "Dagster's own pages name their questions in the address"


@pytest.mark.parametrize("kind", ["text/plain", "application/graphql", "multipart/form-data", "", "application/jsonx"])
def test_graphql_is_taken_as_json_only(locked: Locked, kind: str) -> None:
    """A form can send the other kinds without asking the server first."""
    assert locked.ask("POST", "/graphql", HOST, OWN, locked.cookie(), ("Content-Type", kind)).status == 415
    assert locked.ask("POST", "/graphql", HOST, OWN, locked.cookie()).status == 415
    assert not locked.behind.scopes


def test_the_page_for_questions_opens(locked: Locked) -> None:
    assert locked.ask("GET", "/graphql", HOST, locked.cookie(), ("Accept", "text/html")).status == 200
    charset = ("Content-Type", "Application/JSON; charset=utf-8")
    assert locked.ask("POST", "/graphql", HOST, OWN, locked.cookie(), charset).status == 200


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, "script-src 'nonce-1'; object-src 'none';", "frame-ancestors *"])
def test_every_answer_forbids_frames_and_keeps_the_policy_of_the_page(locked: Locked, policy: str | None) -> None:
    locked.behind.policy = policy
    replies = [
        locked.ask("GET", "/", HOST, locked.cookie()),
        locked.ask("GET", "/", HOST),
        locked.ask("GET", "/login", HOST),
        locked.ask("GET", "/", ("Host", "evil.example")),
        locked.ask("GET", f"/?token={locked.gate.token}", HOST),
    ]
    for reply in replies:
        assert reply.header("x-frame-options") == "DENY"
        assert reply.header("content-security-policy").startswith("frame-ancestors 'none'"), "the first one counts"
        assert reply.header("x-content-type-options") == "nosniff"
        assert reply.header("cross-origin-opener-policy") == "same-origin"
        assert reply.header("cross-origin-resource-policy") == "same-origin"
        assert reply.header("referrer-policy") in ("no-referrer", "same-origin")
    assert (policy or "").rstrip("; ") in replies[0].header("content-security-policy")


# Passwords -----------------------------------------------------------------------------------------------------------


def test_a_user_logs_in_by_name_and_password_and_out_again(shared: Locked) -> None:
    reply = shared.login("alice", "correct horse")
    assert reply.status == 303
    cookie = cookie_of(reply)
    assert shared.ask("POST", "/graphql", HOST, OWN, JSON, cookie).status == 200
    headers = {key.decode(): value.decode() for key, value in shared.behind.scopes[-1]["headers"]}
    assert SEAL.requester(headers) == "alice"
    assert "alice" in shared.ask("GET", "/login", HOST, cookie).text
    out = shared.ask("POST", "/logout", HOST, OWN, cookie)
    assert out.status == 303 and shared.ask("GET", "/x", HOST, cookie).status == 401


def test_with_a_password_file_no_token_opens(shared: Locked) -> None:
    token = shared.gate.token
    assert shared.ask("GET", f"/x?token={token}", HOST).status == 401
    assert shared.ask("GET", "/x", HOST, ("Authorization", f"Bearer {token}")).status == 401
    assert shared.ask("POST", "/graphql", HOST, JSON, ("Authorization", f"Bearer {token}")).status == 403
    form = urlencode({"token": token}).encode()
    assert shared.ask("POST", "/login", HOST, OWN, FORM, body=form).status == 401


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("alice", "battery staple"),
        ("carol", "correct horse"),
        ("", ""),
        ("alice", ""),
        ("alice:x", "y"),
        ("alice", "x" * 2000),
    ],
)
def test_a_wrong_name_or_password_lets_nobody_in(shared: Locked, name: str, password: str) -> None:
    reply = shared.login(name, password)
    assert (reply.status, reply.all("set-cookie")) == (401, []) and "not right" in reply.text


def test_guessing_is_slowed_down_by_name_and_stops_nobody_else(shared: Locked) -> None:
    shared.gate.passwords = GuessedAt(shared.gate.passwords)  # type: ignore[assignment]
    statuses = [shared.login("alice", f"guess {number}").status for number in range(TRIES_PER_NAME + 3)]
    assert statuses == [401] * TRIES_PER_NAME + [429] * 3
    assert shared.login("alice", "correct horse").status == 429, "a right guess among many is not let in either"
    assert shared.login("bob", "battery staple").status == 303
    shared.clock.now += WINDOW_SECONDS + 1
    assert shared.login("alice", "correct horse").status == 303


class GuessedAt:
    """The same answers without the cost of a real hash, for a test of the brake alone."""

    def __init__(self, real: Passwords | None) -> None:
        assert real is not None
        self.hashes = real.hashes

    def login(self, name: str, password: str) -> str | None:
        known = {"alice": "correct horse", "bob": "battery staple"}
        return self.hashes()[name] if known[name] == password else None


def test_guessing_the_token_is_slowed_down_and_the_right_one_still_opens(locked: Locked) -> None:
    statuses = {locked.ask("GET", f"/?token=guess{number}", HOST).status for number in range(TRIES_PER_NAME)}
    assert statuses == {303}
    assert locked.ask("GET", "/?token=guess", HOST).status == 429
    assert locked.ask("GET", "/x", HOST, locked.cookie()).status == 200


def test_a_session_ends_with_the_users_line_or_password_and_after_a_night(shared: Locked) -> None:
    alice, bob = (cookie_of(shared.login(*pair)) for pair in (("alice", "correct horse"), ("bob", "battery staple")))
    assert shared.gate.passwords is not None
    path = shared.gate.passwords.path
    write_password(path, "alice", "another one")
    assert shared.ask("GET", "/x", HOST, alice).status == 401
    assert shared.ask("GET", "/x", HOST, bob).status == 200
    shared.clock.now += SESSION_SECONDS - 1
    assert shared.ask("GET", "/x", HOST, bob).status == 200
    shared.clock.now += SESSION_SECONDS - 1
    assert shared.ask("GET", "/x", HOST, bob).status == 200, "it was used meanwhile"
    path.chmod(0o644)
    assert shared.ask("GET", "/x", HOST, bob).status == 401, "a file that others can read lets nobody in"
    path.chmod(0o600)
    bob = cookie_of(shared.login("bob", "battery staple"))
    shared.clock.now += SESSION_SECONDS
    assert shared.ask("GET", "/x", HOST, bob).status == 401


def test_a_cookie_that_another_port_planted_is_nobodys(shared: Locked) -> None:
    """Two users' cookies under one name: nobody acts in the name of who planted one."""
    (_, alice), (_, bob) = (
        cookie_of(shared.login(*pair)) for pair in (("alice", "correct horse"), ("bob", "battery staple"))
    )
    assert shared.ask("GET", "/x", HOST, ("Cookie", f"{bob}; {alice}")).status == 401
    assert shared.ask("GET", "/x", HOST, ("Cookie", f"qlog-ui-3000=planted; {alice}")).status == 200


def test_a_form_that_is_none_is_refused_before_anything_is_hashed(shared: Locked) -> None:
    assert shared.ask("POST", "/login", HOST, OWN, JSON, body=b"{}").status == 415
    assert shared.ask("POST", "/login", HOST, OWN, FORM, body=b"name=" + b"x" * 10_000).status == 413


# Behind a proxy ------------------------------------------------------------------------------------------------------


def proxied(host: str, origin: str) -> Pairs:
    return ("Host", host), ("Origin", origin), JSON


@pytest.mark.parametrize(
    ("allowed", "host", "origin", "passes"),
    [
        ("qlog.example", "qlog.example", "https://qlog.example", True),
        ("qlog.example", "qlog.example:443", "https://qlog.example", True),
        ("qlog.example", "qlog.example", "http://qlog.example", True),
        ("qlog.example", "qlog.example", "https://qlog.example:8443", False),
        ("qlog.example", "qlog.example", "https://evil.example", False),
        ("qlog.example", "127.0.0.1:3000", "https://127.0.0.1:3000", False),
        ("qlog.example", "127.0.0.1:3000", "https://qlog.example", False),
        ("qlog.example:8443", "qlog.example:8443", "https://qlog.example:8443", True),
        ("QLOG.example", "Qlog.Example", "https://qlog.example", True),
    ],
)
def test_behind_a_proxy_the_page_may_be_https_under_the_allowed_name(
    allowed: str, host: str, origin: str, passes: bool
) -> None:
    locked = Locked(allowed=(allowed,))
    assert locked.ask("POST", "/graphql", *proxied(host, origin), locked.cookie()).status == (200 if passes else 403)


def test_a_cookie_from_an_https_page_is_never_sent_in_the_clear() -> None:
    locked = Locked(allowed=("qlog.example",))
    form = urlencode({"token": locked.gate.token}).encode()
    pairs = (("Host", "qlog.example"), ("Origin", "https://qlog.example"), FORM)
    assert "Secure" in locked.ask("POST", "/login", *pairs, body=form).header("set-cookie").split("; ")


@pytest.mark.parametrize("ending", ["\n", "\r", "\0", "\x7f", "\n\n"], ids=repr)
def test_an_address_that_a_route_takes_for_another_is_refused(locked: Locked, ending: str) -> None:
    """A route's pattern ends before a last line break, so `/graphql%0A` would be GraphQL to Dagster and not to us."""
    cookie = locked.cookie()
    asked = f"/graphql{ending}?query=mutation%7BsetNuxSeen%7D"
    assert locked.ask("GET", asked, HOST, cookie).status == 400
    assert locked.behind.scopes == []


def test_a_page_of_another_port_may_open_a_page_here_and_ask_nothing_by_its_address(locked: Locked) -> None:
    cookie = locked.cookie()
    arriving = [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
    assert locked.ask("GET", "/runs", HOST, cookie, *arriving).status == 200
    assert locked.ask("GET", "/runs?x=1", HOST, cookie, *arriving).status == 403
