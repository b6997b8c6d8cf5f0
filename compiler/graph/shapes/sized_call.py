"""A call whose sizes may be expressions: what a rule about its result can ask, and how it says the result.

A rule decides by identity: equal expressions are equal sizes, and a tensor is row-major if each stride is the product
of the sizes behind it.  It may demand that two sizes are equal that have to be.  Everything else is Undecided.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from ...base.symbol_facts import least_size
from ...base.torch_facts import FakeTensor, FakeTensorMode, OpOverload, without_dispatch_modes
from .fake_templates import FakeTemplates, Key, Number, key_of

TINY = 2  # the sizes of the tensors that are asked for dtypes: not 1, which broadcasts


class Undecided(Exception):
    """Sizes alone do not say what a call gives; torch's rule does."""


class Operand:
    """A tensor among the arguments, with what tells whether its sizes and strides are those of another."""

    __slots__ = ("size_key", "sizes", "stride_key", "strides", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.sizes: tuple[Number, ...] = tuple(tensor.shape)
        self.strides: tuple[Number, ...] = tuple(tensor.stride())
        self.size_key, self.stride_key = key_of(self.sizes), key_of(self.strides)


class Findings:
    """What the rules of one fake mode have found out.

    row_major: strides by sizes.  tiny: results for tiny tensors by call.  least: the least that a size can be.
    """

    def __init__(self) -> None:
        self.templates = FakeTemplates()
        self.row_major: dict[Key, tuple[Number, ...]] = {}
        self.tiny: dict[Key, Any] = {}
        self.least: dict[Any, int] = {}


class SizedCall:
    """One call that a rule looks at."""

    def __init__(
        self, found: Findings, mode: FakeTensorMode, target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.found, self.mode, self.target, self.args, self.kwargs = found, mode, target, args, kwargs

    def value(self, name: str) -> Any:
        """Return an argument by its name in the schema; its default if it is not given."""
        if name in self.kwargs:
            return self.kwargs[name]
        position, default = _parameters(self.target)[name]
        return self.args[position] if position < len(self.args) else default

    def operand(self, name: str) -> Operand:
        """Return an argument that must be a tensor."""
        return self.as_operand(self.value(name))

    def as_operand(self, value: Any) -> Operand:
        """Return a plain fake tensor of this mode as an operand; any other is torch's to judge."""
        if type(value) is not FakeTensor or value.fake_mode is not self.mode or value.constant is not None:
            raise Undecided
        if value.layout is not torch.strided or value.dtype.is_complex or value.is_quantized or value.is_neg():
            raise Undecided
        return Operand(value)

    def operands(self) -> list[Operand]:
        """Return all tensors among the arguments, which must be on one device."""
        found = [self.as_operand(value) for value in (*self.args, *self.kwargs.values()) if _is_tensor(value)]
        if not found or any(one.tensor.device != found[0].tensor.device for one in found):
            raise Undecided
        return found

    # -- what is known of sizes ------------------------------------------------------------------------------------

    def is_row_major(self, operand: Operand) -> bool:
        """Return whether the elements lie in the order of the dimensions, without gaps."""
        return operand.stride_key == key_of(self.row_major_strides(operand.sizes, operand.size_key))

    def is_repeated_row_major(self, operand: Operand) -> bool:
        """Return whether an operand is row-major but for dimensions in which the same elements are read again."""
        if 0 not in operand.stride_key:
            return self.is_row_major(operand)
        kept = [n for n, stride in enumerate(operand.stride_key) if stride != 0]
        sizes, strides = [operand.sizes[n] for n in kept], tuple(operand.stride_key[n] for n in kept)
        return strides == key_of(self.row_major_strides(sizes, key_of(sizes)))

    def row_major_strides(self, sizes: Sequence[Number], key: Key) -> tuple[Number, ...]:
        """Return the strides of a tensor of these sizes without gaps."""
        strides = self.found.row_major.get(key)
        if strides is None:
            if 0 in key:
                raise Undecided  # a stride is then a product in which 0 counts as 1
            reverse: list[Number] = [1] if key else []
            for size in list(sizes)[:0:-1]:
                reverse.append(reverse[-1] * size)
            strides = self.found.row_major[key] = tuple(reversed(reverse))
        return strides

    def least(self, size: Number) -> int:
        """Return the least that a size can be."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        least = self.found.least.get(expression)
        if least is None:
            least = self.found.least[expression] = least_size(size)
        return least

    def demand_elements(self, operand: Operand) -> None:
        """Leave tensors that may be empty to torch."""
        if not all(self.least(size) >= 1 for size in operand.sizes):
            raise Undecided

    def demand_equal(self, first: Number, second: Number) -> bool:
        """Return whether two open sizes are equal now, which is a condition on them from here on.

        Only for sizes of which neither is broadcast, where it would be an error if they were not equal.
        """
        if isinstance(first, int) or isinstance(second, int):
            return False  # one of them would be fixed
        if min(self.least(first), self.least(second)) <= TINY - 1 or _hint(first) != _hint(second):
            return False
        return bool(first == second)

    # -- results -----------------------------------------------------------------------------------------------------

    def row_major(self, sizes: Sequence[Number], dtype: torch.dtype, like: Operand) -> torch.Tensor:
        """Return a new tensor without gaps."""
        return self.new(sizes, self.row_major_strides(sizes, key_of(sizes)), dtype, like.tensor.device)

    def new(
        self, sizes: Sequence[Number], strides: Sequence[Number], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """Return a new tensor with these strides."""
        return self.found.templates.new(self.mode, sizes, strides, dtype, device)

    def laid_out_as(self, operand: Operand, dtype: torch.dtype) -> torch.Tensor:
        """Return a new tensor with the sizes and strides of another, which must be without gaps."""
        if not self.is_row_major(operand) and not self._is_dense(operand):
            raise Undecided
        return self.new(operand.sizes, operand.strides, dtype, operand.tensor.device)

    def view(self, of: Operand, sizes: Sequence[Number], strides: Sequence[Number], offset: Number) -> torch.Tensor:
        """Return a view of a tensor."""
        return self.found.templates.view(self.mode, sizes, strides, offset, of.tensor)

    def _is_dense(self, operand: Operand) -> bool:
        """Return whether the elements lie without gaps in the order that the strides have now."""
        if any(self.least(size) < 2 for size in operand.sizes):
            return False  # the stride of a size of 1 says nothing
        order = sorted(range(len(operand.sizes)), key=lambda n: _hint(operand.strides[n]), reverse=True)
        sizes = [operand.sizes[n] for n in order]
        strides = [operand.strides[n] for n in order]
        return key_of(strides) == key_of(self.row_major_strides(sizes, key_of(sizes)))

    def tiny(self) -> Any:
        """Return what the call gives for tensors of a few elements: dtypes and dimensions."""
        named = tuple((name, _tiny_key(value)) for name, value in self.kwargs.items())
        key = (self.target, torch.get_default_dtype(), tuple(map(_tiny_key, self.args)), named)
        try:
            known = self.found.tiny.get(key)
        except TypeError:  # an argument that has no hash
            raise Undecided from None
        if known is None:
            device = self._device_of_tiny()
            with without_dispatch_modes(), torch.no_grad():
                args = [_tiny(value, device) for value in self.args]
                kwargs = {name: _tiny(value, device) for name, value in self.kwargs.items()}
                try:
                    known = self.target(*args, **kwargs)
                except Exception:  # the call may be an error, which torch's rule words; or the tiny sizes do not fit
                    raise Undecided from None
            self.found.tiny[key] = known
        return known

    def _device_of_tiny(self) -> str:
        """Return where the tiny tensors are: a kernel runs faster than its shape rule, and tells no less.

        For many operators the rule is Python code of torch's that imports its compiler first.  The device is asked for
        in Python: torch's C++ imports its distributed tensors when it first asks a tensor of a class of its own.
        """
        draws = torch.Tag.nondeterministic_seeded in self.target.tags
        given = [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, torch.Tensor)]
        return "cpu" if given and not draws and all(value.device.type == "cpu" for value in given) else "meta"

    def tiny_tensor(self, dimensions: int) -> torch.dtype:
        """Return the dtype of the one result, which must have so many dimensions."""
        result = self.tiny()
        if not isinstance(result, torch.Tensor) or result.dim() != dimensions:
            raise Undecided
        return result.dtype


def _is_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)) and any(isinstance(part, torch.Tensor) for part in value):
        raise Undecided
    return isinstance(value, torch.Tensor)


@cache
def _parameters(target: OpOverload) -> Mapping[str, tuple[int, Any]]:
    return {one.name: (place, one.default_value) for place, one in enumerate(target._schema.arguments)}


def _hint(number: Number) -> int:
    return number if isinstance(number, int) else int(number.node.hint)


def _tiny_key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim()
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return type(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_tiny_key, value))
    return type(value), value


def _tiny(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.ones([TINY] * value.dim(), dtype=value.dtype, device=device)
    if isinstance(value, torch.SymInt):
        return TINY
    if isinstance(value, torch.SymFloat):
        return 0.5
    if isinstance(value, torch.SymBool):
        raise Undecided
    if isinstance(value, (list, tuple)):
        return [_tiny(part, device) for part in value]
    return value


Rule = Callable[[SizedCall], Any]
RULES: dict[OpOverload, Rule] = {}


def gives(*targets: OpOverload) -> Callable[[Rule], Rule]:
    """Register the rule of some operators."""

    def register(rule: Rule) -> Rule:
        for target in targets:
            RULES[target] = rule
        return rule

    return register
