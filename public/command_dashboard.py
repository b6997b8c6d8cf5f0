"""The command of the dashboard: one file, or a small server."""

from pathlib import Path

import click

from plumbline.compiler.base.errors import UserError
from plumbline.reports.places import database_place, page_file

from .command_results import database


@click.command()
@database
@click.option("--html", metavar="PLACE", help="Write the page: a directory or a .html file, such as dashboard.")
@click.option("--serve", is_flag=True, help="Serve it with live data instead, until Ctrl+C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; others than you may then read.")
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="0 takes any free one.")
@click.option("--nights", type=click.IntRange(2, 400), default=60, show_default=True, help="How many nights to show.")
@click.option("--until", default="", metavar="ID", help="End with this run.  [default: the newest]")
@click.option("--series", default="", metavar="NAME", help="Runs of this 'suite @ branch'.  [default: of the newest]")
def dashboard(
    db: str | None, html: str | None, serve: bool, host: str, port: int, nights: int, until: str, series: str
) -> int:
    """Show many nights: what is new, whose fault it is, what drifts and what is flaky.

    The written page needs no network and no other file. With --serve, a browser asks for what it shows.
    """
    from plumbline.reports.dashboard.page_query import PageQuery
    from plumbline.reports.dashboard.server import DashboardServer
    from plumbline.reports.dashboard.static_page import write_dashboard
    from plumbline.reports.dashboard.stored_results import StoredResults
    from plumbline.reports.store import open_store

    if serve == (html is not None):
        raise UserError("nothing to do" if html is None else "two things to do", hint="pass --html PLACE or --serve")
    query = PageQuery(series=series, until=until, nights=nights)
    with open_store(database_place(db)) as store:
        if html is not None:
            page = write_dashboard(store, query, page_file(html), Path.cwd())
            print(f"{page.verdict}: {page.headline}\npage written: {page_file(html)}")
            return 0
        with DashboardServer(StoredResults(store, root=Path.cwd(), live=True), query, host, port) as server:
            print(f"dashboard: {server.address}  (Ctrl+C ends it)", flush=True)
            server.serve_forever()
    return 0
