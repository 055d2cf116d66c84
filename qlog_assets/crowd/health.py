"""Whether the servers of a cast are up, asked from outside."""

from __future__ import annotations

import httpx

from qlog_assets.crowd.cast import Cast, Party

ASK_SECONDS = 5.0


def ask_health(cast: Cast) -> dict[str, bool]:
    """Whether each party answers, and as the party that the directory says is there."""
    # Only that something answers is asked: a certificate that is not trusted here may be trusted by the other servers.
    with httpx.Client(timeout=ASK_SECONDS, verify=False, trust_env=False) as client:
        return {party.name: is_up(client, party) for party in cast.parties}


def is_up(client: httpx.Client, party: Party) -> bool:
    try:
        answer = client.get(f"{party.url}/health")
        return answer.status_code == 200 and answer.json() == {"name": party.name, "role": party.role}
    except (httpx.HTTPError, ValueError):
        return False
