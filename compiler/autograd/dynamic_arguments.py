"""Which sizes and numbers among a graph's arguments are dynamic, and what is said of them after a trace.

Capture leaves symbols in the example values of placeholders.  A trace gives each its own symbol in an environment of
its own, so that what the trace assumes can be checked where the traced code is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..base.nested import nested_text
from ..base.symbol_facts import (
    SizeText,
    expression_text,
    make_shape_environment,
    make_symbolic_float,
    make_symbolic_number,
    make_symbolic_size,
    size_conditions,
    size_expression,
    symbol_name,
)
from ..base.torch_facts import FakeTensorMode, ShapeEnv, WatchedFakeMode, asked_once
from ..graph.dynamic_sizes import is_symbolic
from ..graph.node_values import entry_shape, placeholders
from ..graph.shapes.metadata_rules import MetadataRules
from ..symbolic.scaled_sizes import FUNCTIONS

Labels = tuple[str | None, ...]
Fits = Callable[..., object]


@dataclass(frozen=True, slots=True)
class DynamicArguments:
    """Dynamic sizes by label: equal labels are equal sizes.

    tensors: for a tensor argument a label or None per dimension; numbers: for a number its label or None.
    places: for each of `labels`, the argument and the dimension (-1: the number itself) where it is read.
    """

    tensors: Mapping[int, Labels]
    numbers: Mapping[int, str]
    labels: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def read(self, arguments: Sequence[Any]) -> tuple[float, ...]:
        """Return the dynamic sizes of a call, in the order of `labels`."""
        return tuple(
            arguments[position] if dimension < 0 else arguments[position].shape[dimension]
            for position, dimension in self.places
        )


NOTHING_DYNAMIC = DynamicArguments({}, {}, (), ())


def dynamic_arguments(gm: fx.GraphModule) -> DynamicArguments:
    """Return what capture left dynamic in the arguments of a graph."""
    tensors: dict[int, Labels] = {}
    numbers: dict[int, str] = {}
    places: dict[str, tuple[int, int]] = {}
    for position, node in enumerate(placeholders(gm.graph)):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            labels = tuple(_label(size) for size in entry_shape(node, value))
            if any(labels):
                tensors[position] = labels
                for dimension, label in enumerate(labels):
                    if label is not None:
                        places.setdefault(label, (position, dimension))
        elif isinstance(value, torch.SymInt | torch.SymFloat):
            label = _label(value)
            if label is not None:
                numbers[position] = label
                places.setdefault(label, (position, -1))
    return DynamicArguments(tensors, numbers, tuple(places), tuple(places.values()))


def _label(size: object) -> str | None:
    if not isinstance(size, torch.SymInt | torch.SymFloat):
        return None
    expression = size_expression(size)
    return None if expression.is_number else str(expression)


@dataclass(slots=True, eq=False)
class TracedSizes:
    """The symbols of one trace: mode makes fake tensors with them, values gives them by label."""

    mode: FakeTensorMode
    environment: ShapeEnv | None
    values: dict[str, Any]

    @staticmethod
    def of(sizes: Mapping[str, float], numbers: frozenset[str]) -> TracedSizes:
        """Return symbols for dynamic sizes; numbers: labels of those that are none, and may be negative, 0 or 1."""
        if not sizes:
            mode = WatchedFakeMode()
            mode.rules = MetadataRules()
            return TracedSizes(mode, None, {})
        environment = make_shape_environment()
        values: dict[str, Any] = {}
        for label, size in sizes.items():
            if isinstance(size, float):
                values[label] = make_symbolic_float(environment, size, label)
            elif label in numbers:
                values[label] = make_symbolic_number(environment, size, label)
            else:
                values[label] = make_symbolic_size(environment, size, label)
        mode = WatchedFakeMode(shape_env=environment)
        mode.rules = MetadataRules()
        return TracedSizes(asked_once(mode), environment, values)

    @property
    def symbols(self) -> dict[str, Any]:
        """Return the symbols by their own names, in the order of the labels."""
        return {self.name(label): value for label, value in self.values.items()}

    def name(self, label: str) -> str:
        """Return the name that the environment gave a symbol at first."""
        return symbol_name(self.values[label])

    def condition(self) -> Fits | None:
        """Return a function of the dynamic sizes, in order, that says whether what was assumed holds; None: always."""
        text = self.condition_text()
        return formula(text, list(self.symbols)) if text else None

    def condition_text(self) -> str:
        """Return what `condition` asks, as Python text over the symbols' names; empty where it is always so."""
        if self.environment is None:
            return ""
        texts = [f"({expression_text(each)})" for each in size_conditions(self.environment)]
        return " and ".join(texts) or "True"

    def fixed(self) -> list[str]:
        """Return the labels of sizes that the trace could not leave dynamic."""
        return [label for label, value in self.values.items() if size_expression(value).is_number]


def formula(text: str, names: Sequence[str]) -> Fits:
    """Return Python text as a function of dynamic sizes in order."""
    function: Fits = eval(f"lambda {', '.join(names)}: {text}", {"math": math, **FUNCTIONS})
    return function


def at_sizes(value: Any, names: Sequence[str]) -> Callable[[Sequence[float]], Any] | None:
    """Return what gives nested values with the symbolic numbers inside computed from sizes; None without any.

    names: the symbols' names, in the order in which their sizes will be given.
    """
    scope: dict[str, Any] = {"math": math}
    texts: list[str] = []

    def shown(part: Any) -> str:
        if is_symbolic(part) or isinstance(part, SizeText):
            texts.append(part.text if isinstance(part, SizeText) else expression_text(size_expression(part)))
            return f"({texts[-1]})"
        name = f"constant_{len(scope)}"
        scope[name] = part
        return name

    text = nested_text(value, shown)
    if not texts:
        return None
    function = eval(f"lambda {', '.join(names)}: {text}", scope)
    return lambda sizes: function(*sizes)
