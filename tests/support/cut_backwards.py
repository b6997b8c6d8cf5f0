"""A check of backwards that were cut out of the one for all results: each beside a new trace of its program.

    PYTHONPATH=tests python -m pytest -p support.cut_backwards tests/meaning

While it holds, whatever runs asks it at each backward for fewer results. Two traces agree where each gradient is the
same expression of the same inputs and forward values, copies aside.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import pytest
import torch
from torch import fx

from plumbline.compiler.autograd.forms import backwards
from plumbline.compiler.autograd.forms.backwards import Backwards
from plumbline.compiler.autograd.joint import Traced
from plumbline.compiler.graph.dynamic_sizes import is_symbolic
from plumbline.compiler.graph.fx_nodes import map_nodes
from plumbline.compiler.graph.node_values import outputs, tensor_of
from plumbline.compiler.graph.passes import has_no_effect


@dataclass
class CutAccount:
    """How many backwards were cut out of a whole one, and for how many the program was traced again.

    unlike: what two traces of a program do not agree in.
    """

    cut: int = 0
    traced: int = 0
    unlike: list[str] = field(default_factory=list)


@contextmanager
def compared_cuts(account: CutAccount) -> Iterator[None]:
    """Compare each cut that is made meanwhile with a new trace."""
    original = Backwards._with_fewer_tangents

    def checked(self: Backwards, pattern: Sequence[bool], sizes: Sequence[float]) -> tuple[Traced, str]:
        found: list[Traced | None] = []
        cut_out = backwards.without_tangents

        def noted(traced: Traced, kept: Sequence[bool]) -> Traced | None:
            found.append(cut_out(traced, kept))
            return found[-1]

        with mock.patch.object(backwards, "without_tangents", noted):
            result = original(self, pattern, sizes)
        if not found:
            return result
        if found[0] is None:
            account.traced += 1
            return result
        account.cut += 1
        account.unlike += differences(found[0], self._trace_again(pattern, sizes))
        return result

    with mock.patch.object(Backwards, "_with_fewer_tangents", checked):
        yield


def differences(cut: Traced, traced: Traced) -> list[str]:
    """Return which gradients are not the same expression in two traces of a program."""
    found = []
    table: dict[object, int] = {}
    one, other = (_gradients(each, table) for each in (cut, traced))
    if cut.gradients_of != traced.gradients_of or cut.joint.tangents != traced.joint.tangents:
        found.append(f"{cut.gradients_of} of {cut.joint.tangents}, {traced.gradients_of} of {traced.joint.tangents}")
    for place, (first, second) in enumerate(zip(one, other, strict=True)):
        if first != second:
            found.append(f"gradient {place}: {first} and {second}\n{cut.joint.graph.graph}\n{traced.joint.graph.graph}")
    return found


def _gradients(traced: Traced, table: dict[object, int]) -> list[object]:
    """Return a number for each gradient, the same for the same expression; table: of the expressions so far."""
    graph = traced.joint.graph.graph
    known: dict[fx.Node, object] = {}
    places = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            key: object = ("input", places)
            places += 1
        elif node.op == "call_function":
            if node.target is torch.ops.aten.clone.default:  # a reshape copies, or takes a view: as its operand lies
                known[node] = known[node.all_input_nodes[0]]
                continue
            arguments = map_nodes((node.args, node.kwargs), lambda source: _Known(known[source]))
            own = () if has_no_effect(node) else (node.meta.get("stamp", node.name),)
            key = (str(node.target), repr(arguments), own)
        else:
            continue
        known[node] = table.setdefault(key, len(table))
    parts = outputs(graph)[traced.joint.returned :]
    return [_described(part, known) if isinstance(part, fx.Node) else part for part in parts]


def _described(part: fx.Node, known: dict[fx.Node, object]) -> object:
    value = tensor_of(part)
    numbers = (*value.shape, *value.stride())
    # One of two traces may have fixed a size that the other has not.
    return known[part], value.dtype, value.dim() if any(map(is_symbolic, numbers)) else numbers


@dataclass(frozen=True)
class _Known:
    number: object


@pytest.fixture(autouse=True)
def _cuts_are_compared() -> Iterator[None]:
    account = CutAccount()
    with compared_cuts(account):
        yield
    print(f"cut backwards: {account.cut}, traced again: {account.traced}")
    assert not account.unlike, "\n".join(account.unlike)
