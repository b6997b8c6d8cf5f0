"""NumPy values: scalars and arrays that are known while capturing, and arrays that lie over the memory of a tensor."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from ..constant import Constant, Known, MethodOf
from ..guard import GuardKind
from ..operator_table import Binary, Comparison, Unary
from ..python.containers.tuples import TupleValue
from ..reasons import NUMPY, Break
from ..rule_tables import wraps_type
from ..source import Injected, Source
from ..torch.array_keys import ArrayKey
from ..torch.tensor import TensorValue
from ..type_attributes import require_attribute
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .numpy_warnings import error_settings

_LARGEST = 1 << 14  # elements of a known array that becomes part of the code
SCALARS = (
    numpy.float16,
    numpy.float32,
    numpy.float64,
    numpy.int8,
    numpy.int16,
    numpy.int32,
    numpy.int64,
    numpy.uint8,
    numpy.bool_,
    numpy.complex64,
    numpy.complex128,
)


class NumpyScalar(Value):
    """A NumPy number: an immutable object, known by value."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        """Return the scalar's class."""
        return type(self.value)

    def describe(self) -> str:
        """Return the number as it prints."""
        return repr(self.value)

    def is_constant(self) -> bool:
        """Return True."""
        return True

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the number of Python's for both."""
        number = self.value.item()
        return number, number

    def constant(self) -> object:
        """Return the number."""
        return self.value

    def identity(self) -> object:
        """Return the object."""
        return self.value

    def as_index(self, ctx: CaptureContext) -> Value:
        """Return Python's number of the same value."""
        return Constant(int(self.value)) if isinstance(self.value, numpy.integer) else self

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the number, which hashes as Python's of the same value."""
        token: Hashable = self.value
        return token

    def truth(self, ctx: CaptureContext) -> bool:
        """Return bool of the number."""
        return bool(self.value)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method or a known attribute."""
        if not hasattr(self.value, name):
            ctx.throw(
                AttributeError,
                f"'{type(self.value).__module__}.{type(self.value).__name__}' object has no attribute '{name}'",
            )
        attribute = getattr(self.value, name)
        if attribute is self.value:
            return self
        is_method = callable(attribute) and not isinstance(attribute, type)
        return MethodOf(self, name) if is_method else known_value(ctx, attribute)

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Evaluate an operator on known numbers; Break where NumPy warns."""
        if not isinstance(other, Constant | NumpyScalar):
            return None
        return fold_known(ctx, record.function, [other, self] if reflected else [self, other], {})

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Evaluate a unary operator; Break where NumPy warns."""
        return fold_known(ctx, record.function, [self], {})

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Run the method now."""
        return fold_known(ctx, getattr(self.value, name), args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the number again, so that each call has an object of its own."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.value)}.copy()")
        return name


class OpenNumpyScalar(NumpyScalar):
    """A NumPy number from outside that may vary: torch takes it as the Python number that it is.

    number: that number, as a symbol. Everything else that is done with it fixes it, and guards that.
    """

    def __init__(self, ctx: CaptureContext, real: Any, number: Value, source: Source) -> None:
        self.ctx = ctx
        self.real = real
        self.number = number
        self.source: Source = source
        self.is_fixed = False

    @property
    def value(self) -> Any:
        """Return the number, which is fixed from here on."""
        if not self.is_fixed:
            self.is_fixed = True
            self.ctx.guards.add(self.source, GuardKind.EXPRESSION, _same_bits(self.real))
        return self.real

    def python_type(self) -> type:
        """Return the scalar's class."""
        return type(self.real)

    def describe(self) -> str:
        """Return the class."""
        return f"{type(self.real).__name__} from outside"

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the node and the symbol of Python's number."""
        return super().graph_argument(ctx) if self.is_fixed else self.number.graph_argument(ctx)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method or a known attribute; asking for `item` fixes nothing."""
        return MethodOf(self, name) if name == "item" else super().get_attr(ctx, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Give Python's number as it is, or run the method now."""
        if name == "item" and not args and not kwargs:
            return self.number
        return super().call_method(ctx, name, args, kwargs)


def _same_bits(value: numpy.generic) -> str:
    return f"{{0}}.tobytes().hex() == {value.tobytes().hex()!r}"  # by bits: nan, -0.0


@dataclass(slots=True, eq=False)
class SharedMemory:
    """What arrays that share memory in eager, and are apart here, have in common.

    writers: for which one of them has left the function.  has_tensor: a tensor lies over it, which may change it.
    """

    writers: list[Rebuilder] = field(default_factory=list)
    has_tensor: bool = False


class ArrayValue(ArrayKey):
    """A NumPy array or scalar; operators and comparisons are one thing to it."""

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Evaluate an operator."""
        left, right = (other, self) if reflected else (self, other)
        return self.operate(ctx, record.function, left, right, inplace=inplace)

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Evaluate a comparison."""
        left, right = (other, self) if reflected else (self, other)
        return self.operate(ctx, record.function, left, right, inplace=False)

    def operate(self, ctx: CaptureContext, function: Any, left: Value, right: Value, *, inplace: bool) -> Value:
        """Evaluate an operator; one of the operands is this array."""
        raise NotImplementedError


class OverTensor(ArrayValue):
    """An array or a number over the memory of a tensor of the graph."""

    tensor: TensorValue


MOST_INDICES = 4096
"""Known indices that a graph carries as a constant."""

INDEX_DTYPES = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64)
"""Of arrays in a subscript: a mask, or positions, which torch reads as int64."""


class KnownArray(ArrayValue):
    """An array made of known values; it is never changed while capturing."""

    precedes_methods = True

    def __init__(self, array: Any, memory: SharedMemory | None = None) -> None:
        self.array = array
        self.memory = memory or SharedMemory()

    def python_type(self) -> type:
        """Return the array class."""
        return numpy.ndarray

    def describe(self) -> str:
        """Return dtype and shape."""
        return f"array({self.array.dtype}{list(self.array.shape)})"

    def is_constant(self) -> bool:
        """Return True."""
        return True

    def constant(self) -> object:
        """Return the array, which the caller must not change."""
        return self.array

    def truth(self, ctx: CaptureContext) -> bool:
        """Evaluate bool."""
        return fold_known(ctx, bool, [self], {}).truth(ctx)

    def operate(self, ctx: CaptureContext, function: Any, left: Value, right: Value, *, inplace: bool) -> Value:
        """Evaluate an operator on known operands."""
        if inplace or isinstance(left, TensorValue) or isinstance(right, TensorValue):
            self.unsupported("an operator", NUMPY)
        for other in (left, right):
            if isinstance(other, OverTensor):
                return other.operate(ctx, function, left, right, inplace=False)
        return fold_known(ctx, function, [left, right], {})

    def index_tensor(self, ctx: CaptureContext, *, alone: bool) -> Value:
        """Return a constant tensor of positions, or a mask."""
        array = self.array
        if array.dtype.kind not in "bi" or array.size > MOST_INDICES or not array.ndim or (alone and array.ndim > 1):
            return self
        dtype = torch.bool if array.dtype.kind == "b" else torch.int64
        return ctx.graph.call("call_function", torch.tensor, [ctx.known(array.tolist())], {"dtype": ctx.known(dtype)})

    def length(self, ctx: CaptureContext) -> Value:
        """Evaluate len."""
        return fold_known(ctx, len, [self], {})

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over the rows."""
        return fold_known(ctx, tuple, [self], {}).iterate(ctx)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Index now."""
        return fold_known(ctx, lambda array, index: array[index], [self, key], {})

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method or a known attribute."""
        require_attribute(ctx, self, name)
        if name in ("base", "data", "flags", "ctypes", "flat") or not hasattr(self.array, name):
            self.unsupported(f"attribute {name!r}", NUMPY)
        if callable(getattr(self.array, name)) and name != "__class__":
            return MethodOf(self, name)
        if name in ("__class__", "shape", "dtype", "ndim", "size"):
            return ctx.known(getattr(self.array, name))
        return fold_known(ctx, lambda array: getattr(array, name), [self], {})

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Run a method that leaves the array as it is."""
        if name not in _PURE_METHODS:
            self.unsupported(f"method {name!r}", NUMPY)

        def method(array: Any, *rest: Any, **named: Any) -> Any:
            return getattr(array, name)(*rest, **named)

        return fold_known(ctx, method, [self, *args], kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Copy the array, so that each call has its own."""
        if self.memory.has_tensor or any(seen is out for seen in self.memory.writers):
            self.unsupported("leaving the function with another over the same memory", NUMPY)
        self.memory.writers.append(out)
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.array)}.copy('K')")
        return name


_PURE_METHODS = frozenset(
    {
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "clip",
        "conj",
        "copy",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "flatten",
        "item",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "ravel",
        "repeat",
        "reshape",
        "round",
        "searchsorted",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "tolist",
        "trace",
        "transpose",
        "var",
        "view",
    }
)


def known_constant(value: Value) -> Any:
    """Return the number that a value is."""
    return value.constant()


def known_value(ctx: CaptureContext, value: Any) -> Value:
    """Return the value of what a NumPy function has given."""
    if isinstance(value, numpy.ndarray):
        if value.size > _LARGEST or type(value) is not numpy.ndarray or value.dtype.hasobject:
            raise Break(NUMPY, f"an array of {value.size} elements")
        return KnownArray(value)
    if isinstance(value, numpy.generic):
        if type(value) not in SCALARS:
            raise Break(NUMPY, f"a {type(value).__name__}")
        return NumpyScalar(value)
    if type(value) in (tuple, list) and any(isinstance(item, numpy.ndarray | numpy.generic) for item in value):
        raise Break(NUMPY, "several arrays at once")
    return ctx.known(value)


def fold_known(ctx: CaptureContext, function: Any, args: Arguments, kwargs: Keywords) -> Value:
    """Run NumPy code on known values now; Break where it warns or fails, so that eager does it at every call."""
    values = [ctx.realize(arg) for arg in args]
    named = {name: ctx.realize(value) for name, value in kwargs.items()}
    arrays = [value for value in (*values, *named.values()) if isinstance(value, KnownArray)]
    if not all(value.is_constant() for value in (*values, *named.values())):
        raise Break(NUMPY, "NumPy code over values that are not known")
    if any(value.memory.has_tensor for value in arrays):
        raise Break(NUMPY, "an array that a tensor may have changed")
    try:
        with numpy.errstate(all="raise"):
            result = function(*(v.constant() for v in values), **{k: v.constant() for k, v in named.items()})
    except Exception as error:
        raise Break(NUMPY, f"{type(error).__name__}: {error}") from None
    if function is tuple:
        return _rows(ctx, values[0], result)
    for operand in values:
        if isinstance(operand, NumpyScalar) and operand.value is result:
            return operand
    answer = known_value(ctx, result)
    if isinstance(answer, KnownArray):
        for value in arrays:
            if value.array is result:
                return value
            if numpy.may_share_memory(value.array, result):
                answer = KnownArray(result.copy("K"), value.memory)
    return answer


def _rows(ctx: CaptureContext, value: Value, rows: tuple[Any, ...]) -> Value:
    assert isinstance(value, KnownArray)
    apart = [
        KnownArray(row.copy("K"), value.memory) if isinstance(row, numpy.ndarray) else known_value(ctx, row)
        for row in rows
    ]
    return TupleValue(apart)


def demand_quiet_errors(ctx: CaptureContext) -> None:
    """Hold NumPy's way with floating-point errors; Break where it does more than to warn: torch is silent."""
    settings = error_settings()
    if not {setting for _, setting in settings} <= {"warn", "ignore"}:
        raise Break(NUMPY, "arithmetic whose errors are handled")
    ctx.guards.add(None, GuardKind.STATE, (error_settings, settings))


FLOATS = frozenset({torch.float32, torch.float64})
DTYPES: dict[torch.dtype, Any] = {
    torch.float32: numpy.dtype("float32"),
    torch.float64: numpy.dtype("float64"),
    torch.int64: numpy.dtype("int64"),
    torch.int32: numpy.dtype("int32"),
    torch.int16: numpy.dtype("int16"),
    torch.int8: numpy.dtype("int8"),
    torch.uint8: numpy.dtype("uint8"),
    torch.bool: numpy.dtype("bool"),
    torch.float16: numpy.dtype("float16"),
    torch.complex64: numpy.dtype("complex64"),
    torch.complex128: numpy.dtype("complex128"),
}


def dtype_of(dtype: torch.dtype) -> Any:
    """Return NumPy's name of a dtype; Break if it has none."""
    if dtype not in DTYPES:
        raise Break(NUMPY, f"an array of {dtype}")
    return DTYPES[dtype]


@wraps_type(*SCALARS)
def _scalar(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, numpy.generic)
    if isinstance(source, Injected):
        return NumpyScalar(value)
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    ctx.guards.add(source, GuardKind.EXPRESSION, _same_bits(value))
    return NumpyScalar(value, source)


@wraps_type(numpy.ufunc, type(numpy.prod), numpy.finfo, numpy.iinfo, *{type(dtype) for dtype in DTYPES.values()})
def _by_identity(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return Known(value, source)
