"""Who takes part: the public directory `cast.json`, and the folder in which each server keeps what is its own.

The directory holds names, addresses and public keys, and everybody has the same copy of it. A server's folder holds its
settings (`party.toml`), its private key, and that copy. What the servers do is not known here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import json
import ssl
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any, Generic, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from qlog_assets.errors import ParameterError, QlogError
from qlog_assets.settings import FrozenModel
from qlog_assets.storage.private_files import write_private
from qlog_assets.storage.scratch import make_private
from qlog_assets.storage.secret_keys import find_key, make_key

Role = Literal["relay", "collector", "randomness"]

KEY_BYTES = 32
MOST_HOPS = 8
"""More hops than anybody's trust needs; the sizes of messages are told apart by their length up to here."""
DAY_SECONDS = 86_400.0
CAST_FILE, PARTY_FILE, PRIVATE_KEY_FILE, TOKEN_SEED_FILE = "cast.json", "party.toml", "private.key", "token.seed"
JOBS_FOLDER = "jobs"
FIRST_PORT = 8741
"""Where a cast on one machine listens, one port after the other, unless told otherwise."""


def read_key(value: Any) -> Any:
    """A public key from its text; bytes are left as they are, for pydantic to measure."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("is no base64") from None


PublicKey = Annotated[
    bytes,
    BeforeValidator(read_key),
    Field(min_length=KEY_BYTES, max_length=KEY_BYTES),
    PlainSerializer(lambda key: base64.b64encode(key).decode("ascii"), return_type=str),
]
PartyName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,15}$")]
"""At most 16 signs of ASCII: so much room has a name in a relay's layer."""


def is_this_machine(host: str) -> bool:
    """Whether nobody on a network hears what is said to a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_url(url: str) -> str:
    """Accounts' secrets go to a party directly, and who speaks to a relay is for the relay alone to know."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("is no address of a server") from None
    if not parts.hostname:
        raise ValueError("names no host")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise ValueError("http is for this machine alone, others on the way could read secrets: write https")
    return url


class Party(FrozenModel):
    """One server as everybody knows it."""

    name: PartyName
    role: Role
    url: Annotated[str, Field(pattern=r"^https?://[^\s/?#@\\]+$"), AfterValidator(check_url)]
    """Of HTTPS, unless it is on this very machine."""
    key: PublicKey
    """X25519, of the HPKE envelopes that are for this party."""


class Cast(FrozenModel):
    """The public directory. Everybody must have the same one: who has another is told apart by it."""

    hops: int = Field(ge=1, le=MOST_HOPS)
    """How many relays every message passes. The same for all, so that no length tells where a message stands."""
    parties: tuple[Party, ...]

    @model_validator(mode="after")
    def check_roles(self) -> Self:
        for what, values in (
            ("name", [party.name for party in self.parties]),
            ("public key", [party.key for party in self.parties]),
            ("url", [party.url.lower() for party in self.parties]),
        ):
            if len(set(values)) < len(values):  # one server that passes for several would be trusted as several
                raise ValueError(f"two parties have one {what}")
        for role in ("collector", "randomness"):
            if sum(party.role == role for party in self.parties) != 1:
                raise ValueError(f"there must be one party of role {role}")
        if len(self.relays) < self.hops:
            raise ValueError(f"{self.hops} hops need as many relays, and there are {len(self.relays)}")
        return self

    @classmethod
    def read(cls, path: Path) -> Cast:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise QlogError(f"{path}: cannot be read ({error.strerror}): `qlog crowd init` makes it") from None
        except (ValueError, TypeError) as error:
            reason = str(error) if isinstance(error, ParameterError) else "it is no JSON of a directory"
            raise QlogError(f"{path}: {reason}: take a new copy of it") from None

    def as_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the directory's file: what people compare, to know that they have the same one."""
        return hashlib.sha256(self.as_json().encode()).hexdigest()

    def party(self, name: str) -> Party:
        found = next((party for party in self.parties if party.name == name), None)
        if found is None:
            raise QlogError("the directory knows no party of that name")
        return found

    @property
    def relays(self) -> tuple[Party, ...]:
        return tuple(party for party in self.parties if party.role == "relay")

    @property
    def collector(self) -> Party:
        return next(party for party in self.parties if party.role == "collector")

    @property
    def randomness(self) -> Party:
        return next(party for party in self.parties if party.role == "randomness")

    def choose_route(self, rng: Random) -> list[Party]:
        """The relays of one message, each once, in an order of its own."""
        return rng.sample(self.relays, self.hops)


# A server's own folder ------------------------------------------------------------------------------------------------


class PartySettings(FrozenModel):
    """What every server is told in its `party.toml`. Paths in it are relative to its folder."""

    name: PartyName
    role: Role
    host: str = "127.0.0.1"
    port: int = Field(ge=0, le=65535)
    tls_certificate: Path | None = None
    """With `tls_key`: HTTPS instead of HTTP."""
    tls_key: Path | None = None
    trusted_certificates: Path | None = None
    """Whose certificates this server accepts when it asks others. Default: those that the machine trusts."""
    requests_per_second: float = Field(200.0, gt=0)
    """Of one peer, over time; five seconds' worth at once. All clients of a relay behind one address are one peer."""
    metrics_peers: tuple[str, ...] = ()
    """Who may read `/metrics`. Not everybody: who sees a count go up as somebody sends something learns who sent. Not
    even 127.0.0.1 behind a proxy on the same machine, unless the proxy keeps `/metrics` to itself: everybody comes from
    there."""

    @model_validator(mode="after")
    def check_tls(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key come together")
        return self


class RelaySettings(PartySettings):
    """A relay knows every message again for as long as it has its key: who could send one again later, when it is
    forgotten, would see where it goes. That is about 50 bytes of disk per message. A relay that gets a new key and a
    new entry in the directory may start with a new `relay.db`: what was sealed for the old key does not open."""

    batch: int = Field(50, ge=1, le=10_000)
    """How many messages are mixed before any is sent on."""
    delay_seconds: float = Field(600.0, ge=0)
    """Each message waits a random time up to this before it counts for a batch."""
    longest_delay_seconds: float = Field(6 * 3600.0, ge=0)
    """Within this, and after seven eighths of it at the earliest, a message goes on with however many there are: alone,
    it must not wait for ever."""
    largest_backlog: int = Field(200_000, ge=1)
    """From so many waiting messages on, new ones are put off with 503."""


class CollectorSettings(PartySettings):
    requests_per_second: float = Field(10_000.0, gt=0)
    largest_backlog: int = Field(500_000, ge=1)
    """From so many unopened reports on, new ones are put off with 503."""
    drain_seconds: float = Field(2 * DAY_SECONDS, ge=0)
    """How long after an epoch closed reports may still be on their way: hops times a relay's longest delay."""
    remember_days: int = Field(62, ge=1)
    """How long the bytes of a report are known again. One that comes later is refused by its token while its epoch is
    not sealed, and by its epoch from then on."""


class RandomnessSettings(PartySettings):
    answers_per_token: int = Field(10, ge=1)
    """How often one evaluation is answered again to a client that did not get the answer."""


SETTINGS: Mapping[str, type[PartySettings]] = {
    "relay": RelaySettings,
    "collector": CollectorSettings,
    "randomness": RandomnessSettings,
}
S = TypeVar("S", bound=PartySettings)


@dataclass(frozen=True)
class PartyFolder(Generic[S]):
    """A server's own folder, opened."""

    folder: Path
    settings: S
    cast: Cast
    private_key: bytes

    @property
    def jobs(self) -> Path:
        return self.folder / JOBS_FOLDER

    def token_seed(self) -> bytes:
        """What tokens for reports are made and checked with: the randomness server's and the collector's secret."""
        return read_secret(self.folder / TOKEN_SEED_FILE)

    def tls_files(self) -> tuple[str, str] | None:
        certificate, key = self.settings.tls_certificate, self.settings.tls_key
        if certificate is None or key is None:
            return None
        files = (str(self.folder / certificate), str(self.folder / key))
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files)
        except OSError as error:
            wanted = "tls_certificate and tls_key name no certificate in PEM with its key"
            raise QlogError(f"{self.folder / PARTY_FILE}: {wanted} ({type(error).__name__})") from None
        return files

    def trust(self) -> ssl.SSLContext | bool:
        """What httpx takes as `verify`."""
        named = self.settings.trusted_certificates
        if named is None:
            return True
        path = self.folder / named
        try:
            return ssl.create_default_context(cafile=str(path))
        except OSError as error:  # ssl.SSLError is one, too
            reason = "there is none" if isinstance(error, FileNotFoundError) else "it holds none"
            raise QlogError(f"{path}: cannot be read as certificates in PEM ({reason}): see party.toml") from None


def open_folder(folder: Path, settings: type[S]) -> PartyFolder[S]:
    """A server's folder, as the server of that role opens it."""
    path = folder / PARTY_FILE
    role = next(role for role, model in SETTINGS.items() if model is settings)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise QlogError(
            f"{path}: cannot be read ({error.strerror}): name a folder that `qlog crowd init` made"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise QlogError(f"{path}: is no TOML") from None
    if found.get("role") != role:
        raise QlogError(f"{path}: role is not {role}: name the folder of that server")
    try:
        told = settings(**found)
    except ParameterError as error:
        raise QlogError(f"{path}: {error}") from None
    home = PartyFolder(folder, told, Cast.read(folder / CAST_FILE), read_secret(folder / PRIVATE_KEY_FILE))
    listed = {(each.name, each.role): each.key for each in home.cast.parties}
    # With another key it would take what is sealed for the one that everybody has, answer well, and lose it.
    if listed.get((told.name, told.role)) != public_key(home.private_key):
        raise QlogError(
            f"{folder}: is not the party that {CAST_FILE} lists, by name, role and public key: give everybody the "
            "directory with its line, or restore its folder"
        )
    return home


def read_secret(path: Path) -> bytes:
    """A secret of 32 bytes that nobody but its owner can read."""
    found = find_key(path)
    if found is None:
        raise QlogError(f"{path}: no secret that its owner alone can read: chmod 600 it, or restore it from a backup")
    return found


# Making a cast --------------------------------------------------------------------------------------------------------


def make_cast(
    directory: Path,
    relays: int = 3,
    hops: int = 3,
    host: str = "127.0.0.1",
    ports: Sequence[int] | None = None,
    settings: Mapping[Role, Mapping[str, Any]] | None = None,
) -> Cast:
    """Make the folders of a whole cast on one machine: keys, settings, and the directory in each and above them.

    `ports` are the relays', then the collector's, then the randomness server's. Whoever calls this has all private
    keys; parties that are run by different people are made by `joining`. A host that others reach has HTTPS in the
    directory: its parties name a `tls_certificate` and a `tls_key` in `party.toml`, or stand behind a proxy that has
    them.
    """
    if directory.exists() and any(directory.iterdir()):
        raise QlogError(f"{directory}: is not empty: a cast is made in a new directory")
    names: list[tuple[str, Role]] = [(f"relay-{number}", "relay") for number in range(1, relays + 1)]
    names += [("collector", "collector"), ("randomness", "randomness")]
    chosen = list(ports) if ports is not None else [FIRST_PORT + number for number in range(len(names))]
    if len(chosen) != len(names):
        raise QlogError(f"{len(names)} parties need as many ports, and {len(chosen)} were given")
    told: dict[str, dict[str, Any]] = {
        name: {"name": name, "role": role, "host": host, "port": port, **(settings or {}).get(role, {})}
        for (name, role), port in zip(names, chosen, strict=True)
    }
    urls = {name: url_of(SETTINGS[each["role"]](**each)) for name, each in told.items()}

    def listed(keys: Mapping[str, bytes]) -> Cast:
        parties = (Party(name=name, role=role, url=urls[name], key=keys[name]) for name, role in names)
        return Cast(hops=hops, parties=tuple(parties))

    # Refused before anything is written, if it makes no sense.
    listed({name: hashlib.sha256(name.encode()).digest() for name in urls})
    make_private(directory)
    cast = listed({name: write_party(directory / name, each) for name, each in told.items()})
    share_token_seed(directory / "randomness", directory / "collector")
    for folder in (directory, *(directory / name for name, _ in names)):
        write_private(folder / CAST_FILE, cast.as_json())
    return cast


def write_party(folder: Path, told: Mapping[str, Any]) -> bytes:
    """Make a server's own folder, with a new private key; returns the public one."""
    make_key(folder / PRIVATE_KEY_FILE)
    write_private(folder / PARTY_FILE, "".join(f"{key} = {toml_value(value)}\n" for key, value in told.items()))
    if told["role"] != "relay":
        make_private(folder / JOBS_FOLDER)
    return public_key(read_secret(folder / PRIVATE_KEY_FILE))


def url_of(settings: PartySettings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.tls_certificate is not None or not is_this_machine(settings.host) else "http"
    return f"{scheme}://{host}:{settings.port}"


def share_token_seed(maker: Path, checker: Path) -> None:
    make_key(maker / TOKEN_SEED_FILE)
    write_private(checker / TOKEN_SEED_FILE, read_secret(maker / TOKEN_SEED_FILE).hex())


def public_key(private_key: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def toml_value(value: Any) -> str:
    """A setting as TOML; its strings are JSON's, too."""
    return json.dumps(str(value) if isinstance(value, Path) else value)
