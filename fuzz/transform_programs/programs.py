"""A generated program as plain data: inputs, a straight-line body, a nest of transforms around it, and its text.

The text is the meaning: what a campaign runs is the text executed, and what it saves is the same text.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.compiler.base.errors import UserError

from .tensors import DTYPES, LAYOUTS, VALUES, TensorSpec
from .vocabulary import VOCABULARY, Attribute

CONTAINERS = ("one", "tuple", "list", "dict")
TRANSFORMS = ("grad", "grad_and_value", "vjp", "jvp", "vmap", "jacrev", "jacfwd", "hessian")


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """One operator of the body; its value gets the next number, statements get none.

    operands: numbers of values, inputs first.  attributes: what was chosen, by name.
    """

    operator: str
    operands: tuple[int, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()


@dataclass(frozen=True, slots=True)
class TransformLevel:
    """One transform of the nest, innermost first.

    arguments: how many the function below takes.  argument: the one that is differentiated.
    access: text that picks the differentiated output of the function below, such as `[0]`; empty for a single one.
    scalar: that output has no dimensions (others are summed where a scalar is needed).
    in_dims, out_dim, chunk_size: of vmap.
    """

    transform: str
    arguments: int
    argument: int = 0
    access: str = ""
    scalar: bool = False
    in_dims: tuple[int | None, ...] = ()
    out_dim: int = 0
    chunk_size: int | None = None

    @property
    def takes_vector(self) -> bool:
        """Return whether the transform adds an argument: a tangent or a cotangent."""
        return self.transform in ("vjp", "jvp")


@dataclass(frozen=True, slots=True)
class TransformProgram:
    """A whole example: what is called, on what, and what of it is compiled.

    inputs: of the outermost function.  body_inputs: how many the body takes; they are the first ones.
    outputs: numbers of the values that the body returns.  compiled: how many levels lie inside the compiled function;
    `len(nest)` compiles the outermost one, 0 the body alone under eager transforms.
    """

    inputs: tuple[TensorSpec, ...]
    body_inputs: int
    steps: tuple[OperatorStep, ...]
    outputs: tuple[int, ...]
    container: str = "one"
    nest: tuple[TransformLevel, ...] = ()
    compiled: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return what a signature of a failure mentions: operators and transforms, each once, sorted."""
        return tuple(sorted({step.operator for step in self.steps} | {level.transform for level in self.nest}))

    @property
    def entry(self) -> str:
        """Return the name of the outermost function."""
        return f"f{len(self.nest)}"

    def source(self) -> str:
        """Return the functions as Python text that needs `torch`."""
        return "\n\n".join([_body_text(self), *(_level_text(n + 1, level) for n, level in enumerate(self.nest))]) + "\n"

    def argument_lines(self) -> list[str]:
        """Return the statements that make the input tensors `a0`, `a1` and so on."""
        lines = []
        for number, spec in enumerate(self.inputs):
            other = self.inputs[spec.shares] if 0 <= spec.shares < number else None
            shared = other is not None and (other.shape, other.dtype) == (spec.shape, spec.dtype)
            lines.append(f"a{number} = {f'a{spec.shares}.detach()' if shared else spec.expression()}")
        return lines

    def arguments(self) -> tuple[Any, ...]:
        """Return new input tensors."""
        scope: dict[str, Any] = {"torch": torch}
        exec("\n".join(self.argument_lines()), scope)
        return tuple(scope[f"a{number}"] for number in range(len(self.inputs)))


def body_lines(program: TransformProgram) -> list[str]:
    """Return the assignments and statements of the body."""
    lines = []
    number = program.body_inputs
    for step in program.steps:
        text = step_text(step)
        if VOCABULARY[step.operator].statement:
            lines.append(text)
        else:
            lines.append(f"{value_name(number, program.body_inputs)} = {text}")
            number += 1
    return [line.replace("@", "") for line in _named(lines, program.body_inputs)]


def value_name(number: int, inputs: int) -> str:
    """Return how the text calls a value: `a0` for an input, `t0` for a result."""
    return f"a{number}" if number < inputs else f"t{number - inputs}"


def step_text(step: OperatorStep) -> str:
    """Return a step with its operands as `@number@`, to be named later."""
    return VOCABULARY[step.operator].written(tuple(f"@{n}@" for n in step.operands), dict(step.attributes))


def _named(lines: list[str], inputs: int) -> list[str]:
    named = []
    for line in lines:
        parts = line.split("@")
        parts[1::2] = [value_name(int(part), inputs) for part in parts[1::2]]
        named.append("".join(parts))
    return named


def output_text(container: str, names: list[str]) -> str:
    """Return the value of the return statement."""
    if container == "one":
        return names[0]
    if container == "dict":
        return "{" + ", ".join(f"'k{number}': {name}" for number, name in enumerate(names)) + "}"
    listed = ", ".join(names)
    return f"[{listed}]" if container == "list" else f"({listed},)"


def output_access(container: str, number: int) -> str:
    """Return the text that picks one output."""
    return {"one": "", "dict": f"['k{number}']"}.get(container, f"[{number}]")


def _body_text(program: TransformProgram) -> str:
    arguments = ", ".join(f"a{n}" for n in range(program.body_inputs))
    names = [value_name(n, program.body_inputs) for n in program.outputs]
    lines = [f"def f0({arguments}):", *body_lines(program), f"return {output_text(program.container, names)}"]
    return "\n    ".join(lines)


def _level_text(number: int, level: TransformLevel) -> str:
    count = level.arguments + level.takes_vector
    names = [f"a{n}" for n in range(count)]
    value = _WRITERS[level.transform](f"f{number - 1}", level, names)
    return f"def f{number}({', '.join(names)}):\n    return {value}"


def _picked(below: str, level: TransformLevel, call: str, *, scalar: bool) -> str:
    """Return a callable that gives the one output to differentiate."""
    reduced = ".sum()" if scalar and not level.scalar else ""
    if not level.access and not reduced:
        return below
    return f"lambda {call}: {below}({call}){level.access}{reduced}"


def _by_argument(name: str, *, scalar: bool) -> Callable[[str, TransformLevel, list[str]], str]:
    def write(below: str, level: TransformLevel, names: list[str]) -> str:
        picked = _picked(below, level, "*a", scalar=scalar)
        return f"torch.func.{name}({picked}, argnums={level.argument})({', '.join(names)})"

    return write


def _of_one(below: str, level: TransformLevel, names: list[str]) -> str:
    """Return the function below as one of the differentiated argument alone."""
    others = [*names[: level.argument], "x", *names[level.argument + 1 : level.arguments]]
    return f"lambda x: {below}({', '.join(others)}){level.access}"


def _vjp(below: str, level: TransformLevel, names: list[str]) -> str:
    return f"torch.func.vjp({_of_one(below, level, names)}, {names[level.argument]})[1]({names[-1]})[0]"


def _jvp(below: str, level: TransformLevel, names: list[str]) -> str:
    return f"torch.func.jvp({_of_one(below, level, names)}, ({names[level.argument]},), ({names[-1]},))"


def _vmap(below: str, level: TransformLevel, names: list[str]) -> str:
    chunk = f", chunk_size={level.chunk_size}" if level.chunk_size else ""
    settings = f"in_dims={level.in_dims}, out_dims={level.out_dim}{chunk}"
    return f"torch.vmap({below}, {settings})({', '.join(names)})"


_WRITERS: Mapping[str, Callable[[str, TransformLevel, list[str]], str]] = {
    "grad": _by_argument("grad", scalar=True),
    "grad_and_value": _by_argument("grad_and_value", scalar=True),
    "jacrev": _by_argument("jacrev", scalar=False),
    "jacfwd": _by_argument("jacfwd", scalar=False),
    "hessian": _by_argument("hessian", scalar=True),
    "vjp": _vjp,
    "jvp": _jvp,
    "vmap": _vmap,
}


def check_program(program: TransformProgram) -> None:
    """Raise UserError for data with unknown names: the text is executed, so it must hold nothing else."""
    for spec in program.inputs:
        _known("dtype", spec.dtype, DTYPES)
        _known("layout", spec.layout, LAYOUTS)
        _known("values", spec.values, VALUES)
    for step in program.steps:
        _known("operator", step.operator, VOCABULARY)
        operator = VOCABULARY[step.operator]
        if {name for name, _ in step.attributes} != {name for name, _ in operator.attributes}:
            raise _misfit(f"operator {step.operator!r} has other attributes")
        if len(step.operands) != len(operator.takes):
            raise _misfit(f"operator {step.operator!r} takes {len(operator.takes)} operands")
    for level in program.nest:
        _known("transform", level.transform, TRANSFORMS)
        if not re.fullmatch(r"(\[(\d+|'k\d+')\])?", level.access):
            raise _misfit(f"access {level.access!r:.30}")
    _known("container", program.container, CONTAINERS)
    if not 0 <= program.compiled <= len(program.nest) or not program.outputs:
        raise _misfit("compiled or outputs out of range")


def _known(what: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise _misfit(f"unknown {what} {name!r:.40}")


def _misfit(why: str) -> UserError:
    hint = "run the fuzzer again"
    return UserError("the saved program does not fit this version", why=why, hint=hint)
