"""Where results go when nobody says otherwise."""

import os
from pathlib import Path

DEFAULT_DATABASE = ".plumbline/results.sqlite"
DEFAULT_PAGE = "plumbline-report/index.html"
DATABASE_VARIABLE = "PLUMBLINE_DB"


def database_place(given: str | None = None) -> str:
    """Return the database to use: the given path or URL, else $PLUMBLINE_DB, else the default file."""
    return given or os.environ.get(DATABASE_VARIABLE) or DEFAULT_DATABASE


def page_file(given: str) -> Path:
    """Return the file of a page: `given` itself when it ends in .html, else index.html in that directory."""
    path = Path(given)
    return path if path.suffix.lower() in (".html", ".htm") else path / "index.html"
