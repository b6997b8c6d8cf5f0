"""A made-up history of nights with planted regressions, flaky cases, renames and a void night; a seed decides."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plumbline.reports.nights import judge_run
from plumbline.reports.rows import CaseRow, RunRow, identify_case
from plumbline.reports.store import open_store

COLUMNS = tuple(
    (compiler, backend) for compiler in ("plumbline", "torch") for backend in ("eager", "aot_eager", "inductor")
)
_FILES = ("attention", "convolution", "embedding", "lstm", "mlp", "norm", "optimizer", "pooling", "softmax", "views")
_START = datetime(2026, 9, 1, 2, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Regression:
    """Cases that break in one night and stay broken until another (or the end)."""

    first: int
    last: int
    tests: tuple[int, ...]
    columns: tuple[str, ...]
    verdict: str
    aspect: str
    stage: str
    suspect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticHistory:
    """What to make: nights are counted from 0; tests x 6 columns are the cases of a night."""

    nights: int = 60
    tests: int = 334
    seed: int = 0
    suite: str = "models"
    branch: str = "main"


@dataclass(frozen=True, slots=True)
class Planted:
    """What is in the history, for a test to look for: nights and tests are counted from 0."""

    regressions: tuple[Regression, ...]
    flaky: tuple[tuple[int, str, float], ...]
    renamed: dict[int, int]
    void_night: int
    torch_upgrade: int
    slower_from: int
    run_ids: list[str] = field(default_factory=list)

    def name(self, test: int, night: int) -> str:
        """Return the name of a test in a night."""
        file = _FILES[test % len(_FILES)]
        new = "_renamed" if self.renamed.get(test, 10**9) <= night else ""
        return f"tests/test_{file}.py::test_{file}_{test:04d}{new}"


def plant(history: SyntheticHistory) -> Planted:
    """Decide what happens in a history."""
    draw = random.Random(history.seed)
    last = history.nights - 1
    upgrade, void_night = last * 2 // 3, last // 3
    tests = list(range(history.tests))
    picked = draw.sample(tests, min(len(tests), 60))
    regressions = (
        Regression(
            max(1, last - 1),
            last,
            tuple(picked[:14]),
            ("plumbline:inductor",),
            "WRONG",
            "values",
            "inductor",
            "plumbline",
        ),
        Regression(
            last, last, (picked[14],), tuple(f"{c}:{b}" for c, b in COLUMNS), "CRASH", "exception", "", "your code"
        ),
        Regression(upgrade, last, tuple(picked[15:20]), ("torch:inductor",), "WRONG", "gradients", "inductor", "torch"),
        Regression(
            last // 6,
            last // 4,
            tuple(picked[20:23]),
            ("plumbline:aot_eager", "plumbline:inductor"),
            "WRONG",
            "values",
            "aot_eager",
            "plumbline",
        ),
    )
    columns = [f"{compiler}:{backend}" for compiler, backend in COLUMNS]
    flaky = tuple((test, draw.choice(columns), draw.uniform(0.03, 0.12)) for test in picked[30:37])
    renamed = dict.fromkeys(picked[40:44], last // 2)
    return Planted(regressions, flaky, renamed, void_night, upgrade, last * 3 // 4)


def write_history(place: str | Path, history: SyntheticHistory) -> Planted:
    """Write a history into a database, judge every night, and return what was planted."""
    planted = plant(history)
    draw = random.Random(history.seed + 1)
    with open_store(str(place), write=True) as store:
        for night in range(history.nights):
            for run, cases in _runs_of_night(history, planted, night, draw):
                store.begin_run(run)
                store.append(cases)
                store.finish_run(run.run_id, run.utc)
                judge_run(store, run.run_id)
                planted.run_ids.append(run.run_id)
    return planted


def _runs_of_night(
    history: SyntheticHistory, planted: Planted, night: int, draw: random.Random
) -> Iterator[tuple[RunRow, list[CaseRow]]]:
    run = _run(history, planted, night)
    if night == planted.void_night:
        broken = replace(run, run_id=f"{run.run_id}-broken")
        yield broken, list(_cases(history, planted, night, broken.run_id, draw, broken=True))
        run = replace(run, rerun_of=broken.run_id, utc=_time(night, hours=2))
    yield run, list(_cases(history, planted, night, run.run_id, draw, broken=False))


def _time(night: int, hours: int = 0) -> str:
    return (_START + timedelta(days=night, hours=hours)).isoformat(timespec="seconds")


def _run(history: SyntheticHistory, planted: Planted, night: int) -> RunRow:
    moved = dict.fromkeys(("plumbline", "your code", "torch"), 0)  # regressions come and go with a change
    for each in planted.regressions:
        moved[each.suspect] += (night >= each.first) + (night > each.last)
    plumbline_commits = night // 3 + moved["plumbline"]
    commit = hashlib.sha1(f"{history.seed} {night // 2 + moved['your code']}".encode()).hexdigest()
    return RunRow(
        run_id=f"night-{history.seed}-{night:03d}",
        utc=_time(night),
        commit=commit,
        plumbline=f"0.1.dev{plumbline_commits}",
        torch="2.13.0+cpu" if night >= planted.torch_upgrade else "2.12.1+cpu",
        python="3.11.7",
        platform="Linux",
        threads=2,
        command="plumbline nightly tests",
        kind="nightly",
        suite=history.suite,
        branch=history.branch,
        machine="x86_64, 2 cores",
        cache="cold",
    )


def _cases(
    history: SyntheticHistory, planted: Planted, night: int, run_id: str, draw: random.Random, *, broken: bool
) -> Iterator[CaseRow]:
    wrong = {
        (test, column): each
        for each in planted.regressions
        if each.first <= night <= each.last
        for test in each.tests
        for column in each.columns
    }
    flaky = {(test, column): rate for test, column, rate in planted.flaky}
    for test in range(history.tests):
        name = planted.name(test, night)
        taste = random.Random(f"{history.seed} {test}")
        cpu, margin, graphs = (
            taste.uniform(0.2, 2.0),
            taste.choice((0.0, 0.0, taste.uniform(0.01, 0.4))),
            taste.randint(1, 3),
        )
        for compiler, backend in COLUMNS:
            column = f"{compiler}:{backend}"
            slower = 1.2 if compiler == "plumbline" and night >= planted.slower_from else 1.0
            seconds = cpu * slower * (1.5 if compiler == "torch" else 1.0) * draw.gauss(1.0, 0.03)
            row = CaseRow(
                run_id=run_id,
                case_id=identify_case(name, compiler, backend),
                test=name,
                compiler=compiler,
                backend=backend,
                outcome="passed",
                verdict="NOISE" if margin else "EQUAL",
                margin=margin,
                boundaries=1,
                judged_calls=3,
                graphs=graphs,
                ops=graphs * 12,
                test_seconds=seconds * 1.5,
                compile_seconds=seconds,
                compile_cpu=seconds,
                peak_bytes=int(seconds * 8e6) << (backend == "inductor"),
                eager_seconds=0.02,
                compiled_seconds=0.015,
                source=hashlib.sha1(f"{test}".encode()).hexdigest()[:16],
            )
            told = wrong.get((test, column))
            if told is not None:
                yield _failing(row, told.verdict, told.aspect, told.stage)
            elif broken and column == "torch:inductor" and test % 10 == 0:
                yield _failing(row, "CRASH", "exception", "inductor")
            elif draw.random() < flaky.get((test, column), 0.0):
                failed = _failing(row, "WRONG", "values", backend)
                yield failed
                yield replace(row, attempt=2)
            else:
                yield row


def _failing(row: CaseRow, verdict: str, aspect: str, stage: str) -> CaseRow:
    told = {"outcome": "failed", "verdict": verdict, "aspect": aspect, "stage": stage or None, "boundary": "Attention"}
    row = replace(row, user_file="model.py", user_line=88, **told)
    if verdict == "CRASH":
        return replace(row, margin=0.0, sentence="SIGSEGV in the compiled call")
    return replace(
        row,
        margin=31.3,
        where="output[0]",
        sentence="differs by 31.3 units of noise at [3, 17]",
        worst_index=(3, 17),
        actual=0.48213,
        eager=0.510021,
        reference=0.51002,
        error=0.02789,
        scale=8.9e-4,
    )
