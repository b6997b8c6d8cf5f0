"""The tracer: run a callable on fake tensors and record every ATen call as a torch.fx graph.

A DispatchMode sees each ATen call below autograd. Tensors are told apart by object identity (PyTorch keeps one
Python object per tensor), so views, in-place calls and the autograd engine need no proxies: whatever reaches the
mode is recorded, also the calls of a backward pass that runs inside it. Mutations are recorded as they are;
`autograd.functionalize` removes them.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..base.bisecting.applications import Gate, place_of_code
from ..base.dense_order import dense_order, dense_strides
from ..base.errors import InternalError, Unsupported
from ..base.origin import Origin
from ..base.torch_facts import (
    DispatchMode,
    FakeTensor,
    FakeTensorMode,
    OpOverload,
    decomposes_by_itself,
    lazy_module,
    running_gradient_number,
)
from .effects.kernel_refusals import demand_kernel, has_kernels_to_ask
from .effects.shared_generator import demand_untouched_generator, watched_generator
from .facts import QUESTIONS, refuses
from .fx_nodes import add_call, add_output, map_leaves
from .grad_mode_kernels import WITH_GRAD_MODE
from .node_values import mark_backward, mark_loose_view, mark_without_grad, set_value, value_of
from .shapes.shape_rules import fake_result, lies_otherwise

Decomposition = Callable[..., object]
aten = torch.ops.aten

# In-place calls that change sizes or strides: the object's earlier value is kept in its node first.
_METADATA_CHANGES = torch.Tag.inplace_view


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """What a trace needs to know of a tensor, without holding its memory; shape and stride in elements.

    labels: per dimension the label of a dynamic size or None; empty where all are fixed.  With labels it is dense.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    is_leaf: bool
    labels: tuple[str | None, ...] = ()

    def fake(self, mode: FakeTensorMode, symbols: Mapping[str, Any] | None = None) -> torch.Tensor:
        """Return a fake leaf of its own storage that looks like this; symbols: of dynamic sizes, by label."""
        with mode, torch.no_grad():
            if self.labels and symbols:
                pairs = zip(self.shape, self.labels, strict=True)
                shape = [size if label is None else symbols[label] for size, label in pairs]
                order = dense_order(self.shape, self.stride) or tuple(range(len(shape)))
                fake = torch.empty_strided(shape, dense_strides(shape, order), dtype=self.dtype, device=self.device)
            else:
                fake = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
        return fake.requires_grad_(self.requires_grad)


def fake_like(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """Return a fake leaf of its own storage with the sizes, strides, dtype, device and requires_grad of `tensor`.

    Raises Unsupported for what is not a plain strided tensor (sparse, quantised, subclasses, conjugate views).
    """
    return metadata_of(tensor).fake(mode)


def metadata_of(tensor: torch.Tensor) -> TensorMetadata:
    """Return what a trace needs to know of `tensor`; raises Unsupported for what is not a plain strided tensor."""
    if isinstance(tensor, FakeTensor):
        plain = True
    else:
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    if not plain or tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        raise Unsupported(
            f"an input is a {type(tensor).__name__} of layout {tensor.layout}",
            why="only plain strided tensors are traced",
            hint="expected: the graph runs eagerly",
        )
    geometry = (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)
    return TensorMetadata(*geometry, tensor.requires_grad, tensor.is_leaf)


class AtenRecorder(DispatchMode):
    """Records ATen calls into `graph` while it is the active mode; `mode` makes the fake results.

    constants: real tensors met on the way (never inputs), by the name of their `get_attr` node.
    """

    def __init__(
        self,
        mode: FakeTensorMode,
        decompositions: Mapping[OpOverload, Decomposition] | None = None,
        gate: Gate | None = None,
    ) -> None:
        super().__init__()
        self._gate = gate  # asked for each call that is taken apart
        self.graph = fx.Graph()
        self.constants: dict[str, torch.Tensor] = {}
        self.origin: Origin | None = None
        self.backward = False
        self.backward_origin: Callable[[], Origin | None] = _no_origin
        self._mode = mode
        self._decompositions = dict(decompositions or {})
        self._paused = False
        self._known: dict[int, tuple[torch.Tensor, fx.Node]] = {}  # the tensor is kept so that its id stays taken
        self._objects: dict[fx.Node, torch.Tensor] = {}
        self._described: dict[int, list[fx.Node]] = {}  # tensor -> nodes whose example value it is, or is part of

    # -- what the outside asks ---------------------------------------------------------------------------------

    def add_input(self, name: str, value: object) -> fx.Node:
        """Add a placeholder for `value`: a fake tensor, or a number that is a constant to the graph."""
        node = self.graph.placeholder(name)
        set_value(node, value)
        if isinstance(value, torch.Tensor):
            self._described.setdefault(id(value), []).append(node)
            self.bind(value, node)
        return node

    def bind(self, tensor: torch.Tensor, node: fx.Node) -> None:
        """Let `tensor` stand for the value of `node` from now on."""
        self._known[id(tensor)] = (tensor, node)
        self._objects[node] = tensor

    def node_of(self, tensor: torch.Tensor) -> fx.Node:
        """Return the node that gives `tensor`; a real tensor met for the first time becomes a constant."""
        node = self._known.get(id(tensor))
        return node[1] if node is not None else self._constant(tensor)

    def object_of(self, node: fx.Node) -> torch.Tensor:
        """Return the tensor object that `node` gave, as the program saw it."""
        return self._objects[node]

    def knows(self, tensor: torch.Tensor) -> bool:
        """Return whether `tensor` has been seen."""
        return id(tensor) in self._known

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let calls inside the block pass unrecorded."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def finish(self, results: Sequence[object]) -> fx.GraphModule:
        """Close the graph with `results` (tensors, numbers, None) and return it as a module."""
        add_output(self.graph, [self.node_of(r) if isinstance(r, torch.Tensor) else r for r in results])
        self._detach_values()
        return lazy_module(dict(self.constants), self.graph)

    # -- the mode ----------------------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        """Record one ATen call and give its fake result."""
        kwargs = dict(kwargs or {})
        if self._paused or func in QUESTIONS:
            return func(*args, **kwargs)
        if self.backward and has_kernels_to_ask(func):  # capture has asked for the calls of the program
            demand_kernel(func, args, kwargs)
        rule = self._decompositions.get(func)
        if rule is not None and not (args and refuses(func, args[0])) and self._may_take_apart(func, rule):
            try:
                with self:
                    result = rule(*args, **kwargs)
            except ZeroDivisionError:  # it divides by the number of elements, where there are none
                result = NotImplemented
            if result is not NotImplemented and not self._lies_otherwise(func, args, kwargs, result):
                return result
        if decomposes_by_itself(func):
            with self:
                return func.decompose(*args, **kwargs)
        own = _OF_LIBRARIES.get(func)
        if own is not None:
            with self:
                return own(*args, **kwargs)
        return self._record(*_canonical(func, args, kwargs), loose=func in _DECLARED_VIEWS)

    def _may_take_apart(self, func: OpOverload, rule: Decomposition) -> bool:
        if self._gate is None:
            return True
        origin, where = self.backward_origin() if self.backward else self.origin, place_of_code(rule)
        place = origin.place() if origin is not None else ""
        half = "backward" if self.backward else "forward"
        return self._gate.allows(
            "decomposition", f"took {func} of the {half} apart", rule=str(func), where=where, place=place
        )

    def _lies_otherwise(
        self, func: OpOverload, args: tuple[object, ...], kwargs: dict[str, object], result: object
    ) -> bool:
        fake_args, fake_kwargs = map_leaves((args, kwargs), self._as_fake)
        with self.paused(), torch.no_grad():
            return lies_otherwise(func, fake_args, fake_kwargs, result)

    def _record(
        self, func: OpOverload, args: tuple[object, ...], kwargs: dict[str, object], *, loose: bool = False
    ) -> object:
        if torch.Tag.nondeterministic_seeded in func.tags:
            demand_untouched_generator()
        if func is aten._efficientzerotensor.default:
            kwargs = {**kwargs, "device": self._device_of_zeros(kwargs.get("device"))}
        fake_args, fake_kwargs = map_leaves((args, kwargs), self._as_fake)
        node_args, node_kwargs = map_leaves((fake_args, fake_kwargs), self._as_argument)
        if _METADATA_CHANGES in func.tags and isinstance(fake_args[0], torch.Tensor):
            self._keep_value(fake_args[0])
        for value in fake_kwargs.values():
            if isinstance(value, torch.Tensor) and 0 in value.shape and _writes_out(func):
                self._keep_value(value)  # it may grow, and then its earlier size is nowhere else
        result = fake_result(func, fake_args, fake_kwargs)
        if isinstance(result, bool | int | float) and _are_known_numbers(fake_args):
            return result  # a composition asks what it has made itself
        node = add_call(self.graph, func, node_args, node_kwargs)
        self._describe(node, result)
        if not torch.is_grad_enabled():
            mark_without_grad(node)
        if loose:
            mark_loose_view(node)
        self._bind_result(node, result)
        return result

    def _device_of_zeros(self, device: object) -> object:
        """Return where zeros without memory are said to be: products of those take shapes on "meta", and name it."""
        if not isinstance(device, torch.device) or device.type != "meta":
            return device
        values = (node.meta.get("val") for node in reversed(self.graph.nodes))
        found = (value.device for value in values if isinstance(value, torch.Tensor))
        return next((where for where in found if where.type != "meta"), device)

    def _bind_result(self, node: fx.Node, result: object) -> None:
        if isinstance(result, torch.Tensor):
            if not self.knows(result):  # an in-place call returns its argument, which keeps its node
                self.bind(result, node)
        elif isinstance(result, (tuple, list)):
            for index, part in enumerate(result):
                if isinstance(part, torch.Tensor) and not self.knows(part):
                    item = add_call(self.graph, operator.getitem, (node, index))
                    self._describe(item, part)
                    self.bind(part, item)

    def _describe(self, node: fx.Node, value: object) -> None:
        set_value(node, value)
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, torch.Tensor):
                self._described.setdefault(id(part), []).append(node)
        origin = self.backward_origin() if self.backward else self.origin
        if origin is not None:
            node.meta["origin"] = origin
        if self.backward:
            mark_backward(node, running_gradient_number())

    # -- arguments ---------------------------------------------------------------------------------------------

    def _as_fake(self, value: object) -> object:
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            return self._known_constant(value)
        return value

    def _as_argument(self, value: object) -> object:
        if isinstance(value, torch.Tensor):
            return self.node_of(value)
        if isinstance(value, torch.Generator):
            raise Unsupported(
                "a random call draws from a generator object",
                why="a graph is text, and a generator has no text",
                hint="expected: the graph runs eagerly",
            )
        return tuple(value) if isinstance(value, torch.Size) else value

    def _known_constant(self, real: torch.Tensor) -> torch.Tensor:
        constant = self._known.get(id(real))
        if constant is None:
            self._constant(real)
            constant = self._known[id(real)]
        value = constant[1].meta["val"]
        assert isinstance(value, torch.Tensor)
        return value

    def _constant(self, tensor: torch.Tensor) -> fx.Node:
        if isinstance(tensor, FakeTensor):
            raise InternalError("a fake tensor of unknown birth reached the tracer", hint="report the program")
        if tensor.requires_grad:
            raise Unsupported(
                "a tensor that requires grad is used without being an input of the graph",
                why="its gradient would be lost",
                hint="expected: the graph runs eagerly",
            )
        name = f"_constant_{len(self.constants)}"
        self.constants[name] = tensor
        fake = fake_like(tensor, self._mode)
        node = self.graph.create_node("get_attr", name, (), {}, name=name.lstrip("_"))
        self._describe(node, fake)
        self.bind(fake, node)
        self.bind(tensor, node)
        return node

    # -- example values ----------------------------------------------------------------------------------------

    def _keep_value(self, tensor: torch.Tensor) -> None:
        with self.paused(), torch.no_grad():
            earlier = tensor.detach()
        for node in self._described.pop(id(tensor), []):
            set_value(node, map_leaves(value_of(node), lambda part: earlier if part is tensor else part))

    def _detach_values(self) -> None:
        """Take the autograd history off example values: it would keep the whole traced run alive."""
        with self._mode, torch.no_grad():
            for node in self.graph.nodes:
                value = node.meta.get("val")
                if isinstance(value, torch.Tensor) and (value.requires_grad or value.grad_fn is not None):
                    set_value(node, value.detach())
                elif isinstance(value, (tuple, list)):
                    set_value(node, map_leaves(tuple(value), _detached))


def _are_known_numbers(args: tuple[object, ...]) -> bool:
    tensors = [value for value in args if isinstance(value, FakeTensor)]
    return bool(tensors) and all(tensor.constant is not None for tensor in tensors)


def _writes_out(func: OpOverload) -> bool:
    return any(argument.is_out for argument in func._schema.arguments)


def _no_origin() -> Origin | None:
    return None


def _detached(value: object) -> object:
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def _canonical(
    func: OpOverload, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[OpOverload, tuple[object, ...], dict[str, object]]:
    """Replace calls whose schema hides what they do by a twin whose schema says it.

    native_batch_norm writes the running statistics in training although its schema declares no mutation; so does
    lift_fresh of a constant: the program gets memory of its own at every run. unsafe_split gives views. See
    grad_mode_kernels for the fourth kind, and `_batch_norm_of_library` for one whose twin has fewer results.
    """
    if func is aten.native_batch_norm.default:
        training, mean, variance = args[5], args[3], args[4]
        if training and mean is not None and variance is not None:
            return aten._native_batch_norm_legit.default, args, kwargs
        if training and mean is None and variance is None:
            return aten._native_batch_norm_legit.no_stats, (*args[:3], *args[5:]), kwargs
    if func in WITH_GRAD_MODE and torch.is_grad_enabled():
        return WITH_GRAD_MODE[func], args, kwargs
    if func is aten.lift_fresh.default:
        return aten.clone.default, args, kwargs
    return _DECLARED_VIEWS.get(func, func), args, kwargs


def _batch_norm_of_library(
    source: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    factor: float,
    epsilon: float,
) -> tuple[torch.Tensor, ...]:
    """Return the results of cuDNN's batch norm by torch's own, whose twin says what it writes.

    The last one is memory that its own backward reads; that of torch's needs none.
    """
    results = aten.native_batch_norm.default(source, weight, bias, running_mean, running_var, training, factor, epsilon)
    return (*results, source.new_empty((0,), dtype=torch.uint8))


def _batch_norm_of_library_backward(
    source: torch.Tensor,
    gradient: torch.Tensor,
    weight: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    mean: torch.Tensor | None,
    invstd: torch.Tensor | None,
    epsilon: float,
    reserve: torch.Tensor,
) -> object:
    """Return the gradients of the same in training, where alone the library's own backward is called."""
    del reserve
    given = (gradient, source, weight, running_mean, running_var, mean, invstd)
    return aten.native_batch_norm_backward.default(*given, True, epsilon, [True, True, True])


_OF_LIBRARIES: Mapping[OpOverload, Callable[..., object]] = {
    aten.cudnn_batch_norm.default: _batch_norm_of_library,
    aten.cudnn_batch_norm_backward.default: _batch_norm_of_library_backward,
}
_DECLARED_VIEWS: Mapping[OpOverload, OpOverload] = {
    aten.unsafe_split.Tensor: aten.split.Tensor,
    aten.unsafe_split_with_sizes.default: aten.split_with_sizes.default,
}


def trace(
    function: Callable[..., object],
    example_inputs: Sequence[object],
    *,
    decompositions: Mapping[OpOverload, Decomposition] | None = None,
    mode: FakeTensorMode | None = None,
) -> fx.GraphModule:
    """Record what `function` does to inputs like these, as an ATen graph with one placeholder per input.

    Runs under the caller's grad mode; nothing real is computed and no random number is drawn. Numbers among the
    inputs are constants to the graph. Raises Unsupported for inputs that cannot be faked, and whatever `function`
    raises on fake tensors (data-dependent sizes and values, errors of the program itself).
    """
    mode = mode if mode is not None else FakeTensorMode()
    recorder = AtenRecorder(mode, decompositions)
    values = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    for index, value in enumerate(values):
        recorder.add_input(f"input_{index}", value)
    with watched_generator(), mode, recorder:
        result = function(*values)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return recorder.finish(results)
