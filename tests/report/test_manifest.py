"""The manifest: public facts under a schema that has no place for others, the same bytes for the same facts."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.releases import PARAMETERS, POOL, Release

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.register import guarantee
from qlog_assets.mechanisms.safelog.parameters import SafelogParameters
from qlog_assets.report import manifest as module
from qlog_assets.report.manifest import ManifestError, load_manifest, verify_files, write_manifest
from qlog_assets.report.tables import describe_file

SCHEMA = json.loads(Path(module.__file__).with_name("manifest.schema.json").read_text(encoding="utf-8"))


def objects(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all JSON objects in a value."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    if isinstance(node, dict):
        yield path
    for key, value in children:
        yield from objects(value, (*path, key))


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def test_what_is_written_is_what_is_read(release: Release) -> None:
    path = write_manifest(release.manifest, release.directory)
    assert load_manifest(path) == release.manifest
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def test_the_same_facts_give_the_same_bytes(make_release: Callable[..., Release]) -> None:
    written = []
    for _ in range(2):
        made = make_release()
        written.append(write_manifest(made.manifest, made.directory).read_bytes())
    assert written[0] == written[1]


def test_it_tells_the_guarantee_in_numbers_and_words(release: Release) -> None:
    promise = guarantee("safelog", "sound", SafelogParameters(**PARAMETERS))
    facts = release.manifest["guarantee"]
    assert promise.proven is not None
    assert (facts["epsilon"], facts["delta"]) == (float(promise.proven.epsilon), float(promise.proven.delta))
    assert facts["delta_exact"] == "1E-6"
    assert (facts["unit"], facts["relation"]) == ("user", "add-or-remove-one-user")
    assert sum(part["epsilon"] for part in facts["parts"]) == pytest.approx(facts["epsilon"])
    assert facts["sentence"] == promise.sentence


def test_a_variant_without_a_proven_guarantee_has_no_manifest(make_release: Callable[..., Release]) -> None:
    with pytest.raises(ManifestError, match="never published"):
        make_release(guarantee=guarantee("safelog", "paper", SafelogParameters()))


def test_the_schema_is_one_and_closes_every_object() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for path in objects(SCHEMA):
        node = at(SCHEMA, path)
        if node.get("type") == "object":
            assert "additionalProperties" in node, path
            assert node["additionalProperties"] is not True, path


@pytest.mark.parametrize(
    "fact", ["raw_rows", "users_in_log", "input_digest", "fingerprint", "run_id", "who", "utility"]
)
def test_no_other_fact_fits_anywhere(release: Release, fact: str) -> None:
    """Except where scalars go by a name: parameters, sources of a pool, versions. Those are tested below."""
    free = {("parameters",), ("software",), ("pools", 0, "sources")}
    for path in objects(release.manifest):
        if path in free:
            continue
        changed = copy.deepcopy(release.manifest)
        at(changed, path)[fact] = 17
        with pytest.raises(ManifestError):
            write_manifest(changed, release.directory)
    assert not (release.directory / "manifest.json").exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parameters", "inputs"), {"capped_log": "abc"}),
        (("parameters", "Run Id"), 1),
        (("parameters", "note"), "x" * 500),
        (("software", "host"), "name with spaces"),
        (("pools", 0, "sources", "file"), "not a checksum"),
        (("month",), "2006-13"),
        (("drawn_on",), "2026-11-16T04:00:00Z"),
        (("manifest_version",), 2),
        (("manifest_version",), True),
        (("tables", "queries", "files", "csv", "path"), "../../etc/passwd"),
        (("tables", "queries", "files", "csv", "path"), ".hidden"),
        (("tables", "queries", "rows"), -1),
        (("tables", "queries", "rows"), "4"),
        (("guarantee", "epsilon"), -0.5),
        (("guarantee", "epsilon"), float("nan")),
        (("guarantee", "epsilon"), float("inf")),
        (("ledger", "salted_head"), "SECRET"),
        (("tables",), {}),
    ],
)
def test_a_changed_fact_is_refused_in_one_line(release: Release, path: tuple[Any, ...], value: Any) -> None:
    changed = copy.deepcopy(release.manifest)
    at(changed, path[:-1])[path[-1]] = value
    file = release.directory / "manifest.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(ManifestError) as raised:
        load_manifest(file)
    assert isinstance(raised.value, QlogError)
    assert "\n" not in str(raised.value)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '"x"', "{}", "{", '{"manifest_version": 1, "manifest_version": 1}', "\udcff"]
)
def test_what_is_no_manifest_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "manifest.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ManifestError) as raised:
        load_manifest(file)
    assert "\n" not in str(raised.value)


def test_a_missing_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no such manifest"):
        load_manifest(tmp_path / "manifest.json")


@pytest.mark.parametrize("key", sorted(SCHEMA["required"]))
def test_every_fact_is_required(release: Release, key: str) -> None:
    changed = {name: value for name, value in release.manifest.items() if name != key}
    file = release.directory / "manifest.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(ManifestError):
        load_manifest(file)


def test_only_known_facts_of_a_pool_are_told(make_release: Callable[..., Release]) -> None:
    made = make_release(pools=[{**POOL, "path": "/home/somebody/pool.txt", "cache": "x"}])
    assert set(made.manifest["pools"][0]) == set(POOL)


def test_an_intact_release_verifies(release: Release) -> None:
    document = release.directory / "datasheet.html"
    document.write_text("<p>")
    write_manifest(release.manifest, release.directory, [describe_file(document)])
    assert verify_files(load_manifest(release.directory / "manifest.json"), release.directory) == []


def test_every_changed_missing_or_added_file_is_found(release: Release) -> None:
    document = release.directory / "datasheet.html"
    document.write_text("<p>")
    write_manifest(release.manifest, release.directory, [describe_file(document)])
    manifest = load_manifest(release.directory / "manifest.json")
    (release.directory / "queries.csv").write_bytes((release.directory / "queries.csv").read_bytes() + b"\n")
    (release.directory / "clicks.parquet").unlink()
    document.write_text("<b>")
    (release.directory / "notes.txt").write_text("x")
    findings = verify_files(manifest, release.directory)
    assert [finding.split()[0] for finding in findings] == [
        "clicks.parquet",
        "datasheet.html",
        "queries.csv",
        "'notes.txt'",
    ]
