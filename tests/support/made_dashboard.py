"""A page and history made by hand, with three planted faults, a flaky case, hostile names: for tests of the browser."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy

from plumbline.reports.dashboard.packing import packed_history
from plumbline.reports.dashboard.page_data import (
    CaseDetail,
    Commit,
    DriftShown,
    FaultShown,
    FlakyShown,
    MarkShown,
    Measured,
    MeasureShown,
    NameChange,
    NightShown,
    PackedHistory,
    PageData,
)
from plumbline.reports.strips import byte_of_value

COLUMNS = tuple(
    f"{compiler}:{backend}" for compiler in ("plumbline", "torch") for backend in ("eager", "aot_eager", "inductor")
)
MARKS = tuple(
    MarkShown(letter=letter, word=word, tone=tone, meaning=f"means {word}", rank=rank, failing=tone == "bad")
    for rank, (letter, word, tone) in enumerate(
        [
            (" ", "absent", "none"),
            ("=", "EQUAL", "good"),
            ("~", "NOISE", "good"),
            ("+", "BETTER", "better"),
            ("?", "NO_REFERENCE", "weak"),
            ("W", "WRONG", "bad"),
            ("C", "CRASH", "bad"),
            ("F", "failed", "bad"),
        ]
    )
)
EQUAL, NOISE, WRONG, CRASH, FAILED = 1, 2, 5, 6, 7
HOSTILE = (
    "tests/test_evil.py::test_a[<script>window.hacked=1</script>]",
    "tests/test_evil.py::test_b[\"'><img src=x onerror=window.hacked=1>]",
    "tests/test_evil.py::test_c[" + "very_long_" * 60 + "]",
    "tests/test_evil.py::test_d[\u202e\u0000gnol 日本語 🙂]",
)


@dataclass(frozen=True)
class MadeHistory:
    page: PageData
    history: PackedHistory
    names: tuple[str, ...]


def made_history(nights: int = 60, tests: int = 120) -> MadeHistory:
    """Return a history whose last night has two new faults and one old one, under names that try to run as code."""
    rng = numpy.random.default_rng(7)
    files = ("norm", "attention", "conv", "index")
    names = [f"tests/test_{files[i % 4]}.py::test_{i // 4}[f32]" for i in range(tests - len(HOSTILE))] + list(HOSTILE)
    marks = numpy.full((nights, tests, 6), EQUAL, dtype=numpy.uint8)
    margins = numpy.zeros((nights, tests, 6), dtype=numpy.uint8)
    noisy = rng.random((tests, 6)) < (0.0, 0.1, 0.4, 0.0, 0.1, 0.4)
    marks[:, noisy] = NOISE
    margins[:, noisy] = rng.integers(60, 165, noisy.sum())
    void = nights // 3
    plans = {
        "norm": ([0, 4, 8, 12], [2], nights - 1, WRONG),
        "evil": ([tests - 4, tests - 3], [5], nights - 1, CRASH),
        "index": ([3, 7, 11], [5], nights - 14, WRONG),
    }
    for places, columns, since, mark in plans.values():
        for column in columns:
            marks[since:, places, column] = mark
            margins[since:, places, column] = byte_of_value(210.0)
    flaky = rng.random(nights) < 0.2
    flaky[-1] = True
    marks[flaky, 1, 2] = CRASH
    page = _page(nights, names, marks, void, plans)
    return MadeHistory(
        page, packed_history(names, marks.reshape(nights, -1), margins.reshape(nights, -1)), tuple(names)
    )


def _night(n: int, nights: int, void: int) -> NightShown:
    day = date(2026, 9, 23) + timedelta(n)
    changed = n == nights - 1
    versions = {
        "plumbline": "9f3c1ab" if changed else "b4ef277",
        "torch": "2.13.0" if n >= nights - 14 else "2.12.1",
        "your code": "b3d9f02" if changed else "df35ebd",
        "machine": "x86_64, Python 3.11, 8 threads",
    }
    new, still = (6 if changed else 3 if n == nights - 14 else 0), (3 if n > nights - 14 else 0)
    return NightShown(
        run_id=f"night-{n}",
        utc=f"{day}T02:00:00+00:00",
        suite="models",
        machine="build-1",
        versions=versions,
        void="torch:inductor crashed in 60 % of its cases" if n == void else "",
        red=new + still > 0,
        new=new,
        still=still,
        flaky=(n * 7) % 3,
        fixed=0,
        passing=720 - new - still,
        cases=720,
    )


def _fault(
    names: list[str],
    marks: numpy.ndarray,
    nights: int,
    plan: tuple[list[int], list[int], int, int],
    suspect: str,
    why: str,
) -> FaultShown:
    places, columns, since, mark = plan
    worst = names[places[0]]
    file = worst.split("::")[0]
    detail = CaseDetail(
        test=worst,
        column=columns[-1],
        night=nights - 1,
        mark=mark,
        margin=210.0,
        sentence="differs by 210 units of noise at [3, 17]",
        where="output[0]",
        facts=(
            ("compiled", "0.48213"),
            ("eager", "0.510021"),
            ("first wrong backend", "inductor"),
            ("aspect", "values"),
        ),
        notes=("strides differ",),
        events=("graph break: print",),
        command=f"repro-minify '{worst}'",
    )
    new = since == nights - 1
    return FaultShown(
        key=f"fault-{places[0]}",
        new=new,
        since=since,
        since_date=str(date(2026, 9, 23) + timedelta(since)),
        nights=nights - since,
        columns=tuple(columns),
        mark=mark,
        title=f"{file.split('/')[-1]}: {MARKS[mark].word.lower()} in {len(places)} tests, {COLUMNS[columns[0]]}",
        tests=tuple(places),
        suspect=suspect,
        why=why,
        commits=(Commit(id="9f3c1ab", title="Fuse the two passes of <b>layer norm</b>", author="author 1"),),
        worst=detail,
        command=f"repro-minify '{worst}'",
        history="".join(MARKS[m].letter for m in marks[:, places[0], columns[-1]]),
    )


def _page(
    nights: int,
    names: list[str],
    marks: numpy.ndarray,
    void: int,
    plans: dict[str, tuple[list[int], list[int], int, int]],
) -> PageData:
    faults = (
        _fault(
            names,
            marks,
            nights,
            plans["norm"],
            "plumbline",
            "torch is right in all of them, and plumbline changed last night.",
        ),
        _fault(
            names,
            marks,
            nights,
            plans["evil"],
            "torch",
            "plumbline is right in all of them, and torch did not change: this is the only compiler that fails.",
        ),
        _fault(
            names,
            marks,
            nights,
            plans["index"],
            "torch",
            "plumbline is right in all of them, and torch changed on that night.",
        ),
    )
    details = tuple(replace(fault.worst, test=names[place]) for fault in faults if fault.worst for place in fault.tests)
    rng = numpy.random.default_rng(3)
    level = (1.0, 1.4, 2.2, 1.0, 1.5, 1.9)
    measured = tuple(
        Measured(
            measure=key,
            column=k,
            group=group,
            values=tuple(float(v) for v in level[k] * scale * numpy.exp(rng.normal(0, 0.02, nights))),
        )
        for key, scale in (("ratio", 1.0), ("compile_seconds", 30.0))
        for k in range(6)
        for group in ("", "tests/test_norm.py", "tests/test_conv.py")
    )
    return PageData(
        project="plumbline",
        made="2026-11-21T05:00:00+00:00",
        live=False,
        verdict="RED",
        headline="Two new faults last night: suspect plumbline (4 tests) and torch (2 tests)",
        summary="2026-11-21, 02:00 UTC, 720 cases: 6 newly wrong, 3 still wrong, 1 flaky (not counted).",
        nights=tuple(_night(n, nights, void) for n in range(nights)),
        columns=COLUMNS,
        marks=MARKS,
        compared=nights - 2,
        green=nights - 15,
        faults=faults,
        drifts=(
            DriftShown(
                bold="plumbline:inductor compiles 20 % slower",
                text="than torch:inductor of the same night, since about 2026-11-03",
                view={"view": "speed"},
                night=nights - 18,
            ),
        ),
        flaky=(
            FlakyShown(
                test=names[1],
                column=2,
                mark=CRASH,
                failing=True,
                rate=0.2,
                since="2026-10-01",
                standing="30 clean nights to go",
                history="".join(MARKS[m].letter for m in marks[:, 1, 2]),
            ),
        ),
        names=(
            NameChange(before="tests/test_norm.py::test_old[<i>]", after=names[4], because="same source"),
            NameChange(before=HOSTILE[0]),
        ),
        measures=(
            MeasureShown(
                key="ratio",
                title="Compile time ratio",
                lead="CPU seconds of compiling over those of the other compiler, same night.",
                unit="x",
            ),
            MeasureShown(key="compile_seconds", title="Compile seconds", lead="CPU seconds.", unit="s"),
        ),
        measured=measured,
        details=details,
    )
