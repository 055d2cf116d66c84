"""The wheel: what it carries, and that it works where there is no checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import qlog_assets
from qlog_assets.version import VERSION

ROOT = Path(__file__).parents[1]
PINS = re.compile(r"[A-Za-z0-9_.\-]+(\[[a-z]+\])?==[0-9A-Za-z.!+]+")


def pinned(name: str) -> dict[str, str]:
    """The versions in a requirements file, by the name that the index knows the package under."""
    lines = (line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    kept = [line for line in lines if line and not line.startswith("#")]
    assert all(PINS.fullmatch(line) for line in kept), "pins are plain name==version lines"
    return {
        key.partition("[")[0].lower().replace("_", "-"): version for key, version in (pin.split("==") for pin in kept)
    }


def test_pins_are_plain_and_the_project_asks_for_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = pinned("requirements.txt")
    for wanted in project["dependencies"]:
        name, version = wanted.split("==")
        assert pins[name.lower().replace("_", "-")] == version, name
    both = set(pins) & set(pinned("requirements-dev.txt"))
    assert all(pins[name] == pinned("requirements-dev.txt")[name] for name in both)


def test_the_version_is_the_same_wherever_it_stands() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION == qlog_assets.__version__
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with what is installed here."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = target.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and sees this one's libraries but not the checkout; returns its bin."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (libraries,) = (path for path in map(Path, sys.path) if path.name == "site-packages" and path.is_dir())
    # A plain path line: the .pth files over there, and with them the editable checkout, are not read.
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return place / "bin"


def run(installed: Path, cwd: Path, *words: str) -> Any:
    """Run the installed package's command in a directory of its own, with nothing in the environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GX_ANALYTICS_ENABLED": "false"}
    done = subprocess.run(
        [str(installed / "python"), "-c", "from qlog_assets.cli.app import main; main()", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_wheel_carries_statements_suites_and_all_that_the_package_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("sql", "expectations"):
        here = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert len(here) > 10 and {f"qlog_assets/{name}" for name in here} <= names
    data = {
        path for path in (ROOT / "qlog_assets").rglob("*") if path.suffix not in (".py", ".pyc", "") and path.is_file()
    }
    assert {str(path.relative_to(ROOT)) for path in data} <= names
    assert not [name for name in names if name.startswith(("tests", "warehouse", "benchmarks"))]
    (entry,) = (name for name in names if name.endswith("entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        assert "qlog = qlog_assets.cli.app:main" in archive.read(entry).decode()


@pytest.mark.slow
def test_an_installed_wheel_makes_and_releases_a_log_in_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    facts = run(installed, tmp_path, "guarantee", "safelog", "--json")
    assert facts["proven"]["epsilon"] > 0
    log = run(installed, tmp_path, "synth", "2000", "--json")
    assert log["read"] == 2000 and Path(log["path"]).is_relative_to(tmp_path / "warehouse")
    policy = tmp_path / "warehouse" / "policy.toml"
    policy.write_text('[pool]\nkind = "query_list"\npath = "public/queries.txt"\n', encoding="utf-8")
    release = run(installed, tmp_path, "release", "safelog", "--month", "2006-03", "--json")
    assert release["charged"] is True
    assert Path(release["path"]).is_relative_to(tmp_path / "warehouse" / "released")
    assert run(installed, tmp_path, "audit", "--json")["ok"] is True


@pytest.mark.slow
def test_the_wheel_is_what_runs_and_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = (
        "import qlog_assets; from qlog_assets.settings import shipped_file; print(qlog_assets.__file__)\n"
        "print(shipped_file('sql', 'log/cleaned_log.sql').resolve(strict=True))"
    )
    done = subprocess.run(
        [str(installed / "python"), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stdout.split()
    assert len(lines) == 2 and all(Path(line).is_relative_to(installed.parent) for line in lines)
