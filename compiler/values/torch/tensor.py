"""Tensors: a node of the graph, and a fake tensor that carries the metadata."""

import operator
import types
from collections.abc import Callable, Hashable

import numpy
import torch
from torch import fx

from ..constant import Constant, MethodOf
from ..guard import ABSENT, GuardKind, look_up
from ..operator_table import Binary, Comparison, Unary
from ..python.containers.sequences import SequenceIterator
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import bind_raw, class_lookup, told_name, was_added
from ..python.size_calls import flattens_first, select_item
from ..reasons import (
    AUTOGRAD_CALL,
    DATA_DEPENDENT_BRANCH,
    DATA_DEPENDENT_SHAPE,
    DATA_DEPENDENT_VALUE,
    IDENTITY_NUMBER,
    NUMPY,
    TENSOR_STATE,
    TEXT,
    Break,
    BreakReason,
)
from ..source import Attribute, Item, Source
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .array_keys import with_index_tensors
from .numbers.deferred_numbers import DeferredNumber, deferred, deferred_list
from .spent_history import WALKED, known_leaves, leaves_of, refusal_of, tells_history, with_spent_history

_WATCHING = ("register_hook", "retain_grad")  # gradients that come by way of a result on their way to an input
_BREAKING_METHODS: dict[str, BreakReason] = {
    **dict.fromkeys(
        ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__"), DATA_DEPENDENT_VALUE
    ),
    **dict.fromkeys(("numpy", "__array__", "__dlpack__", "__array_wrap__"), NUMPY),
    **dict.fromkeys(("backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad"), AUTOGRAD_CALL),
    **dict.fromkeys(
        (
            "data_ptr",
            "storage",
            "untyped_storage",
            "share_memory_",
            "set_",
            "resize_",
            "resize_as_",
            "apply_",
            "map_",
            "map2_",
            "requires_grad_",
            "rename_",
            "names",
            "pin_memory",
            "is_set_to",
            "const_data_ptr",
            "_use_count",
            "record_stream",
            "__setstate__",
            "__reduce__",
            "__reduce_ex__",
            "__getstate__",
            "__dir__",
            "__sizeof__",
            "__deepcopy__",
            "module_load",
            "_typed_storage",
            "sparse_resize_",
            "to_mkldnn",
            "to_dense",
            "coalesce",
            "swap_",
        ),
        TENSOR_STATE,
    ),
    **dict.fromkeys(("__repr__", "__str__", "__format__"), TEXT),
    "__hash__": IDENTITY_NUMBER,
    "unique_consecutive": DATA_DEPENDENT_SHAPE,
}
_ITEM_METHODS = frozenset({"__getitem__", "__setitem__"})
_VIEW_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
_SETTLED_ATTRIBUTES = frozenset(  # guarded metadata, or the same for every tensor: the fake tensor has the answer
    {
        "__array_priority__",
        "device",
        "dtype",
        "is_cpu",
        "is_cuda",
        "is_ipu",
        "is_leaf",
        "is_maia",
        "is_meta",
        "is_mkldnn",
        "is_mps",
        "is_mtia",
        "is_nested",
        "is_quantized",
        "is_sparse",
        "is_sparse_csr",
        "is_vulkan",
        "is_xla",
        "is_xpu",
        "itemsize",
        "layout",
        "nbytes",
        "ndim",
        "requires_grad",
        "shape",
    }
)


_SETTLED_METHODS = frozenset(  # the same of the methods that give a Python value
    {
        "dense_dim",
        "dim",
        "dim_order",
        "element_size",
        "get_device",
        "is_complex",
        "is_conj",
        "is_contiguous",
        "is_distributed",
        "is_floating_point",
        "is_inference",
        "is_neg",
        "is_same_size",
        "is_signed",
        "ndimension",
        "nelement",
        "numel",
        "size",
        "sparse_dim",
        "stride",
        "type",
    }
)

_OWN_MEMBERS: dict[type, dict[str, object]] = {  # what torch's classes of tensors have under each name
    kind: {name: raw for base in reversed(kind.__mro__) for name, raw in vars(base).items()}
    for kind in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
}


MethodRule = Callable[[CaptureContext, "TensorValue", Arguments, Keywords], Value | None]
SetterRule = Callable[[CaptureContext, "TensorValue", Value], bool]
AttributeRule = Callable[[CaptureContext, "TensorValue"], Value | None]
_METHODS: dict[str, MethodRule] = {}
_ATTRIBUTES: dict[str, AttributeRule] = {}
_SETTERS: dict[str, SetterRule] = {}


def tensor_method(*names: str) -> Callable[[MethodRule], MethodRule]:
    """Register the rule of a method that is not a plain operation; it returns None where it has no answer."""

    def register(rule: MethodRule) -> MethodRule:
        for name in names:
            assert name not in _METHODS
            _METHODS[name] = rule
        return rule

    return register


def tensor_attribute(name: str) -> Callable[[AttributeRule], AttributeRule]:
    """Register the rule of reading an attribute; it returns None where it has no answer."""

    def register(rule: AttributeRule) -> AttributeRule:
        assert name not in _ATTRIBUTES
        _ATTRIBUTES[name] = rule
        return rule

    return register


def tensor_setter(name: str) -> Callable[[SetterRule], SetterRule]:
    """Register the rule of assigning an attribute; it returns whether it did it."""

    def register(rule: SetterRule) -> SetterRule:
        assert name not in _SETTERS
        _SETTERS[name] = rule
        return rule

    return register


class TensorValue(Value):
    """A tensor; kind: its Python class (Tensor, Parameter, Buffer). real: the input itself, while capturing."""

    has_text = False  # it would show the data

    def __init__(
        self,
        node: fx.Node,
        fake: torch.Tensor,
        kind: type,
        source: Source | None = None,
        real: torch.Tensor | None = None,
    ) -> None:
        self.node = node
        self.fake = fake
        self.kind = kind
        self.source = source
        self.real = real
        self.entry_storage = fake.untyped_storage() if real is not None else None  # as an input comes: the program
        self.entry_offset = fake.storage_offset() if real is not None else 0  # may give it other memory
        self.attributes: dict[str, Value] = {}
        self.has_new_data = False  # `x.data = ...` was evaluated
        self.hooks: list[TensorHook] = []  # registered while capturing

    def answers_operator(self, other: Value, name: str) -> bool:
        """Return True: torch takes any operand, or refuses it."""
        return True

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Add an operation; `+=` changes the tensor only where it is on the left."""
        replaced = self.replaced(ctx, f"__{'r' if reflected else 'i' if inplace else ''}{record.name}__")
        if replaced is not None:
            return ctx.call(replaced, [other], {})
        function = record.assigning if inplace and not reflected else record.function
        other = other.beside(self.fake, record, reflected=reflected) if isinstance(other, DeferredNumber) else other
        return ctx.graph.call("call_function", function, [other, self] if reflected else [self, other], {})

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Add an operation."""
        replaced = self.replaced(ctx, record.method)
        if replaced is not None:
            return ctx.call(replaced, [], {})
        return ctx.graph.call("call_function", record.function, [self], {})

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Add an operation; with None and texts a tensor is never equal."""
        replaced = self.replaced(ctx, record.reflected if reflected else record.method)
        if replaced is not None:
            return ctx.call(replaced, [other], {})
        without_data = isinstance(other, Constant) and (other.value is None or type(other.value) is str)
        if record.asks_equality and without_data and not ctx.modes.overrides.modes:
            return Constant(record.symbol == "!=")
        return ctx.graph.call("call_function", record.function, [other, self] if reflected else [self, other], {})

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the node and the fake tensor."""
        return self.node, self.fake

    def python_type(self) -> type:
        """Return the tensor class."""
        return self.kind

    def describe(self) -> str:
        """Return class, dtype and shape."""
        dtype = str(self.fake.dtype).removeprefix("torch.")
        return f"{self.kind.__name__}({dtype}{list(self.fake.shape)})"

    def identity(self) -> object:
        """Return the value: one TensorValue stands for one tensor object."""
        return self

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Tensors hash by identity."""
        ctx.guards.told_apart(self)
        return ("tensor", id(self))

    def truth(self, ctx: CaptureContext) -> bool:
        """Return what small inputs say of it, where that is better than a break: the data is not known."""
        answer = ctx.graph.ask(self)
        if answer is not None:
            return answer
        raise Break(DATA_DEPENDENT_BRANCH, f"truth value of {self.describe()}")

    def length(self, ctx: CaptureContext) -> Value:
        """Return the first size."""
        replaced = self.replaced(ctx, "__len__")
        if replaced is not None:
            return ctx.call(replaced, [], {})
        if ctx.modes.overrides.modes:
            return ctx.graph.call("call_method", "__len__", [self], {})
        if self.fake.dim() == 0:
            ctx.throw(TypeError, "len() of a 0-d tensor")
        return ctx.known(self.fake.shape[0])

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over the rows, which are views as in eager."""
        replaced = self.replaced(ctx, "__iter__")
        if replaced is not None:
            return ctx.realize(ctx.call(replaced, [], {}))
        if ctx.modes.overrides.modes:
            return ctx.realize(ctx.graph.call("call_method", "__iter__", [self], {}))
        if self.fake.dim() == 0:
            ctx.throw(TypeError, "iteration over a 0-d tensor")
        rows = ctx.graph.call("call_method", "unbind", [self, Constant(0)], {})
        assert isinstance(rows, TupleValue)
        return SequenceIterator(rows)

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return the tensor flipped, as `Tensor.__reversed__` does: its rows are copies."""
        return ctx.graph.call("call_method", "flip", [self, Constant(0)], {}) if self.fake.dim() else self

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Break: the data is not known."""
        raise Break(DATA_DEPENDENT_VALUE, f"membership test in {self.describe()}")

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Add an indexing operation."""
        replaced = self.replaced(ctx, "__getitem__")
        if replaced is not None:
            return ctx.call(replaced, [key], {})
        if ctx.modes.overrides.modes:
            return ctx.graph.call("call_method", "__getitem__", [self, key], {})
        key = with_index_tensors(ctx, key)
        selected = select_item(ctx, self, self.fake.dim(), key)
        if selected is not None:
            selection, rest = selected
            whole = isinstance(rest, Constant)
            return selection if whole else ctx.graph.call("call_function", operator.getitem, [selection, rest], {})
        return ctx.graph.call("call_function", operator.getitem, [self, key], {})

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Add an index assignment."""
        replaced = self.replaced(ctx, "__setitem__")
        if replaced is not None:
            ctx.call(replaced, [key, value], {})
            return
        if ctx.modes.overrides.modes:
            ctx.graph.call("call_method", "__setitem__", [self, key, value], {})
            return
        key, value = with_index_tensors(ctx, key), ctx.realize(value)
        if value.is_constant() and isinstance(value.constant(), numpy.generic):
            _try_to_assign(ctx, value.constant(), self.fake.dtype)
        selected = select_item(ctx, self, self.fake.dim(), key)
        if selected is not None:
            ctx.graph.call("call_function", operator.setitem, [*selected, value], {})
            return
        ctx.graph.call("call_function", operator.setitem, [self, key, value], {})

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give metadata as constants, views as operations, methods to be called."""
        if name in self.attributes:
            return self.attributes[name]
        replaced = self.replaced(ctx, name)
        if replaced is not None:
            return replaced
        if name in _VIEW_ATTRIBUTES:
            return ctx.graph.call("call_function", getattr, [self, Constant(name)], {})
        if name == "__class__":
            return ctx.known(self.kind)
        if ctx.modes.overrides.modes and isinstance(look_up(self.kind, name)[1], types.GetSetDescriptorType):
            return ctx.graph.call("call_function", getattr, [self, Constant(name)], {})
        rule = _ATTRIBUTES.get(name)
        answer = rule(ctx, self) if rule is not None else None
        if answer is not None:
            return answer
        if self.real is not None and self.source is not None and name in getattr(self.real, "__dict__", {}):
            place = Item(Attribute(self.source, "__dict__"), name)
            return ctx.wrap(self.real.__dict__[name], place)
        owner, raw = look_up(self.kind, name)
        if raw is ABSENT:
            if self.source is not None and self.real is not None:
                ctx.guards.add(self.source, GuardKind.LACKS_ATTRIBUTE, name)
            ctx.throw(AttributeError, f"'{told_name(self.kind)}' object has no attribute '{name}'")
        if owner is not None and isinstance(raw, staticmethod | classmethod | types.BuiltinFunctionType):
            return bind_raw(ctx, raw, owner, name, self, self.kind)  # no method: `__new__`, `__torch_function__`
        if callable(getattr(torch.Tensor, name, None)):
            return MethodOf(self, name)
        if name not in _SETTLED_ATTRIBUTES:
            raise Break(TENSOR_STATE, f"attribute {name!r} of {self.describe()}")
        return ctx.known(getattr(self.fake, name))

    def replaced(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return what the user has given the class under a name; None where it has torch's own."""
        owner, raw = class_lookup(self.kind, name)
        if owner is None or (_OWN_MEMBERS.get(self.kind, {}).get(name, raw) is raw and not was_added(raw)):
            return None
        own = getattr(self.real, "__dict__", {})
        if name in own and not hasattr(type(raw), "__set__"):
            return None  # what is set on the tensor itself is found first
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep attributes of the user's own, which are replayed; ask the rule of torch's, or Break."""
        value = ctx.realize(value)
        if not hasattr(torch.Tensor, name):
            self.attributes[name] = value
            ctx.effects.mutated(self)
            return
        rule = _SETTERS.get(name)
        if rule is not None and rule(ctx, self, value):
            return
        raise Break(TENSOR_STATE, f"setting attribute {name!r} of {self.describe()}")

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Add a method call to the graph; what gives a Python value from metadata is a constant."""
        replaced = self.replaced(ctx, name)
        if replaced is not None:
            return ctx.call(replaced, args, kwargs)
        if ctx.modes.overrides.modes and name != "as_subclass":
            return ctx.graph.call("call_method", name, [self, *args], kwargs)
        if name in _ITEM_METHODS and not kwargs:
            return self.get_item(ctx, *args) if len(args) == 1 else self._set_item_method(ctx, args)
        rule = _METHODS.get(name)
        answer = rule(ctx, self, args, kwargs) if rule is not None else None
        if answer is not None:
            return answer
        number = deferred(ctx, self, self.fake) if name == "item" and not args and not kwargs else None
        number = deferred_list(ctx, self, self.fake) if name == "tolist" and not args and not kwargs else number
        if number is not None:
            return number
        known = ctx.graph.number_at_entry(self) if name == "item" and not args and not kwargs else None
        if known is not None:
            return Constant(known)
        reason = _BREAKING_METHODS.get(name)
        if reason is not None:
            signal = Break(reason, f"{name}() of {self.describe()}")
            signal.walks_results = name in _WATCHING and self.source is None and bool(self.node.users)
            raise signal
        if name == "__len__":
            return self.length(ctx)
        if name == "__iter__":
            return self.iterate(ctx)
        if name in ("view", "reshape") and not kwargs and flattens_first(self.fake, args, ctx):
            flat = ctx.graph.call("call_method", name, [self, Constant(-1)], {})
            return ctx.graph.call("call_method", name, [flat, *args], {})
        answer = ctx.graph.call("call_method", name, [self, *args], kwargs)
        if isinstance(answer, Constant) and name not in _SETTLED_METHODS and answer.value not in (NotImplemented, ()):
            raise Break(TENSOR_STATE, f"{name}() of {self.describe()}")
        return answer

    def _set_item_method(self, ctx: CaptureContext, args: Arguments) -> Value:
        self.set_item(ctx, *args)
        return Constant(None)

    def become(self, ctx: CaptureContext, other: "TensorValue") -> None:
        """Stand for another node from here on: the object stays, what is in it changes."""
        self.node, self.fake = other.node, other.fake
        ctx.graph.rebound(self)

    def rebuild(self, out: Rebuilder) -> str:
        """Return the graph's output, with the attributes set on it."""
        name = self._output(out)
        if self.kind is not torch.Tensor and not self.fake.requires_grad:
            wrapped = out.fresh()  # graphs give plain tensors; a leaf that requires grad is what the node made
            out.line(f"{wrapped} = {out.inject(self.kind)}({name}, requires_grad=False)")
            name = wrapped
        out.bind(self, name)
        for key, value in self.attributes.items():
            out.line(f"{name}.{key} = {out.value(value)}")
        return name

    def _output(self, out: Rebuilder) -> str:
        """Make it an output of the graph; a history that was used up stays in the graph."""
        walked = self.node.graph in WALKED and self.fake.requires_grad and tells_history(self.fake)
        words = refusal_of(self.fake) if walked and not self.fake.is_leaf else None
        if words is None:
            return out.tensor(self)
        meta = self.node.meta
        self.node = self.node.graph.call_method("detach", (self.node,))
        self.node.meta.update(meta)
        reached = {id(leaf) for leaf in leaves_of(self.fake)}
        known = [v for v in known_leaves(self.node.graph) if isinstance(v, TensorValue) and v.source is not None]
        leaves = "".join(f", {out.value(leaf)}" for leaf in known if id(leaf.fake) in reached)
        name = out.fresh()
        out.line(f"{name} = {out.inject(with_spent_history)}({out.tensor(self)}, {words!r}{leaves})")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Write the new data, the changed attributes and the hooks."""
        name = out.value(self)
        lines = [f"{name}.data = {out.tensor(self)}"] if self.has_new_data else []
        lines += [f"{name}.{key} = {out.value(value)}" for key, value in self.attributes.items()]
        return lines + [line for hook in self.hooks for line in hook.replay(out)]


def _try_to_assign(ctx: CaptureContext, number: object, dtype: torch.dtype) -> None:
    """Raise the TypeError of torch where it does not take a number of NumPy's, but one of Python's, as an element."""
    try:
        torch.empty(1, dtype=dtype)[0] = number  # type: ignore[assignment]  # torch says which it takes
    except TypeError as error:
        ctx.throw(TypeError, *error.args)


class TensorHook(Value):
    """A hook registered on an input while capturing, and the handle that registering gave."""

    always_true = True

    def __init__(self, tensor: TensorValue, method: str, function: Value) -> None:
        self.tensor = tensor
        self.method = method
        self.function = function
        self.written = False

    def python_type(self) -> type:
        """Return the class of handles."""
        return torch.utils.hooks.RemovableHandle

    def rebuild(self, out: Rebuilder) -> str:
        """Register the hook and give the handle."""
        name = out.fresh()
        self.written = True
        out.line(f"{name} = {out.value(self.tensor)}.{self.method}({out.value(self.function)})")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Register the hook unless its handle was asked for before."""
        text = f"{out.value(self.tensor)}.{self.method}({out.value(self.function)})"
        return [] if self.written else [text]
