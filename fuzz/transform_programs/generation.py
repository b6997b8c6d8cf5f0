"""Random programs under random nests of transforms, drawn from one seeded generator.

Bodies are typed by torch's own meta functions: an operator is proposed, tried on tensors without elements, and kept
when torch accepts it.  Shapes of the nest follow from the transforms' definitions.
"""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import torch

from .programs import CONTAINERS, OperatorStep, TransformLevel, TransformProgram, output_access, step_text
from .tensors import DTYPES, FLOATS, SIZES, TensorSpec, shapes, tensor_specs
from .vocabulary import VOCABULARY, Attribute, Operator

MOST_INPUTS = 3
MOST_STEPS = 12
MOST_LEVELS = 3
MOST_OUTPUTS = 3
MOST_VALUE_ELEMENTS = 4096
MOST_JACOBIAN_ELEMENTS = 4096
BATCHES = (2, 1, 3, 5)

_KINDS: dict[str, Callable[[torch.Tensor], bool]] = {
    "float": lambda t: t.is_floating_point(),
    "int": lambda t: not t.is_floating_point() and t.dtype is not torch.bool,
    "bool": lambda t: t.dtype is torch.bool,
    "number": lambda t: t.dtype is not torch.bool,
    "any": lambda t: True,
}

Shape = tuple[int, ...]


class _Body:
    """A body under construction: its values so far, as meta tensors."""

    def __init__(self, inputs: tuple[TensorSpec, ...]) -> None:
        self.values = [spec.on_meta() for spec in inputs]
        self.fresh: set[int] = set()
        self.reads = [frozenset([number]) for number in range(len(inputs))]
        self.used: set[int] = set()
        self.inputs = len(inputs)
        self.steps: list[OperatorStep] = []

    def fitting(self, kind: str) -> list[int]:
        """Return the numbers of the values of a kind, those that nothing reads yet first, newest first."""
        if kind == "fresh":
            return sorted(self.fresh, reverse=True)
        fitting = [n for n in reversed(range(len(self.values))) if _KINDS[kind](self.values[n])]
        return sorted(fitting, key=lambda number: number in self.used)

    def unused(self) -> list[int]:
        """Return the numbers of results that nothing reads, newest first."""
        return [n for n in reversed(range(self.inputs, len(self.values))) if n not in self.used]

    def value_on_meta(self, step: OperatorStep) -> torch.Tensor | None:
        """Return what a step gives on meta tensors, None when torch refuses or it grows too large."""
        pieces = step_text(step).split("@")
        pieces[1::2] = [f"v{piece}" for piece in pieces[1::2]]
        scope = {"torch": torch, **{f"v{n}": value for n, value in enumerate(self.values)}}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if VOCABULARY[step.operator].statement:
                    exec("".join(pieces), scope)
                    return self.values[step.operands[0]]
                with torch.device("meta"):  # constants inside a text
                    value: torch.Tensor = eval("".join(pieces), scope)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return None
        return value if value.numel() <= MOST_VALUE_ELEMENTS else None

    def keep(self, step: OperatorStep, value: torch.Tensor) -> None:
        """Take a step into the body."""
        self.steps.append(step)
        self.used.update(step.operands)
        if VOCABULARY[step.operator].statement:
            self.used.discard(step.operands[0])  # what was written is to be looked at
        else:
            self.values.append(value)
            self.reads.append(frozenset().union(*(self.reads[n] for n in step.operands)))
            if step.operator == "clone":
                self.fresh.add(len(self.values) - 1)


def _draw_step(draw: random.Random, body: _Body, operator: Operator) -> None:
    if "fresh" in operator.takes and not body.fresh:
        floats = body.fitting("float")
        if not floats:
            return
        clone = OperatorStep("clone", (draw.choice(floats),))
        body.keep(clone, body.values[clone.operands[0]].clone())
    operands: list[int] = []
    for kind in operator.takes:
        fitting = body.fitting(kind)
        if not fitting:
            return
        operands.append(draw.choice(fitting[:1] * 3 + fitting))  # long chains, so that little is dead
    attributes = _draw_attributes(draw, operator, body.values[operands[0]])
    if attributes is None:
        return
    for last in dict.fromkeys([operands[-1], *body.fitting(operator.takes[-1])]):
        step = OperatorStep(operator.name, (*operands[:-1], last), attributes)
        value = body.value_on_meta(step)
        if value is not None:
            body.keep(step, value)
            return
        if len(operands) == 1:
            return


def _draw_attributes(
    draw: random.Random, operator: Operator, first: torch.Tensor
) -> tuple[tuple[str, Attribute], ...] | None:
    chosen: list[tuple[str, Attribute]] = []
    for name, choose in operator.attributes:
        options = choose(first)
        if options is None:
            return None
        chosen.append((name, draw.choice(options)))
    return tuple(chosen)


_NAMES = tuple(VOCABULARY)


@dataclass(frozen=True, slots=True)
class _Interface:
    """What one function of the nest takes and gives: input specs, output shapes with floatness, their container.

    reads: for each output the inputs that it is certainly computed from.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[tuple[Shape, bool], ...]
    container: str
    reads: tuple[frozenset[int], ...]


def programs(draw: random.Random, *, most_levels: int = MOST_LEVELS) -> TransformProgram:
    """Draw a program: shared sizes, inputs, a body, a nest of transforms, and what of it is compiled."""
    sizes = tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 3)))
    # The first input is a float: most operators and all transforms but vmap need one.
    first = tensor_specs(draw, shapes(draw, sizes), FLOATS)
    count = draw.randint(0, MOST_INPUTS - 1)
    rest = [tensor_specs(draw, shapes(draw, sizes), (*FLOATS[:1] * 4, *DTYPES)) for _ in range(count)]
    inputs = (first, *rest)
    if rest and draw.random() < 0.15:  # two arguments are one memory, as far as their forms stay equal
        inputs = (first, replace(first, shares=0), *rest[1:])
    body = _Body(inputs)
    for name in [draw.choice(_NAMES) for _ in range(draw.randint(1, MOST_STEPS))]:
        _draw_step(draw, body, VOCABULARY[name])
    outputs, container = _draw_outputs(draw, body, len(inputs))
    shaped = tuple((tuple(body.values[n].shape), body.values[n].is_floating_point()) for n in outputs)
    interface = _Interface(inputs, shaped, container, tuple(body.reads[n] for n in outputs))
    nest: list[TransformLevel] = []
    for _ in range(min(draw.choice((0, 1, 2, 3, 1, 2)), most_levels)):
        grown = _draw_level(draw, interface)
        if grown is None:
            break
        level, interface = grown
        nest.append(level)
    compiled = draw.choice([len(nest)] * 3 + list(range(len(nest) + 1)))
    specs = _draw_grads(draw, interface.inputs)
    return TransformProgram(specs, len(inputs), tuple(body.steps), outputs, container, tuple(nest), compiled)


def _draw_outputs(draw: random.Random, body: _Body, inputs: int) -> tuple[tuple[int, ...], str]:
    """Draw what the body returns: its newest value, or all that nothing reads in a container."""
    container = draw.choice(("one", *CONTAINERS))
    last = len(body.values) - 1
    more = body.unused()[:MOST_OUTPUTS] if container != "one" else []
    return tuple(dict.fromkeys([*more, last][:MOST_OUTPUTS])) if last >= inputs else (last,), container


def _draw_grads(draw: random.Random, specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Let some inputs require gradients, which the judge then takes through the whole nest."""
    return tuple(replace(spec, requires_grad=spec.is_float and draw.randint(0, 3) == 3) for spec in specs)


def _draw_level(draw: random.Random, below: _Interface) -> tuple[TransformLevel, _Interface] | None:
    floats_in = [n for n, spec in enumerate(below.inputs) if spec.is_float]
    floats_out = [n for n, (_, is_float) in enumerate(below.outputs) if is_float]
    if (draw.random() < 0.5) or not floats_in or not floats_out:
        return _draw_vmap(draw, below)
    argument = draw.choice(floats_in)
    output = draw.choice(floats_out)
    shape_in, shape_out = below.inputs[argument].shape, below.outputs[output][0]
    transform = draw.choice(_affordable(shape_in, shape_out))
    level = TransformLevel(
        transform, len(below.inputs), argument, output_access(below.container, output), scalar=not shape_out
    )
    inputs = below.inputs
    if transform in ("jvp", "jacfwd", "hessian"):  # forward mode refuses primals whose elements share memory
        inputs = tuple(replace(s, layout="contiguous") if n == argument else s for n, s in enumerate(inputs))
    if level.takes_vector:
        shape = shape_out if transform == "vjp" else shape_in
        dtype = below.inputs[argument].dtype if transform == "jvp" else _out_dtype(below)
        inputs = (*inputs, tensor_specs(draw, shape, (dtype,), plain_values=True))
    outputs = {
        "grad": [shape_in],
        "grad_and_value": [shape_in, ()],
        "vjp": [shape_in],
        "jvp": [shape_out, shape_out],
        "jacrev": [shape_out + shape_in],
        "jacfwd": [shape_out + shape_in],
        "hessian": [shape_in + shape_in],
    }[transform]
    container = "tuple" if len(outputs) > 1 else "one"
    nothing = tuple(frozenset[int]() for _ in outputs)  # a derivative of a linear function reads nothing
    return level, _Interface(inputs, tuple((shape, True) for shape in outputs), container, nothing)


def _out_dtype(below: _Interface) -> str:
    """Return a cotangent's dtype: torch casts it to the output's, so the commonest one will do."""
    return below.inputs[0].dtype


def _affordable(shape_in: Shape, shape_out: Shape) -> list[str]:
    names = ["grad", "grad_and_value", "vjp", "jvp"]
    if prod(shape_in) * prod(shape_out) <= MOST_JACOBIAN_ELEMENTS:
        names += ["jacrev", "jacfwd"]
    if prod(shape_in) ** 2 <= MOST_JACOBIAN_ELEMENTS:
        names.append("hessian")
    return names


def _draw_vmap(draw: random.Random, below: _Interface) -> tuple[TransformLevel, _Interface] | None:
    size = draw.choice(BATCHES)
    if any(prod(shape) * size > MOST_VALUE_ELEMENTS for shape, _ in below.outputs):
        return None
    mapped = draw.randint(0, len(below.inputs) - 1)
    in_dims: list[int | None] = []
    inputs: list[TensorSpec] = []
    for number, spec in enumerate(below.inputs):
        places = [*range(len(spec.shape) + 1), -1]
        place = draw.choice([*places, None] if number != mapped else places)
        in_dims.append(place)
        inputs.append(spec if place is None else replace(spec, shape=_inserted(spec.shape, place, size)))
    batched = frozenset(n for n, place in enumerate(in_dims) if place is not None)
    out_dim = draw.choice(_out_dims(below, batched))
    chunk_size = draw.choice([None, None, None, 1, 2])
    level = TransformLevel("vmap", len(below.inputs), in_dims=tuple(in_dims), out_dim=out_dim, chunk_size=chunk_size)
    outputs = tuple((_inserted(shape, out_dim, size), is_float) for shape, is_float in below.outputs)
    return level, _Interface(tuple(inputs), outputs, below.container, below.reads)


def _out_dims(below: _Interface, batched: frozenset[int]) -> list[int]:
    """Return the places where vmap may put the batch.

    torch 2.13 gives an output that reads no batched input a wrong shape where the place is not 0: it raises, or with a
    negative place reads beyond the sizes and gives a tensor of any shape.  One finding is enough; programs stay away.
    """
    if not all(reads & batched for reads in below.reads):
        return [0]
    return [*range(min(len(shape) for shape, _ in below.outputs) + 1), -1]


def _inserted(shape: Shape, place: int, size: int) -> Shape:
    place = place if place >= 0 else len(shape) + 1 + place
    return (*shape[:place], size, *shape[place:])
