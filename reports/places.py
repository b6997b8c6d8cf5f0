"""Where results go by default."""

import os
from pathlib import Path

DEFAULT_DATABASE = ".plumbline/results.sqlite"
DEFAULT_PAGE = "plumbline-report/index.html"
DATABASE_VARIABLE = "PLUMBLINE_DB"


def database_place(place: str | None = None) -> str:
    """Return the database to use: this path or URL, else $PLUMBLINE_DB, else the default file."""
    return place or os.environ.get(DATABASE_VARIABLE) or DEFAULT_DATABASE


def page_file(place: str) -> Path:
    """Return the file of a page: the place itself when it ends in .html, else index.html in that directory."""
    path = Path(place)
    return path if path.suffix.lower() in (".html", ".htm") else path / "index.html"
