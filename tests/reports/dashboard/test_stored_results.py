"""The page of a database: what was planted in its history is on it, under the right suspect, and can be reached."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy
import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.dashboard.page_data import PageData
from plumbline.reports.dashboard.page_query import PageQuery
from plumbline.reports.dashboard.static_page import write_dashboard
from plumbline.reports.dashboard.stored_results import StoredResults
from plumbline.reports.dashboard.window import Window, chosen_stream, marks_shown, read_window
from plumbline.reports.history import strips
from plumbline.reports.store import ResultStore, open_store
from support.browser import browser_program, browser_tab
from support.synthetic_history import Planted, SyntheticHistory, write_history

NIGHTS, TESTS = 14, 110


@dataclass(frozen=True)
class Made:
    store: ResultStore
    planted: Planted
    page: PageData
    window: Window


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    place = tmp_path_factory.mktemp("history") / "results.sqlite"
    planted = write_history(place, SyntheticHistory(nights=NIGHTS, tests=TESTS, seed=3))
    with open_store(str(place)) as store:
        stream, _ = chosen_stream(store, PageQuery())
        window = read_window(store, stream, PageQuery())
        yield Made(store, planted, StoredResults(store).page(PageQuery()), window)


def open_regressions(planted):
    return [each for each in planted.regressions if each.last == NIGHTS - 1]


def test_every_planted_regression_is_one_fault_with_its_suspect(made):
    shown = {frozenset(made.window.names[test] for test in fault.tests): fault for fault in made.page.faults}
    planted = open_regressions(made.planted)
    assert len(shown) == len(planted) == 3
    for each in planted:
        fault = shown[frozenset(made.planted.name(test, NIGHTS - 1) for test in each.tests)]
        assert fault.suspect == each.suspect
        assert {made.page.columns[column] for column in fault.columns} == set(each.columns)
        assert fault.new == (each.first == NIGHTS - 1)
        assert made.page.nights[fault.since].run_id == f"night-3-{each.first:03d}"
        assert fault.history[-1] == marks_shown()[fault.mark].letter


def test_the_page_of_an_earlier_night_knows_only_what_was_known_then(made):
    upgrade = made.planted.torch_upgrade
    earlier = StoredResults(made.store).page(PageQuery(until=f"night-3-{upgrade:03d}"))
    assert earlier.nights[-1].run_id == f"night-3-{upgrade:03d}"
    assert [(fault.suspect, fault.new) for fault in earlier.faults] == [("torch", True)]
    assert earlier.headline == "One new fault last night: suspect torch (5 tests)"
    before = StoredResults(made.store).page(PageQuery(until=f"night-3-{upgrade - 1:03d}"))
    assert before.faults == ()
    assert before.verdict != "RED"


def test_marks_and_margins_are_those_of_the_strips(made):
    for strip in strips(made.store, [night.number for night in made.window.nights]):
        night = made.window.position(strip.run)
        column = made.window.columns.index(strip.column)
        for place, number in enumerate(made.window.numbers):
            assert made.window.letters(place, column)[night] == strip.mark(number)
            assert made.window.margins[night, place, column] == (strip.margins + bytes(TESTS))[number - 1]


def test_nights_say_what_they_ran_on_and_void_ones_why(made):
    void = [night for night in made.page.nights if night.void]
    assert [night.run_id for night in void] == [f"night-3-{made.planted.void_night:03d}-broken"]
    assert made.page.nights[-1].versions["torch"] == "2.13.0+cpu"
    assert made.page.compared == len(made.page.nights) - 2
    assert not made.page.nights[made.page.green].red


def test_renames_and_flaky_cases_are_on_the_page(made):
    names = {change.before: change.after for change in made.page.names if change.after}
    for test, night in made.planted.renamed.items():
        assert names[made.planted.name(test, night - 1)] == made.planted.name(test, night)
    flaky = {(each.test, made.page.columns[each.column]) for each in made.page.flaky}
    planted = {(made.planted.name(test, NIGHTS - 1), column) for test, column, _ in made.planted.flaky}
    assert flaky
    assert flaky <= planted
    assert all(0 < each.rate < 1 for each in made.page.flaky)


def test_measures_have_a_value_a_night(made):
    ratios = [line for line in made.page.measured if line.measure == "ratio"]
    assert {made.page.columns[line.column].split(":")[0] for line in ratios} == {"plumbline"}
    for line in made.page.measured:
        assert len(line.values) == len(made.page.nights)
    memory = {
        made.page.columns[line.column].partition(":")[2]: line.values[-1]
        for line in made.page.measured
        if line.measure == "memory"
    }
    assert memory["inductor"] > 1.5 * memory["eager"] > 0
    files = {line.group for line in made.page.measured if line.group}
    assert "tests/test_norm.py" in files
    whole = {
        line.column: line.values[-1]
        for line in made.page.measured
        if (line.measure, line.group) == ("compile_seconds", "")
    }
    parts = [line for line in made.page.measured if line.measure == "compile_seconds" and line.group]
    for column, value in whole.items():
        assert sum(line.values[-1] for line in parts if line.column == column) == pytest.approx(value, rel=0.05)


def test_the_pass_rate_is_that_of_what_was_judged(made):
    rates = {(line.column, line.group): line.values for line in made.page.measured if line.measure == "pass_rate"}
    wrong = [each for each in open_regressions(made.planted) if "plumbline:inductor" in each.columns]
    column = made.page.columns.index("plumbline:inductor")
    tests = sum(len(each.tests) for each in wrong)
    assert rates[column, ""][-1] == pytest.approx(100 * (1 - tests / TESTS), abs=0.01)
    assert rates[column, ""][0] == 100
    files = Counter(made.planted.name(test, NIGHTS - 1).split("::")[0] for each in wrong for test in each.tests)
    file, count = files.most_common(1)[0]
    of_file = sum(made.planted.name(test, NIGHTS - 1).startswith(file) for test in range(TESTS))
    assert rates[column, file][-1] == pytest.approx(100 * (1 - count / of_file), abs=0.01)


def test_a_case_that_crashed_has_no_margin(made):
    crashed = next(each for each in made.planted.regressions if each.verdict == "CRASH")
    details = StoredResults(made.store).test(PageQuery(), made.planted.name(crashed.tests[0], NIGHTS - 1))
    assert details
    assert all("margin" not in name for detail in details for name, _ in detail.facts)


def test_one_test_has_its_failures_newest_first(made):
    each = open_regressions(made.planted)[2]
    name = made.planted.name(each.tests[0], NIGHTS - 1)
    details = StoredResults(made.store).test(PageQuery(), name)
    failing = [detail for detail in details if marks_shown()[detail.mark].failing]
    assert {made.page.columns[detail.column] for detail in failing} == {"torch:inductor"}
    assert [detail.night for detail in failing] == sorted((detail.night for detail in failing), reverse=True)
    assert len(failing) == NIGHTS - each.first
    assert all("repro-minify" in detail.command for detail in failing)


def test_what_cannot_be_asked_is_said_in_one_line(made, tmp_path):
    results = StoredResults(made.store)
    for query in (PageQuery(series="nothing @ nowhere"), PageQuery(until="no such run")):
        with pytest.raises(UserError) as error:
            results.page(query)
        assert "\n" not in error.value.one_line()
    with pytest.raises(UserError, match="no test"):
        results.test(PageQuery(), "<script>")
    with open_store(str(tmp_path / "new.sqlite"), write=True) as empty, pytest.raises(UserError, match="no night"):
        StoredResults(empty).page(PageQuery())


def test_a_smaller_window_holds_the_last_nights(made):
    page = StoredResults(made.store).page(PageQuery(nights=3))
    assert [night.run_id for night in page.nights] == [night.run_id for night in made.page.nights[-3:]]
    assert [fault.key for fault in page.faults] == [fault.key for fault in made.page.faults]
    assert page.faults[-1].since == -1
    assert page.faults[-1].since_date == made.page.faults[-1].since_date


@pytest.mark.skipif(browser_program() is None, reason="no Chromium is installed here")
def test_a_reader_finds_every_planted_regression_from_the_first_page(made, tmp_path: Path):
    write_dashboard(made.store, PageQuery(), tmp_path / "index.html", None)
    with browser_tab(str(browser_program())) as tab:
        tab.size(1300, 900)
        found = []
        for nth in range(3):
            tab.open((tmp_path / "index.html").as_uri())
            assert tab.text(".verdict") == "RED"
            tab.click(".fault h3 a", nth)
            tab.wait("document.documentElement.dataset.ready === 'fault'")
            suspect = tab.text(".suspect").removeprefix("suspect: ")
            tests = set(tab.texts("tr[data-open] th"))
            width = "document.querySelector('tr[data-open] th').getBoundingClientRect().width"
            assert tab.ask(width) >= 300  # beside six columns, too, the name of a test has room
            assert len(tab.texts(".command")) == 1
            tab.click("tr[data-open] a")
            tab.wait("document.documentElement.dataset.ready === 'test'")
            assert tab.text("h1") in tests
            assert tab.texts(".command")
            found.append((suspect, tests))
        tab.open((tmp_path / "index.html").as_uri() + "#view=speed&measure=pass_rate", "speed")
        scale = "[...document.querySelectorAll('.lines > text[text-anchor=end]')].map((each) => each.textContent)"
        assert max(float(text.removesuffix(" %")) for text in tab.ask(scale) if text.endswith("%")) == 100
        assert any(" points" in row for row in tab.texts("tbody tr"))
        planted = [
            (each.suspect, {made.planted.name(test, NIGHTS - 1) for test in each.tests})
            for each in open_regressions(made.planted)
        ]
        assert sorted(found, key=str) == sorted(planted, key=str)
        assert tab.complaints == []
        assert {address.split("#")[0] for address in tab.requests} <= {
            (tmp_path / "index.html").as_uri(),
            "about:blank",
            "data:,",
        }


def test_the_same_database_gives_the_same_page(made):
    one, two = (asdict(StoredResults(made.store).page(PageQuery())) | {"made": ""} for _ in range(2))
    assert one == two
    first, second = (StoredResults(made.store).history(PageQuery()) for _ in range(2))
    assert first == second
    assert numpy.count_nonzero(made.window.marks) > 0
