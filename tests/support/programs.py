"""Small programs under capture: run eager and compiled, compare results and post-state, count graphs and breaks."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import pytest
import torch
from plumbline.compiler.base.events import Broke, Captured, RanEagerly, Recompiled, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.pipeline import compile_callable, make_family


@dataclass(frozen=True)
class Program:
    """A function with a maker of its arguments, and what capturing it must cost.

    graphs, breaks, eager: of the first call.  changed: other arguments that must make a new specialisation.
    state: gives what else the program changes (globals, closures), compared after each run.
    """

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    graphs: int
    breaks: int
    eager: int
    changed: Callable[[], tuple[Any, ...]] | None
    state: Callable[[], Any] | None
    stable: bool


@dataclass
class Corpus:
    """The programs of one test file."""

    programs: list[Program] = field(default_factory=list)

    def program(
        self, *arguments: Any, make: Callable[[], tuple[Any, ...]] | None = None, graphs: int = 1, breaks: int = 0,
        eager: int = 0, changed: Callable[[], tuple[Any, ...]] | None = None, state: Callable[[], Any] | None = None,
        stable: bool = True,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function; arguments are copied for every run."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            maker = make or (lambda: copy.deepcopy(arguments))
            self.programs.append(Program(function, maker, graphs, breaks, eager, changed, state, stable))
            return function

        return register

    def parametrize(self) -> Any:
        """Return the mark that runs a test over the programs."""
        return pytest.mark.parametrize("program", self.programs, ids=[p.function.__name__ for p in self.programs])


def compiled(function: Any, backend: Any = "eager", **settings: Any) -> Any:
    """Compile under strict options: an error of ours fails the test."""
    fullgraph = settings.pop("fullgraph", False)
    dynamic = settings.pop("dynamic", None)
    options = Options(strict=True).replace(**settings)
    return compile_callable(function, make_family(backend, options, fullgraph=fullgraph, dynamic=dynamic))


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...], state: Callable[[], Any] | None) -> Any:
    """Run and return (kind, result or exception, arguments afterwards, state afterwards, draws afterwards)."""
    torch.manual_seed(0)
    try:
        result: Any = ("returns", function(*arguments))
    except Exception as error:
        result = ("raises", type(error), str(error) if not isinstance(error, RuntimeError) else "")
    return result, arguments, copy.deepcopy(state()) if state else None, torch.rand(1)


def assert_alike(left: Any, right: Any, path: str = "result") -> None:
    """Fail unless both have the same types, values and tensor metadata."""
    assert type(left) is type(right), f"{path}: {type(left)} is not {type(right)}"
    if isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype and left.shape == right.shape, path
        assert left.stride() == right.stride() and left.requires_grad == right.requires_grad, path
        assert torch.equal(torch.nan_to_num(left), torch.nan_to_num(right)), f"{path}: {left} is not {right}"
        if left.is_leaf and left.grad is not None:
            assert_alike(left.grad, right.grad, f"{path}.grad")
    elif isinstance(left, dict):
        assert list(left) == list(right), f"{path}: keys {list(left)} are not {list(right)}"
        for key in left:
            assert_alike(left[key], right[key], f"{path}[{key!r}]")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), f"{path}: length"
        for position, (a, b) in enumerate(zip(left, right, strict=True)):
            assert_alike(a, b, f"{path}[{position}]")
    elif isinstance(left, numpy.ndarray):
        assert numpy.array_equal(left, right), path
    elif hasattr(type(left), "__slots__") and not isinstance(left, torch.device | torch.dtype | str | int | set):
        for name in type(left).__slots__:
            assert_alike(getattr(left, name, None), getattr(right, name, None), f"{path}.{name}")
    elif hasattr(left, "__dict__") and not isinstance(left, type) and not callable(left):
        assert_alike(vars(left), vars(right), f"{path}.__dict__")
    elif not callable(left) and not isinstance(left, type):
        assert left == right or left != left, f"{path}: {left!r} is not {right!r}"


def check(program: Program) -> None:
    """Run the program eager and compiled and compare everything; count graphs, breaks and recompiles."""
    function = program.function
    before = copy.deepcopy(program.state()) if program.state else None
    expected = outcome(function, program.arguments(), program.state)
    if program.state is not None:
        _restore(program.state(), before)
    run = compiled(function)
    with recording() as events:
        actual = outcome(run, program.arguments(), program.state)
    assert_alike(expected, actual)
    found = {kind: sum(isinstance(e, kind) for e in events) for kind in (Captured, Broke, RanEagerly)}
    reasons = [(e.reason, e.what) for e in events if isinstance(e, Broke | RanEagerly)]
    assert (found[Captured], found[Broke], found[RanEagerly]) == (program.graphs, program.breaks, program.eager), reasons
    if program.state is not None:
        _restore(program.state(), before)
    with recording() as events:
        again = outcome(run, program.arguments(), program.state)
    assert_alike(expected, again)
    if program.stable:
        assert not [e for e in events if isinstance(e, Recompiled | Captured)], "the second call recompiled"
    if program.changed is not None:
        expected = outcome(function, program.changed(), None)
        with recording() as events:
            actual = outcome(run, program.changed(), None)
        assert_alike(expected, actual)
        assert any(isinstance(e, Recompiled) for e in events), "the changed call did not recompile"


def _restore(holder: Any, before: Any) -> None:
    if isinstance(holder, dict):
        holder.clear()
        holder.update(copy.deepcopy(before))
    elif isinstance(holder, list):
        holder[:] = copy.deepcopy(before)
