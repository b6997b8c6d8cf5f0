"""Specialisations check their guards in C where they can, and behave the same where they cannot."""

import traceback
from collections.abc import Callable

import pytest
import torch

import plumbline
from plumbline.compiler.base.options import Options
from plumbline.compiler.frontend.guards.generated_function import MISS, Names, guard_lines
from plumbline.compiler.frontend.guards.guard_evaluator import evaluator_type
from plumbline.compiler.frontend.guards.guarded_code import guarded_function
from plumbline.compiler.values.guard import Guard, GuardKind
from plumbline.compiler.values.source import Argument, Attribute, Item

pytestmark = pytest.mark.cc
X, Y = Argument("_l0", "x"), Argument("_l1", "y")


@pytest.fixture(params=[True, False], ids=["in_c", "in_python"])
def in_c(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Check guards in C, or in Python."""
    monkeypatch.setenv("PLUMBLINE_GUARDS_IN_C", "1" if request.param else "0")
    if request.param and evaluator_type(Options()) is None:
        pytest.skip("no C compiler or no Python headers: guards are checked in Python")
    return bool(request.param)


def _made(
    in_c: bool, guards: tuple[Guard, ...], body: Callable[[Names], list[str]]
) -> tuple[Callable[..., object], str]:
    names = Names()
    checks = guard_lines(list(guards), names)
    lines = body(names)
    return guarded_function("code", ["_l0", "_l1"], guards, checks, lines, names, None, {}, Options(guards_in_c=in_c))


def test_the_body_gets_what_the_guards_fetched(in_c: bool) -> None:
    place = Item(Attribute(X, "__dict__"), "a")
    guards = (Guard(place, GuardKind.EQUALS, 3), Guard(Y, GuardKind.TYPE, int))

    def body(names: Names) -> list[str]:
        before: list[str] = []
        other = names.fetch(Item(Attribute(X, "__dict__"), "b"), before)
        return [*before, f"return ({names.fetch(place, [])}, {other}, _l1)"]

    class Holder:
        a, b = 0, 0

    holder = Holder()
    holder.__dict__.update(a=3, b=4)
    run, text = _made(in_c, guards, body)
    assert run(holder, 5) == (3, 4, 5)
    assert run(holder, "5") is MISS
    holder.a = 4
    assert run(holder, 5) is MISS
    assert run(None, 5) is MISS
    assert type(run).__name__ == ("Evaluator" if in_c else "function")
    assert "_l0.__dict__" in text


def test_errors_of_the_body_are_no_misses(in_c: bool) -> None:
    run, _ = _made(in_c, (Guard(X, GuardKind.TYPE, dict),), lambda _: ["return _l0['absent']"])
    assert run([], 0) is MISS
    with pytest.raises(KeyError):
        run({}, 0)


@pytest.mark.usefixtures("in_c")
def test_modules_recompile_when_anything_read_changes() -> None:
    graphs = 0

    def backend(module: torch.fx.GraphModule, _: list[object]) -> Callable[..., object]:
        nonlocal graphs
        graphs += 1
        return module.forward

    module = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    compiled, x = plumbline.compile(module, backend=backend, dynamic=False), torch.randn(2, 3)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: module[1].weight.requires_grad_(False),
        lambda: module[2].register_forward_hook(lambda *_: None),
        lambda: setattr(module[3], "bias", None),
        lambda: setattr(module[0], "forward", lambda x: x * 2),
        lambda: setattr(module[1].weight, "data", torch.randn(3, 3).t()),
        lambda: module.append(torch.nn.ReLU()),
    ]
    for expected, change in enumerate(changes, 1):
        change()
        for _ in range(2):
            torch.testing.assert_close(compiled(x), module(x))
        assert graphs == expected


@pytest.mark.usefixtures("in_c")
def test_new_weights_of_the_same_form_are_used_without_a_recompile() -> None:
    graphs: list[object] = []
    module = torch.nn.Linear(3, 3)

    def backend(graph: torch.fx.GraphModule, _: list[object]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    compiled, x = plumbline.compile(module, backend=backend), torch.randn(2, 3)
    for _ in range(3):
        module.weight = torch.nn.Parameter(torch.randn(3, 3))
        torch.testing.assert_close(compiled(x), module(x))
    assert len(graphs) == 1


@pytest.mark.usefixtures("in_c")
def test_tracebacks_show_the_line_of_the_user() -> None:
    def program(x: torch.Tensor, table: dict[str, int]) -> object:
        y = x + 1
        print("", end="")
        return y, table["absent"]

    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            compiled(torch.zeros(2), {})
        assert any(frame.filename == __file__ for frame in traceback.extract_tb(caught.tb)[1:])
