"""The server: fixed addresses, this machine's name only, every trouble as JSON, and a browser that is content."""

import http.client
import json
from collections.abc import Iterator
from threading import Thread
from urllib.parse import quote

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.dashboard.page_query import PageQuery
from plumbline.reports.dashboard.server import DashboardServer
from support.browser import browser_program, browser_tab
from support.made_dashboard import HOSTILE, MadeHistory, made_history


class MadeSource:
    """Answers from memory, and keeps what it was asked."""

    def __init__(self, made: MadeHistory) -> None:
        self.made = made
        self.asked: list[PageQuery] = []

    def page(self, query):
        self.asked.append(query)
        return self.made.page

    def history(self, query):
        return self.made.history

    def test(self, query, name):
        if name not in self.made.names:
            raise UserError("no test of this name", hint="search for it")
        return tuple(detail for detail in self.made.page.details if detail.test == name)


@pytest.fixture(scope="module")
def server() -> Iterator[DashboardServer]:
    with DashboardServer(MadeSource(made_history()), PageQuery(nights=50), "127.0.0.1", 0) as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_and_its_data_are_there(server):
    answer, body = ask(server, "/")
    assert answer.status == 200
    assert b"data-live" in body
    assert b"connect-src 'self'" in body
    assert json.loads(ask(server, "/api/page")[1])["verdict"] == "RED"
    assert set(json.loads(ask(server, "/api/history")[1])) == {"names", "marks", "margins"}


def test_the_query_is_of_the_address_or_the_usual_one(server):
    ask(server, "/api/page?nights=30&until=run%201&series=a%20@%20b")
    assert server.source.asked[-1] == PageQuery(series="a @ b", until="run 1", nights=30)
    ask(server, "/api/page")
    assert server.source.asked[-1] == PageQuery(nights=50)


@pytest.mark.parametrize("nights", ["1", "0", "-3", "401", "1e9", "²", "99999999999999999999", "x"])
def test_a_number_of_nights_that_is_none_is_refused(server, nights):
    answer, body = ask(server, f"/api/page?nights={quote(nights)}")
    assert answer.status == 400
    assert "not a number of nights" in json.loads(body)["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/api/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/index.html",
        "/api",
        "/api/pagex",
        "/api/page/",
    ],
)
def test_there_is_nothing_else(server, path):
    answer, body = ask(server, path)
    assert answer.status == 404
    assert b"root:" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "[::2]:80", ""])
def test_another_name_of_this_machine_is_refused(server, host):
    assert ask(server, "/api/page", Host=host)[0].status == 403
    assert ask(server, "/", Host="localhost:9")[0].status == 200


def test_only_reading_is_possible(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "/api/page", method)[0].status == 501
    answer, body = ask(server, "/api/page", "HEAD")
    assert (answer.status, body) == (200, b"")
    assert ask(server, "/api/test?test=" + "x" * 9_000)[0].status == 414


def test_nothing_from_results_can_be_markup_or_be_read_by_another_site(server):
    answer, body = ask(server, "/api/page")
    assert b"<" not in body
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Access-Control-Allow-Origin"] is None
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    answer, body = ask(server, "/api/test?test=%3Cscript%3E")
    assert answer.status == 400
    assert b"<" not in body


def test_a_port_that_is_taken_is_told(server):
    with pytest.raises(UserError, match="cannot listen") as error:
        DashboardServer(server.source, PageQuery(), "127.0.0.1", server.server_address[1])
    assert "--port" in error.value.one_line()


@pytest.mark.skipif(browser_program() is None, reason="no Chromium is installed here")
def test_a_browser_is_served(server):
    with browser_tab(str(browser_program())) as tab:
        tab.open(server.address)
        assert tab.text(".verdict") == "RED"
        tab.click(".fault h3 a", 1)
        tab.wait("document.documentElement.dataset.ready === 'fault'")
        tab.click("tr[data-open] a")
        tab.wait("document.documentElement.dataset.ready === 'test'")
        assert tab.text("h1") == HOSTILE[0]
        assert "differs by 210 units" in tab.text()
        tab.choose("#nights", "120")
        tab.wait("location.hash.includes('nights=120')")
        tab.wait("document.documentElement.dataset.ready === 'test'")
        tab.open(server.address + "#view=test&test=nothing", "test")
        assert "There is no test of this name" in tab.text()
        assert tab.complaints == []
        assert all(address.startswith((server.address, "about:", "data:")) for address in tab.requests)
        assert tab.ask("window.hacked") is None
