"""The index and the data package of `released/`: true after everything the door does, and no word that is private."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.cli import qlog
from support.door import APRIL, MARCH, charges, die_releasing, door_at, in_child, public_files, release, warehouse_at
from support.instances import edit_policy
from support.warehouses import build_chain
from support.witnesses import name_witness

from qlog_assets.door import catalogue as door_catalogue
from qlog_assets.door.inputs import DoorError
from qlog_assets.ledger import Ledger
from qlog_assets.ledger.store import Author, Store
from qlog_assets.months import Month
from qlog_assets.policy import Policy
from qlog_assets.report.catalogue import FACTS_FORM, Catalogue, read_catalogue, read_recorded
from qlog_assets.report.manifest import load_manifest
from qlog_assets.report.page_record import read_record
from qlog_assets.report.public_pages import render_pages
from qlog_assets.report.public_zone import PAGES
from qlog_assets.verify.audit import AuditReport, audit_warehouse

pytest_plugins = ("support.warehouse_fixtures",)
REASON = "somebody read the wrong file twice"
TOLD = "One file was read twice; a corrected release follows."


class Page(HTMLParser):
    """The links of a page, its texts, and what would be run or fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src") and tag != "link"]
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), "the page's policy refuses these"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def index_of(home: Path) -> Page:
    return Page((home / "released" / "index.html").read_text(encoding="utf-8"))


def package_of(home: Path) -> dict:
    return json.loads((home / "released" / "datapackage.json").read_text(encoding="utf-8"))


def audited(home: Path) -> AuditReport:
    return audit_warehouse(warehouse_at(home))


def findings_of(home: Path) -> list[str]:
    return audited(home).all_findings


def catalogue_of(home: Path) -> Catalogue:
    warehouse = warehouse_at(home)
    return read_catalogue(warehouse, Ledger.read(warehouse.ledger_url), Policy.load(home / "policy.toml").dataset)


def test_every_release_is_listed_with_links_to_all_its_files_and_what_it_cost(released: Path) -> None:
    second = release(released, again="one more").charge
    build_chain(released, APRIL)
    third = release(released, APRIL).charge
    page = index_of(released)
    listed = {charge.release_id for charge in (*charges(released), second, third)}
    assert all(name in page.text for name in listed) and "April 2006" in page.text
    assert "3 releases with 9 tables" in page.text and "an earlier draw" in page.text and "60 in all" in page.text
    folders = [path for path in (released / "released").glob("*/*/*") if path.is_dir()]
    files = {f"{path.relative_to(released / 'released')}" for folder in folders for path in folder.iterdir()}
    assert {link for link in page.links if link != "datapackage.json"} == files
    for name in PAGES:
        assert (released / "released" / name).stat().st_mode & 0o777 == 0o644
    assert audited(released).ok


def test_the_page_asks_nobody_for_anything_and_says_so_in_its_policy(released: Path) -> None:
    text = (released / "released" / "index.html").read_text(encoding="utf-8")
    assert not [link for link in Page(text).links if ":" in link or link.startswith("/")]
    assert "default-src &#39;none&#39;" in text and "unsafe-inline" not in text


def test_what_the_public_is_told_is_never_the_reason_for_auditors(released: Path) -> None:
    build_chain(released, APRIL)
    april = release(released, APRIL).charge
    qlog(released, "withdraw", april.release_id, "--reason", REASON, "--public-text", TOLD, "--json").json  # noqa: B018
    march = charges(released)[0]
    qlog(released, "withdraw", march.release_id, "--reason", REASON, "--json").json  # noqa: B018
    qlog(released, "skip", "zealous", "--month", APRIL, "--reason", REASON, "--public-text", "Nothing yet.")
    qlog(released, "skip", "sessions", "--month", MARCH, "--reason", REASON)
    files = public_files(released)
    assert not [name for name, content in files.items() if REASON.encode() in content]
    page = index_of(released).text
    assert TOLD in page and "This release was withdrawn by its publisher." in page
    assert "Nothing yet." in page and "No release was made of this month." in page
    stones = {name: json.loads(text) for name, text in files.items() if name.endswith(".withdrawn.json")}
    assert sorted(stone["text"] for stone in stones.values()) == [TOLD, "This release was withdrawn by its publisher."]
    assert [charge.closing_reason for charge in charges(released)] == [REASON, REASON]
    report = audited(released)
    assert report.ok, report.all_findings


def test_a_public_text_is_one_line_and_stays_what_it_was(released: Path) -> None:
    (charge,) = charges(released)
    door = door_at(released)
    with pytest.raises(DoorError, match="one line of 1 to 500"):
        door.withdraw(charge.release_id, REASON, " ")
    assert charges(released)[0].state == "published"
    door.withdraw(charge.release_id, REASON, f"{TOLD}\n ")
    with pytest.raises(DoorError, match="stays as it is"):
        door.withdraw(charge.release_id, REASON, "something else")
    assert door.withdraw(charge.release_id, REASON).public_text == TOLD


def test_a_skip_can_be_told_to_the_public_later_and_goes_from_the_list_when_the_month_is_released(
    copied: Callable[[str], Path],
) -> None:
    home = copied("chained")
    qlog(home, "skip", "safelog", "--month", MARCH, "--reason", REASON)
    assert "No release was made of this month." in index_of(home).text and audited(home).ok
    qlog(home, "skip", "safelog", "--month", MARCH, "--reason", REASON, "--public-text", TOLD)
    assert TOLD in index_of(home).text
    release(home)
    assert TOLD not in index_of(home).text and charges(home)[0].release_id in index_of(home).text


@pytest.mark.parametrize("name", PAGES)
def test_a_changed_page_is_found_and_any_release_that_is_served_mends_it(released: Path, name: str) -> None:
    path = released / "released" / name
    before = path.read_bytes()
    path.write_bytes(before.replace(b"safelog", b"zealous", 1))
    (finding,) = audited(released).all_findings
    assert finding.startswith(f"released/{name} does not say what the ledger") and "run any release again" in finding
    assert release(released).charged is False
    assert path.read_bytes() == before and audited(released).ok


@pytest.mark.parametrize("name", PAGES)
def test_a_warehouse_without_pages_is_valid_and_gets_them(released: Path, name: str) -> None:
    path = released / "released" / name
    before = path.read_bytes()
    path.unlink()
    report = audited(released)
    assert report.ok and f"released/{name} is not there: the next publication writes it" in report.notes
    release(released)
    assert path.read_bytes() == before


def release_by_another_version(home: Path, month: Month = MARCH) -> None:
    """A child's task: serve a release by a version that says something else in its pages."""

    def render_otherwise(catalogue: Catalogue, root: Path) -> dict[str, str]:
        return {name: text.replace("qlog 0.", "qlog 9.") for name, text in render_pages(catalogue, root).items()}

    door_catalogue.render_pages = render_otherwise
    release(home, month)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_the_door_of_another_version_wrote_is_valid_and_written_anew(released: Path, name: str) -> None:
    path = released / "released" / name
    before = path.read_bytes()
    assert in_child(release_by_another_version, released).code == 0
    assert path.read_bytes() != before and b"qlog 9." in path.read_bytes()
    report = audited(released)
    assert report.ok, report.all_findings
    assert f"released/{name} was written by another version of qlog: the next publication writes it anew" in (
        report.notes
    )
    # A process that dies between the record and the page leaves one that is known.
    record = read_record(released / "private" / "pages.json")
    pages = dict.fromkeys(PAGES, "of a third version")
    door_catalogue.record_pages(warehouse_at(released), catalogue_of(released), pages)
    assert [len(record[name]), len(read_record(released / "private" / "pages.json")[name])] == [2, 2]
    assert audited(released).ok
    release(released)
    assert path.read_bytes() == before and audited(released).notes == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_nobody_here_wrote_is_found_whatever_version_it_names(released: Path, name: str) -> None:
    path = released / "released" / name
    before = path.read_bytes()
    for forged in (before.replace(b"qlog 0.", b"qlog 9."), b"nothing of the kind", b"\xff"):
        path.write_bytes(forged)
        (finding,) = audited(released).all_findings
        assert finding.startswith(f"released/{name} does not say what the ledger")
        assert release(released).charged is False
        assert path.read_bytes() == before and audited(released).ok


def test_a_page_of_the_door_that_is_older_than_the_ledger_is_found(released: Path) -> None:
    build_chain(released, APRIL)
    assert in_child(release_by_another_version, released).code == 0
    index = released / "released" / "index.html"
    older = index.read_bytes()
    release(released, APRIL)
    index.write_bytes(older)
    (finding,) = audited(released).all_findings
    assert finding.startswith("released/index.html is behind the ledger") and "run any release again" in finding
    release(released)
    assert audited(released).ok


def test_pages_without_their_record_are_compared_and_no_more(released: Path) -> None:
    (released / "private" / "pages.json").write_text("[", encoding="utf-8")
    assert audited(released).ok
    (released / "private" / "pages.json").unlink()
    assert audited(released).ok
    index = released / "released" / "index.html"
    index.write_bytes(index.read_bytes().replace(b"qlog 0.", b"qlog 9."))
    assert len(audited(released).all_findings) == 1, "the rest of the private zone is here"
    shutil.rmtree(released / "private")
    report = audited(released)
    assert not [finding for finding in report.all_findings if "index.html" in finding]
    assert [note for note in report.notes if note.startswith("released/index.html") and "cannot be told" in note]


def test_the_record_of_a_version_that_lists_other_facts_is_no_finding(released: Path) -> None:
    path = released / "private" / "pages.json"
    index = released / "released" / "index.html"
    index.write_text("of a later version", encoding="utf-8")
    known = {"page": sha256(index.read_bytes()).hexdigest(), "facts": "0" * 64, "form": FACTS_FORM + 1}
    path.write_text(json.dumps({"index.html": [known]}), encoding="utf-8")
    report = audited(released)
    assert report.ok and any("cannot tell whether it lists all that is public" in note for note in report.notes)
    path.write_text(json.dumps({"index.html": [{**known, "form": FACTS_FORM}]}), encoding="utf-8")
    assert not audited(released).ok


def test_the_remedy_is_something_that_can_be_run(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    index = home / "released" / "index.html"
    door_at(home).open_account()
    index.write_text("forged", encoding="utf-8")
    assert any(finding.endswith("remove it: nothing is public of this data set") for finding in findings_of(home))
    skip = ("skip", "zealous", "--month", APRIL)
    qlog(home, *skip, "--reason", REASON, "--json").json  # noqa: B018
    index.write_text("forged", encoding="utf-8")
    assert f"run qlog skip zealous --month {APRIL} again: nothing is charged" in findings_of(home)[0]
    qlog(home, *skip, "--reason", REASON, "--json").json  # noqa: B018
    assert findings_of(home) == []
    withdraw = ("withdraw", release(home).charge.release_id)
    qlog(home, *withdraw, "--reason", REASON, "--json").json  # noqa: B018
    index.write_text("forged", encoding="utf-8")
    assert f"run qlog {' '.join(withdraw)} or qlog skip" in findings_of(home)[0]
    qlog(home, *withdraw, "--reason", REASON, "--json").json  # noqa: B018
    assert findings_of(home) == []


def test_a_page_behind_a_link_shuts_the_door(released: Path, tmp_path: Path) -> None:
    path = released / "released" / "index.html"
    path.rename(tmp_path / "elsewhere.html")
    path.symlink_to(tmp_path / "elsewhere.html")
    with pytest.raises(DoorError, match=r"released/index.html is not the file it was"):
        release(released)


def test_a_process_that_died_before_the_index_is_mended_by_a_release_of_another_month(released: Path) -> None:
    build_chain(released, APRIL)
    april = door_at(released).draw("safelog", APRIL).charge
    assert in_child(die_releasing, released, "latest_pointed").killed  # March is served, and dies before the index
    index = released / "released" / "index.html"
    index.write_text("what another process left behind", encoding="utf-8")
    door_at(released).publish("safelog", APRIL)
    assert april.release_id in index_of(released).text and charges(released)[0].release_id in index_of(released).text
    assert audited(released).ok


def test_files_that_somebody_deleted_are_not_listed_as_if_they_were_there(released: Path, tmp_path: Path) -> None:
    build_chain(released, APRIL)
    (march,) = charges(released)
    folder = released / "released" / "safelog" / MARCH / march.release_id
    folder.rename(tmp_path / "gone")
    release(released, APRIL)
    page = index_of(released)
    assert "Its files are not here now." in page.text
    assert not [link for link in page.links if march.release_id in link]
    assert [march.release_id in each["path"] for each in package_of(released)["resources"]] == [False] * 3


def test_a_draw_that_was_withdrawn_before_anybody_saw_it_is_not_listed(released: Path) -> None:
    build_chain(released, APRIL)
    april = door_at(released).draw("safelog", APRIL).charge
    before = public_files(released)
    door_at(released).withdraw(april.release_id, REASON)
    stone = f"released/safelog/{APRIL}/{april.release_id}.withdrawn.json"
    assert {name: text for name, text in public_files(released).items() if name != stone} == before
    assert audited(released).ok


def test_a_manifest_that_goes_while_it_is_read_is_not_there(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (charge,) = charges(released)
    path = released / "released" / "safelog" / MARCH / charge.release_id / "manifest.json"
    assert read_recorded(path, charge) is not None
    path.unlink()
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    assert read_recorded(path, charge) is None


def test_what_a_recovery_brings_back_is_listed_at_once(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    name_witness(home)
    march = release(home).charge
    shutil.copy(home / "ledger.db", home.parent / "backup.db")
    door_at(home).withdraw(march.release_id, REASON, TOLD)
    qlog(home, "skip", "zealous", "--month", APRIL, "--reason", REASON, "--public-text", "Nothing yet.")
    before = public_files(home)
    # A backup is restored, and somebody goes on without the witness.
    shutil.copy(home.parent / "backup.db", home / "ledger.db")
    url = warehouse_at(home).ledger_url
    with Store.open(url, Author("x"), create=False, wait_seconds=5).writing(Author("x")) as writer:
        writer.append("unwitnessed", "", {"reason": "forced"})
    door_catalogue.write_catalogue(warehouse_at(home), Ledger.read(url), march.dataset, 5)
    assert public_files(home) != before
    assert qlog(home, "ledger", "recover", "--reason", "two keepers", "--json").json["diverged"]
    assert public_files(home) == before and findings_of(home) == []


def test_a_recovery_of_a_ledger_without_anything_public_writes_no_page(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    name_witness(home)
    shutil.copy(home / "ledger.db", home.parent / "backup.db")
    door_at(home).open_account()
    shutil.copy(home.parent / "backup.db", home / "ledger.db")
    assert qlog(home, "ledger", "recover", "--reason", "restored", "--json").json["restored"] >= 1
    assert public_files(home) == {} and findings_of(home) == []


def test_what_the_owner_says_is_text_and_no_markup(copied: Callable[[str], Path]) -> None:
    home = copied("chained")
    edit_policy(home, about='publisher = "<script>alert(1)</script> & Co"')
    release(home)
    page = index_of(home)
    assert page.tags.count("script") == 1 and "<script>alert(1)</script> & Co" in page.text


def test_every_table_is_a_resource_with_its_files_and_the_columns_of_its_csv(released: Path) -> None:
    build_chain(released, APRIL)
    release(released, APRIL)
    package = package_of(released)
    root = released / "released"
    wanted = [
        (manifest["release_id"], name)
        for path in root.glob("*/*/*/manifest.json")
        for manifest in [load_manifest(path)]
        for name in manifest["tables"]
    ]
    assert sorted((each["release"], each["table"]) for each in package["resources"]) == sorted(wanted)
    assert len({each["name"] for each in package["resources"]}) == len(wanted) == 6
    for resource in package["resources"]:
        for file in (resource, resource["parquet"]):
            content = (root / file["path"]).read_bytes()
            assert (file["bytes"], file["hash"]) == (len(content), f"sha256:{sha256(content).hexdigest()}")
        with (root / resource["path"]).open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        assert [field["name"] for field in resource["schema"]["fields"]] == header and len(rows) == resource["rows"]
        assert resource["schema"]["fields"][-1]["type"] == "yearmonth" and all(
            row[-1] == resource["month"] for row in rows
        )
        assert all(field["description"] for field in resource["schema"]["fields"])
