"""The pages of a result database: what the static file holds, and what the server answers."""

from pathlib import Path

from plumbline.compiler.base.errors import UserError

from ..gating.thresholds import default_thresholds
from ..history import Night, findings, nights, renames, states
from ..rows import utc_now
from ..store import ResultStore
from .case_details import details_of_test, failing_details
from .headline import headline_of, summary_of
from .measures import measured_window
from .packing import packed_history
from .page_data import CaseDetail, NightShown, PackedHistory, PageData
from .page_query import PageQuery
from .shown_faults import drifts_of, flaky_cases, last_green, name_changes, night_before, shown_faults
from .window import Window, chosen_stream, marks_shown, read_window, series_name

_KEPT_WINDOWS = 4  # of a server: a page, its history and its tests come one after the other


class StoredResults:
    """Answers what a dashboard asks, from an open store; root: repository of the project, for names of commits."""

    def __init__(self, store: ResultStore, *, root: Path | None = None, live: bool = False) -> None:
        self._store = store
        self._root = root
        self._live = live
        self._windows: dict[tuple[PageQuery, int], Window] = {}

    def page(self, query: PageQuery) -> PageData:
        """Return what the page shows; UserError when there is no night that fits the query."""
        stream, all_series = chosen_stream(self._store, query)
        window = self._window(query)
        details = failing_details(self._store, window, 1 if self._live else query.nights)  # a server is asked for more
        by_case = {(detail.test, detail.column): detail for detail in details if detail.night == window.last}
        faults = shown_faults(self._store, window, by_case, self._root)
        last = window.nights[-1]
        measures, measured = measured_window(window)
        vanished = states(self._store, stream, wanted=("vanished",), limit=2_000)
        return PageData(
            project="plumbline",
            made=utc_now(),
            live=self._live,
            verdict=last.verdict.upper(),
            headline=headline_of(last, faults),
            summary=summary_of(last),
            nights=tuple(map(_night_shown, window.nights)),
            columns=window.columns,
            marks=marks_shown(),
            compared=night_before(window),
            green=last_green(window),
            faults=faults,
            drifts=drifts_of(findings(self._store, last.number), window),
            flaky=flaky_cases(self._store, window, default_thresholds()),
            names=name_changes(window, renames(self._store, stream), vanished),
            measures=measures,
            measured=measured,
            details=() if self._live else details,
            series=series_name(stream),
            all_series=all_series,
            more_nights=len(window.nights) == query.nights,
        )

    def history(self, query: PageQuery) -> PackedHistory:
        """Return the marks and margins of the nights of a page."""
        window = self._window(query)
        nights = len(window.nights)
        return packed_history(window.names, window.marks.reshape(nights, -1), window.margins.reshape(nights, -1))

    def test(self, query: PageQuery, name: str) -> tuple[CaseDetail, ...]:
        """Return what the nights of a page know of one test, the newest first; UserError for an unknown test."""
        window = self._window(query)
        if name not in window.names:
            raise UserError(f"no test {name[:200]!r} in these nights", hint="search for it in the map")
        return details_of_test(self._store, window, window.numbers[window.names.index(name)])

    def _window(self, query: PageQuery) -> Window:
        """Return the window of a query, kept until a new night is judged."""
        stream, _ = chosen_stream(self._store, query)
        newest = nights(self._store, stream, 1)[0].number
        key = (query, newest)
        if key not in self._windows:
            while len(self._windows) >= _KEPT_WINDOWS:
                self._windows.pop(next(iter(self._windows)))
            self._windows[key] = read_window(self._store, stream, query)
        return self._windows[key]


def _night_shown(night: Night) -> NightShown:
    run = night.run
    return NightShown(
        run_id=run.run_id,
        utc=run.utc,
        suite=run.suite,
        machine=run.machine or run.platform,
        versions=_versions(night),
        void=run.void,
        complete=run.complete,
        red=night.verdict == "red",
        new=night.new,
        still=night.still,
        flaky=night.flaky,
        fixed=night.fixed,
        passing=night.good,
        cases=night.cases,
    )


def _versions(night: Night) -> dict[str, str]:
    run = night.run
    machine = ", ".join(filter(None, [run.machine or run.platform, f"Python {run.python}" if run.python else ""]))
    return {
        "plumbline": run.plumbline[:40],
        "torch": run.torch[:40],
        "your code": run.commit[:10] + (" with local edits" if run.dirty else ""),
        "machine": machine[:120],
    }
