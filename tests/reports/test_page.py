"""The page: one well-formed file that needs no network, shows every case and escapes what it is given."""

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole
from plumbline.reports.page import render_page, write_page
from plumbline.reports.places import database_place, page_file
from plumbline.reports.rows import CallRow, CaseRow
from plumbline.reports.store import open_store
from plumbline.reports.verdict_marks import VERDICTS
from support.any_rows import rows
from support.made_rows import call_row, case_row, run_row, stored, wrong_case

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Strict(HTMLParser):
    """Collects tags, text and attributes; fails on a tag that is not closed or closed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)


def parse(page: str) -> Strict:
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def words(parser: Strict) -> str:
    return " ".join(" ".join(parser.text).split())


def test_every_case_stands_on_the_page():
    cases = [case_row(f"t.py::test_{n}", b) for n in range(3) for b in ("eager", "inductor")] + [
        wrong_case("t.py::test_w")
    ]
    text = words(parse(render_page(run_row(), cases)))
    for case in cases:
        assert case.test in text
    assert "1 of 7 cases fail" in text
    assert "plumbline:eager" in text


def test_a_failing_case_can_be_drilled_into():
    case = wrong_case(notes=("strides differ",), events=({"kind": "graph_break", "reason": "print"},))
    parser = parse(render_page(run_row(), [case], {case.case_id: [call_row(case, 7)]}))
    text = words(parser)
    for part in (
        "differs by 31.3 units of noise at [3, 17]",
        "first wrong backend inductor",
        "aspect values",
        "place output[0]",
        "your line model.py:88",
        "index [3, 17]",
        "compiled 0.48213",
        "error 0.02789",
        "one unit of its noise 0.00089",
        "error in units of noise 31.3",
        "strides differ",
        "reason print",
        "Attention 7",
    ):
        assert part in text, part
    ids = [attrs.get("id") for _, attrs in parser.tags]
    links = [attrs["href"] for tag, attrs in parser.tags if tag == "a"]
    assert f"#case-{case.case_id}" in links
    assert all(link[1:] in ids for link in links)


def test_names_cannot_run_as_code():
    evil = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
    case = wrong_case(
        evil,
        sentence=evil,
        where=evil,
        user_file=evil,
        boundary=evil,
        aspect=evil,
        stage=evil,
        notes=(evil,),
        events=({evil: evil},),
        compiler=evil,
    )
    calls = {case.case_id: [call_row(case, sentence=evil, where=evil, boundary=evil, verdict=evil)]}
    parser = parse(render_page(run_row(evil, command=evil, torch=evil), [case], calls))
    tags = [tag for tag, _ in parser.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not [name for _, attrs in parser.tags for name in attrs if name.startswith("on")]
    assert "<script>alert('x')</script>" in words(parser)


def test_nothing_is_fetched():
    page = render_page(run_row(), [wrong_case(), case_row("b")])
    parser = parse(page)
    for _, attrs in parser.tags:
        for name in ("src", "href", "action", "data", "srcset"):
            assert (attrs.get(name) or "#").startswith(("#", "data:"))
    assert not re.search(r"url\(|@import|https?://", page)
    policy = next(a["content"] for t, a in parser.tags if t == "meta" and a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_colours_are_never_alone():
    cases = [case_row(f"t{n}", verdict=v, outcome="failed" if n > 7 else "passed") for n, v in enumerate(VERDICTS)]
    page = render_page(run_row(), cases)
    badges = re.findall(r'<span class="badge [a-z]+"[^>]*>([^<]*)</span>', page)
    assert len(badges) > 2 * len(cases)
    assert all(badge.strip() for badge in badges)


def test_charts_and_buttons_have_names():
    history = {case_row().case_id: [("r0", "passed", 0.1), ("run-1", "passed", 0.2)]}
    parser = parse(render_page(run_row(), [case_row(test_seconds=1.0)], {}, history))
    pictures = [attrs for tag, attrs in parser.tags if tag == "svg"]
    assert len(pictures) == 2
    assert all(attrs["aria-label"] for attrs in pictures)
    assert "margins of the last 2 runs: 0.1, 0.2" in [attrs["aria-label"] for attrs in pictures]
    assert [attrs["aria-label"] for tag, attrs in parser.tags if tag == "input"]
    assert parser.tags[0] == ("html", {"lang": "en"})


def test_an_interrupted_and_an_empty_run_say_so():
    assert "Interrupted." in words(parse(render_page(run_row(complete=False), [])))
    assert "No cases" in words(parse(render_page(run_row(), [])))
    assert "All 1 cases hold" in words(parse(render_page(run_row(), [case_row()])))


@settings(max_examples=50, deadline=None)
@given(rows(CaseRow), rows(CallRow))
def test_any_row_gives_a_well_formed_page(case, call):
    page = render_page(run_row(), [case], {case.case_id: [call]}, {case.case_id: [("a", "failed", case.margin)] * 2})
    parse(page)


def test_the_page_is_as_good_for_ten_thousand_cases():
    cases = [case_row(f"test_{n}", b) for n in range(3000) for b in ("eager", "aot_eager", "inductor")]
    page = render_page(run_row(), cases)
    assert len(page) < 1000 * len(cases)
    parse(page)


def test_a_page_is_written_from_the_store(tmp_path):
    place = stored(tmp_path / "r.sqlite", [wrong_case(), case_row("b")], calls=[call_row(wrong_case(), 3)])
    with open_store(str(place)) as store:
        write_page(store, store.run(), tmp_path / "deep" / "report" / "index.html")
    text = words(parse((tmp_path / "deep" / "report" / "index.html").read_text(encoding="utf-8")))
    assert "Attention 3" in text
    assert sorted(os.listdir(tmp_path / "deep" / "report")) == ["index.html"]


def test_a_place_that_cannot_be_written_is_told_and_the_old_page_stays(tmp_path, monkeypatch):
    page = tmp_path / "index.html"
    page.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UserError, match="No space left"):
        write_whole(page, "new")
    assert page.read_text() == "old"
    assert os.listdir(tmp_path) == ["index.html"]


def test_a_file_in_place_of_the_directory_is_told(tmp_path):
    (tmp_path / "report").write_text("in the way")
    place = stored(tmp_path / "r.sqlite", [case_row()])
    with open_store(str(place)) as store, pytest.raises(UserError, match="cannot write") as error:
        write_page(store, store.run(), tmp_path / "report" / "index.html")
    assert "\n" not in str(error.value)
    assert (tmp_path / "report").read_text() == "in the way"


def test_a_page_can_be_read_by_others(tmp_path):
    old = os.umask(0o022)
    try:
        write_whole(tmp_path / "a.html", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("given", "file"), [("out", "out/index.html"), ("out/a.html", "out/a.html"), ("a.HTM", "a.HTM")]
)
def test_where_a_page_goes(given, file):
    assert page_file(given) == Path(file)


def test_where_results_go(monkeypatch):
    monkeypatch.delenv("PLUMBLINE_DB", raising=False)
    assert database_place() == ".plumbline/results.sqlite"
    monkeypatch.setenv("PLUMBLINE_DB", "env.sqlite")
    assert database_place() == "env.sqlite"
    assert database_place("given.sqlite") == "given.sqlite"


def test_unjudged_numbers_are_unknown_not_zero():
    case = replace(wrong_case(), reference=None, scale=0.0)
    text = words(parse(render_page(run_row(), [case])))
    assert "reference (fp64) unknown" in text
    assert "error in units of noise" not in text
