"""Builds, writes, reads and verifies `manifest.json`: the public facts of a release, under a versioned JSON schema.

Public facts only: parameters, guarantee, released rows, checksums of released files. Nothing counted in the log, no
digest of an input, no run, no person: the schema has no place for them, and every manifest is held against it when it
is built and when it is read. Whether the facts are true is the audit's business.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError
from qlog_assets.privacy.guarantee import FIRST_WORDS, WORDS, Guarantee
from qlog_assets.privacy.parameters import decimal_text
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import PublishedFile, TableLayout, describe_file
from qlog_assets.storage.digests import canonical_json
from qlog_assets.version import VERSION

MANIFEST_VERSION = 1
MANIFEST_NAME = "manifest.json"
# The packages whose version can change a released byte or the law it was drawn from.
SOFTWARE = ("cryptography", "duckdb", "mpmath", "numpy", "pyarrow")
ABOUT = ("publisher", "population", "contact", "licence")


class ManifestError(QlogError):
    """A manifest that is missing, is not one, or says what no manifest may say."""


@dataclass(frozen=True)
class ManifestTable:
    """What the manifest says of one released table."""

    layout: TableLayout
    rows: int
    files: Mapping[str, PublishedFile]
    threshold: int | None
    threshold_outside_pool: int | None = None
    suppressed_rows: int = 0
    noise: TableNoise | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "columns": [asdict(column) for column in self.layout.columns],
            "files": {kind: asdict(file) for kind, file in self.files.items()},
            "threshold": self.threshold,
            "threshold_outside_pool": self.threshold_outside_pool,
            "suppressed_rows": self.suppressed_rows,
            # Absent in draws of versions that did not say: their manifests keep their bytes.
            **({} if self.noise is None else {"noise": self.noise.as_json()}),
        }


def build_manifest(
    *,
    release_id: str,
    dataset: str,
    month: str,
    mechanism_version: int,
    draw_number: int,
    drawn_on: str,
    parameters: Mapping[str, Any],
    guarantee: Guarantee,
    tables: Sequence[ManifestTable],
    pools: Sequence[Mapping[str, Any]],
    ledger_seq: int,
    ledger_salt: str,
    ledger_salted_head: str,
    witnessed: bool | None = None,
    one_user: str | None = None,
    about: Mapping[str, str | None] | None = None,
    software: Mapping[str, str] | None = None,
    words: int = WORDS,
    budget: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of a release as JSON values, checked against the schema.

    `drawn_on` is a date out of the ledger, so that a release made again has the same manifest; `parameters` are JSON
    values as `Parameters.as_public` gives them; `pools` are the public lists' provenance; `words` is the version of
    the public words, which the first one did not state; `witnessed` is None for draws of versions that did not say;
    `budget` is what the release's charge counts against, where that is a window of months or once was; `one_user` is
    who counts as one user, where that is not one user id of the log.
    """
    known = set(_schema()["properties"]["pools"]["items"]["properties"])
    manifest = {
        "manifest_version": MANIFEST_VERSION,
        "release_id": release_id,
        "dataset": dataset,
        "about": {key: (about or {}).get(key) or None for key in ABOUT},
        "month": month,
        "mechanism": guarantee.mechanism,
        "mechanism_version": mechanism_version,
        "variant": guarantee.variant,
        "draw_number": draw_number,
        "drawn_on": drawn_on,
        "parameters": dict(parameters),
        "guarantee": _guarantee_facts(guarantee),
        "tables": {table.layout.name: table.as_json() for table in tables},
        "pools": [{key: pool[key] for key in sorted(known & set(pool))} for pool in pools],
        "documents": [],
        "software": dict(software or software_versions()),
        "ledger": {"seq": ledger_seq, "salt": ledger_salt, "salted_head": ledger_salted_head}
        | ({} if witnessed is None else {"witnessed": witnessed}),
        **({} if words == FIRST_WORDS else {"words": words}),
        **({} if budget is None else {"budget": dict(budget)}),
        **({} if one_user is None else {"one_user": one_user}),
    }
    return _parse(canonical_json(manifest), "the manifest")


def write_manifest(manifest: Mapping[str, Any], directory: Path, documents: Sequence[PublishedFile] = ()) -> Path:
    """Write `manifest.json` with the documents that lie beside it; the same facts always give the same bytes."""
    complete = {**manifest, "documents": [*manifest["documents"], *(asdict(document) for document in documents)]}
    text = canonical_json(complete)
    _parse(text, MANIFEST_NAME)
    path = directory / MANIFEST_NAME
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def load_manifest(path: Path) -> dict[str, Any]:
    """The manifest in a file, or one line that says what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ManifestError(f"{path}: there is no such manifest") from None
    except (OSError, UnicodeDecodeError):
        raise ManifestError(f"{path}: cannot be read as text") from None
    return _parse(text, str(path))


def words_of(manifest: Mapping[str, Any]) -> int:
    """The version of the public words that a manifest is written in."""
    return int(manifest.get("words", FIRST_WORDS))


def verify_files(manifest: Mapping[str, Any], directory: Path) -> list[str]:
    """Where a release's directory differs from its manifest: changed, missing, unknown files; empty if it does not."""
    listed = [file for table in manifest["tables"].values() for file in table["files"].values()]
    findings, known = [], {MANIFEST_NAME}
    for file in sorted((*listed, *manifest["documents"]), key=lambda file: file["path"]):
        known.add(file["path"])
        path = directory / file["path"]
        if not path.is_file() or path.is_symlink():
            findings.append(f"{file['path']} is missing")
        elif asdict(describe_file(path)) != file:
            findings.append(f"{file['path']} is not the file that was published: its checksum differs")
    extra = sorted(entry.name for entry in directory.iterdir() if entry.name not in known)
    return findings + [f"{name!r} is not in the manifest" for name in extra]


def software_versions() -> dict[str, str]:
    """What made the release: this package, Python, and the libraries that draw and write."""
    return {
        "qlog": VERSION,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in SOFTWARE},
    }


def _guarantee_facts(guarantee: Guarantee) -> dict[str, Any]:
    if guarantee.proven is None:
        raise ManifestError(f"{guarantee.mechanism} {guarantee.variant} has no proven guarantee: it is never published")
    loss = guarantee.proven
    parts = [
        {
            "name": part.name,
            "epsilon": part.proven.as_json()["epsilon"],
            "delta": part.proven.as_json()["delta"],
            "sentence": part.sentence,
        }
        for part in guarantee.parts
        if part.proven is not None
    ]
    return {
        "epsilon": loss.as_json()["epsilon"],
        "epsilon_exact": _exact_text(loss.epsilon),
        "delta": loss.as_json()["delta"],
        "delta_exact": _exact_text(loss.delta),
        "rho": loss.as_json().get("rho"),
        "unit": guarantee.unit,
        "relation": guarantee.relation,
        "label": guarantee.label,
        "sentence": guarantee.sentence,
        "formula": guarantee.formula,
        "assumptions": list(guarantee.assumptions),
        "gaps": list(guarantee.gaps),
        "parts": parts,
    }


def _exact_text(value: Fraction | float) -> str | None:
    return decimal_text(value) if isinstance(value, Fraction) else None


@cache
def _schema() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("manifest.schema.json").read_text(encoding="utf-8"))


def _parse(text: str, label: str) -> dict[str, Any]:
    """The manifest in a text, held against the schema. Says where it is wrong, and never quotes what it found there."""
    import jsonschema

    try:
        manifest = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except ValueError:
        raise ManifestError(f"{label}: is not a JSON object with unique keys and finite numbers") from None
    version = manifest.get("manifest_version") if isinstance(manifest, dict) else None
    if version != MANIFEST_VERSION or isinstance(version, bool):
        raise ManifestError(f"{label}: is not a manifest of version {MANIFEST_VERSION}")
    errors = jsonschema.Draft202012Validator(_schema()).iter_errors(manifest)
    wrong = jsonschema.exceptions.best_match(errors)
    if wrong is not None:
        where = ".".join(str(part) for part in wrong.absolute_path) or "its top level"
        raise ManifestError(f"{label}: {where!r} is not what the schema allows ({wrong.validator})")
    return manifest


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _no_constant(text: str) -> float:
    raise ValueError("not a finite number")
