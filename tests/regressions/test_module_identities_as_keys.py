"""`id(module)` looked up among numbers from outside is known while the module is guarded to be this very one."""

from collections.abc import Callable

import pytest
import torch

import plumbline

X = torch.ones(4)
FIRST, SECOND, THIRD = (torch.nn.Linear(4, 4) for _ in range(3))
SCALES = {id(FIRST): 2.0, id(SECOND): 3.0}
CHOSEN = {id(FIRST), 7}


class Registry(torch.nn.Module):
    """A module that knows parts by their numbers."""

    def __init__(self, chosen: torch.nn.Module) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList([FIRST, SECOND])
        self.scales = {id(chosen): 5.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale by the known parts."""
        for part in self.parts:
            x = x * self.scales.get(id(part), 2.0)
        return x


def _known(x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    return x * SCALES.get(id(module), 9.0)


def _member(x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    return x * (2 if id(module) in CHOSEN else 3)


def _global(x: torch.Tensor, _: torch.nn.Module) -> torch.Tensor:
    return x * SCALES[id(SECOND)]


def _called(x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    result: torch.Tensor = module(x)
    return result


PROGRAMS: dict[str, tuple[Callable[..., torch.Tensor], list[torch.nn.Module]]] = {
    "dictionary": (_known, [FIRST, SECOND, THIRD, FIRST]),
    "set": (_member, [FIRST, SECOND, FIRST]),
    "global module": (_global, [FIRST]),
    "registry": (_called, [Registry(FIRST), Registry(THIRD), Registry(SECOND)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_number_of_a_module_is_found(name: str) -> None:
    function, modules = PROGRAMS[name]
    compiled = plumbline.compile(function, backend="eager", fullgraph=True)
    for module in modules:
        assert torch.equal(compiled(X, module), function(X, module))


def test_a_table_that_changes_is_asked_again() -> None:
    scales = {id(FIRST): 2.0, 5: 1.0}
    compiled = plumbline.compile(lambda x, module: x * scales.get(id(module), 9.0), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X, FIRST), X * 2)
    scales[id(SECOND)] = 3.0
    assert torch.equal(compiled(X, SECOND), X * 3)
    del scales[id(FIRST)]
    assert torch.equal(compiled(X, FIRST), X * 9)


def test_a_module_is_entered_into_a_table_outside() -> None:
    table: dict[int, float] = {1: 1.0}

    def enter(x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
        if id(module) not in table:
            table[id(module)] = float(len(table))
        return x * table[id(module)]

    compiled = plumbline.compile(enter, backend="eager", fullgraph=True)
    for module, scale in ((FIRST, 1), (SECOND, 2), (FIRST, 1), (THIRD, 3), (SECOND, 2)):
        assert torch.equal(compiled(X, module), X * scale)
    assert table == {1: 1.0, id(FIRST): 1.0, id(SECOND): 2.0, id(THIRD): 3.0}


def test_other_objects_still_break() -> None:
    numbers = {1: 2.0}
    compiled = plumbline.compile(lambda x, items: x * numbers.get(id(items), 3.0), backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(X, [1]), X * 3)
