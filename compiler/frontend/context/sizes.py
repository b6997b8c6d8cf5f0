"""Sizes and whole numbers that are symbols: where each comes from, its node in the graph, the guards it needs."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ...base.dense_order import dense_order, dense_strides
from ...base.events import FellBack, record
from ...base.origin import Origin
from ...base.symbol_facts import (
    bound_size,
    expression_text,
    hint_value,
    make_shape_environment,
    make_symbolic_float,
    make_symbolic_number,
    size_conditions,
    size_expression,
)
from ...graph.size_nodes import node_of_size
from ...values.constant import Constant
from ...values.guard import Guard, GuardKind
from ...values.scalar import LARGE, SizeValue
from ...values.source import Argument, NumberAtEntry, Source
from ...values.value import Value
from .machine_numbers import LARGEST_NUMBER, fits_in_64_bits
from .size_marks import size_marks

SymbolicDimensions = Callable[[torch.Tensor, Source], frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class SymbolOrigin:
    """Where a symbol comes from: a size of an input (tensor, number: the dimension) or a number (its value)."""

    source: Source
    suffix: str
    tensor: fx.Node | None
    number: int | float
    symbol: Any


class Sizes:
    """The symbols of one capture; graph: where the nodes that compute them go, with its inputs as (source, real)."""

    def __init__(
        self,
        symbolic: SymbolicDimensions,
        graph: fx.Graph,
        inputs: dict[fx.Node, tuple[Source, object]],
        here: Callable[[], Origin | None],
        varying_numbers: frozenset[Source],
    ) -> None:
        self.symbolic = symbolic
        self.environment = make_shape_environment() if symbolic is not no_symbols else None
        self.graph = graph
        self.inputs = inputs
        self.here = here
        self.origins: dict[str, SymbolOrigin] = {}  # name of a symbol -> where it comes from
        self.numbers: dict[Source, Value] = {}
        self.varying_numbers = varying_numbers if self.environment is not None else frozenset()
        self.nodes: dict[str, object] = {}
        self.fixed: dict[str, Origin | None] = {}  # symbols that the program needed as numbers, and where
        self.with_gaps: list[tuple[Source, Origin | None]] = []  # inputs whose sizes were to be open and cannot be
        self._known = 0
        self._line: Origin | None = None

    def varying(self, value: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an input that are to be symbols; 0 and 1 never are, nor sizes with gaps between.

        Nor those of a view that torch conjugates or negates when it is read: the twin of a symbolic size is no view.
        """
        if self.environment is None or not value.dim() or value.is_conj() or value.is_neg():
            return frozenset()
        rank = value.dim()  # of another call, the tensor may have had more dimensions
        dimensions = frozenset(
            index for index in self.symbolic(value, source) if index < rank and value.shape[index] > 1
        )
        if dimensions and dense_order(value.shape, value.stride()) is None:
            self.with_gaps.append((source, self.here()))
            return frozenset()
        return dimensions

    def note_input(
        self, fake: torch.Tensor, varying: frozenset[int], source: Source, node: fx.Node, value: torch.Tensor
    ) -> None:
        """Remember which input gives the symbols in the shape of its fake tensor, and in which range they are."""
        ranges = size_marks(value).ranges if varying else {}
        for index in varying:
            if index in ranges:
                bound_size(fake.shape[index], *ranges[index])
            name = str(size_expression(fake.shape[index]))
            self.origins[name] = SymbolOrigin(source, f".shape[{index}]", node, index, fake.shape[index])

    def is_open_number(self, value: int | float, source: Source) -> bool:
        """Return whether a number from outside is to be a symbol: it changed, or all whole arguments are to be."""
        if source in self.varying_numbers:
            return self.can_be_open(value)
        every = self.symbolic is every_dimension and isinstance(source, Argument)
        return every and type(value) is int and value not in (0, 1) and abs(value) < LARGEST_NUMBER

    def can_be_open(self, value: int | float) -> bool:
        """Return whether a number can be a symbol."""
        whole = type(value) is int and abs(value) < LARGEST_NUMBER
        return whole or (type(value) is float and 0 < abs(value) < LARGE)

    def number(self, value: int | float, source: Source) -> Value:
        """Return the symbol of a number that has changed between calls."""
        if source not in self.numbers:
            assert self.environment is not None
            label = f"number_{len(self.numbers)}"
            if isinstance(value, float):
                symbol = make_symbolic_float(self.environment, value, label)
            else:
                symbol = make_symbolic_number(self.environment, value, label)
            self.origins[str(size_expression(symbol))] = SymbolOrigin(source, "", None, value, symbol)
            self.numbers[source] = size_value(symbol)
        return self.numbers[source]

    def computed(self, function: Callable[..., object], operands: Sequence[Any]) -> tuple[float, NumberAtEntry] | None:
        """Return what a pure function gives for the numbers of now, and where that is found at entry.

        None unless it gives a number that is a float, for numbers of one input.
        """
        texts, sources, numbers = list[str](), dict[Source, None](), list[Any]()
        for operand in operands:
            if isinstance(operand, torch.SymInt | torch.SymFloat):
                text, found = self.text(size_expression(operand))
                texts.append(f"float({text})" if isinstance(operand, torch.SymFloat) else text)
                sources |= dict.fromkeys(found)
                numbers.append(hint_value(operand))
            else:
                texts.append(repr(operand))
                numbers.append(operand)
        if len(sources) != 1 or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            return None
        try:
            result = function(*numbers)
        except Exception:  # the program raises it, where it makes the call
            return None
        if type(result) is not float or math.isnan(result):
            return None
        return result, NumberAtEntry(next(iter(sources)), function, ", ".join(texts))

    def _symbol_node(self, origin: SymbolOrigin) -> fx.Node:
        """Return the node that gives a symbol: the size of an input, or an input of its own."""
        if origin.tensor is not None:
            with self.graph.inserting_after(origin.tensor):  # later, the program may have given it another shape
                return self.graph.call_method("size", (origin.tensor, origin.number))
        node = self.graph.placeholder(f"number_{len(self.inputs)}")
        node.meta.update(example_value=origin.number, val=origin.symbol, source=origin.source.words())
        self.inputs[node] = (origin.source, origin.number)
        return node

    def watch(self, line: Callable[[], Origin | None]) -> None:
        """Note, before each instruction, which symbols the one before made numbers; line: where the program is now."""
        environment = self.environment
        if environment is None or not self.origins:
            return
        if len(environment.replacements) != self._known:
            self._known = len(environment.replacements)
            for name, origin in self.origins.items():
                if name not in self.fixed and size_expression(origin.symbol).is_number:
                    self.fixed[name] = self._line
        self._line = line()

    def record_fixed(self) -> None:
        """Put every size on record that is a number now although it was to be open."""
        for source, where in self.with_gaps:
            what = f"the sizes of {source.words()} are fixed: its elements do not fill their memory"
            record(FellBack("dynamic size", what, where))
        for name, origin in self.origins.items():
            expression = size_expression(origin.symbol)
            if expression.is_number:
                what = f"{origin.source.words()}{origin.suffix} is fixed to {expression}: an operation needs the number"
                record(FellBack("dynamic size", what, self.fixed.get(name, self._line)))

    def argument(self, value: Value) -> object:
        """Return the node that computes a symbolic size, or the number if there is none for it."""
        assert isinstance(value, SizeValue)
        if value.kind is not bool and not fits_in_64_bits(value.symbol, self._is_size, self._values):
            return value.constant()
        node = self._node(size_expression(value.symbol))
        return value.constant() if node is None or isinstance(node, int) else node

    def open_numbers(self, values: Iterable[Value]) -> Iterator[str]:
        """Give the symbols of numbers from outside, other than sizes, that numbers are computed from."""
        for value in values:
            names = size_expression(value.symbol).free_symbols if isinstance(value, SizeValue) else ()
            yield from (name for name in map(str, names) if name in self.origins and not self._is_size(name))

    def _values(self) -> dict[str, float]:
        return {name: hint_value(origin.symbol) for name, origin in self.origins.items()}

    def _is_size(self, name: str) -> bool:
        return name in self.origins and self.origins[name].tensor is not None

    def forget(self, node: fx.Node) -> None:
        """Forget a node that leaves the graph."""
        self.nodes = {text: other for text, other in self.nodes.items() if other is not node}

    def _node(self, expression: Any) -> Any:
        """Return the node of an expression, None if it is made of something that has no node."""
        return node_of_size(expression, self.nodes, self._symbol, self._call)

    def _symbol(self, name: str) -> fx.Node | None:
        return self._with_origin(self._symbol_node(self.origins[name])) if name in self.origins else None

    def _call(self, operation: Callable[..., object], parts: Sequence[Any]) -> fx.Node:
        return self._with_origin(self.graph.call_function(operation, tuple(parts)))

    def _with_origin(self, node: fx.Node) -> fx.Node:
        node.meta["origin"] = self.here()
        return node

    def guards(self) -> list[Guard]:
        """Return the guards on symbolic sizes that the capture relied on."""
        if self.environment is None:
            return []
        guards: list[Guard] = []
        for condition in size_conditions(self.environment):
            text, sources = self.text(condition)
            guards.append(Guard(None, GuardKind.EXPRESSION, text, None, sources))
        return guards

    def text(self, expression: Any) -> tuple[str, tuple[Source, ...]]:
        """Return Python text with places {1}, {2}, ... for the inputs that give the sizes, and their sources."""
        text = expression_text(expression).replace("{", "{{").replace("}", "}}")
        sources: list[Source] = []
        for name in sorted((str(symbol) for symbol in expression.free_symbols), key=len, reverse=True):
            origin = self.origins[name]
            if origin.source not in sources:
                sources.append(origin.source)
            place = f"{{{sources.index(origin.source) + 1}}}{origin.suffix}"
            text = re.sub(rf"\b{name}\b", place, text)
        return text, tuple(sources)


def size_value(value: torch.SymInt | torch.SymFloat | torch.SymBool) -> Value:
    """Return the value of a symbol; one that is known by now becomes a constant."""
    kind = int if isinstance(value, torch.SymInt) else float if isinstance(value, torch.SymFloat) else bool
    expression = size_expression(value)
    if expression.is_number or expression in (True, False):
        number: Any = value
        return Constant(kind(number))
    return SizeValue(value, kind)


def no_symbols(value: torch.Tensor, source: Source) -> frozenset[int]:
    """Say that no dimension of any input is a symbol."""
    del value, source
    return frozenset()


def every_dimension(value: torch.Tensor, source: Source) -> frozenset[int]:
    """Make every dimension of an input a symbol, but not of parameters, and not those marked static."""
    del source
    if isinstance(value, torch.nn.Parameter):
        return frozenset()
    return frozenset(range(value.dim())) - size_marks(value).fixed


def stride_text(order: tuple[int, ...]) -> str:
    """Return the condition on an input {0} that its strides are those of a dense tensor in this order."""
    sizes = [_Factor(f"{{0}}.shape[{dimension}]") for dimension in range(len(order))]
    return f"{{0}}.stride() == ({''.join(f'{stride}, ' for stride in dense_strides(sizes, order))})"


@dataclass(frozen=True, slots=True)
class _Factor:
    """A product as text."""

    text: str

    def __mul__(self, other: "_Factor") -> "_Factor":
        return _Factor(f"{self.text}*{other.text}")

    def __rmul__(self, other: int) -> "_Factor":
        del other  # the 1 that products start from
        return self

    def __str__(self) -> str:
        return self.text
