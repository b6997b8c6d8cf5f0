"""Stand-ins for arguments inside an autograd graph: reference runs must not write into the caller's graph.

Changing an argument in place that requires grad and is not a leaf would leave the reference run's operations in its
history for good.  Reference runs get a copy with its own leaf; gradients are taken with respect to that leaf.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from plumbline.compiler.base.torch_facts import apply_function


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """original: the caller's tensor.  passed: what the run gets instead.  leaf: where its gradient accumulates."""

    original: torch.Tensor
    passed: torch.Tensor
    leaf: torch.Tensor


class StandIns:
    """The stand-ins of one run; `args` and `kwargs` are the arguments to call with."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, enabled: bool) -> None:
        self.pairs: list[StandIn] = []
        self.by_passed: dict[int, torch.Tensor] = {}
        self.by_original: dict[int, StandIn] = {}
        self.asked_behind = False  # for a gradient at a tensor that an argument was made of
        if enabled and torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            self._make(_graph_tensors((args, tuple(kwargs.values()))))
        self.args: tuple[Any, ...] = self._replace(args)
        self.kwargs: dict[str, Any] = {name: self._replace(value) for name, value in kwargs.items()}

    def original_of(self, value: object) -> object:
        """Return the caller's object for one that this run got."""
        return self.by_passed.get(id(value), value)

    def left_the_call(self, error: BaseException | None) -> list[str]:
        """Return why a run on stand-ins is none on the arguments: its own backward went on into their history."""
        texts = ("appear to not have been used in the graph", "appears to not have been")
        asked = self.asked_behind or any(text in str(error) for text in texts)
        if not self.pairs or not (asked or any(pair.leaf.grad is not None for pair in self.pairs)):
            return []
        return ["a backward inside the call goes on into the graph of an argument, which was made before the call"]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note whether a backward inside is asked for gradients at tensors that an argument was made of.

        On the stand-in it finds another history.  Only for eager: a compiler would see other functions of torch.
        """
        if not self.pairs:
            yield
            return
        grad, backward = torch.autograd.grad, torch.autograd.backward
        torch.autograd.grad = self._noting(grad, 1)
        torch.autograd.backward = self._noting(backward, 4)
        try:
            yield
        finally:
            torch.autograd.grad, torch.autograd.backward = grad, backward

    def _noting(self, function: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Return a function of torch that looks at its ends, its first argument, and at its `inputs`, at a place."""

        @functools.wraps(function)
        def noting(*args: Any, **kwargs: Any) -> Any:
            inputs = args[place] if len(args) > place else kwargs.get("inputs")
            ends = next(iter(args), None)
            if ends is not None and inputs is not None:
                self._note(_listed(ends), _listed(inputs))
            return function(*args, **kwargs)

        return noting

    def _note(self, ends: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        asked = set(map(_step_of, inputs))
        reached = _steps_behind(map(_step_of, ends), asked)
        cut = [pair for pair in self.pairs if _step_of(pair.leaf) in reached]
        self.asked_behind |= any(asked & _steps_behind([_step_of(pair.original)]) for pair in cut)

    def _make(self, originals: list[torch.Tensor]) -> None:
        groups: dict[int, list[torch.Tensor]] = {}
        for tensor in originals:
            groups.setdefault(tensor.untyped_storage()._cdata, []).append(tensor)
        for group in groups.values():
            is_alone = len(group) == 1 and not group[0].storage_offset()
            for pair in map(_of_its_class, _alone(group[0]) if is_alone else _sharing(group)):
                vars(pair.passed).update(vars(pair.original))
                self.pairs.append(pair)
                self.by_passed[id(pair.passed)] = pair.original
                self.by_original[id(pair.original)] = pair

    def _replace(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            pair = self.by_original.get(id(value))
            return pair.passed if pair else value
        if type(value) is tuple:
            return tuple(self._replace(item) for item in value)
        return value


def _listed(value: Any) -> list[torch.Tensor]:
    return [one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, torch.Tensor)]


def _step_of(tensor: torch.Tensor) -> object:
    """Return the step of a tensor's history that makes it, or gathers its gradient; None if it needs none."""
    return torch.autograd.graph.get_gradient_edge(tensor).node if tensor.requires_grad else None


def _steps_behind(steps: Iterable[object], ends: Iterable[object] = ()) -> set[object]:
    """Return the steps that gradients of some steps go through, these included, up to the ends."""
    seen, pending = set(ends), list(steps)
    first = frozenset(seen)
    while pending:
        step: Any = pending.pop()
        if step is not None and step not in seen:
            seen.add(step)
            pending += [behind for behind, _ in step.next_functions]
    return seen - first


def _graph_tensors(value: Any) -> list[torch.Tensor]:
    """Return the non-leaf tensors that require grad among arguments and tuples of them, each once.

    Views of leaves stay: autograd refuses writes that it would have to record there, and they share the leaf's memory.
    """
    if isinstance(value, torch.Tensor):
        inside = value.requires_grad and value.grad_fn is not None and value.layout == torch.strided
        return [value] if inside and not _views_a_leaf(value) else []
    tensors = [tensor for item in value for tensor in _graph_tensors(item)] if type(value) is tuple else []
    return list({id(tensor): tensor for tensor in tensors}.values())


def _views_a_leaf(value: torch.Tensor) -> bool:
    base = value._base
    return base is not None and base.is_leaf and base.requires_grad


def _alone(original: torch.Tensor) -> list[StandIn]:
    leaf = _copy_with_strides(original.detach()).requires_grad_()
    return [StandIn(original, _in_graph(leaf), leaf)]


def _of_its_class(pair: StandIn) -> StandIn:
    """Give a stand-in the class of the caller's tensor; the judge's copies are unseen by it, and plain tensors."""
    kind = type(pair.original)
    return pair if type(pair.passed) is kind else replace(pair, passed=pair.passed.as_subclass(kind))


def _sharing(group: list[torch.Tensor]) -> list[StandIn]:
    """Keep views of one storage views of one storage, from where they were; their gradients accumulate on one leaf."""
    first = group[0].detach()
    length = first.untyped_storage().nbytes() // first.element_size()
    leaf = first.as_strided((length,), (1,), 0).clone().requires_grad_()
    base = leaf.clone()
    return [StandIn(t, base.as_strided(tuple(t.shape), tuple(t.stride()), t.storage_offset()), leaf) for t in group]


def _copy_with_strides(tensor: torch.Tensor) -> torch.Tensor:
    """Copy the values with the exact strides, gaps and overlaps included."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size)
    if tensor.numel() == 0 or span <= 0:
        return tensor.clone()
    flat = tensor.as_strided((span,), (1,), tensor.storage_offset()).clone()
    return flat.as_strided(tuple(tensor.shape), tuple(tensor.stride()), 0).detach()


def _in_graph(leaf: torch.Tensor) -> torch.Tensor:
    """Return a non-leaf copy of a leaf, so that it may be changed in place, with the leaf's strides."""
    base = leaf.clone(memory_format=torch.preserve_format)
    if base.stride() == leaf.stride():
        return base
    flat = apply_function(_Restride, leaf)
    assert isinstance(flat, torch.Tensor)
    return flat


class _Restride(torch.autograd.Function):
    """Copy with exact strides, differentiable as the identity."""

    @staticmethod
    def forward(_ctx: Any, leaf: torch.Tensor) -> torch.Tensor:
        return _copy_with_strides(leaf.detach())

    @staticmethod
    def backward(_ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]
