"""A small server of the live dashboard: a handful of fixed addresses, reading only, on this machine by default.

There are no files to be reached: every address is a word in a table.  While it listens on this machine only, a
request under another host name is refused, so that a page of somewhere else cannot read results through a name that it
points to this machine.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from plumbline.compiler.base.errors import PlumblineError, UserError

from .document import history_words, json_text, live_document, page_json
from .page_data import CaseDetail, PackedHistory, PageData
from .page_query import PageQuery

LOOPBACK = "127.0.0.1"
_LONGEST_ADDRESS = 8192  # characters; names of tests can be long
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class DashboardSource(Protocol):
    """What the server asks for each of its answers; raises UserError for a query that cannot be answered."""

    def page(self, query: PageQuery) -> PageData:
        """Return what the page shows."""

    def history(self, query: PageQuery) -> PackedHistory:
        """Return the marks and margins of the same nights."""

    def test(self, query: PageQuery, name: str) -> tuple[CaseDetail, ...]:
        """Return what is known of one test, the newest night first."""


class DashboardServer(ThreadingHTTPServer):
    """Serves one source, which is asked by one request at a time; usual: the query of an address that names nothing."""

    daemon_threads = True

    def __init__(self, source: DashboardSource, usual: PageQuery, host: str, port: int) -> None:
        self.source = source
        self.usual = usual
        self.turn = Lock()
        try:
            super().__init__((host, port), _Answers)
        except (OSError, OverflowError) as error:
            hint = "choose another one with --port, or --port 0 for any that is free"
            raise UserError("cannot listen", where=f"{host}:{port}", why=str(error), hint=hint) from None
        # Who opened it to others decided which names it has; on this machine only, no other name can be meant.
        self.names = {host.lower(), "localhost", LOOPBACK} if host in ("localhost", LOOPBACK) else None

    @property
    def address(self) -> str:
        """Return where the dashboard is, for a browser."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"


class _Answers(BaseHTTPRequestHandler):
    server: DashboardServer
    server_version = "plumbline"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer one request."""
        if not self._is_for_us():
            return self._send(403, "text/plain", "This server answers under its own name only.\n")
        if len(self.path) > _LONGEST_ADDRESS:
            return self._send(414, "text/plain", "The address is too long.\n")
        asked = urlsplit(self.path)
        if asked.path == "/":
            return self._send(200, "text/html", live_document())
        answer = _ANSWERS.get(asked.path)
        if answer is None:
            return self._send_json(404, {"error": "there is nothing at this address"})
        try:
            words = dict(parse_qsl(asked.query, keep_blank_values=True))
            with self.server.turn:
                text = answer(self.server.source, self.server.usual.changed(words), words)
        except PlumblineError as error:
            return self._send_json(400, {"error": error.one_line()})
        return self._send(200, "application/json", text)

    do_HEAD = do_GET  # noqa: N815 - the name is what http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        """Say nothing: only commands print."""

    def _is_for_us(self) -> bool:
        host = (self.headers.get("Host") or "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return self.server.names is None or name in self.server.names

    def _send_json(self, status: int, data: Mapping[str, object]) -> None:
        self._send(status, "application/json", json.dumps(data))

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


Answer = Callable[[DashboardSource, PageQuery, Mapping[str, str]], str]


def _page(source: DashboardSource, query: PageQuery, words: Mapping[str, str]) -> str:
    del words
    return page_json(source.page(query))


def _history(source: DashboardSource, query: PageQuery, words: Mapping[str, str]) -> str:
    del words
    return json_text(history_words(source.history(query)))


def _test(source: DashboardSource, query: PageQuery, words: Mapping[str, str]) -> str:
    return json_text([asdict(detail) for detail in source.test(query, words.get("test", ""))])


_ANSWERS: dict[str, Answer] = {"/api/page": _page, "/api/history": _history, "/api/test": _test}
