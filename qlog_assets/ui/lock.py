"""The lock before Dagster's web application: an ASGI application around another one. Knows nothing of Dagster but
where it answers GraphQL.

Whatever is not let in here does not reach what is behind: there is no list of locked addresses, only of open ones, and
that is the login page. The order of the questions: under which name was the server asked, by which kind of request, by
which page, by whom; and only then what for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qlog_assets.errors import QlogError
from qlog_assets.ui.hosts import Hosts
from qlog_assets.ui.pages import POLICY, leave_page, login_page
from qlog_assets.ui.sessions import Gate, TooManyTriesError

LOGIN, LOGOUT, GRAPHQL = "/login", "/logout", "/graphql"
READING = ("GET", "HEAD")
METHODS = (*READING, "POST")
LONGEST_FORM = 8192
OURS = b"x-qlog-"
"""How headers begin that only this server sets for what is behind it."""
HARDENING = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_FRAMES = "frame-ancestors 'none'"


class RefusalError(Exception):
    """A request that goes no further: the status and one line for whoever sent it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Request:
    """What the lock looks at."""

    scope: Scope
    headers: Headers

    @property
    def is_websocket(self) -> bool:
        return bool(self.scope["type"] == "websocket")

    @property
    def method(self) -> str:
        return "" if self.is_websocket else str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def query(self) -> str:
        return bytes(self.scope.get("query_string", b"")).decode("latin-1")

    @property
    def changes_something(self) -> bool:
        return self.is_websocket or self.method not in READING

    @property
    def bearer(self) -> str | None:
        found = re.fullmatch(r"Bearer ([!-~]{1,200})", self.headers.get("authorization", ""))
        return found[1] if found else None

    @property
    def is_for_a_page(self) -> bool:
        """Whether a person looks at the answer: then she is led to the login page."""
        if self.method not in READING:
            return False
        mode = self.headers.get("sec-fetch-mode")
        return mode == "navigate" if mode else "text/html" in self.headers.get("accept", "")

    def single(self, name: str) -> str | None:
        """A header that may come once at most."""
        found = self.headers.getlist(name)
        if len(found) > 1:
            raise RefusalError(400, f"more than one {name} header")
        return found[0] if found else None


class Lock:
    """Dagster's application for those who were let in, and a login page for the others."""

    def __init__(self, app: ASGIApp, gate: Gate, hosts: Hosts, port: int, name: Callable[[str], Mapping[str, str]]):
        self.app = app
        self.gate = gate
        self.hosts = hosts
        self.cookie = f"qlog-ui-{port}"  # browsers keep the cookies of a machine's ports together
        self.name = name
        """The headers that tell what is behind who is asking."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            raise RuntimeError("a kind of connection that the lock does not know")
        request = Request(scope, Headers(scope=scope))
        hardened = hardening(send)
        try:
            answer = await self._answer(request, receive)
        except RefusalError as refusal:
            answer = PlainTextResponse(f"{refusal.reason}\n", refusal.status)
        except QlogError as error:  # a password file that can no longer be used
            answer = PlainTextResponse(f"{error}\n", 503)
        except TooManyTriesError:
            answer = PlainTextResponse("too many tries: wait a minute\n", 429, {"Retry-After": "60"})
        if isinstance(answer, str):
            await self.app(self._scope_for(scope, answer), receive, hardened)
        elif request.is_websocket:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the handshake fails
        else:
            await answer(scope, receive, hardened)

    async def _answer(self, request: Request, receive: Receive) -> Response | str:
        """The name of who may pass, or the answer for who may not."""
        host = self._check_host(request)
        if not request.is_websocket and request.method not in METHODS:
            raise RefusalError(405, f"{request.method}: only GET, HEAD and POST are answered here")
        self._check_fetch(request)
        scripted = request.bearer is not None and self.gate.check_token(request.bearer)
        if request.changes_something and not scripted:
            self._check_origin(request, host)
        if not request.is_websocket and request.path in (LOGIN, LOGOUT):
            return await self._login(request, receive)
        name = self.gate.user if scripted else self.gate.session_user(self._secrets(request))
        if request.method == "GET" and self.gate.takes_token and "token" in parse_qs(request.query):
            return self._enter(request, known=name is not None)
        if name is None:
            if request.is_for_a_page:
                return redirect(f"{LOGIN}?{urlencode({'next': own_path(request)})}")
            raise RefusalError(401, "log in first: open /login")
        check_graphql(request)
        return name

    # The questions, in their order ------------------------------------------------------------------------------------

    def _check_host(self, request: Request) -> str:
        host = request.single("host")
        if host is None or not self.hosts.know(host):
            raise RefusalError(400, "this server is not known under that name: see --allowed-host")
        if not request.path.startswith("/"):
            raise RefusalError(400, "an address begins with /")
        # A route's pattern ends before a last line break: `/graphql` followed by one is `/graphql` to it, not to us.
        if any(letter < " " or letter == "\x7f" for letter in request.path):
            raise RefusalError(400, "an address holds no control characters")
        return host

    def _check_fetch(self, request: Request) -> None:
        """What browsers say of themselves: another site may lead a person here, and do nothing else."""
        site = request.single("sec-fetch-site")
        if site is None or site in ("same-origin", "none"):
            return
        arrives = request.method == "GET" and (
            request.headers.get("sec-fetch-mode") == "navigate" and request.headers.get("sec-fetch-dest") == "document"
        )
        # Ports of one host are one site: their links come with our cookie, so they may open a page and ask nothing.
        if not arrives or (site == "same-site" and request.query):
            raise RefusalError(403, "a page of another origin may not do this")

    def _check_origin(self, request: Request, host: str) -> None:
        """Ports of one host are one site to a cookie: scheme, host and port of the page that asks must all fit."""
        origin = request.single("origin")
        if origin is not None:
            if not self.hosts.is_own_page(origin, host):
                raise RefusalError(403, "a page of another origin may not do this")
        elif request.is_websocket or request.headers.get("sec-fetch-site") not in ("same-origin", "none"):
            raise RefusalError(
                403, "no Origin: a script sends `Authorization: Bearer TOKEN`, or the server's own Origin"
            )

    # Logging in -------------------------------------------------------------------------------------------------------

    def _enter(self, request: Request, known: bool) -> Response:
        """The first request: the token in the address becomes a cookie, and the address loses it."""
        given = parse_qs(request.query)["token"][0]
        if not known and not self.gate.check_token(given):
            return redirect(f"{LOGIN}?{urlencode({'next': own_path(request)})}")
        answer = redirect(own_path(request))
        if not known:
            self._set_cookie(answer, self.gate.open_session(self.gate.user, self.gate.token), secure=False)
        return answer

    async def _login(self, request: Request, receive: Receive) -> Response:
        if request.path == LOGOUT:
            if request.method != "POST":
                return redirect(LOGIN)
            for secret in self._secrets(request):
                self.gate.close_session(secret)
            answer = redirect(LOGIN)
            answer.delete_cookie(self.cookie, path="/", httponly=True, samesite="strict")
            return answer
        if request.method != "POST":
            following = local(dict(parse_qsl(request.query)).get("next", "/"))
            name = self.gate.session_user(self._secrets(request))
            return page(login_page(self.gate.takes_token, following) if name is None else leave_page(name, following))
        form = await read_form(request, receive)
        following = local(form.get("next", "/"))
        entered = await self._let_in(form)
        if entered is None:
            return page(login_page(self.gate.takes_token, following, "That is not right."), 401)
        answer = redirect(following)
        self._set_cookie(answer, entered, secure=request.headers.get("origin", "").startswith("https:"))
        return answer

    async def _let_in(self, form: Mapping[str, str]) -> str | None:
        """The secret of a new session for who said the right thing."""
        if self.gate.takes_token:
            right = self.gate.check_token(form.get("token", ""))
            return self.gate.open_session(self.gate.user, self.gate.token) if right else None
        name = form.get("name", "")
        granted = await self.gate.check_password(name, form.get("password", ""))
        return None if granted is None else self.gate.open_session(name, granted)

    def _set_cookie(self, answer: Response, secret: str, secure: bool) -> None:
        answer.set_cookie(self.cookie, secret, path="/", httponly=True, samesite="strict", secure=secure)

    def _secrets(self, request: Request) -> set[str]:
        """All values of our cookie: a server on another port of this host can add one of its own."""
        pairs = (part for header in request.headers.getlist("cookie") for part in header.split(";"))
        return {value for pair in pairs for key, value in cookie_parser(pair).items() if key == self.cookie}

    def _scope_for(self, scope: Scope, name: str) -> Scope:
        """The request as what is behind may see it: with the name, without secrets, without what only we say."""
        dropped = (b"cookie", b"authorization")
        kept = [(key, value) for key, value in scope["headers"] if key not in dropped and not key.startswith(OURS)]
        added = [(key.lower().encode("ascii"), value.encode("ascii")) for key, value in self.name(name).items()]
        return {**scope, "headers": kept + added}


def check_graphql(request: Request) -> None:
    """GraphQL as JSON in a POST only: what stands in an address can be launched by a link or a picture."""
    if request.path.rstrip("/") != GRAPHQL or request.is_websocket:
        return
    named = {key for key, _ in parse_qsl(request.query, keep_blank_values=True)}
    # Dagster's pages write the name of the question there, for whoever watches the network.
    if named - {"op"} or (named and request.method != "POST"):
        raise RefusalError(405, "GraphQL is taken from the body of a POST, not from an address")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind != "application/json":
        raise RefusalError(415, "GraphQL is taken as application/json")


def own_path(request: Request) -> str:
    """The address that was asked for, without a token in it."""
    rest = urlencode([pair for pair in parse_qsl(request.query, keep_blank_values=True) if pair[0] != "token"])
    raw = bytes(request.scope.get("raw_path") or request.path.encode()).decode("latin-1")
    return local(f"{raw}?{rest}" if rest else raw)


def local(address: str) -> str:
    """An address on this server, whatever was given: browsers read `//name` and `/\\name` as another server."""
    if any(not " " < letter < "\x7f" for letter in address) or "\\" in address:
        return "/"
    return "/" + address.lstrip("/") if address.startswith("/") else "/"


async def read_form(request: Request, receive: Receive) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RefusalError(415, "a form is taken as application/x-www-form-urlencoded")
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusalError(400, "the form did not arrive whole")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LONGEST_FORM:
            raise RefusalError(413, "no form of this server is that long")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def redirect(address: str) -> Response:
    return Response(status_code=303, headers={"Location": address, "Cache-Control": "no-store"})


def page(text: str, status: int = 200) -> Response:
    # With no-referrer a browser calls the page that sends the form `null`: then it could not be told from another's.
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    return HTMLResponse(text, status, headers)


def hardening(send: Send) -> Send:
    """A `send` that adds to every answer what browsers are to refuse."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            for name, value in HARDENING.items():
                headers[name] = value
            if headers.get("referrer-policy") != "same-origin":
                headers["Referrer-Policy"] = "no-referrer"
            policies = [policy.rstrip("; ") for policy in headers.getlist("content-security-policy")]
            del headers["content-security-policy"]
            for policy in policies or [""]:
                headers.append("Content-Security-Policy", f"{NO_FRAMES}; {policy}" if policy else NO_FRAMES)
            message = {**message, "headers": headers.raw}
        await send(message)

    return hardened
