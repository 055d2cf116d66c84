"""The login page: plain HTML, no script, nothing loaded."""

from __future__ import annotations

from markupsafe import Markup

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;background:#f4f5f7;color:#1f2733;margin:0}"
    "main{max-width:24rem;margin:12vh auto;background:#fff;padding:2rem;border:1px solid #d8dce3;border-radius:8px}"
    "h1{font-size:1.25rem;margin:0 0 1rem}label{display:block;margin:.75rem 0 .25rem}"
    "input{width:100%;box-sizing:border-box;font:inherit;padding:.5rem;border:1px solid #9aa3b2;border-radius:4px}"
    "button{font:inherit;margin-top:1.25rem;padding:.5rem 1.25rem;border:0;border-radius:4px}"
    "button{background:#2f5fd0;color:#fff}"
    "p.wrong{color:#a4262c}p.small{font-size:.875rem;color:#4a5464;margin:1.25rem 0 0}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
"""Content-Security-Policy of this page. A style may stand in it; nothing else is loaded or run."""

PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>'
    "<body><main><h1>{title}</h1>{body}</main></body></html>"
)
FORM = Markup(
    '{wrong}<form method="post" action="/login"><input type="hidden" name="next" value="{next}">{fields}'
    '<button type="submit">Log in</button></form>'
    '<p class="small">{help} <a href="{next}">I am logged in already.</a></p>'
)
TOKEN_FIELDS = Markup(
    '<label for="token">Token</label>'
    '<input id="token" name="token" type="password" autocomplete="off" required autofocus>'
)
PASSWORD_FIELDS = Markup(
    '<label for="name">Name</label><input id="name" name="name" autocomplete="username" required autofocus>'
    '<label for="password">Password</label>'
    '<input id="password" name="password" type="password" autocomplete="current-password" required>'
)
TOKEN_HELP = Markup("The token stands in the address that <code>qlog ui</code> printed when it was started.")
PASSWORD_HELP = "Names and passwords are given out by whoever runs this server."
LEAVE = Markup(
    '<p>You are logged in as {name}.</p><p><a href="{next}">Go on</a></p>'
    '<form method="post" action="/logout"><button type="submit">Log out</button></form>'
)


def login_page(takes_token: bool, next_path: str, wrong: str = "") -> str:
    form = FORM.format(
        wrong=Markup('<p class="wrong" role="alert">{}</p>').format(wrong) if wrong else "",
        next=next_path,
        fields=TOKEN_FIELDS if takes_token else PASSWORD_FIELDS,
        help=TOKEN_HELP if takes_token else PASSWORD_HELP,
    )
    return whole(form)


def leave_page(name: str, next_path: str) -> str:
    return whole(LEAVE.format(name=name, next=next_path))


def whole(body: Markup) -> str:
    return str(PAGE.format(title="qlog: log in", style=Markup(STYLE), body=body))
