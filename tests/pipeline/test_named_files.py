"""Which files a policy may name: whatever the trick, it is the file's own place and kind that count."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import charges, warehouse_at
from support.instances import MONTHS, edit_policy

from qlog_assets.errors import QlogError
from qlog_assets.pipeline.named_files import refuse_unfit_file
from qlog_assets.pipeline.public_material import build_public_list
from qlog_assets.policy import Policy
from qlog_assets.storage.private_files import write_private

MARCH = MONTHS[0]
TRICKS = 300


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "list.txt").write_text("weather\n", encoding="utf-8")
    return folder


@pytest.fixture
def refusal(home: Path) -> Callable[[str | Path], str]:
    """What is said of a pool's file that the policy in `home` names."""
    warehouse_at(home)
    (home / "ledger.db").write_bytes(b"not really")

    def ask(path: str | Path) -> str:
        edit_policy(home, pool=f'kind = "query_list"\npath = {quoted(path)}')
        with pytest.raises(QlogError) as refused:
            build_public_list("pool", warehouse_at(home), Policy.load(home / "policy.toml").lists)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    return ask


def quoted(path: str | Path) -> str:
    return '"' + "".join(f"\\u{ord(sign):04x}" if ord(sign) < 32 else sign for sign in str(path)) + '"'


def accepted(home: Path) -> bool:
    return build_public_list("pool", warehouse_at(home), Policy.load(home / "policy.toml").lists) is not None


def test_a_file_beside_the_policy_or_below_it_is_read_by_any_name_that_leads_there(home: Path, outside: Path) -> None:
    (home / "lists").mkdir()
    (home / "lists" / "pool.txt").write_text("weather\n", encoding="utf-8")
    (home / "link.txt").symlink_to("lists/pool.txt")
    (outside / "back").symlink_to(home)
    for name in (
        "lists/pool.txt",
        "lists/../lists/pool.txt",
        home / "lists" / "pool.txt",
        "link.txt",
        outside / "back" / "link.txt",
    ):
        edit_policy(home, pool=f'kind = "query_list"\npath = "{name}"')
        assert accepted(home), name


def test_a_file_elsewhere_is_read_only_from_a_directory_that_the_policy_lists(
    home: Path, outside: Path, refusal: Callable[[str | Path], str]
) -> None:
    said = refusal(outside / "list.txt")
    assert said.startswith(f"pool.path: {outside / 'list.txt'}: lies neither beside the policy file nor in one of")
    edit_policy(home, top=f'public_directories = ["{outside}"]')
    assert accepted(home)
    # A policy elsewhere has its own neighbours.
    shutil.copy(home / "policy.toml", outside / "policy.toml")
    edit_policy(outside, top="public_directories = []", pool='path = "list.txt"')
    assert Policy.load(outside / "policy.toml").lists.directories == (outside,)
    assert build_public_list("pool", warehouse_at(home), Policy.load(outside / "policy.toml").lists) is not None


ZONES = {
    "landing": "landing/aol/log.txt",
    "private": "private/raw_log/2006-03/x/rows.txt",
    "dagster": "dagster/x.txt",
    "released": "released/safelog/2006-03/x/queries.csv",
}


@pytest.mark.parametrize("zone", ZONES)
def test_no_file_in_a_zone_of_the_warehouse_is_public_material(
    home: Path, outside: Path, refusal: Callable[[str | Path], str], zone: str
) -> None:
    file = home / ZONES[zone]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("what somebody typed\n", encoding="utf-8")
    (home / "link.txt").symlink_to(file)
    (outside / "zone").symlink_to(home / zone)
    edit_policy(home, top=f'public_directories = ["{home / zone}", "{outside}", "/"]')
    for name in (
        ZONES[zone],
        f"./{zone}/../{ZONES[zone]}",
        file,
        "link.txt",
        outside / "zone" / file.relative_to(home / zone),
    ):
        assert f"lies in the warehouse's zone {zone}/" in refusal(name), name


def test_the_ledger_is_no_public_material_by_any_name(home: Path, refusal: Callable[[str | Path], str]) -> None:
    (home / "link.txt").symlink_to("ledger.db")
    os.link(home / "ledger.db", home / "second.txt")
    for name in ("ledger.db", "link.txt", "second.txt"):
        assert "lies in the warehouse's ledger" in refusal(name)


def test_only_regular_files_are_read(home: Path, outside: Path, refusal: Callable[[str | Path], str]) -> None:
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    server = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(home)  # The name of a socket is short.
    server.bind("socket")
    os.chdir(before)
    for name in ("pipe", "folder", ".", "socket"):
        assert "is no regular file" in refusal(name), name
    server.close()
    edit_policy(home, top='public_directories = ["/"]')
    for name in ("/proc/self/environ", "/proc/version", "/dev/null", "/dev/fd/0", "/sys/kernel/notes", "/dev/stdin"):
        if Path(name).exists():
            (home / "link").unlink(missing_ok=True)
            (home / "link").symlink_to(name)
            for by in (name, "link"):
                said = refusal(by)
                assert "where the machine keeps its own state" in said or "no such file" in said or "regular" in said, (
                    name
                )


def test_names_that_lead_nowhere_are_one_line(home: Path, refusal: Callable[[str | Path], str]) -> None:
    (home / "loop").symlink_to("loop")
    (home / "file").write_text("x\n", encoding="utf-8")
    for name in ("missing.txt", "loop", "file/below", "a\0b", "x" * 5000, "line\nbreak", "../" * 200 + "nothing-there"):
        said = refusal(name)
        assert said.startswith("pool.path: ") and ("no such file" in said or "cannot be read" in said), name


def test_whatever_the_way_a_file_is_taken_exactly_if_it_really_lies_where_it_may(home: Path, outside: Path) -> None:
    """Random ways of steps down, `..`, links to files and to directories: judged by where they end."""
    warehouse, dice = warehouse_at(home), random.Random(12)
    listed = outside / "listed"
    for folder in (home / "lists", listed, home / "landing" / "aol", outside / "other"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "list.txt").write_text("weather\n", encoding="utf-8")
    places = [home, home / "lists", listed, home / "landing" / "aol", outside / "other", home / "private", outside]
    for number, place in enumerate(places):
        for other, target in enumerate(places):
            (place / f"to-{other}").symlink_to(target if dice.random() < 0.5 else os.path.relpath(target, place))
        if (place / "list.txt").exists():
            (home / f"file-{number}").symlink_to(place / "list.txt")
    taken = 0
    for _ in range(TRICKS):
        way = dice.choice(places)
        for _ in range(dice.randrange(6)):
            way = way / dice.choice(["..", ".", "lists", *(f"to-{number}" for number in range(len(places)))])
        way = way / dice.choice(["list.txt", *(f"file-{number}" for number in range(5))])
        real = Path(os.path.realpath(way))
        allowed = (
            real.is_file() and not real.is_relative_to(home / "landing") and not real.is_relative_to(home / "private")
        )
        allowed = allowed and (real.is_relative_to(home) or real.is_relative_to(listed))
        try:
            refuse_unfit_file(warehouse, "pool.path", way, (home, listed))
        except QlogError:
            assert not allowed, way
        else:
            assert allowed, way
            taken += 1
    assert TRICKS / 20 < taken < TRICKS * 19 / 20, "both outcomes are tried"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ({"pool": 'path = "no-pool.txt"'}, "pool.path: {home}/no-pool.txt: no such file"),
        (
            {"pool": 'path = "landing/aol/small.txt"'},
            "pool.path: {home}/landing/aol/small.txt: lies in the warehouse's zone",
        ),
        (
            {"pool": 'path = "crowd/2006-03/small.txt"'},
            "pool.path: {home}/crowd/2006-03/small.txt: lies in the warehouse's zone",
        ),
        ({"top": 'url_list = "no-urls.txt"'}, "url_list: {home}/no-urls.txt: no such file"),
        ({"pool": 'path = "/etc/passwd"'}, "pool.path: /etc/passwd: lies neither beside the policy file"),
        ({"top": 'url_list = "../urls.txt"'}, "url_list: {home}/../urls.txt: lies neither beside the policy file"),
    ],
)
def test_a_release_with_an_unfit_file_is_refused_before_anything_runs(
    ingested: Path, lines: dict[str, str], said: str
) -> None:
    for place in ("landing/aol", f"crowd/{MARCH}"):
        write_private(ingested / place / "small.txt", "a line\n")
    (ingested.parent / "urls.txt").write_text("http://www.weather.example\n", encoding="utf-8")
    edit_policy(ingested, **lines)
    before = sorted((ingested / "private").rglob("*"))
    assert qlog(ingested, "release", "safelog", "--month", MARCH).refusal.startswith(said.format(home=ingested))
    assert sorted((ingested / "private").rglob("*")) == before and charges(ingested) == []
