"""A graph program as plain data, several of them in one compile, and the text that is their meaning."""

import ast
from dataclasses import dataclass

from plumbline.compiler.base.errors import UserError

from .inputs import DTYPES, LAYOUTS, VALUES, VIEWS, CallPlan, GraphInput, number_text
from .operator_row import OperatorRow
from .operator_vocabulary import VOCABULARY


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One line of the body. operands: numbers of values, inputs first.  attributes: texts, in the row's order."""

    operator: str
    operands: tuple[int, ...]
    attributes: tuple[str, ...] = ()

    @property
    def row(self) -> OperatorRow:
        """Return the operator."""
        return VOCABULARY[self.operator]


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """One function of tensors and Python numbers.

    steps: values are numbered in order, inputs first; a statement gives none.  outputs: numbers of the values that are
    returned, inputs and repetitions among them.  calls: what changes from call to call; each has all numbers and sizes.
    sized: whether the shapes of all inputs are returned too, as the program leaves them.
    """

    inputs: tuple[GraphInput, ...]
    steps: tuple[GraphStep, ...]
    outputs: tuple[int, ...]
    calls: tuple[CallPlan, ...] = (CallPlan(),)
    sized: bool = False

    @property
    def numbers(self) -> int:
        """Return how many Python numbers the function takes."""
        return len(self.calls[0].numbers)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters: tensors, then numbers."""
        return (*(f"a{n}" for n in range(len(self.inputs))), *(f"n{n}" for n in range(self.numbers)))

    @property
    def operators(self) -> frozenset[str]:
        """Return the names of the operators."""
        return frozenset(step.operator for step in self.steps)

    @property
    def draws(self) -> bool:
        """Return whether the program draws random numbers."""
        return any(step.row.draws for step in self.steps)

    def source(self, name: str) -> str:
        """Return the function as Python text that needs `torch`."""
        values = [value_name(number, len(self.inputs)) for number in self.outputs]
        sizes = [f"tuple(a{number}.shape)" for number in range(len(self.inputs))] if self.sized else []
        returned = ", ".join([*values, *sizes])
        lines = [f"def {name}({', '.join(self.parameters)}):", *self.lines(), f"return ({returned},)"]
        return "\n    ".join(lines) + "\n"

    def lines(self) -> list[str]:
        """Return the statements of the body."""
        lines, number = [], len(self.inputs)
        for step in self.steps:
            lines.append(step_line(step, number, len(self.inputs)))
            number += step.row.results
        return lines

    def arguments_lines(self, call: int) -> tuple[list[str], str]:
        """Return the statements that make the arguments of one call, and the tuple of them."""
        plan = self.calls[min(call, len(self.calls) - 1)]
        lines = [f"a{number} = {one.expression(plan, call, number)}" for number, one in enumerate(self.inputs)]
        made = [f"a{number}" for number in range(len(self.inputs))] + [number_text(one) for one in plan.numbers]
        return lines, f"({', '.join(made)},)"

    def arguments_source(self, name: str, call: int) -> str:
        """Return a function without parameters that makes the arguments of one call."""
        lines, arguments = self.arguments_lines(call)
        return "\n    ".join([f"def {name}():", *lines, f"return {arguments}"]) + "\n"


def value_name(number: int, inputs: int) -> str:
    """Return how the text calls a value: `a0` for an input, `v0` for a result."""
    return f"a{number}" if number < inputs else f"v{number - inputs}"


def step_line(step: GraphStep, number: int, inputs: int) -> str:
    """Return a step as a statement whose first result has this number."""
    row = step.row
    text = row.written(tuple(value_name(operand, inputs) for operand in step.operands), step.attributes)
    if not row.results:
        return text
    names = ", ".join(value_name(number + result, inputs) for result in range(row.results))
    return f"{names} = {text}"


@dataclass(frozen=True, slots=True)
class ProgramBatch:
    """Several independent programs in one compiled function: a compile costs the same for one output as for thirty."""

    programs: tuple[GraphProgram, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return what a signature of a failure mentions."""
        return tuple(sorted(frozenset().union(*(program.operators for program in self.programs))))

    @property
    def calls(self) -> int:
        """Return how often the function is called."""
        return max(len(program.calls) for program in self.programs)

    def source(self) -> str:
        """Return all functions, `arguments_<program>_<call>()` for their arguments, and `step` that calls them all."""
        pieces = []
        for number, program in enumerate(self.programs):
            pieces.append(program.source(f"f{number}"))
            pieces += [program.arguments_source(f"arguments_{number}_{call}", call) for call in range(self.calls)]
        pieces.append(self.step_source())
        return "\n".join(pieces)

    def step_source(self) -> str:
        """Return the compiled function: it takes the arguments of all programs, one after the other."""
        parameters, calls = [], []
        for number, program in enumerate(self.programs):
            own = [f"p{number}_{name}" for name in program.parameters]
            parameters += own
            calls.append(f"f{number}({', '.join(own)})")
        return f"def step({', '.join(parameters)}):\n    return ({', '.join(calls)},)\n"


def check_batch(batch: ProgramBatch) -> None:
    """Raise UserError for data that this version does not know: the text is executed, so it must hold nothing else."""
    if not batch.programs:
        raise _misfit("no program")
    for program in batch.programs:
        _check_inputs(program)
        values = len(program.inputs)
        for step in program.steps:
            if step.operator not in VOCABULARY:
                raise _misfit(f"unknown operator {step.operator!r:.40}")
            if len(step.operands) != len(step.row.operands) or len(step.attributes) != len(step.row.attributes):
                raise _misfit(f"operator {step.operator!r} takes other operands")
            if not all(0 <= operand < values for operand in step.operands):
                raise _misfit("a step reads a value that does not exist yet")
            for text in step.attributes:
                _check_attribute(text)
            values += step.row.results
        if not program.calls or not all(0 <= number < values for number in program.outputs):
            raise _misfit("an output that does not exist, or no call")


def _check_inputs(program: GraphProgram) -> None:
    for number, one in enumerate(program.inputs):
        known = one.dtype in (*DTYPES, "complex64") and one.layout in LAYOUTS and one.values in VALUES
        if not known or one.view not in VIEWS or one.shares >= number:
            raise _misfit(f"unknown kind of input {one!r:.80}")


_ALLOWED = (
    ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Attribute,
    ast.Call, ast.keyword, ast.Subscript, ast.Load, ast.operator, ast.unaryop, ast.cmpop, ast.Slice,
)  # fmt: skip
_FUNCTIONS = frozenset({"torch", "abs", "max", "min", "float", "int", "round", "divmod"})


def _check_attribute(text: str) -> None:
    """Raise UserError for an attribute that is more than numbers, slices, and tensors made of them."""
    try:
        tree = ast.parse(f"x[{text}]" if ":" in text or "..." in text else text, mode="eval")
    except SyntaxError:
        raise _misfit(f"attribute {text!r:.40}") from None
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "x"
        plain = name in _FUNCTIONS or name[:1] in "xanv" or isinstance(node, ast.Attribute)
        if not isinstance(node, _ALLOWED) or not plain or "_" in name[:1]:
            raise _misfit(f"attribute {text!r:.40}")


def _misfit(why: str) -> UserError:
    return UserError("the saved program does not fit this version", why=why, hint="run the fuzzer again")
