"""Compilers that are wrong in one known way: to see which tests of a suite would notice a compiler's fault.

A mutant runs the compiler under test and alters what one call of compiled code does: its results, their gradients and
forms, its writes, its draws, or what it takes for constant. Any compiler can be altered so; an operator's lowering can
be replaced in our own only (`operator_mutants`).
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .compilers import Candidate, CompileRequest, CompilerUnderTest, CompileStatistics


@dataclass(slots=True)
class MutantCall:
    """One call of compiled code under a mutant.

    run: calls the compiled program with these or other arguments.  target: what was compiled.  memory: of the program's
    earlier calls.  took_effect: set by a fault that changes anything.
    """

    run: Callable[..., Any]
    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    memory: dict[str, Any]
    took_effect: bool = False

    def as_asked(self) -> Any:
        """Run the call without a fault."""
        return self.run(*self.args, **self.kwargs)

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Any:
        """Run the call and put `change` of each tensor of the result in its place; None leaves it."""

        def changed(value: Any) -> Any:
            new = change(value) if type(value) is torch.Tensor and value.layout is torch.strided else None
            if new is None:
                return value
            self.took_effect = True
            return new

        return _mapped(self.as_asked(), changed)

    def tensors(self) -> Iterator[torch.Tensor]:
        """Yield the tensors that the call can write to: arguments, and parameters and buffers of a module."""
        seen = set()
        state = [] if not isinstance(self.target, torch.nn.Module) else [*_state(self.target)]
        for value in (*_leaves([self.args, self.kwargs]), *state):
            if isinstance(value, torch.Tensor) and value.layout is torch.strided and id(value) not in seen:
                seen.add(id(value))
                yield value


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what lists, tuples and dicts hold, at any depth."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with `change` of each leaf in its place; containers keep their class."""
    if isinstance(value, dict):
        new = copy.copy(value)
        for key, part in value.items():
            new[key] = _mapped(part, change)
        return new
    if isinstance(value, list | tuple):
        parts = [_mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return change(value)


def _state(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()


@dataclass(frozen=True, slots=True)
class CompilerFault:
    """One way to be wrong.  sentence: what it does, after "the compiled code".  play: a call under the fault."""

    name: str
    sentence: str
    play: Callable[[MutantCall], Any]


FAULTS: dict[str, CompilerFault] = {}
"""Faults of any compiler, by name."""


def _fault(name: str, sentence: str) -> Callable[[Callable[[MutantCall], Any]], Callable[[MutantCall], Any]]:
    def register(play: Callable[[MutantCall], Any]) -> Callable[[MutantCall], Any]:
        FAULTS[name] = CompilerFault(name, sentence, play)
        return play

    return register


@_fault("element", "gives one element of a result that is off by 1 % of the largest")
def _element(call: MutantCall) -> Any:
    def off(result: torch.Tensor) -> torch.Tensor | None:
        if not result.is_floating_point() or not result.numel():
            return None
        bump = torch.zeros(result.shape, dtype=result.dtype, device=result.device)
        largest = result.detach().abs().nan_to_num(0.0, 0.0, 0.0).max()
        bump.view(-1)[result.numel() // 2] = torch.where(largest > 0, largest * 0.01, 0.01)
        return result + bump

    return call.changed(off)


@_fault("scale", "gives results that are 0.1 % too large")
def _scale(call: MutantCall) -> Any:
    return call.changed(lambda result: result * 1.001 if result.is_floating_point() and result.numel() else None)


@_fault("integer", "gives whole numbers that are one too large")
def _integer(call: MutantCall) -> Any:
    def off(result: torch.Tensor) -> torch.Tensor | None:
        whole = not result.is_floating_point() and not result.is_complex() and result.dtype != torch.bool
        return result + 1 if whole and result.numel() else None

    return call.changed(off)


@_fault("nan", "gives 0 where eager gives NaN or infinity")
def _nan(call: MutantCall) -> Any:
    def without(result: torch.Tensor) -> torch.Tensor | None:
        if not result.is_floating_point() or bool(result.detach().isfinite().all()):
            return None
        return result.nan_to_num(0.0, 0.0, 0.0)

    return call.changed(without)


@_fault("dtype", "gives results of a wider type")
def _dtype(call: MutantCall) -> Any:
    def wider(result: torch.Tensor) -> torch.Tensor | None:
        if not result.is_floating_point() or result.dtype == torch.float64:
            return None
        return result.to(torch.float64 if result.dtype == torch.float32 else torch.float32)

    return call.changed(wider)


@_fault("strides", "lays results out in another order")
def _strides(call: MutantCall) -> Any:
    def turned(result: torch.Tensor) -> torch.Tensor | None:
        if result.dim() < 2 or min(result.shape[-2:]) < 2:
            return None
        return result.mT.contiguous().mT if result.is_contiguous() else result.contiguous()

    return call.changed(turned)


@_fault("gradient", "gives gradients that are 1 % too large")
def _gradient(call: MutantCall) -> Any:
    def steeper(result: torch.Tensor) -> torch.Tensor | None:
        if not result.requires_grad or result.is_leaf:
            return None
        same = result.view_as(result)
        hooked: Any = same  # its method for hooks has no types
        hooked.register_hook(_one_percent_more)
        return same

    return call.changed(steeper)


def _one_percent_more(gradient: torch.Tensor) -> torch.Tensor:
    return gradient * 1.01


@_fault("detached", "gives results without a graph, so that no gradient arrives")
def _detached(call: MutantCall) -> Any:
    return call.changed(lambda result: result.detach() if result.requires_grad else None)


@_fault("write", "does not write to its arguments and to the state of its module")
def _write(call: MutantCall) -> Any:
    before = [(tensor, tensor._version, tensor.detach().clone()) for tensor in call.tensors()]
    result = call.as_asked()
    with torch.no_grad():
        for tensor, version, values in before:
            if tensor._version != version and not tensor.is_inference():
                tensor.copy_(values)
                call.took_effect = True
    return result


@_fault("copy", "gives copies where eager gives views of its arguments, or the arguments themselves")
def _copy(call: MutantCall) -> Any:
    memory = {tensor.untyped_storage().data_ptr() for tensor in call.tensors() if tensor.numel()}

    def copied(result: torch.Tensor) -> torch.Tensor | None:
        return result.clone() if result.numel() and result.untyped_storage().data_ptr() in memory else None

    return call.changed(copied)


@_fault("draws", "leaves the random generator where it was, so that the next call draws the same")
def _draws(call: MutantCall) -> Any:
    before = torch.random.get_rng_state()
    result = call.as_asked()
    call.took_effect = not torch.equal(before, torch.random.get_rng_state())
    torch.random.set_rng_state(before)
    return result


@_fault("number", "keeps the numbers and strings of its first call")
def _number(call: MutantCall) -> Any:
    first = call.memory.setdefault("numbers", (call.args, dict(call.kwargs)))

    def stale(now: Any, then: Any) -> Any:
        if type(now) is not type(then) or not isinstance(now, int | float | str):
            return now
        call.took_effect |= now != then
        return then

    args = [stale(now, then) for now, then in zip(call.args, first[0], strict=False)]
    kwargs = {name: stale(now, first[1].get(name)) for name, now in call.kwargs.items()}
    return call.run(*args, *call.args[len(args) :], **kwargs)


@_fault("training", "runs a module as it was at its first call, training or not")
def _training(call: MutantCall) -> Any:
    if not isinstance(call.target, torch.nn.Module):
        return call.as_asked()
    modules = list(call.target.modules())
    now = [module.training for module in modules]
    first = call.memory.setdefault("training", now)
    call.took_effect = now != first
    try:
        for module, training in zip(modules, first, strict=False):
            module.training = training
        return call.as_asked()
    finally:
        for module, training in zip(modules, now, strict=True):
            module.training = training


@_fault("stale", "gives the result of its first call again")
def _stale(call: MutantCall) -> Any:
    forms = [
        (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else repr(leaf)[:80]
        for leaf in _leaves([call.args, call.kwargs])
    ]
    key = str(forms)
    result = call.as_asked()
    if key not in call.memory:
        call.memory[key] = _mapped(result, lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v)
        return result
    call.took_effect = True
    return call.memory[key]


@_fault("error", "gives nothing where eager raises")
def _error(call: MutantCall) -> Any:
    try:
        return call.as_asked()
    except Exception:
        call.took_effect = True
        return None


@dataclass(slots=True)
class MutantCandidate:
    """A compiled program under a fault."""

    candidate: Candidate
    target: Callable[..., Any]
    compiler: "MutantCompiler"
    memory: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, wrongly."""
        call = MutantCall(self.candidate, self.target, args, kwargs, self.memory)
        try:
            return self.compiler.fault.play(call)
        finally:
            self.compiler.effects += call.took_effect

    def statistics(self) -> CompileStatistics:
        """Return what was compiled."""
        return self.candidate.statistics()


class MutantCompiler:
    """A compiler under test that is wrong in one way.

    effects: calls in which the fault changed something.
    """

    def __init__(self, compiler: CompilerUnderTest, fault: CompilerFault) -> None:
        self.compiler, self.fault, self.effects = compiler, fault, 0
        self.name, self.backends, self.double_backward = compiler.name, compiler.backends, compiler.double_backward

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> MutantCandidate:
        """Compile a function or module; its calls are wrong."""
        return MutantCandidate(self.compiler.compile(target, backend, request, rng=rng), target, self)

    def reset(self) -> None:
        """Discard everything compiled."""
        self.compiler.reset()
