"""The monthly schedule asks for the newest month that is undecided and fits the budget, and otherwise says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from support.cli import qlog
from support.door import door_at
from support.instances import AOL_HEADER, POLICY, load_definitions, make_home
from support.ledgers import request
from support.warehouses import build_chain

from qlog_assets.ledger import Ledger
from qlog_assets.months import Month, months_between

Tick = Callable[[str], dg.RunRequest | str]
MARCH, APRIL, MAY = Month("2006-03"), Month("2006-04"), Month("2006-05")


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Tick]:
    """What the schedule of Safelog answers on a day: a request, or the reason why there is none."""

    def of(home: Path) -> Tick:
        definitions = load_definitions(home, monkeypatch)
        schedule = definitions.resolve_schedule_def("safelog_monthly")
        assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED and schedule.description

        def tick(day: str) -> dg.RunRequest | str:
            with dg.build_schedule_context(
                instance=dg.DagsterInstance.ephemeral(),
                scheduled_execution_time=datetime.fromisoformat(day),
                repository_def=definitions.get_repository_def(),
                resources=definitions.resources,
            ) as context:
                answer = schedule.evaluate_tick(context)
            requests = answer.run_requests or []
            return requests[0] if requests else str(answer.skip_message)

        return tick

    return of


def month_of(answer: dg.RunRequest | str) -> str | None:
    assert isinstance(answer, dg.RunRequest), answer
    return answer.partition_key


def test_the_month_that_ended_is_asked_for_until_it_is_decided(ingested: Path, ticking: Callable[[Path], Tick]) -> None:
    tick = ticking(ingested)
    assert month_of(tick("2006-04-02")) == MARCH
    assert month_of(tick("2006-05-02")) == APRIL
    build_chain(ingested, MARCH)
    release_id = door_at(ingested).draw("safelog", MARCH).charge.release_id
    door_at(ingested).withdraw(release_id, "a mistake")
    decided = "every month from 2006-03 to 2006-03 has a safelog release or had one"
    assert tick("2006-04-02") == decided, "a withdrawn month is decided: another draw needs a reason"
    # April was not released in May, and is not forgotten in June.
    assert month_of(tick("2006-06-02")) == APRIL


def test_a_month_that_was_skipped_is_decided_and_the_one_before_it_is_asked_for(
    ingested: Path, ticking: Callable[[Path], Tick], caplog: pytest.LogCaptureFixture
) -> None:
    tick = ticking(ingested)
    assert month_of(tick("2006-05-02")) == APRIL
    words = ("skip", "safelog", "--month", APRIL, "--reason", "half of its log is missing")
    (skip,) = qlog(ingested, *words, "--json").json["skips"]
    assert (skip["month"], skip["mechanism"], skip["reason"]) == (APRIL, "safelog", "half of its log is missing")
    assert f"{APRIL} by safelog: recorded already" in qlog(ingested, *words).success
    build_chain(ingested, MARCH)
    door_at(ingested).draw("safelog", MARCH)
    assert tick("2006-05-02") == (
        "every month from 2006-03 to 2006-04 has a safelog release or had one or was skipped (2006-04)"
    )
    build_chain(ingested, APRIL)
    assert door_at(ingested).draw("safelog", APRIL).charged, "by hand it is still released"
    assert "2006-04 was skipped by safelog (half of its log is missing) and is released all the same" in caplog.text
    assert "needs no skip" in qlog(ingested, *words).refusal


def test_a_month_that_nobody_ingested_and_days_outside_the_policy_are_skipped_with_the_reason(
    ingested: Path, ticking: Callable[[Path], Tick]
) -> None:
    tick = ticking(ingested)
    assert tick("2006-03-02") == "no month of the policy is complete yet: its first is 2006-03"
    for month in (MARCH, APRIL):
        build_chain(ingested, month)
        door_at(ingested).draw("safelog", month)
    nothing = "no rows of 2006-05 were ingested yet"
    assert tick("2006-06-02") == nothing
    # After the policy's last month the same month is not asked for again and again.
    assert tick("2007-01-02") == nothing
    assert tick("2006-05-02") == "every month from 2006-03 to 2006-04 has a safelog release or had one"


def test_one_row_with_a_wrong_date_makes_no_month_due_and_a_look_makes_no_ledger(
    tmp_path: Path, ticking: Callable[[Path], Tick]
) -> None:
    """That a release exists is public: no single person's row may bring one about."""
    home = make_home(tmp_path / "warehouse", POLICY.replace('first = "2006-03"', 'first = "1996-01"'))
    tick = ticking(home)
    assert tick("2006-05-02") == "no rows of 2006-04 were ingested yet"
    assert not (home / "ledger.db").exists()
    log = tmp_path / "stray.txt"
    log.write_text(AOL_HEADER + "7\tnews\t1999-03-05 10:00:00\t\t\n", encoding="utf-8")
    assert qlog(home, "ingest", log, "--format", "aol", "--json").json["accepted"] == 1
    assert tick("2006-05-02") == "no rows of 2006-04 were ingested yet"


# Three years ----------------------------------------------------------------------------------------------------------

FIRST, LAST = Month("2006-01"), Month("2008-12")
YEARS = months_between(FIRST, LAST)


@pytest.fixture
def three_years(tmp_path: Path) -> Callable[[str, int], Path]:
    """A warehouse with 36 months of a few people's searches, and a budget per window."""

    def make(budget: str, window: int) -> Path:
        policy = POLICY.replace('first = "2006-03"\nlast = "2006-05"', f'first = "{FIRST}"\nlast = "{LAST}"')
        policy = policy.replace("epsilon = 100", f"epsilon = {budget}")
        home = make_home(tmp_path / "warehouse", f"{policy}\n[unit]\nwindow_months = {window}\n")
        log = tmp_path / "years.txt"
        rows = (f"{user}\tnews\t{month}-05 10:00:00\t\t\n" for month in YEARS for user in range(20))
        log.write_text(AOL_HEADER + "".join(rows), encoding="utf-8")
        assert qlog(home, "ingest", log, "--format", "aol", "--json").json["accepted"] == 20 * len(YEARS)
        return home

    return make


def run_schedule(tick: Tick, release: Callable[[Month], object]) -> Iterator[tuple[Month, str | None]]:
    """For every month after one ended: the month, and why it was skipped; a month that was asked for is released."""
    for month in YEARS:
        answer = tick(f"{month.next()}-02")
        if isinstance(answer, str):
            yield month, answer
        else:
            assert answer.partition_key == month
            release(month)
            yield month, None


@pytest.mark.slow
def test_a_schedule_of_three_years_never_stops_where_twelve_months_fit(
    three_years: Callable[[str, int], Path], ticking: Callable[[Path], Tick]
) -> None:
    home = three_years(str(12 * 20), 12)

    def release(month: Month) -> None:
        build_chain(home, month)
        door_at(home).draw("safelog", month)

    answers = dict(run_schedule(ticking(home), release))
    assert answers == dict.fromkeys(YEARS)
    ledger = Ledger.open(home / "ledger.db")
    assert ledger.balance("small").total.epsilon == 36 * 20
    assert ledger.verify_chain() == []


@pytest.mark.slow
def test_a_schedule_skips_what_does_not_fit_a_window_and_goes_on_when_it_does(
    three_years: Callable[[str, int], Path], ticking: Callable[[Path], Tick]
) -> None:
    """Nine months fit into twelve: each year has nine releases and three months that wait for the window to move on."""
    home = three_years(str(9 * 20 + 5), 12)
    door_at(home).open_account()
    ledger = Ledger.open(home / "ledger.db")

    def charge(month: Month) -> None:
        ledger.reserve(**request(dataset="small", month=month, epsilon="20", delta="1e-3"))

    answers = dict(run_schedule(ticking(home), charge))
    released = [month for month in YEARS if answers[month] is None]
    assert released == [month for month in YEARS if int(month[5:]) <= 9]
    for month in YEARS:
        if answers[month] is not None:
            year = int(month[:4])
            assert f"the next month that fits is {year + 1}-01" in str(answers[month])
