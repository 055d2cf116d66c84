"""Public pools of queries and public lists of urls: what may appear in a release whether anybody typed it or not.

A pool is a file with stated provenance, or releases of earlier months. The loader refuses a file that lies in the raw
log's zones or declares itself to come from the log. It cannot know more than that: whoever names a file as a pool
states that it was made without the log (specification 2.3 G3). Which releases may serve is the ledger's knowledge.

A loaded pool is a Parquet file of distinct normalised queries in a fixed order with dense ids, beside a JSON file that
says where they come from. Both are named by the digest of what made them, so that loading again costs nothing. What a
pool says has a digest of its own: the same texts are the same pool, whatever the list is called or said to be.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from qlog_assets.errors import QlogError
from qlog_assets.months import Month
from qlog_assets.privacy.parameters import Exact, Parameters
from qlog_assets.sources.normalise import normalise_text, normalise_url
from qlog_assets.sources.pool_files import (
    DEFAULT_DESCRIPTION,
    DEFAULT_LICENCE,
    default_files,
    read_coca,
    read_default,
    read_lines,
    read_ngrams,
    read_released,
)
from qlog_assets.storage.digests import file_checksum, text_digest
from qlog_assets.storage.private_files import seal
from qlog_assets.storage.scratch import temporary_directory

LOADER_VERSION = 3
"""Raise it when the same file would give another pool, or other facts about it."""
PUBLIC_SEED = "qlog pool 1"
"""Sampling is not a secret: the pool it leaves is published with the release (specification 2.3 G3 b)."""
LONGEST_QUERY = 4096

Kind = Literal["default", "ngram_file", "coca_file", "query_list", "releases"]


class ReleasedPool(Parameters):
    """The queries of one earlier release, pinned by its id."""

    release_id: str = Field(min_length=1)
    month: Month
    path: Path
    """Its Parquet file of released queries."""


class PoolSpec(Parameters):
    """Which pool is wanted. Everything here is public and goes into the manifest."""

    kind: Kind = "default"
    path: Path | None = None
    description: str = ""
    licence: str = ""
    encoding: str = "utf-8"
    origin: Literal["public", "log"] = "public"
    """What the pool was made from. `log` is refused: such a pool would print its members' queries in clear."""
    probability: Exact = Field(Fraction(1), gt=0, le=1, validate_default=True)
    """p_g: the share of the list that is kept, chosen by a keyed hash of each query."""
    seed: str = PUBLIC_SEED
    releases: tuple[ReleasedPool, ...] = ()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.kind in ("ngram_file", "coca_file", "query_list") and self.path is None:
            raise ValueError(f"path: a pool of kind {self.kind} needs the file's path")
        if self.kind == "releases" and not self.releases:
            raise ValueError("releases: a pool of kind releases needs releases of earlier months")
        return self


@dataclass(frozen=True)
class PublicList:
    """A loaded pool or url list: its Parquet file (a dense id and a text), its rows and where they come from."""

    path: Path
    rows: int
    content_digest: str
    """Of the texts alone."""
    provenance: dict[str, Any]


def load_pool(
    spec: PoolSpec, cache: Path, *, private_zones: Sequence[Path] = (), before: Month | None = None
) -> PublicList:
    """Load a pool into `cache/<key>.parquet` (pool_id, query), or find it there.

    `private_zones` are the raw log's directories, from which no pool may come; `before` is the month about to be
    released, which releases in the pool must precede.
    """
    if spec.origin == "log":
        raise QlogError("a pool made from the log is not public: every query in it may be printed without noise")
    files = _source_files(spec)
    for file in files:
        refuse_private(file, private_zones)
    for release in spec.releases:
        if before is not None and release.month >= before:
            raise QlogError(
                f"release {release.release_id} is of {release.month}: a pool for {before} needs earlier months"
            )
    provenance = {
        "kind": spec.kind,
        "name": "wordsegment" if spec.kind == "default" else ", ".join(_source_names(spec)),
        "description": spec.description or (DEFAULT_DESCRIPTION if spec.kind == "default" else ""),
        "licence": spec.licence or (DEFAULT_LICENCE if spec.kind == "default" else ""),
        "sources": {name: _checksum(file) for name, file in zip(_source_names(spec), files, strict=True)},
        "probability": str(spec.probability),
        "seed": spec.seed,
        "encoding": spec.encoding,
    }
    queries: Iterator[str] = (
        query for text in _read(spec, files) if 0 < len(query := normalise_text(text)) <= LONGEST_QUERY
    )
    if spec.probability < 1:
        queries = filter(_sampler(spec.seed, spec.probability), queries)
    return _store(cache, "query", "pool_id", provenance, queries)


def load_url_list(path: Path, cache: Path, *, description: str = "", private_zones: Sequence[Path] = ()) -> PublicList:
    """Load a public list of urls, one per line, into `cache/<key>.parquet` (url_id, url)."""
    refuse_private(path, private_zones)
    provenance = {
        "kind": "url_list",
        "name": path.name,
        "description": description,
        "sources": {path.name: _checksum(path)},
    }
    return _store(cache, "url", "url_id", provenance, filter(None, map(normalise_url, read_lines(path, "utf-8"))))


def refuse_private(path: Path, private_zones: Iterable[Path]) -> None:
    """Raise if a file lies in the raw log's zones, or what lies beside it declares that it comes from the log."""
    if not path.is_file():
        raise QlogError(f"{path}: no such file: name the file that holds the public list")
    real = path.resolve()
    advice = "a pool must be public and made without the log (only its place and its own word can be checked here)"
    for zone in private_zones:
        if real.is_relative_to(zone.resolve()):
            raise QlogError(f"{path.name}: lies in the raw log's zone {zone.name}/: {advice}")
    if (real.parent / "provenance.json").exists():
        raise QlogError(f"{path.name}: lies in a partition of a private table: {advice}")
    declaration = real.with_name(real.name + ".provenance.json")
    if declaration.exists() and _declared_origin(declaration) != "public":
        raise QlogError(f"{path.name}: {declaration.name} does not declare its origin as public: {advice}")


def _declared_origin(declaration: Path) -> object:
    try:
        content = json.loads(declaration.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise QlogError(f"{declaration.name}: is not JSON: correct it, so that the pool's origin is known") from None
    return content.get("origin") if isinstance(content, dict) else None


def _source_files(spec: PoolSpec) -> list[Path]:
    if spec.kind == "default":
        return default_files()
    return [release.path for release in spec.releases] if spec.path is None else [spec.path]


def _source_names(spec: PoolSpec) -> list[str]:
    """What the sources are called in provenance: release ids pin releases, file names stand for the rest."""
    if spec.kind == "releases":
        return [release.release_id for release in spec.releases]
    return [file.name for file in _source_files(spec)]


def _read(spec: PoolSpec, files: list[Path]) -> Iterator[str]:
    if spec.kind == "default":
        return read_default()
    if spec.kind == "releases":
        return (query for file in files for query in read_released(file))
    readers: dict[str, Callable[[Path, str], Iterator[str]]] = {
        "ngram_file": read_ngrams,
        "coca_file": read_coca,
        "query_list": read_lines,
    }
    return readers[spec.kind](files[0], spec.encoding)


def _sampler(seed: str, probability: Fraction) -> Callable[[str], bool]:
    """Keep a text with the given probability, by a keyed hash: the same text is always kept or always left out."""
    bits = 128
    below = probability.numerator * 2**bits // probability.denominator
    key = hashlib.sha256(seed.encode()).digest()
    return lambda text: (
        int.from_bytes(hashlib.blake2b(text.encode("utf-8"), key=key, digest_size=bits // 8).digest()) < below
    )


def _store(cache: Path, column: str, id_column: str, provenance: dict[str, Any], values: Iterable[str]) -> PublicList:
    """Write the distinct values, sorted by code point, unless the cache has them already and they are intact."""
    facts = json.dumps([LOADER_VERSION, provenance], sort_keys=True, ensure_ascii=False)
    key = text_digest(facts)[:20]
    target, description = cache / f"{key}.parquet", cache / f"{key}.json"
    if target.exists() and description.exists():
        known = json.loads(description.read_text(encoding="utf-8"))
        if known["provenance"]["sha256"] == _checksum(target):
            return PublicList(target, known["provenance"]["rows"], known["content_digest"], known["provenance"])
    # In the order of the list, which is nearly sorted already where it is large: sorting is then three times as fast.
    distinct = sorted(dict.fromkeys(values))
    if not distinct:
        raise QlogError(f"{provenance['name']}: has no {column} in it: name a file that does")
    ids = pa.array(np.arange(len(distinct), dtype=np.int64))
    with temporary_directory(cache) as scratch:
        written = scratch / target.name
        pq.write_table(pa.table({id_column: ids, column: pa.array(distinct, pa.string())}), written, compression="zstd")
        table_facts = {"rows": len(distinct), "sha256": _checksum(written), "loader": LOADER_VERSION}
        known = {"provenance": {**provenance, **table_facts}, "content_digest": _content_digest(distinct)}
        described = scratch / description.name
        described.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        seal(scratch)
        # The table first: a description without its table is rebuilt, and no reader ever sees the reverse as whole.
        os.replace(written, target)
        os.replace(described, description)
    return PublicList(target, len(distinct), known["content_digest"], known["provenance"])


def _content_digest(texts: Sequence[str]) -> str:
    """SHA-256 of the texts in their fixed order, each after its length in bytes (eight bytes, big-endian)."""
    encoded = (text.encode("utf-8") for text in texts)
    return hashlib.sha256(b"".join(len(text).to_bytes(8, "big") + text for text in encoded)).hexdigest()


def _checksum(path: Path) -> str:
    try:
        return file_checksum(path)
    except OSError:
        raise QlogError(f"{path}: cannot be read: name a file that you may read") from None
