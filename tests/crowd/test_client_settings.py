"""client.toml: opt-outs by job and by pattern, every key checked, no pattern repeated."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from support.crowd_jobs import make_job

from qlog_assets.crowd.client_settings import FILE, ClientSettings, OptOut
from qlog_assets.errors import QlogError
from qlog_assets.sources.normalise import normalise_text

JOB = make_job()


def read(folder: Path, text: str) -> ClientSettings:
    (folder / FILE).write_text(text, encoding="utf-8")
    return ClientSettings.read(folder)


def test_without_a_file_nothing_is_opted_out(tmp_path: Path) -> None:
    settings = ClientSettings.read(tmp_path)
    assert not settings.opt_out.declines(JOB) and not settings.opt_out.leaves_out("tea")
    assert settings.trust(tmp_path) is True


def test_a_job_is_declined_by_its_application_or_for_one_month(tmp_path: Path) -> None:
    for names, declined in [('"queries"', True), ('"queries-2006-03"', True), ('"queries-2006-04", "clicks"', False)]:
        assert read(tmp_path, f"[opt_out]\njobs = [{names}]").opt_out.declines(JOB) is declined


def test_a_job_that_fewer_people_could_read_is_declined(tmp_path: Path) -> None:
    for least, declined in [(3, False), (4, True)]:
        assert read(tmp_path, f"[opt_out]\nshare_threshold_below = {least}").opt_out.declines(JOB) is declined


def test_a_job_in_which_one_report_alone_is_readable_is_declined_unless_the_person_says_otherwise(
    tmp_path: Path,
) -> None:
    readable = make_job(share_threshold=1)
    assert ClientSettings.read(tmp_path).opt_out.declines(readable)
    assert not ClientSettings.read(tmp_path).opt_out.declines(make_job(share_threshold=2))
    assert not read(tmp_path, "[opt_out]\nshare_threshold_below = 1").opt_out.declines(readable)


def test_a_pattern_is_searched_anywhere_and_in_any_case(tmp_path: Path) -> None:
    opt_out = read(tmp_path, '[opt_out]\npatterns = ["Smith", "^my "]').opt_out
    assert [opt_out.leaves_out(text) for text in ("john smith", "my tea", "tea for my", "SMITH.example")] == [
        True, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("groß", "Arzt in Groß Gerau"),
        ("Straße", "Hauptstraße 5"),
        ("STRASSE", "Hauptstraße 5"),
        (r"^haupt\S*straße\b", "Hauptstraße 5"),
        ("(?P<Street>straße) 5", "Hauptstraße 5"),
        ("[Aá]ndré", "André dupont"),
        ("ß+e", "Hauptstraße 5"),
        ("andré", "andré dupont"),
        ("ΜΆΪΟΣ", "μάϊος"),
        ("ﬁnn", "Finn"),
        ("smith\u00a0j", "Smith J"),
        ("a…b", "a…b"),
    ],
)
def test_a_pattern_finds_what_it_says_however_it_and_the_text_are_written(pattern: str, text: str) -> None:
    for form in ("NFC", "NFD"):
        opt_out = OptOut(patterns=(unicodedata.normalize(form, pattern),))
        for written in (text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)):
            assert opt_out.leaves_out(written) and opt_out.leaves_out(normalise_text(written))


@pytest.mark.parametrize(
    "pattern",
    [r"^\D+$", r"\Bx", "[äöüß]", "x＊", "a…b", "groß?e", "[Z-a]{9}"],
    ids=["escape", "other escape", "class", "star when folded", "dots when folded", "optional", "range"],
)
def test_folding_makes_no_pattern_match_other_words(pattern: str) -> None:
    assert not OptOut(patterns=(pattern,)).leaves_out("7 greens")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[opt_out]\npattern = []", "perhaps patterns"),
        ("[optout]\njobs = []", "perhaps opt_out"),
        ('[opt_out]\njobs = ["query"]', "name an application"),
        ('[opt_out]\njobs = ["queries-2006-13"]', "not a month"),
        ('[opt_out]\njobs = "queries"', "jobs"),
        ('[opt_out]\npatterns = ["tea", "(smith"]', "number 2 is no regular expression"),
        ('[opt_out]\npatterns = ["(smith)?"]', "number 1 matches everything"),
        ("[opt_out]\nshare_threshold_below = 0", "share_threshold_below"),
        ("[opt_out\nsmith", "not a readable TOML file"),
    ],
)
def test_what_is_wrong_is_one_line_that_repeats_no_pattern(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(QlogError, match=said) as refused:
        read(tmp_path, text)
    assert "smith" not in str(refused.value) and "\n" not in str(refused.value)


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "servers.pem").write_text("no certificate", encoding="utf-8")
    for name in ("servers.pem", "nowhere.pem"):
        settings = read(tmp_path, f'[network]\ntrusted_certificates = "{name}"')
        with pytest.raises(QlogError, match="no certificates in PEM"):
            settings.trust(tmp_path)
