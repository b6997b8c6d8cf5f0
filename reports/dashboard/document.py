"""The HTML file: styles, scripts and data put into one frame, under a policy that allows nothing else.

Scripts and styles are allowed by their hash, so that text which got in by mistake could not run.
"""

import base64
import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib import resources

from .page_data import PackedHistory, PageData

_STYLES = ("palette.css", "layout.css", "findings.css", "charts.css", "print.css")
_SCRIPTS = (  # in the order in which each needs the ones before
    "elements.js",
    "page_state.js",
    "case_history.js",
    "results_source.js",
    "small_pictures.js",
    "night_bars.js",
    "line_chart.js",
    "test_rows.js",
    "heat_map.js",
    "view_last_night.js",
    "view_map.js",
    "view_flaky.js",
    "view_speed.js",
    "view_compilers.js",
    "view_test.js",
    "view_fault.js",
    "view_runs.js",
    "keyboard.js",
    "theme.js",
    "start.js",
)


def static_document(page: PageData, history: PackedHistory) -> str:
    """Return the page with all its data: it needs no network and no other file."""
    return _framed(embedded_json("page-data", page_json(page)) + _embedded_history(history), connect="'none'")


def live_document() -> str:
    """Return the page that asks the server it came from for its data."""
    return _framed("", connect="'self'", live=' data-live="1"')


def page_json(page: PageData) -> str:
    """Return the data as JSON that no HTML parser can mistake for markup."""
    return json_text(asdict(page))


def json_text(data: object) -> str:
    """Return JSON in ASCII with < and & as escapes; numbers JSON does not have become null."""
    text = json.dumps(_finite(data), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def history_words(history: PackedHistory) -> dict[str, str]:
    """Return the three parts of the history as base64 text."""
    return {name: base64.b64encode(part).decode("ascii") for name, part in _parts(history).items()}


def embedded_json(name: str, text: str) -> str:
    """Return a data block of the page; a browser does not run it."""
    return f'<script type="application/json" id="{name}">{text}</script>\n'


@cache
def browser_file(name: str) -> str:
    """Return a file of the folder `browser`."""
    return resources.files("plumbline.reports.dashboard.browser").joinpath(name).read_text(encoding="utf-8")


def _framed(data: str, *, connect: str, live: str = "") -> str:
    style = "\n".join(map(browser_file, _STYLES))
    script = '"use strict";\n(() => {\n' + "\n".join(map(browser_file, _SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    filled = {"live": live, "policy": policy, "style": style, "data": data, "script": script}
    page = browser_file("frame.html")
    pieces = [page]
    for name, text in filled.items():  # split, not replaced: data may hold the name of another place
        start, end = pieces.pop().split("{{ " + name + " }}")
        pieces += [start, text, end]
    return "".join(pieces)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _embedded_history(history: PackedHistory) -> str:
    blocks = (
        f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in history_words(history).items()
    )
    return "".join(blocks)


def _parts(history: PackedHistory) -> dict[str, bytes]:
    return {"names": history.names, "marks": history.marks, "margins": history.margins}


def _finite(data: object) -> object:
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data
