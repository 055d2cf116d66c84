"""Dagster's launchpad as a person uses it: open, type, pick a partition, press the button, wait for the run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playwright.sync_api import TimeoutError
from support.server import RUN_SECONDS, Server

if TYPE_CHECKING:
    from playwright.sync_api import Page

RUNS = """
query Runs($job: String!) { runsOrError(filter: {pipelineName: $job}) { ... on Runs { results { runId } } } }
"""
PRESSED_SECONDS = 30
"""How long a pressed button may take to make a run."""
SLOW_MACHINE = 120_000
"""Milliseconds that a page may take to show something; a busy machine takes half a minute."""


def open_launchpad(server: Server, page: Page, job: str) -> None:
    page.goto(f"{server.address}/locations/qlog_assets.definitions/jobs/{job}/playground")
    page.get_by_text("No errors", exact=True).wait_for(timeout=SLOW_MACHINE)


def written(page: Page) -> str:
    """What stands in the launchpad's editor."""
    return str(page.evaluate("document.querySelector('.CodeMirror').CodeMirror.getValue()")).strip()


def write(page: Page, text: str) -> None:
    page.locator(".CodeMirror").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def pick(page: Page, partition: str) -> None:
    field = page.get_by_placeholder("Partition")
    field.wait_for(timeout=SLOW_MACHINE)
    if field.input_value() == partition:  # the launchpad remembers what was launched last
        return
    entry = page.get_by_role("menuitem").filter(has_text=partition).first
    until = time.monotonic() + SLOW_MACHINE / 1000
    while True:
        # What is typed before the partitions have come finds none of them, and is typed again, as a person would.
        field.fill("")
        field.fill(partition)
        try:
            entry.click(timeout=5_000)
        except TimeoutError:
            if time.monotonic() > until:
                raise
        else:
            return


def runs_of(server: Server, job: str) -> set[str]:
    return {run["runId"] for run in server.ask(RUNS, job=job)["runsOrError"]["results"]}


def launch(server: Server, page: Page, job: str) -> tuple[str, str]:
    """Press the button, which must not be grey, and wait for the run: its status and what its steps complained of."""
    before = runs_of(server, job)
    until, said = time.monotonic() + RUN_SECONDS, "no dialog"
    while time.monotonic() < until:
        # A machine that is too busy to launch says so in a dialog: a person closes it and presses again.
        if (dialog := page.locator(".dagster-portal .bp5-dialog")).count():
            said = dialog.first.inner_text()
            page.keyboard.press("Escape")
            dialog.first.wait_for(state="hidden", timeout=SLOW_MACHINE)
        # A click waits until the button is enabled, and fails if it stays grey.
        page.get_by_role("button", name="Launch Run").click(timeout=SLOW_MACHINE)
        pressed = time.monotonic()
        while time.monotonic() < pressed + PRESSED_SECONDS:
            if new := runs_of(server, job) - before:
                return server.wait(new.pop())
            page.wait_for_timeout(200)
    raise AssertionError(f"nothing was launched for {job}: {said}")
