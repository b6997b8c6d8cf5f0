"""Random graph programs, drawn by running them: an operator is proposed, run on real tensors, and kept if it works.

Running tells shapes, dtypes, views and writes as eager has them, so nothing here repeats rules of torch.  Now and then
a call that eager refuses is kept as the last line: both sides have to raise.
"""

import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from plumbline.compiler.base.torch_facts import DispatchMode

from .batch_theme import EVERYTHING, MOST_ELEMENTS, Theme, drawn_refusing_theme, drawn_theme
from .graph_program import GraphProgram, GraphStep, ProgramBatch, step_line, value_name
from .inputs import VIEWS, CallPlan, GraphInput
from .operator_attributes import FLOATS, INTEGERS, LOOKALIKES, AttributeChoice, drawn_attribute
from .operator_row import OPERATORS, VALUE_KINDS, OperatorRow

MOST_LATER = 20 * MOST_ELEMENTS  # of a value at a later call, whose sizes may be larger: products of them grow fast
REFUSED = 0.25  # share of batches of one program, which ends with a call that eager refuses
REFUSED_LATER = 0.2  # share of programs kept of those that eager refuses at a later call, such as for another size
EAGER_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, ZeroDivisionError, OverflowError)

_KINDS: dict[str, Callable[[torch.Tensor], bool]] = {
    "any": lambda value: True,
    "float": lambda value: value.is_floating_point(),
    "int": lambda value: not value.is_floating_point() and not value.is_complex(),
    "bool": lambda value: value.dtype is torch.bool,
}
_WRITES = [OPERATORS[name] for name in ("add_", "mul__value", "copy_", "fill__value", "add__value", "add_to_itself")]
THEMED = 0.6  # share of batches that draw from few things

BATCH_KINDS = {"plain": 6, "numbers": 2, "sizes": 2}
"""What changes between the calls of a batch besides the elements; each change may compile again, which costs time."""


def draw_batch(draw: random.Random, programs: int, avoided: Callable[[frozenset[str]], bool]) -> ProgramBatch:
    """Draw a batch of programs whose calls change in the same way; avoided: operators that fail in a known way.

    A program that draws random numbers or that eager refuses is a batch of its own, and some batches are to be that.
    """
    kind = draw.choices(tuple(BATCH_KINDS), tuple(BATCH_KINDS.values()))[0]
    refusing = draw.random() < REFUSED
    theme = drawn_theme(draw) if draw.random() < THEMED else EVERYTHING
    theme = drawn_refusing_theme(draw) if refusing else theme
    drawn: list[GraphProgram] = []
    attempts = 0
    while len(drawn) < programs and attempts < 20 * programs:
        attempts += 1
        program, refused = draw_program(draw, kind, theme, refusing=refusing and attempts <= programs)
        if program is None or (avoided(program.operators) and draw.random() < 0.95):
            continue
        if refused or program.draws:
            if drawn:
                continue
            return ProgramBatch((program,))
        drawn.append(program)
    return ProgramBatch(tuple(drawn)) if drawn else ProgramBatch((_smallest(),))


def _smallest() -> GraphProgram:
    return GraphProgram((GraphInput((2,)),), (GraphStep("sin", (0,)),), (1,))


def draw_program(
    draw: random.Random, kind: str = "plain", theme: Theme = EVERYTHING, *, refusing: bool = False
) -> tuple[GraphProgram | None, bool]:
    """Draw one program and whether eager refuses its last line; None where the draws led nowhere.

    refusing: only one that eager refuses will do.
    """
    calls = _drawn_calls(draw, kind)
    inputs = _drawn_inputs(draw, theme, dynamic=kind == "sizes")
    if not _can_be_made(inputs, calls):
        return None, False
    body = _DrawnBody(draw, inputs, calls[0], theme)
    for _ in range(draw.choice((2, 3, 4, 5, 6, 8, 10))):
        body.grow()
    refused = refusing and body.refuse()
    if not body.steps or body.spoiled or (refusing and not refused):
        return None, False
    sized = draw.random() < (2 * theme.sized if kind == "sizes" else theme.sized)
    program = GraphProgram(inputs, tuple(body.steps), body.drawn_outputs(), calls, sized)
    try:
        if not refused and _raises(program, max(MOST_LATER, theme.elements)):
            return (program, True) if draw.random() < REFUSED_LATER else (None, False)
    except _GrownTooLarge:
        return None, False
    return program, refused


class _GrownTooLarge(Exception):
    """A value of a program has more elements than a judge should have to look at."""


class _Bounded(DispatchMode):
    """Raises _GrownTooLarge after a call whose result has more than so many elements."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the call and look at what it gives."""
        result = func(*args, **(kwargs or {}))
        several = result if isinstance(result, tuple | list) else (result,)
        if any(isinstance(one, torch.Tensor) and one.numel() > self._most for one in several):
            raise _GrownTooLarge
        return result


def _raises(program: GraphProgram, most: int) -> bool:
    """Return whether eager refuses one of the calls; raises _GrownTooLarge."""
    texts = [program.source("program")]
    texts += [program.arguments_source(f"arguments_{call}", call) for call in range(len(program.calls))]
    scope: dict[str, Any] = {"torch": torch}
    exec("\n".join(texts), scope)
    try:
        with warnings.catch_warnings(), _Bounded(most):
            warnings.simplefilter("ignore")
            for call in range(len(program.calls)):
                scope["program"](*scope[f"arguments_{call}"]())
    except EAGER_ERRORS:
        return True
    return False


def _drawn_calls(draw: random.Random, kind: str) -> tuple[CallPlan, ...]:
    count = {"plain": 2, "numbers": 4, "sizes": 3}[kind]
    numbers = [draw.choice(("int", "float", "float")) for _ in range(draw.randint(1, 2))] if kind == "numbers" else []
    calls = []
    seed = draw.randrange(10_000)
    for call in range(count):
        sizes = tuple(draw.choice((2, 3, 4, 5, 7, 8, 9, 16, 17)) for _ in range(2)) if kind == "sizes" else ()
        values = tuple(_number(draw, number) for number in numbers)
        calls.append(CallPlan(seed + call, sizes, values))
    if kind == "sizes" and draw.random() < 0.3:
        calls[-1] = replace(calls[-1], sizes=(draw.choice((0, 1)), calls[-1].sizes[1]))
    return tuple(calls)


def _number(draw: random.Random, kind: str) -> float:
    if kind == "int":
        return draw.choice(INTEGERS)
    if draw.random() < 0.2:
        return float(eval(draw.choice(FLOATS)))
    return draw.choice((0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 2.0, -0.5, -2.7, 3.0, 0.0))


def _drawn_inputs(draw: random.Random, theme: Theme, *, dynamic: bool) -> tuple[GraphInput, ...]:
    sizes = [draw.choice(theme.sizes) for _ in range(2)]
    inputs: list[GraphInput] = []
    for number in range(draw.choice((1, 2, 2, 3, 3, 4))):
        if number and draw.random() < theme.sharing:
            shared = draw.randrange(number)
            later = int(draw.random() < theme.later)
            view = draw.choice(VIEWS)
            inputs.append(replace(inputs[shared], shares=shared, shares_from=later, view=view, requires_grad=False))
            continue
        shape = inputs[0].shape if number and draw.random() < 0.5 else _drawn_shape(draw, theme, sizes, dynamic=dynamic)
        one = GraphInput(shape, draw.choice(theme.dtypes), draw.choice(theme.layouts), draw.choice(theme.values))
        wants_grad = one.is_float and draw.random() < theme.gradients
        inputs.append(replace(one, requires_grad=wants_grad))
    return tuple(inputs)


def _drawn_shape(draw: random.Random, theme: Theme, sizes: list[int], *, dynamic: bool) -> tuple[int, ...]:
    shape: list[int] = []
    elements = 1
    for _ in range(draw.choice(theme.ranks)):
        size = draw.choice((*sizes, draw.choice(theme.sizes), 1))
        if dynamic and draw.random() < 0.6:
            size = draw.choice((-1, -2))
        elif elements * max(size, 1) > theme.elements // 4:
            size = 2
        elements *= max(size, 1) if size >= 0 else 9
        shape.append(size)
    return tuple(shape)


def _can_be_made(inputs: tuple[GraphInput, ...], calls: tuple[CallPlan, ...]) -> bool:
    """Return whether the arguments of all calls exist; a shared view such as `.t()` may not fit."""
    if all(one.shares < 0 for one in inputs):
        return True
    program = GraphProgram(inputs, (), (0,), calls)
    try:
        for call in range(len(calls)):
            scope = {"torch": torch}
            exec(program.arguments_source("arguments", call) + "arguments()", scope)
    except EAGER_ERRORS:
        return False
    return True


class _DrawnBody:
    """A body under construction: its values as real tensors, changed as the program changes them."""

    def __init__(self, draw: random.Random, inputs: tuple[GraphInput, ...], plan: CallPlan, theme: Theme) -> None:
        self.draw, self.theme = draw, theme
        self.inputs = len(inputs)
        self.numbers = tuple(f"n{number}" for number in range(len(plan.numbers)))
        self.open_sizes = bool(plan.sizes)
        self.scope: dict[str, Any] = {"torch": torch, **dict(zip(self.numbers, plan.numbers, strict=True))}
        for number, one in enumerate(inputs):
            self.scope[f"a{number}"] = eval(one.expression(plan, 0, number), self.scope)
        self.values = [self.scope[f"a{number}"] for number in range(len(inputs))]
        self.used: set[int] = set()
        self.steps: list[GraphStep] = []
        self.spoiled = False  # a write that is not part of the program has changed a value

    def grow(self) -> None:
        """Add one step, after a few attempts at most."""
        for _ in range(6):
            step = self._next()
            if step is not None and self._run(step):
                return

    def _next(self) -> GraphStep | None:
        """Propose a step: one that is new, an earlier one again, or a write through the view that was made last."""
        if not self.steps:
            return self._proposed()
        if self.steps[-1].row.family == "view" and self.draw.random() < self.theme.through:
            row = self.draw.choice(_WRITES)
            return self._proposed(row, len(self.values) - 1)
        return self._repeated() if self.draw.random() < self.theme.repeats else self._proposed()

    def refuse(self) -> bool:
        """Add a step that eager refuses, if one is found in a few attempts."""
        for _ in range(12):
            step = self._proposed()
            if step is not None and not self._run(step, keep=False):
                self.steps.append(step)
                return True
        return False

    def _repeated(self) -> GraphStep:
        """Return an earlier step once more: equal calls must stay two values, each of several results too.

        Half of them are nearly that step only: 1 and True are one key, and two results.
        """
        several = [step for step in self.steps if step.row.results > 1]
        step = self.draw.choice(several if several and self.draw.random() < 0.5 else self.steps)
        alike = [number for number, text in enumerate(step.attributes) if text in LOOKALIKES]
        if not alike or self.draw.random() < 0.5:
            return step
        attributes = list(step.attributes)
        chosen = self.draw.choice(alike)
        attributes[chosen] = self.draw.choice(LOOKALIKES[attributes[chosen]])
        return replace(step, attributes=tuple(attributes))

    def _proposed(self, row: OperatorRow | None = None, first: int | None = None) -> GraphStep | None:
        """Return a step of a row, of the theme where none is given; first: its first operand, any that fits if None."""
        row = row or self.draw.choice(self.theme.rows[self.draw.choices(tuple(self.theme.rows), self.theme.weights)[0]])
        operands: list[int] = []
        for place in row.operands:
            if first is not None and not operands:
                operands.append(first)
                continue
            written = row.writes and not operands
            number = self._operand(VALUE_KINDS[place[0]], operands[0] if operands else None, written=written)
            if number is None:
                return None
            operands.append(number)
        attributes = self._attributes(row, operands)
        return None if attributes is None else GraphStep(row.name, tuple(operands), attributes)

    def _operand(self, kind: str, first: int | None, *, written: bool) -> int | None:
        """Choose a value of a kind: newer and unread ones, and those of the first operand's shape, more often.

        written: it will be written to; that of a tensor whose memory others have is worth more.
        """
        fitting = [number for number, value in enumerate(self.values) if _KINDS[kind](value)]
        if not fitting:
            return None
        if written and self.draw.random() < 0.5:
            fitting = [number for number in fitting if len(self._sharers(number)) > 1] or fitting
        if first is not None and self.draw.random() < 0.7:
            shape = self.values[first].shape
            fitting = [number for number in fitting if self.values[number].shape == shape] or fitting
        unread = [number for number in fitting if number not in self.used]
        if unread and self.draw.random() < 0.6:
            return self.draw.choice(unread)
        return self.draw.choice(fitting)

    def _sharers(self, number: int) -> list[int]:
        """Return the values that have the memory of this one, itself among them."""
        memory = self.values[number].untyped_storage().data_ptr()
        return [other for other, value in enumerate(self.values) if value.untyped_storage().data_ptr() == memory]

    def _attributes(self, row: OperatorRow, operands: list[int]) -> tuple[str, ...] | None:
        number = operands[0] if operands else 0
        first, name = self.values[number], value_name(number, self.inputs)
        choice = AttributeChoice(
            self.draw, first, name, self.numbers, self.open_sizes, self.theme.literals, self.theme.back
        )
        texts = []
        for place in row.attributes:
            text = drawn_attribute(place, choice)
            if text is None:
                return None
            texts.append(text)
        return tuple(texts)

    def _run(self, step: GraphStep, *, keep: bool = True) -> bool:
        """Run one step in the scope and keep it if eager accepts it and its results are small tensors."""
        number = len(self.values)
        if "as_strided" in step.operator and not all(_fills_memory(self.values[one]) for one in step.operands):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(step_line(step, number, self.inputs), self.scope)
        except EAGER_ERRORS:
            return False
        names = [value_name(number + result, self.inputs) for result in range(step.row.results)]
        results = [self.scope[name] for name in names]
        written = [self.scope[value_name(operand, self.inputs)] for operand in step.operands]
        if not all(_is_small(result, self.theme.elements) for result in (*results, *written)):
            self.spoiled = self.spoiled or any(not _is_small(value, self.theme.elements) for value in written)
            return not keep
        if keep:
            self.steps.append(step)
            self.values += results
            self.used.update(step.operands)
            if step.row.writes:
                self.used.difference_update(self._sharers(step.operands[0]))  # what was written is to be looked at
        return True

    def drawn_outputs(self) -> tuple[int, ...]:
        """Choose what is returned: most of what nothing reads, sometimes inputs, and values twice."""
        everything = range(len(self.values))
        if self.steps and sum(step.row.results for step in self.steps) + self.inputs > len(self.values):
            everything = range(len(self.values))  # the last line is refused and gives no value
        unread = [number for number in everything if number not in self.used and number >= self.inputs]
        outputs = [number for number in unread if self.draw.random() < 0.9]
        for number in everything:
            apart = number < self.inputs or len(self._sharers(number)) == 1
            if number not in outputs and self.draw.random() < (
                0.06 if number < self.inputs else 0.15 if apart else 0.4
            ):
                outputs.append(number)
        if outputs and self.draw.random() < 0.05:
            outputs.append(self.draw.choice(outputs))
        return tuple(outputs[:8]) or (len(self.values) - 1,)


def _fills_memory(value: torch.Tensor) -> bool:
    """Return whether all of a tensor's memory holds elements: some kernels leave more behind, that nobody wrote."""
    whole = value if value._base is None else value._base
    return whole.numel() * whole.element_size() == whole.untyped_storage().nbytes()


def _is_small(result: object, most: int) -> bool:
    """Return whether a result is a small tensor of a dtype that comparisons know."""
    return (
        isinstance(result, torch.Tensor)
        and result.numel() <= most
        and result.dtype is not torch.complex32
        and (result.is_floating_point() or result.is_complex() or not result.requires_grad)  # some writes make integers
    )


def every_row_once(draw: random.Random) -> dict[str, int]:
    """Return how often each row was accepted in a number of programs; a row that never is would test nothing."""
    counts: dict[str, int] = {}
    for _, kind in product(range(400), BATCH_KINDS):
        program, _ = draw_program(draw, kind)
        for step in program.steps if program is not None else ():
            counts[step.operator] = counts.get(step.operator, 0) + 1
    return counts
