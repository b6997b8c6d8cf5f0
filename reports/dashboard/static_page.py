"""The dashboard as one file in a directory, to be published, mailed or opened where it lies."""

from pathlib import Path

from ..atomic_file import write_whole
from ..store import ResultStore
from .document import static_document
from .page_data import PageData
from .page_query import PageQuery
from .stored_results import StoredResults


def write_dashboard(store: ResultStore, query: PageQuery, file: Path, root: Path | None) -> PageData:
    """Write the page whole or not at all, and return what it shows.

    root: repository of the project, for the names of commits.  Raises UserError when there are no nights, or when the
    place cannot be written.
    """
    results = StoredResults(store, root=root)
    page = results.page(query)
    write_whole(file, static_document(page, results.history(query)))
    return page
