"""Capture leaves the user's objects, torch and the process as it found them, also where it fails."""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies

import plumbline
from plumbline.compiler.base.errors import PlumblineError
from plumbline.compiler.frontend.context.graph_builder import GraphBuilder
from plumbline.fuzz.guard_scenarios.scenarios import Scenario, scenarios
from plumbline.fuzz.guard_scenarios.torch_slots import put_back
from support.programs import compiled
from support.surroundings import differences, picture_of, process_state

SCENARIOS = strategies.integers(0, 2**32 - 1).map(lambda seed: scenarios(random.Random(seed), judged=False))

SETTINGS = {"rate": 2.0, "names": ["a"]}


class Net(torch.nn.Module):
    """A module with everything a module can have."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
        self.register_buffer("seen", torch.zeros(()))
        self.extra = {"k": [1, 2]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        return self.inner(x) * SETTINGS["rate"] + self.seen


class Thing:
    """An object."""

    def __init__(self) -> None:
        self.value = 2.0

    def __len__(self) -> int:
        return 1


def helper(x: torch.Tensor, *, by: float = 2.0) -> torch.Tensor:
    """Help."""
    return x * by


helper.mark = ["kept"]  # type: ignore[attr-defined]  # functions take attributes


def straight(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> torch.Tensor:
    """Be captured whole."""
    return helper(net(x) * thing.value, by=len(items)) + len(thing)


def broken(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> torch.Tensor:
    """Break between two graphs and in a callee."""
    y = net(x)
    plumbline.graph_break()
    if y.sum() > 100:
        y = y + 1
    return helper(y) * thing.value


def random_and_modes(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> torch.Tensor:
    """Draw, and change modes for a while."""
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = torch.nn.functional.dropout(x @ x.T) + torch.rand(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return y.float().sum() + net(x).sum()


def raising(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> torch.Tensor:
    """Raise from inside."""
    y = net(x)
    if len(items) == 2:
        raise ValueError(str(thing.value))
    return y


def refused(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> torch.Tensor:
    """Fail in an operation."""
    return net(x) + torch.ones(7, 7)


def a_generator(x: torch.Tensor, net: Net, thing: Thing, items: list[Any]) -> Any:
    """Be a function that runs eagerly."""
    return list(item * net(x).sum() for item in items)  # noqa: C400 - a generator expression on purpose


BODIES = (straight, broken, random_and_modes, raising, refused, a_generator)


def failing_backend(graph: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
    """Fail."""
    raise RuntimeError("the backend's own")


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fullgraph": {"fullgraph": True},
    "dynamic": {"dynamic": True},
    "aot": {"backend": "aot_eager"},
    "failing_backend": {"backend": failing_backend},
    "python_guards": {"guards_in_c": False},
}


@dataclass
class World:
    """What a call can reach."""

    x: torch.Tensor
    net: Net
    thing: Thing
    items: list[Any]

    def picture(self) -> Any:
        """Return a picture of it all, with the functions and classes of this file."""
        named = {name: value for name, value in globals().items() if name in _WATCHED}
        return picture_of(self.x, self.net, self.thing, self.items, named)


_WATCHED = ("SETTINGS", "Net", "Thing", "helper", *(body.__name__ for body in BODIES), "__warningregistry__")


def world() -> World:
    """Return one, always the same."""
    torch.manual_seed(0)
    x = torch.ones(2, 3, requires_grad=True)
    x.note = ["mine"]  # type: ignore[attr-defined]  # tensors take attributes
    return World(x, Net(), Thing(), [1, 2])


def call(function: Any, where: World) -> str:
    """Call and say how it ended."""
    try:
        function(where.x, where.net, where.thing, where.items)
    except (ValueError, RuntimeError, PlumblineError) as error:
        return type(error).__name__
    return "returned"


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_whatever_happens(body: Callable[..., Any], way: str) -> None:
    eager = world()
    torch.manual_seed(1)
    ended = call(body, eager)
    expected = (eager.picture(), process_state())
    other, names = world(), set(globals())
    torch.manual_seed(1)
    strict = not (way == "failing_backend" or body is refused)
    run = compiled(body, **{"strict": strict} | WAYS[way])
    found = call(run, other)
    changed = differences(expected[1], process_state())
    assert found == ended or WAYS[way].get("fullgraph") or way == "failing_backend"
    if found == "Unsupported" or way == "failing_backend":  # the program did not run to its end
        changed = [name for name in changed if name != "random"]
    assert not changed
    assert other.picture() == expected[0]
    assert set(globals()) == names
    call(run, other)
    call(body, eager)
    assert other.picture() == eager.picture()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_an_error_of_ours_in_the_middle(
    body: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    honest, calls = GraphBuilder.call, [0]

    def planted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise ZeroDivisionError("planted")
        return honest(self, *args, **kwargs)

    monkeypatch.chdir(tmp_path)
    eager = world()
    torch.manual_seed(1)
    ended = call(body, eager)
    expected = (eager.picture(), process_state())
    other = world()
    torch.manual_seed(1)
    monkeypatch.setattr(GraphBuilder, "call", planted)
    assert call(compiled(body, strict=False), other) == ended
    assert not differences(expected[1], process_state())
    assert other.picture() == expected[0]


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(SCENARIOS)
def test_random_histories_leave_the_process_alone(scenario: Scenario) -> None:
    """The namespaces of histories are compared in test_guard_property; here what lies around them."""
    eager, other = scenario.namespace(), scenario.namespace()
    run = compiled(other["step"], recompile_limit=64)
    try:
        for event in scenario.events:
            if event.slot:
                exec(event.text, eager)
                exec(event.text, other)
                continue
            start = torch.get_rng_state()
            _step(eager["step"], eager)
            expected = process_state()
            torch.set_rng_state(start)
            _step(run, other)
            assert not differences(expected, process_state())
    finally:
        put_back()


def _step(function: Any, namespace: dict[str, Any]) -> None:
    same = "x if same else x.detach().clone()"
    try:
        function(*eval(f"(x, {same}, y, number, items, options, module, thing)", namespace))
    except Exception:  # eager raises too, says test_guard_property
        return
