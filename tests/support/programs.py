"""Small programs under capture: run eager and compiled, compare results and post-state, count graphs and breaks.

A program that does not hold yet stands in `tests/programs/gaps.toml`, with what happens now; a listed gap that has
closed fails its test until the entry is taken out, so the file only shrinks.
"""

import contextlib
import copy
import io
import sys
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, Event, RanEagerly, Recompiled, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.pipeline import compile_callable, make_family

from .sameness import assert_alike

Maker = Callable[[], tuple[Any, ...]]
GAPS_FILE = Path(__file__).resolve().parents[1] / "programs" / "gaps.toml"


@dataclass(frozen=True)
class Program:
    """A function with a maker of its arguments, and what capturing it must cost.

    graphs, breaks, eager: of the first call.  changed: other arguments that must make a new specialisation.
    then: further calls, each (maker of arguments, whether something is compiled); a maker may change what is outside.
    state: gives what else the program changes (globals, closures), compared after each run and put back before each.
    rounding: tensors may differ by rounding, because torch itself computes in another order when it is compiled.
    backward: sum what the call returns, run backward, and compare gradients too.
    settings: of `compile`; options included.
    """

    function: Callable[..., Any]
    arguments: Maker
    graphs: int
    breaks: int
    eager: int
    changed: Maker | None
    then: tuple[tuple[Maker, bool], ...]
    state: Callable[[], Any] | None
    stable: bool
    backward: bool
    rounding: bool
    settings: dict[str, Any]

    @property
    def id(self) -> str:
        """Return the name in gaps.toml: file and function."""
        return f"{self.function.__module__.rpartition('.')[2].removeprefix('test_')}.{self.function.__name__}"


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be; kind: wrong, crash or coverage."""

    kind: str
    text: str
    costs: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass
class Corpus:
    """The programs of one test file."""

    programs: list[Program] = field(default_factory=list)

    def program(
        self,
        *arguments: Any,
        make: Maker | None = None,
        graphs: int = 1,
        breaks: int = 0,
        eager: int = 0,
        changed: Maker | None = None,
        then: tuple[tuple[Maker, bool], ...] = (),
        state: Callable[[], Any] | None = None,
        stable: bool = True,
        backward: bool = False,
        rounding: bool = False,
        **settings: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function; arguments are copied for every run."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            maker = make or (lambda: copy.deepcopy(arguments))
            found = Program(
                function, maker, graphs, breaks, eager, changed, then, state, stable, backward, rounding, settings
            )
            assert found.id not in {program.id for program in self.programs}, found.id
            self.programs.append(found)
            return function

        return register

    def parametrize(self) -> Any:
        """Return the mark that runs a test over the programs."""
        return pytest.mark.parametrize("program", self.programs, ids=[p.function.__name__ for p in self.programs])


def compiled(function: Any, backend: Any = "eager", **settings: Any) -> Any:
    """Compile under strict options (an error of ours fails the test) unless the settings say otherwise."""
    fullgraph = settings.pop("fullgraph", False)
    dynamic = settings.pop("dynamic", None)
    options = Options(strict=True, numpy_threshold=0).replace(**settings)
    return compile_callable(function, make_family(backend, options, fullgraph=fullgraph, dynamic=dynamic))


_OF_TORCH = ("Guards may run slower on Python", "CUDA initialization:")  # said of the machine, once, by eager too


def outcome(
    function: Callable[..., Any], arguments: tuple[Any, ...], state: Callable[[], Any] | None, backward: bool = False
) -> Any:
    """Run and return (kind, result or exception, arguments afterwards, state afterwards, output, warnings, draws)."""
    torch.manual_seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result: Any = ("returns", function(*arguments))
            if backward:
                _run_backward(result[1])
        except Exception as error:
            result = ("raises", type(error), str(error) if not isinstance(error, RuntimeError) else "")
    messages = [(entry.category, str(entry.message)) for entry in warned]
    words = [said for said in messages if not said[1].startswith(_OF_TORCH)]
    modes = (torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_dtype())
    return result, arguments, copy.deepcopy(state()) if state else None, printed.getvalue(), words, modes, torch.rand(1)


def _run_backward(value: Any) -> None:
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    losses = [leaf.sum() for leaf in leaves if leaf.requires_grad]
    assert losses, "nothing to differentiate"
    torch.stack(losses).sum().backward()


def examine(program: Program) -> list[Finding]:
    """Run the program eager and compiled and return everything that is not as it should be."""
    findings: list[Finding] = []
    before = copy.deepcopy(program.state()) if program.state else None
    run = compiled(program.function, **{"strict": False} | program.settings)

    def both(maker: Maker, what: str) -> list[Event]:
        _restore(program, before)
        expected = outcome(program.function, maker(), program.state, program.backward)
        _restore(program, before)
        with recording() as events:
            actual = outcome(run, maker(), program.state, program.backward)
        try:
            assert_alike(expected, actual, rounding=program.rounding)
        except AssertionError as error:
            findings.append(Finding("wrong", f"{what}: {error}"))
        failures = [event for event in events if isinstance(event, CompilerFailed)]
        findings.extend(Finding("crash", f"{what}: {failure.error}") for failure in failures)
        return events

    first = both(program.arguments, "first call")
    costs = tuple(sum(isinstance(e, kind) for e in first) for kind in (Captured, Broke, RanEagerly))
    if costs != (program.graphs, program.breaks, program.eager):
        reasons = "; ".join(f"{e.reason}: {e.what}" for e in first if isinstance(e, Broke | RanEagerly))
        findings.append(Finding("coverage", f"graphs, breaks, eager are {costs}: {reasons}", (*costs, 0)))
    calls = [(program.arguments, False, "second call")] if program.stable else []
    calls += [(maker, compiles, f"call {number}") for number, (maker, compiles) in enumerate(program.then, 3)]
    calls += [(program.changed, True, "changed call")] if program.changed else []
    for maker, compiles, what in calls:
        events = both(maker, what)
        made = [e for e in events if isinstance(e, Recompiled | Captured)]
        if bool(made) != compiles:
            why = "; ".join(f"{e.guard}: {e.actual}" for e in made if isinstance(e, Recompiled))
            text = f"{what} compiled again: {why}" if made else f"{what} did not compile again"
            findings.append(Finding("coverage", text, (0, 0, 0, 1)))
    return findings


def _restore(program: Program, before: Any) -> None:
    if program.state is None:
        return
    holder = program.state()
    if isinstance(holder, dict):
        holder.clear()
        holder.update(copy.deepcopy(before))
    elif isinstance(holder, list):
        holder[:] = copy.deepcopy(before)


@dataclass(frozen=True)
class Gap:
    """An entry of gaps.toml. costs: graphs, breaks, eager of the first call and unwanted compilations, at most."""

    kind: str
    program: str
    now: str
    reason: str
    costs: tuple[int, int, int, int]


_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"  # an entry may be of one version only


def read_gaps() -> dict[str, Gap]:
    """Return the listed gaps by program."""
    if not GAPS_FILE.exists():
        return {}
    table = tomllib.loads(GAPS_FILE.read_text(encoding="utf-8"))
    assert set(table) <= {"wrong", "crash", "coverage"}, list(table)
    gaps = [
        Gap(kind, entry["program"], entry["now"], entry["reason"], tuple(entry.get("costs", (0, 0, 0, 0))))
        for kind, entries in table.items()
        for entry in entries
        if entry.get("python", _PYTHON) == _PYTHON
    ]
    assert len({gap.program for gap in gaps}) == len(gaps), "a program is listed twice"
    return {gap.program: gap for gap in gaps}


def check(program: Program) -> None:
    """Fail on anything that is not as it should be, on a listed gap that has closed, and on one that has grown."""
    findings = examine(program)
    gap = read_gaps().get(program.id)
    if gap is None:
        assert not findings, "\n".join(f"{finding.kind}: {finding.text}" for finding in findings)
        return
    kinds = {finding.kind for finding in findings}
    assert gap.kind in kinds, f"{program.id} is no {gap.kind} gap any more: take it out of gaps.toml"
    graver = {"coverage": {"wrong", "crash"}, "crash": {"wrong"}, "wrong": set()}[gap.kind]
    assert not kinds & graver, "\n".join(f"{finding.kind}: {finding.text}" for finding in findings)
    if gap.kind == "coverage":
        found = tuple(map(sum, zip(*(finding.costs for finding in findings), strict=True)))
        assert all(now <= then for now, then in zip(found, gap.costs, strict=True)), f"{found} grew past {gap.costs}"
