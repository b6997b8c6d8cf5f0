"""The page in a real browser: it is clicked, typed at and linked to; it complains of nothing and asks for nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.reports.dashboard.document import static_document
from support.browser import Tab, browser_program, browser_tab
from support.made_dashboard import HOSTILE, made_history

PROGRAM = browser_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed here")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("dashboard") / "index.html"
    made = made_history()
    file.write_text(static_document(made.page, made.history), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def one_tab() -> Iterator[Tab]:
    with browser_tab(str(PROGRAM)) as tab:
        tab.size(1300, 900)
        yield tab


@pytest.fixture
def tab(one_tab: Tab, place: str) -> Iterator[Tab]:
    one_tab.complaints.clear()
    one_tab.requests.clear()
    yield one_tab
    assert one_tab.complaints == []
    assert [address for address in one_tab.requests if not address.startswith((place, "data:", "about:"))] == []
    assert one_tab.ask("window.hacked") is None


def test_the_first_page_says_it_in_one_sentence_and_a_card_a_fault(tab, place):
    tab.open(place)
    assert tab.text(".verdict") == "RED"
    assert "suspect plumbline (4 tests)" in tab.text("h1")
    assert len(tab.texts(".fault.new")) == 2
    assert len(tab.texts(".fault:not(.new)")) == 1
    assert "Fuse the two passes of <b>layer norm</b>" in tab.text(".fault")
    assert tab.ask("document.querySelectorAll('.fault b').length") == 0
    assert len(tab.texts(".bars .bar")) == 60


def test_each_fault_is_reached_by_a_click(tab, place):
    for nth, (file, test) in enumerate(
        [("test_norm.py", "test_0[f32]"), ("test_evil.py", HOSTILE[0]), ("test_index.py", "test_0[f32]")]
    ):
        tab.open(place)
        tab.click(".fault h3 a", nth)
        tab.wait("document.documentElement.dataset.ready === 'fault'")
        assert file in tab.text("h3")
        tab.click("tr[data-open] a")
        tab.wait("document.documentElement.dataset.ready === 'test'")
        assert test in tab.text("h1")
        assert "differs by 210 units of noise" in tab.text()
        assert "repro-minify" in tab.text(".command")


def test_keys_lead_to_the_views(tab, place):
    tab.open(place)
    for key, view in zip("23451", ("map", "flaky", "speed", "compilers", "last"), strict=True):
        tab.press(key)
        tab.wait(f"document.documentElement.dataset.ready === '{view}'")
        assert tab.ask("document.querySelector('nav [aria-current]').dataset.view") == view


def test_j_k_and_enter_open_a_fault(tab, place):
    tab.open(place)
    for key in "jjjkk":
        tab.press(key)
    assert "test_norm.py" in tab.ask("document.activeElement.innerText")
    tab.press("Enter")
    tab.wait("document.documentElement.dataset.ready === 'fault'")
    assert "fault=fault-0" in tab.ask("location.hash")


def test_the_map_is_moved_in_by_arrows_and_opens_a_test(tab, place):
    tab.open(place + "#view=map", "map")
    assert tab.text("#found") == "10 of 120 tests"
    tab.press("ArrowDown")
    tab.wait("document.activeElement.id === 'map-box'")
    first = tab.text("#map-reading")
    tab.press("ArrowDown")
    tab.press("ArrowLeft")
    tab.wait(f"document.querySelector('#map-reading').innerText !== {first!r}")
    tab.wait("document.querySelector('#map-reading').innerText.includes('2026-11-20')")
    tab.press("Enter")
    tab.wait("document.documentElement.dataset.ready === 'test'")
    assert tab.text("h1") in HOSTILE


def test_typing_finds_a_test_and_the_address_says_so(tab, place):
    tab.open(place)
    tab.press("/")
    tab.type("NORM test_3")
    tab.wait("document.documentElement.dataset.ready === 'map'")
    tab.wait("document.querySelector('#found')?.innerText === '1 of 120 tests'")
    assert "q=NORM" in tab.ask("location.hash")
    tab.ask("window.old = true; location.reload()")
    tab.wait("!window.old && document.documentElement?.dataset.ready === 'map'")
    assert tab.text("#found") == "1 of 120 tests"
    assert tab.ask("document.querySelector('#q').value") == "NORM test_3"


def test_an_address_is_enough(tab, place):
    tab.open(place + "#view=map&q=norm&column=2&failing=1", "map")
    assert tab.text("#found") == "4 of 120 tests"
    assert tab.ask("document.querySelector('#column').value") == "2"
    tab.open(place + "#view=test&test=" + HOSTILE[2].replace("[", "%5B").replace("]", "%5D"), "test")
    assert tab.text("h1") == HOSTILE[2]
    tab.open(place + "#view=nonsense&column=77&order=no&rows=%3Cscript%3E")
    assert tab.text(".verdict") == "RED"
    tab.open(place + "#view=test&test=%3Cimg%20src=x%20onerror=window.hacked=1%3E", "test")
    assert "There is no test of this name" in tab.text()


def test_colours_of_the_map_are_those_of_the_marks(tab, place):
    tab.open(place + "#view=map", "map")
    tab.wait("document.querySelector('#map-reading').innerText")  # said when it is drawn
    second_row = "document.querySelector('canvas').width - 22, 38 + 17 + 3"
    pixel = f"[...document.querySelector('canvas').getContext('2d').getImageData({second_row}, 1, 1).data]"
    red, green, blue, _ = tab.ask(pixel)
    assert red > 150 > green
    assert red > 150 > blue


def test_two_runs_stand_side_by_side(tab, place):
    tab.open(place)
    tab.click(".since a")
    tab.wait("document.documentElement.dataset.ready === 'runs'")
    assert "b4ef277\t9f3c1ab" in tab.text("table.versions")
    assert "Wrong on the right only 6 cases" in tab.text()
    assert len(tab.texts(".fault")) == 2


def test_speed_follows_its_choices(tab, place):
    tab.open(place + "#view=speed", "speed")
    assert len(tab.texts("tbody tr")) == 6
    assert "level changed about here" in tab.text(".chart")
    tab.click("#measure-compile_seconds")
    tab.wait("location.hash.includes('measure=compile_seconds')")
    tab.choose("#split", "group")
    tab.wait("location.hash.includes('split=group')")
    assert [row.split("\t")[0] for row in tab.texts("tbody tr")] == ["test_conv.py", "test_norm.py"]


def test_lines_of_one_colour_are_told_apart_by_their_dash(tab, place):
    tab.open(place + "#view=speed&measure=compile_seconds", "speed")
    dash = "[...document.querySelectorAll('.swatch path')].map((each) => getComputedStyle(each))"
    drawn = tab.ask(f"{dash}.map((each) => each.stroke + each.strokeDasharray)")
    assert len(drawn) == len(set(drawn)) == 6


def test_a_narrow_window_shows_the_newest_nights_at_a_size_to_read(tab, place):
    tab.size(420, 800)
    try:
        tab.open(place)
        newest = "[...document.querySelectorAll('.bars .bar')].at(-1).getBoundingClientRect()"
        left, right, width = tab.ask(f"(({{left, right, width}}) => [left, right, width])({newest})")
        assert 0 < left < right <= 420
        assert width > 8
        rows = "[...document.querySelectorAll('.tiles > div')].map((each) => each.getBoundingClientRect())"
        assert len(tab.ask(f"[...new Set({rows}.map((each) => Math.round(each.top)))]")) == 2
        assert len(tab.ask(f"[...new Set({rows}.map((each) => Math.round(each.left)))]")) == 3
    finally:
        tab.size(1300, 900)


def test_the_theme_turns_and_stays(tab, place):
    tab.open(place)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.ask(ground)
    tab.press("t")
    assert tab.ask(ground) != light
    tab.open(place + "#view=flaky", "flaky")
    assert tab.ask(ground) != light
    tab.click("#theme")
    assert tab.ask(ground) == light


def test_the_page_fits_a_narrow_window_and_paper(tab, place):
    tab.size(420, 800)
    for view in ("last", "map", "flaky", "speed", "compilers"):
        tab.open(place + f"#view={view}", view)
        assert tab.ask("document.documentElement.scrollWidth") <= 420, view
    tab.size(1300, 900)
    tab.open(place)
    assert len(tab.call("Page.printToPDF")["data"]) > 10_000
