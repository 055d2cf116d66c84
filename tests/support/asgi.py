"""Asks an ASGI application directly, as a server would, and keeps the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Pairs = Iterable[tuple[str, str]]


@dataclass
class Heard:
    """What an application was asked; it answers everything with a page of its own."""

    scopes: list[Scope] = field(default_factory=list)
    policy: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        headers = [(b"content-type", b"text/plain"), (b"referrer-policy", b"strict-origin-when-cross-origin")]
        if self.policy:
            headers.append((b"content-security-policy", self.policy.encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"behind the lock"})


@dataclass(frozen=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    text: str

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def header(self, name: str) -> str:
        (value,) = self.all(name)
        return value


def ask(
    app: ASGIApp,
    method: str,
    address: str = "/",
    headers: Pairs = (),
    body: bytes = b"",
    *,
    websocket: bool = False,
) -> Reply:
    """One request. A websocket that is accepted has the status 101, one that is not has 403, as uvicorn says it."""
    path, _, query = address.partition("?")
    scope: dict[str, Any] = {
        "type": "websocket" if websocket else "http",
        "path": path,
        "raw_path": quote(path, safe="/%:").encode(),
        "query_string": query.encode(),
        "headers": [(key.lower().encode(), value.encode("latin-1")) for key, value in headers],
    }
    if not websocket:
        scope["method"] = method
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    if websocket:
        return Reply(101 if sent[0]["type"] == "websocket.accept" else 403, [], "")
    start, *rest = sent
    return Reply(
        start["status"],
        [(key.decode().lower(), value.decode("latin-1")) for key, value in start["headers"]],
        b"".join(message.get("body", b"") for message in rest).decode(),
    )
