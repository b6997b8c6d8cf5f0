"""A case made ready: its input tensors, and its code as Python text that a script can show."""

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..generated_source import functions_of
from .argument_trees import CallText, tensors_of, with_tensors
from .cases import DTYPES, SweepCase, SweepTask, dtype_of, seed_of
from .contexts import BY_NAME, UNSUPPORTED, Context, changed_inputs
from .torch_samples import OPERATORS, inlined

MOST_SAMPLES = 160
"""Samples looked at: some operators have a thousand, which differ in one number."""

MOST_ELEMENTS = 20_000

UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    }
)
"""Operators whose results hold whatever lay in memory: compared in everything but their elements."""

FACTORISING = (
    *("linalg.", "svd", "pca_", "lu", "qr", "geqrf", "ormqr", "lobpcg", "cholesky", "triangular", "logdet", "pinverse"),
)
"""Operators whose libraries may not come back from numbers that are none."""

COUNTING = frozenset({"nn.functional.one_hot"})
"""Operators whose only input are places in their result."""

UNWRITTEN = frozenset({("nn.functional.multilabel_margin_loss", "size_0")})
"""Operators and contexts in which eager's kernel returns without writing its result; compared in the same way."""

Function = Callable[[list[torch.Tensor]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCase:
    """One case ready to run.

    lines: the body of a function of `a`, the list of input tensors.  constants: further names that it reads.
    inputs: the tensors; runs get copies.
    """

    case: SweepCase
    lines: tuple[str, ...]
    constants: dict[str, Any]
    inputs: tuple[torch.Tensor, ...]

    def fresh_inputs(self) -> list[torch.Tensor]:
        """Return copies of the inputs, with the same strides, as leaves."""
        return [copy_of(tensor) for tensor in self.inputs]

    def writes_beyond(self, program: Callable[[list[Any]], Any]) -> bool:
        """Return whether eager writes outside the memory of the inputs, here with room around it.

        A kernel that believes other sizes than those of its arguments damages this process, whoever calls it.
        """
        guarded = [GuardedCopy(tensor) for tensor in self.inputs]
        with contextlib.suppress(Exception):
            program([[one.copy for one in guarded]])
        return not all(one.is_whole() for one in guarded)

    def definition(self, name: str) -> str:
        """Return the text of the case as a function of `a`."""
        return "\n".join([f"def {name}(a):", *(f"    {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One sample of an operator, free of torch's own class for it; `form` is which operator it calls."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a leaf with its own memory and the same values, strides and `requires_grad`."""
    plain = tensor.detach()
    if plain.layout != torch.strided or plain.is_conj() or plain.is_neg() or plain.is_meta:
        return plain.clone().requires_grad_(tensor.requires_grad)
    size = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True)) if plain.numel() else 0
    memory = torch.zeros(size, dtype=plain.dtype)
    copy = memory.as_strided(plain.shape, plain.stride())
    if plain.numel():
        if any(s == 0 and n > 1 for n, s in zip(plain.shape, plain.stride(), strict=True)):
            memory.copy_(plain.as_strided((size,), (1,)))
        else:
            copy.copy_(plain)
    return copy.detach().requires_grad_(tensor.requires_grad)


class GuardedCopy:
    """A copy of a tensor in the middle of memory that nobody may write to."""

    ROOM = 4096  # elements on each side
    MARK = 77

    def __init__(self, tensor: torch.Tensor) -> None:
        self.copy = copy_of(tensor)
        self.memory: torch.Tensor | None = None
        if tensor.layout is not torch.strided or self.copy.is_conj() or self.copy.is_neg() or tensor.is_meta:
            return
        inside = self.copy.detach().as_strided(
            (self.copy.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0
        )
        self.size = inside.numel()
        self.memory = torch.full((self.size + 2 * self.ROOM,), self.MARK, dtype=tensor.dtype)
        self.memory[self.ROOM : self.ROOM + self.size] = inside
        self.copy = self.memory.as_strided(tensor.shape, tensor.stride(), self.ROOM)
        self.copy = self.copy.detach().requires_grad_(tensor.requires_grad)

    def is_whole(self) -> bool:
        """Return whether the memory around the copy is as it was."""
        if self.memory is None:
            return True
        around = torch.cat([self.memory[: self.ROOM], self.memory[self.ROOM + self.size :]])
        return bool((around == torch.tensor(self.MARK, dtype=around.dtype)).all())


def samples_of(task: SweepTask) -> list[Sample]:
    """Return the samples of an operator for a dtype: the same in every process; too large ones are left out."""
    info = OPERATORS[task.operator]
    dtype = dtype_of(task.dtype)
    gradients = (dtype.is_floating_point or dtype.is_complex) and bool(info.supports_autograd)
    torch.manual_seed(seed_of(task.operator, task.dtype) % 2**31)
    samples: list[Sample] = []
    for number, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=gradients)):
        if number >= MOST_SAMPLES:
            break
        candidate = Sample((sample.input, *sample.args), dict(sample.kwargs))
        if _fits(candidate):
            samples.append(candidate)
    return samples


def error_samples_of(task: SweepTask) -> list[Sample]:
    """Return the calls that torch's own tests expect to be refused; they do not depend on the dtype of the task."""
    info = OPERATORS[task.operator]
    if info.error_inputs_func is None:
        return []
    torch.manual_seed(seed_of(task.operator) % 2**31)
    samples = (error.sample_input for error in info.error_inputs("cpu"))
    return [Sample((one.input, *one.args), dict(one.kwargs)) for one in samples]


def _fits(sample: Sample) -> bool:
    tensors = list(tensors_of((sample.args, sample.kwargs)))
    if any(t.layout != torch.strided or t.is_quantized or t.device.type != "cpu" for t in tensors):
        return False
    return sum(tensor.numel() for tensor in tensors) <= MOST_ELEMENTS


def prepare(case: SweepCase, sample: Sample) -> PreparedCase | None:
    """Return a case made ready; None if the context does not apply to this operator and sample."""
    context = BY_NAME[case.context]
    originals = list(tensors_of((sample.args, sample.kwargs)))
    if context.name == "special_values" and case.task.operator.startswith(FACTORISING):
        return None
    if context.name.startswith(("far_index", "negative_index")) and not _has_indices(case, context, sample, originals):
        return None
    inputs = changed_inputs(context, originals, case.sample)
    if inputs is not None and context.name == UNSUPPORTED:
        inputs = _of_unsupported_dtype(case, inputs)
    if inputs is None:
        return None
    if not context.gradients:
        inputs = [tensor.detach() for tensor in inputs]
    return _CaseWriter(case, context, sample, inputs).written()


def _has_indices(case: SweepCase, context: Context, sample: Sample, inputs: Sequence[torch.Tensor]) -> bool:
    """Return whether whole numbers among the inputs are places, in a result that does not grow for them."""
    counts = case.task.operator in COUNTING and context.name.startswith("far_index")
    return (counts and -1 not in sample.kwargs.values()) or any(tensor.is_floating_point() for tensor in inputs)


def _of_unsupported_dtype(case: SweepCase, inputs: list[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return the inputs of the operator's first dtype in one that torch's table does not have; None if it has all.

    For every second case the first input stays, so that dtypes are mixed.
    """
    supported = OPERATORS[case.task.operator].supported_dtypes("cpu")
    others = [name for name in DTYPES if dtype_of(name) not in supported]
    if case.task.dtype != next((name for name in DTYPES if name not in others), "") or not others:
        return None
    seed, own = seed_of(case.key), dtype_of(case.task.dtype)
    other = dtype_of(others[seed % len(others)])
    kept = int(seed // len(others) % 2 and len(inputs) > 1)
    return inputs[:kept] + [tensor.to(other) if tensor.dtype == own else tensor for tensor in inputs[kept:]]


class _CaseWriter:
    """Writes the code of one case."""

    def __init__(self, case: SweepCase, context: Context, sample: Sample, inputs: list[torch.Tensor]) -> None:
        self.case, self.context, self.sample = case, context, sample
        self.inputs = inputs
        self.info = OPERATORS[case.task.operator]
        self.names = CallText(self._tensor, "K")
        self.numbers = iter(range(len(inputs)))

    def written(self) -> PreparedCase | None:
        function = self._function()
        if function is None:
            return None
        kwargs = dict(self.sample.kwargs)
        lines: list[str] = []
        result = None
        reads = self.context.after is not None and not self.context.name.endswith("unused")
        if self.context.uses == "out" or reads or self._undetermined:
            result = self._result()
            if result is None or (self.context.uses == "out" and not list(tensors_of(result))):
                return None
        call = self.names.call(function, self.sample.args, kwargs)
        if self.context.uses == "out":
            call = f"{call[:-1]}, out={self._outputs(result)})"
        if self.context.calls == 2:
            return self._prepared(self._twice(call, result))
        if self._undetermined:
            lines = [f"r = {call}", "return r.fill_(1)"]
        elif self.context.after is None:
            lines = [f"return {call}"]
        elif self.context.name.endswith("unused"):
            lines = [call, f"return {'a[0] + 1' if self._addable else 'None'}"]
        else:
            lines = [f"r = {call}", f"return {self.context.after(result)}"]
        return self._prepared(lines)

    def _twice(self, call: str, result: Any) -> list[str]:
        """Return the lines of two equal calls, whose results are given out or only read."""
        if self._undetermined:
            return [f"return {call}.fill_(1), {call}.fill_(1)"]
        if self.context.after is None:
            return [f"return {call}, {call}"]
        read = self.context.after(result)
        return [f"r = {call}", f"first = {read}", f"r = {call}", f"return first, {read}"]

    @property
    def _undetermined(self) -> bool:
        operator = self.case.task.operator
        return operator in UNINITIALISED or (operator, self.context.name) in UNWRITTEN

    @property
    def _addable(self) -> bool:
        return bool(self.inputs) and self.inputs[0].dtype != torch.bool

    def _prepared(self, lines: list[str]) -> PreparedCase:
        constants = dict(self.names.constants)
        if any("operator(" in line for line in lines):
            constants["operator"] = inlined(
                self.info.op if self.context.uses != "in_place" else self.info.inplace_variant
            )
        return PreparedCase(self.case, tuple(lines), constants, tuple(self.inputs))

    def _tensor(self, tensor: torch.Tensor) -> str:
        number = next(self.numbers)
        text = f"a[{number}]"
        before = self.context.before
        return before(text, self.inputs[number]) if before is not None else text

    def _function(self) -> str | None:
        """Return the text of what is called; None if the operator has no such form."""
        info = self.info
        if self.context.uses == "in_place":
            target = info.inplace_variant
            if target is None:
                return None
            name = getattr(target, "__name__", "")
            return f"torch.Tensor.{name}" if getattr(torch.Tensor, name, None) is target else "operator"
        if self.context.uses == "out" and (not info.supports_out or "out" in self.sample.kwargs):
            return None
        for path in (f"torch.{info.name}", f"torch.Tensor.{info.name}"):
            if _at(path) is info.op:
                return path
        return "operator"

    def _result(self) -> Any:
        """Return what the call gives in eager; None if it raises."""
        copies = iter([copy_of(tensor).detach() for tensor in self.inputs])
        args = with_tensors(self.sample.args, lambda tensor: next(copies))
        kwargs = with_tensors(self.sample.kwargs, lambda tensor: next(copies))
        try:
            return (
                self.info.inplace_variant(*args, **kwargs)
                if self.context.uses == "in_place"
                else self.info.op(*args, **kwargs)
            )
        except Exception:  # whatever eager raises: the context then has no result to work on
            return None

    def _outputs(self, result: Any) -> str:
        """Add the `out=` tensors to the inputs and return their text."""
        texts = []
        for tensor in tensors_of(result):
            texts.append(f"a[{len(self.inputs)}]")
            self.inputs.append(_output_like(tensor.detach(), self.context.out))
        return texts[0] if isinstance(result, torch.Tensor) else f"({', '.join(texts)},)"


def _output_like(tensor: torch.Tensor, form: str) -> torch.Tensor:
    if form == "resized":
        return torch.empty(0, dtype=tensor.dtype)
    if form == "right":
        return torch.full_like(tensor, 1)
    other = torch.int64 if tensor.is_floating_point() or tensor.is_complex() else torch.bool
    return torch.full_like(tensor, 1, dtype=torch.float32 if tensor.dtype == torch.bool else other)


def _at(path: str) -> Any:
    place: Any = torch
    for name in path.split(".")[1:]:
        place = getattr(place, name, None)
    return place


def program_of(cases: Sequence[PreparedCase]) -> Callable[[list[list[torch.Tensor]]], Any]:
    """Return one function that runs many cases: from the lists of their inputs to a tuple of their results."""
    texts = []
    for number, prepared in enumerate(cases):
        text = prepared.definition(f"case_{number}")
        for name in prepared.constants:
            text = re.sub(rf"\b{name}\b", f"{name}_of_{number}", text)
        texts.append(text)
    results = "".join(f"case_{number}(args[{number}]), " for number in range(len(cases)))
    texts.append(f"def program(args):\n    return ({results})\n")
    namespace = functions_of("\n\n".join(texts))
    for number, prepared in enumerate(cases):
        namespace.update({f"{name}_of_{number}": value for name, value in prepared.constants.items()})
    program: Callable[[list[list[torch.Tensor]]], Any] = namespace["program"]
    return program
