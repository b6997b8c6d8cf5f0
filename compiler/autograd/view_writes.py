"""Writing through a view without writing: the new value of a view's source, given the new value of the view.

One rule per view operator; what has no rule raises Unsupported and the graph runs eagerly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ..base.errors import InternalError, Unsupported
from ..base.torch_facts import OpOverload
from ..graph.node_values import tensor_of

aten = torch.ops.aten
Emit = Callable[..., fx.Node]


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One view call: `target(source, *args, **kwargs)`, and which part of its result for those that give several.

    args: what follows the source; numbers, dtypes and lists of numbers only.  grad_enabled: grad mode when the
    program made the view; it decides whether the view belongs to the source's history.  loose: see mark_loose_view.
    """

    target: OpOverload
    args: tuple[object, ...]
    kwargs: tuple[tuple[str, object], ...]
    index: int | None
    grad_enabled: bool
    loose: bool = False

    def apply(self, source: torch.Tensor) -> torch.Tensor:
        """Return the view of a tensor."""
        target = _LOOSE[self.target] if self.loose else self.target
        result = target(source, *self.args, **dict(self.kwargs))
        view = result if self.index is None else result[self.index]
        assert isinstance(view, torch.Tensor)
        return view


_LOOSE: dict[OpOverload, OpOverload] = {
    aten.split.Tensor: aten.unsafe_split.Tensor,
    aten.split_with_sizes.default: aten.unsafe_split_with_sizes.default,
}


def take_views(source: torch.Tensor, steps: Sequence[ViewStep]) -> torch.Tensor:
    """Return the view of `source` that the steps lead to, each taken under the grad mode of the program."""
    for step in steps:
        if step.grad_enabled == torch.is_grad_enabled():
            source = step.apply(source)
        else:
            with torch.set_grad_enabled(step.grad_enabled):
                source = step.apply(source)
    return source


@dataclass(frozen=True, slots=True)
class Write:
    """What a rule may use: the step, example values of source and view, the source's node, the new view's node."""

    step: ViewStep
    source_value: torch.Tensor
    view_value: torch.Tensor
    source: fx.Node
    new: fx.Node
    emit: Emit

    def argument(self, position: int, default: object = None) -> object:
        """Return an argument of the view call, counted after the source."""
        return self.step.args[position] if position < len(self.step.args) else default

    def integer(self, position: int, default: int = 0) -> int:
        """Return an argument that is a whole number."""
        value = self.argument(position, default)
        assert isinstance(value, int)
        return value


Rule = Callable[[Write], fx.Node]
_RULES: dict[OpOverload, Rule] = {}


def writes_through(*operators: OpOverload) -> Callable[[Rule], Rule]:
    """Register the rule of some view operators."""

    def register(rule: Rule) -> Rule:
        for operator in operators:
            if operator in _RULES:
                raise InternalError(f"{operator} has two rules for writing", hint="remove one")
            _RULES[operator] = rule
        return rule

    return register


def write_through(write: Write) -> fx.Node:
    """Return the node of the source's new value; raises Unsupported for a view without a rule."""
    rule = _RULES.get(write.step.target)
    if rule is None:
        raise Unsupported(
            f"a write through {write.step.target}",
            why="no rule gives the source's new value",
            hint="expected: the graph runs eagerly",
        )
    return rule(write)


@writes_through(aten.alias.default, aten.detach.default, aten.lift_fresh.default)
def write_same(write: Write) -> fx.Node:
    """View and source are one."""
    return write.new


@writes_through(aten.view.default, aten._unsafe_view.default, aten._reshape_alias.default)
def write_reshaped(write: Write) -> fx.Node:
    """Give the elements the source's sizes again."""
    new = write.new
    if not tensor_of(new).is_contiguous() or not write.source_value.is_contiguous():
        new = write.emit(aten.clone.default, (new,), {"memory_format": torch.contiguous_format})
    return write.emit(aten.view.default, (new, list(write.source_value.shape)))


@writes_through(aten.view.dtype)
def write_reinterpreted(write: Write) -> fx.Node:
    """Read the bits as the source's dtype."""
    if write.source_value.dtype is torch.bool:
        raise Unsupported(
            "a write to the bytes of truth values",
            why="they may become others than 0 and 1",
            hint="expected: the graph runs eagerly",
        )
    return write.emit(aten.view.dtype, (write.new, write.source_value.dtype))


@writes_through(aten.t.default)
def write_t(write: Write) -> fx.Node:
    """Transpose back."""
    return write.emit(aten.t.default, (write.new,))


@writes_through(aten.transpose.int)
def write_transposed(write: Write) -> fx.Node:
    """Swap the dimensions back."""
    return write.emit(aten.transpose.int, (write.new, *write.step.args))


@writes_through(aten.permute.default)
def write_permuted(write: Write) -> fx.Node:
    """Apply the inverse permutation."""
    dims = write.argument(0)
    assert isinstance(dims, Sequence)
    count = len(dims)
    order = [int(dim) % count for dim in dims]
    return write.emit(aten.permute.default, (write.new, [order.index(dim) for dim in range(count)]))


@writes_through(aten.unsqueeze.default)
def write_unsqueezed(write: Write) -> fx.Node:
    """Take the added dimension away."""
    dim = write.integer(0) % write.view_value.dim()
    return write.emit(aten.squeeze.dim, (write.new, dim))


@writes_through(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def write_squeezed(write: Write) -> fx.Node:
    """Put the dimensions of size one back."""
    shape = write.source_value.shape
    if write.step.target is aten.squeeze.default:
        dims = list(range(len(shape)))
    else:
        sizes = write.argument(0)
        listed = list(sizes) if isinstance(sizes, Sequence) else [write.integer(0)]
        dims = sorted(dim % max(len(shape), 1) for dim in listed)
    new = write.new
    for dim in dims:
        if len(shape) and shape[dim] == 1:
            new = write.emit(aten.unsqueeze.default, (new, dim))
    return new


@writes_through(aten.slice.Tensor)
def write_slice(write: Write) -> fx.Node:
    """Put the slice into a copy of the source."""
    return write.emit(aten.slice_scatter.default, (write.source, write.new, *write.step.args))


@writes_through(aten.select.int)
def write_selected(write: Write) -> fx.Node:
    """Put the row into a copy of the source."""
    return write.emit(aten.select_scatter.default, (write.source, write.new, *write.step.args))


@writes_through(aten.diagonal.default)
def write_diagonal(write: Write) -> fx.Node:
    """Put the diagonal into a copy of the source."""
    return write.emit(aten.diagonal_scatter.default, (write.source, write.new, *write.step.args))


@writes_through(aten.split.Tensor, aten.split_with_sizes.default)
def write_split(write: Write) -> fx.Node:
    """Put one piece into a copy of the source."""
    assert write.step.index is not None
    sizes, dim = write.argument(0), write.integer(1) % write.source_value.dim()
    start: int | torch.SymInt
    if isinstance(sizes, Sequence):
        start = sum(sizes[: write.step.index])
    else:
        assert isinstance(sizes, int | torch.SymInt)
        start = sizes * write.step.index
    end = start + write.view_value.shape[dim]
    return write.emit(aten.slice_scatter.default, (write.source, write.new, dim, start, end))


@writes_through(aten.unbind.int)
def write_unbound(write: Write) -> fx.Node:
    """Put one row into a copy of the source."""
    assert write.step.index is not None
    return write.emit(aten.select_scatter.default, (write.source, write.new, write.integer(0), write.step.index))


@writes_through(aten.view_as_real.default)
def write_as_real(write: Write) -> fx.Node:
    """Pairs become complex numbers."""
    new = write.emit(aten.clone.default, (write.new,), {"memory_format": torch.contiguous_format})
    return write.emit(aten.view_as_complex.default, (new,))


@writes_through(aten.view_as_complex.default)
def write_as_complex(write: Write) -> fx.Node:
    """Complex numbers become pairs."""
    return write.emit(aten.view_as_real.default, (write.new,))


@writes_through(aten.as_strided.default)
def write_strided(write: Write) -> fx.Node:
    """Put the elements at their places in a copy of the source's memory."""
    return write.emit(aten.as_strided_scatter.default, (write.source, write.new, *write.step.args))
