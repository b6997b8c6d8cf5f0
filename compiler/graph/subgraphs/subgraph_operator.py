"""`plumbline::run_subgraphs`: the operator that a traced graph has for a call with subgraphs.

Its last argument names a program that is ready to run in this process (`ReadyProgram`). While a graph is traced the
operator is recorded as any other, with gradients that are calls of it too; when the graph runs, so does the program, on
bodies that are compiled as the graph around them is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import fx

from ...base.errors import Unsupported
from ...base.nested import map_nested
from ...base.own_operators import define, implement, implement_batched, implement_fake
from ...base.torch_facts import (
    OpOverload,
    SingleLevelFunction,
    apply_function,
    at_single_level,
    below_autograd,
    fake_mode_is_active,
    functorch_is_active,
    storage_key,
    unwrapped,
)
from ..graph_interpreter import interpreted
from .autocast_at import AutocastState, autocast_as, autocast_state
from .subgraph_program import BodyCall, GradientOfProgram, SubgraphProgram, gradient_of

CompileBody = Callable[[fx.GraphModule], BodyCall]


@dataclass(slots=True, eq=False)
class BodyCompiler:
    """Makes programs ready to run on compiled bodies, and keeps them as long as it lives.

    compile_body: makes the callable of one body.
    """

    compile_body: CompileBody
    ready: dict[tuple[int, AutocastState], ReadyProgram] = field(default_factory=dict)

    def make_ready(self, program: SubgraphProgram) -> ReadyProgram:
        """Return a program on compiled bodies, the same each time."""
        key = (id(program), autocast_state())
        if key not in self.ready:
            self.ready[key] = ready_program(program, self)
        return self.ready[key]


INTERPRETED = BodyCompiler(interpreted)
COMPILER: ContextVar[BodyCompiler | None] = ContextVar("body_compiler", default=None)


@contextmanager
def compiled_by(compiler: BodyCompiler | None) -> Iterator[None]:
    """Let calls with subgraphs that are traced in this context have bodies that are compiled so."""
    token = COMPILER.set(compiler)
    try:
        yield
    finally:
        COMPILER.reset(token)


@dataclass(slots=True, eq=False)
class ReadyProgram:
    """A program with what runs its bodies.

    key: its name in calls of the operator.  autocast: the state in which a compiled graph has its bodies run.
    """

    program: SubgraphProgram
    compiler: BodyCompiler
    key: str
    calls: list[BodyCall] = field(default_factory=list)
    derived: dict[object, ReadyProgram] = field(default_factory=dict)
    sample: ElementOfBatch | None = None
    autocast: AutocastState = ()
    __weakref__: object = field(init=False, repr=False)

    def run(self, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> list[torch.Tensor]:
        """Return the results, each in memory of its own."""
        if not self.calls:
            self.calls = [self.compiler.compile_body(body.gm) for body in self.program.bodies]
        interpreted_here = self.compiler is INTERPRETED
        with nullcontext() if interpreted_here else autocast_as(self.autocast):
            results = self.program.run(self.calls, tensors, numbers)
        taken = {memory_key(tensor) for tensor in tensors}
        for place, result in enumerate(results):
            if memory_key(result) in taken:
                results[place] = result.clone()
            taken.add(memory_key(results[place]))
        return results

    def looks(self, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> list[torch.Tensor]:
        """Return fake tensors like the results."""
        if self.sample is not None:
            return self.sample.looks(self.program, tensors, numbers)
        bodies = [interpreted(body.gm) for body in self.program.bodies]
        compiler = None if self.compiler is INTERPRETED else self.compiler
        with compiled_by(compiler), torch.no_grad():
            return self.program.looks(bodies, tensors, numbers)

    def gradient(self, inputs: int, wanted: tuple[int, ...]) -> ReadyProgram:
        """Return the program of the gradients of some of the inputs."""
        return self._derived(("gradient", inputs, wanted), lambda: gradient_of(self.program, inputs, wanted))

    def batched(self, flags: tuple[bool, ...], batch: int) -> ReadyProgram:
        """Return the program over a batch."""
        made = self._derived(("batched", flags, batch), lambda: self.program.batched(flags, batch))
        if not isinstance(self.program, GradientOfProgram):
            made.sample = ElementOfBatch(self, flags, batch)
        return made

    def _derived(self, what: object, make: Callable[[], SubgraphProgram]) -> ReadyProgram:
        if what not in self.derived:
            self.derived[what] = ready_program(make(), self.compiler)
            self.derived[what].autocast = self.autocast
        return self.derived[what]


@dataclass(frozen=True, slots=True, eq=False)
class ElementOfBatch:
    """What a program over a batch does for each element; fake tensors are not told by vmap, which dispatch is above.

    flags: which inputs are batched.
    """

    of: ReadyProgram
    flags: tuple[bool, ...]
    batch: int

    def looks(
        self, program: SubgraphProgram, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]
    ) -> list[torch.Tensor]:
        """Return fake tensors like the results of the program over the batch, which are contiguous."""
        one = [
            tensor.select(program.input_dimension(place), 0) if flag else tensor
            for place, (tensor, flag) in enumerate(zip(tensors, self.flags, strict=True))
        ]
        results = self.of.looks(one, numbers)
        return [
            result.new_empty((*result.shape[:front], self.batch, *result.shape[front:]))
            for result, front in zip(results, map(program.result_dimension, range(len(results))), strict=True)
        ]


def memory_key(tensor: torch.Tensor) -> int:
    """Return the identity of the storage of a tensor, or of the tensor inside the wrappers of transforms."""
    inner = unwrapped(tensor)
    return storage_key(tensor if inner is None else inner)


_READY: WeakValueDictionary[str, ReadyProgram] = WeakValueDictionary()
_NUMBERS = count()


def ready_program(program: SubgraphProgram, compiler: BodyCompiler) -> ReadyProgram:
    """Return a program that calls of the operator find by its key, as long as somebody holds it."""
    ready = ReadyProgram(program, compiler, f"subgraphs_{next(_NUMBERS)}", autocast=autocast_state())
    _READY[ready.key] = ready
    return ready


def call_subgraphs(ready: ReadyProgram, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> list[torch.Tensor]:
    """Run a program: here, or where a transform, a trace or fake tensors ask for a call, by the operator."""
    compiler = COMPILER.get()
    if compiler is not None:
        ready = compiler.make_ready(ready.program)
    if compiler is not None or fake_mode_is_active() or functorch_is_active():
        operator = RUN_DRAWING_SUBGRAPHS if ready.program.draws else RUN_SUBGRAPHS
        return list(operator(list(tensors), list(numbers), ready.key))
    results = ready.run(tensors, numbers)
    return _joined(ready, tensors, results) if torch.is_grad_enabled() else results


def _joined(ready: ReadyProgram, tensors: Sequence[torch.Tensor], results: list[torch.Tensor]) -> list[torch.Tensor]:
    """Join results to all inputs that have gradients: torch gives zeros where a body that ran does not read one."""
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    if not inputs or not any(ready.program.differentiable):
        return results
    return list(apply_function(_Joined, ready.program.differentiable, *results, *inputs))


class _Joined(torch.autograd.Function):
    """Hands results on; the gradients of the inputs behind them are zeros."""

    @staticmethod
    def forward(ctx: Any, flows: tuple[bool, ...], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return copies of the results: a program may write to them, which autograd refuses for views from here."""
        results = tuple(tensor.clone() for tensor in tensors[: len(flows)])
        ctx.mark_non_differentiable(*(result for result, flow in zip(results, flows, strict=True) if not flow))
        ctx.set_materialize_grads(False)
        ctx.inputs = [(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors[len(flows) :]]
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of the results, and zeros."""
        zeros = (torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.inputs)
        return None, *gradients, *zeros


class _Differentiated(SingleLevelFunction):
    """A recorded call whose gradients are a recorded call."""

    @staticmethod
    def forward(ctx: Any, operator: OpOverload, ready: ReadyProgram, numbers: Any, *tensors: torch.Tensor) -> Any:
        """Record the call."""
        ctx.call = operator, ready, numbers
        ctx.save_for_backward(*tensors)
        with torch.enable_grad(), below_autograd():  # transforms around this one have histories of their own
            results = operator(list(tensors), list(numbers), ready.key)
        flows = ready.program.differentiable
        ctx.mark_non_differentiable(*(result for result, flow in zip(results, flows, strict=True) if not flow))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Record the call of the gradients."""
        operator, ready, numbers = ctx.call
        tensors = ctx.saved_tensors
        wanted = tuple(place for place in range(len(tensors)) if ctx.needs_input_grad[3 + place])
        flowing = [g for g, flows in zip(gradients, ready.program.differentiable, strict=True) if flows]
        back = ready.gradient(len(tensors), wanted)
        found = dict(zip(wanted, operator([*tensors, *flowing], list(numbers), back.key), strict=True))
        return None, None, None, *(found.get(place) for place in range(len(tensors)))


def _ready(key: str) -> ReadyProgram:
    ready = _READY.get(key)
    if ready is None:
        raise Unsupported(
            f"the subgraphs {key} are gone", why="their graph was freed", hint="keep the compiled function alive"
        )
    return ready


def _with_history(operator: Callable[[], OpOverload]) -> Callable[..., list[torch.Tensor]]:
    """Return what the operator is for tensors that may have a history."""

    def call(tensors: list[torch.Tensor], numbers: list[Any], key: str) -> list[torch.Tensor]:
        ready = _ready(key)
        if not fake_mode_is_active() and not functorch_is_active():
            return ready.run(tensors, numbers)
        if torch.is_grad_enabled() and any(ready.program.differentiable) and any(t.requires_grad for t in tensors):
            if ready.program.draws:
                raise Unsupported("gradients through a subgraph that draws", hint="expected: it runs eagerly")
            with at_single_level():
                return list(apply_function(_Differentiated, operator(), ready, tuple(numbers), *tensors))
        with below_autograd():
            return list(operator()(tensors, numbers, key))

    return call


def _run(tensors: list[torch.Tensor], numbers: list[Any], key: str) -> list[torch.Tensor]:
    return _ready(key).run(tensors, numbers)


def _look(tensors: list[torch.Tensor], numbers: list[Any], key: str) -> list[torch.Tensor]:
    return _ready(key).looks(tensors, numbers)


def _over_a_batch(operator: Callable[[], OpOverload]) -> Callable[..., tuple[list[torch.Tensor], list[int]]]:
    def rule(
        info: Any, dims: Any, tensors: list[torch.Tensor], numbers: list[Any], key: str
    ) -> tuple[list[torch.Tensor], list[int]]:
        ready, batch = _ready(key), int(info.batch_size)
        program, own = ready.program, list(tensors)
        always = program.always_batched(len(own))
        flags = [dim is not None or place in always for place, dim in enumerate(dims[0])]
        for place, dim in enumerate(dims[0]):
            front = program.input_dimension(place)
            if dim is not None:
                own[place] = own[place].movedim(dim, front)
            elif flags[place]:
                shape = own[place].shape
                own[place] = own[place].unsqueeze(front).expand(*shape[:front], batch, *shape[front:])
        results = operator()(own, numbers, ready.batched(tuple(flags), batch).key)
        return results, [program.result_dimension(place) for place in range(len(results))]

    return rule


def _register(name: str, tags: Sequence[torch.Tag] = ()) -> OpOverload:
    def operator() -> OpOverload:
        overload: OpOverload = getattr(torch.ops.plumbline, name).default
        return overload

    define(f"{name}(Tensor[] tensors, Scalar[] numbers, str program) -> Tensor[]", tags)
    implement(name, _with_history(operator), "Autograd")
    implement(name, _run, "CompositeExplicitAutograd")
    implement_fake(name, _look)
    implement_batched(operator(), _over_a_batch(operator))
    return operator()


RUN_SUBGRAPHS = _register("run_subgraphs")
RUN_DRAWING_SUBGRAPHS = _register("run_drawing_subgraphs", (torch.Tag.nondeterministic_seeded,))
SUBGRAPH_OPERATORS = frozenset({RUN_SUBGRAPHS, RUN_DRAWING_SUBGRAPHS})


class SubgraphCall:
    """What runs at a node of a captured graph: a program, whose results are put in their places in `structure`."""

    def __init__(self, name: str, program: SubgraphProgram, structure: Any) -> None:
        self.program = program
        self.structure = structure
        self.ready = ready_program(program, INTERPRETED)
        self.__name__ = name
        self.__module__ = __name__

    def __call__(self, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> Any:
        """Run the program."""
        results = iter(call_subgraphs(self.ready, tensors, numbers))
        return map_nested(self.structure, lambda leaf: next(results) if leaf is HERE else leaf)


HERE = object()
"""Stands in a structure for a tensor."""
