"""The directory of all parties, and the folders of servers."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.crowd_cast import QUICK

from qlog_assets.crowd.cast import (
    Cast,
    CollectorSettings,
    Party,
    RandomnessSettings,
    RelaySettings,
    make_cast,
    open_folder,
    public_key,
)
from qlog_assets.errors import ParameterError, QlogError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_cast(tmp_path / "cast", relays=4, hops=3, settings=QUICK)
    return tmp_path / "cast"


def test_every_folder_opens_and_holds_the_private_key_of_its_public_one(folder: Path) -> None:
    roles = {"relay-1": RelaySettings, "collector": CollectorSettings, "randomness": RandomnessSettings}
    for name, settings in roles.items():
        home = open_folder(folder / name, settings)
        assert public_key(home.private_key) == home.cast.party(name).key
        assert home.settings.name == name


@pytest.mark.parametrize("other", ["key", "name", "role"])
def test_a_folder_that_is_not_the_party_of_its_line_does_not_open(folder: Path, other: str) -> None:
    """A server with another key takes messages that it can never open, and answers that all is well."""
    home = folder / "relay-1"
    if other == "key":
        (home / "private.key").write_bytes((folder / "relay-2" / "private.key").read_bytes())
    elif other == "name":
        (home / "party.toml").write_text((home / "party.toml").read_text().replace("relay-1", "relay-9"))
    else:
        (home / "party.toml").write_text((home / "party.toml").read_text().replace("relay-1", "collector"))
    with pytest.raises(QlogError, match=r"is not the party that cast\.json lists"):
        open_folder(home, RelaySettings)


def test_collector_and_randomness_server_share_the_token_seed_and_relays_have_none(folder: Path) -> None:
    seeds = [
        open_folder(folder / "collector", CollectorSettings).token_seed(),
        open_folder(folder / "randomness", RandomnessSettings).token_seed(),
    ]
    assert seeds[0] == seeds[1]
    assert not (folder / "relay-1" / "token.seed").exists()


def test_nobody_else_can_read_any_file_of_a_cast(folder: Path) -> None:
    assert all(not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) for path in [folder, *folder.rglob("*")])


def test_the_directory_is_the_same_after_writing_and_reading(folder: Path) -> None:
    cast = Cast.read(folder / "cast.json")
    assert cast == Cast(**json.loads(cast.as_json()))
    assert [party.name for party in cast.relays] == ["relay-1", "relay-2", "relay-3", "relay-4"]


def test_a_route_has_each_relay_at_most_once(folder: Path) -> None:
    cast = Cast.read(folder / "cast.json")
    routes = [cast.choose_route(Random(seed)) for seed in range(50)]
    assert all(len({party.name for party in route}) == 3 for route in routes)
    assert len({tuple(party.name for party in route) for route in routes}) > 10


@pytest.mark.parametrize(("same", "complaint"), [("key", "one public key"), ("url", "one url")])
def test_one_server_is_not_several_parties(folder: Path, same: str, complaint: str) -> None:
    """Three hops over one relay would hide nothing from it."""
    cast = Cast.read(folder / "cast.json")
    first, second, *others = cast.parties
    twice = second.model_copy(update={same: getattr(first, same)})
    with pytest.raises(ParameterError, match=f"two parties have {complaint}"):
        Cast(hops=cast.hops, parties=(first, twice, *others))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hops": 5}, "5 hops need as many relays, and there are 4"),
        ({"hops": 9}, "hops"),
        ({"further": 1}, "unknown key"),
        ({"parties": []}, "one party of role collector"),
    ],
)
def test_a_directory_that_makes_no_sense_is_refused(folder: Path, change: dict[str, object], complaint: str) -> None:
    path = folder / "cast.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(QlogError, match=complaint):
        Cast.read(path)


def test_a_directory_with_a_key_of_another_length_is_refused(folder: Path) -> None:
    path = folder / "cast.json"
    found = json.loads(path.read_text())
    found["parties"][0]["key"] = "AAAA"
    path.write_text(json.dumps(found))
    with pytest.raises(QlogError, match=r"cast\.json: parties"):
        Cast.read(path)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10:80", "[::1]:8741", "localhost:1", "LOCALHOST"])
def test_plain_http_is_for_this_machine(host: str) -> None:
    assert Party(name="p", role="relay", url=f"http://{host}", key=bytes(32)).url == f"http://{host}"


@pytest.mark.parametrize(
    "host",
    ["relay.example", "192.0.2.1:80", "0.0.0.0", "[::]", "[2001:db8::1]", "127.0.0.1.example", "localhost.example"],
)
def test_plain_http_to_another_machine_is_refused_because_secrets_would_be_readable_on_the_way(host: str) -> None:
    with pytest.raises(ParameterError, match=r"url: http is for this machine alone.* write https") as refused:
        Party(name="p", role="randomness", url=f"http://{host}", key=bytes(32))
    assert "\n" not in str(refused.value)
    Party(name="p", role="randomness", url=f"https://{host}", key=bytes(32))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1@relay.example", "https://me@relay.example", "http://[::1", "http://:1"]
)
def test_an_address_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(ParameterError, match="url"):
        Party(name="p", role="relay", url=url, key=bytes(32))


def test_a_cast_that_other_machines_reach_is_made_with_https(tmp_path: Path) -> None:
    for host, start in [
        ("192.0.2.1", "https://192.0.2.1:"),
        ("::1", "http://[::1]:"),
        ("localhost", "http://localhost:"),
    ]:
        cast = make_cast(tmp_path / host, host=host)
        assert all(party.url.startswith(start) for party in cast.parties)


def test_a_folder_of_another_role_or_with_an_unknown_key_is_refused(folder: Path) -> None:
    with pytest.raises(QlogError, match="role is not collector"):
        open_folder(folder / "relay-1", CollectorSettings)
    path = folder / "relay-1" / "party.toml"
    path.write_text(path.read_text() + "bach = 7\n")
    with pytest.raises(QlogError, match="perhaps batch"):
        open_folder(folder / "relay-1", RelaySettings)


def test_a_private_key_that_others_can_read_is_refused(folder: Path) -> None:
    (folder / "relay-1" / "private.key").chmod(0o644)
    with pytest.raises(QlogError, match="chmod 600"):
        open_folder(folder / "relay-1", RelaySettings)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"relays": 2, "hops": 3}, "3 hops need as many relays"),
        ({"host": "two words"}, "url"),
        ({"settings": {"relay": {"batch": 0}}}, "batch"),
        ({"ports": [1, 2]}, "as many ports"),
    ],
)
def test_a_cast_that_makes_no_sense_leaves_nothing_behind(
    tmp_path: Path, words: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(QlogError, match=complaint):
        make_cast(tmp_path / "new", **words)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_told_in_one_line(tmp_path: Path, text: str | None) -> None:
    trusted = {"trusted_certificates": "trusted.pem"}
    own = {"tls_certificate": "own.pem", "tls_key": "key.pem"}
    make_cast(tmp_path / "cast", settings={"relay": trusted, "collector": own})
    if text is not None:
        for name in ("relay-1/trusted.pem", "collector/own.pem", "collector/key.pem"):
            (tmp_path / "cast" / name).write_text(text)
    with pytest.raises(QlogError, match=r"trusted\.pem: cannot be read"):
        open_folder(tmp_path / "cast" / "relay-1", RelaySettings).trust()
    with pytest.raises(QlogError, match=r"party\.toml: tls_certificate and tls_key"):
        open_folder(tmp_path / "cast" / "collector", CollectorSettings).tls_files()


def test_a_cast_is_not_made_over_another(folder: Path) -> None:
    with pytest.raises(QlogError, match="is not empty"):
        make_cast(folder)
