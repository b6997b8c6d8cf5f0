"""The first level that departs from the one before: all of what a call does is compared, in the order of `ASPECTS`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from ..graph.node_values import type_text
from .noise import Noise
from .private_inputs import GeneratorStates
from .program_level import LevelResult, ProgramLevel, run_level
from .values import value_difference


@dataclass(frozen=True, slots=True)
class Departure:
    """stage: the first that departs.  before: the last that is right.  text: what differs."""

    stage: str
    before: str
    text: str


@dataclass(slots=True, eq=False)
class NoisyRuns:
    """Runs of one level with noise in them, made when somebody asks; none where the level fails under noise."""

    level: ProgramLevel
    arguments: Sequence[object]
    generators: GeneratorStates
    backward: Sequence[int] | None = None
    _results: list[LevelResult] = field(default_factory=list)

    def results(self, count: int) -> list[LevelResult]:
        """Return what the first runs gave."""
        self._results += [self._run(seed) for seed in range(len(self._results), count)]
        return [result for result in self._results[:count] if result.error is None]

    def _run(self, seed: int) -> LevelResult:
        noisy = ProgramLevel(self.level.stage, self.level.call)
        with Noise(seed):
            return run_level(noisy, self.arguments, self.generators, backward=self.backward)


Pick = Callable[[LevelResult], object]  # one part of a result


def departure(after: LevelResult, before: LevelResult, noisy: NoisyRuns) -> str | None:
    """Return what a level does otherwise than the one before it, None for nothing beyond rounding."""
    if before.error is not None or after.error is not None:
        return _error_difference(after.error, before.error)
    for compare in ASPECTS:
        for text in compare(after, before, noisy):
            return text
    return None


def _error_difference(after: Exception | None, before: Exception | None) -> str | None:
    if after is None:
        return f"it returns, and the stage before raises {type(before).__name__}: {before}"
    if before is None:
        return f"it raises {type(after).__name__}: {after}"
    return None  # which error a program raises is settled by running it as it is


def outputs(after: LevelResult, before: LevelResult, noisy: NoisyRuns) -> Iterator[str]:
    """Outputs: their number, kinds, layouts and values."""
    if len(after.outputs) != len(before.outputs):
        yield f"{len(after.outputs)} outputs, not {len(before.outputs)}"
        return
    yield from _each("output {}", after.outputs, before.outputs, noisy, _one_of_outputs)


def histories(after: LevelResult, before: LevelResult, _noisy: NoisyRuns) -> Iterator[str]:
    """Which outputs require grad."""
    for place, (value, expected) in enumerate(zip(after.requires_grad, before.requires_grad, strict=True)):
        if value != expected:
            yield f"output {place} {'requires' if value else 'does not require'} grad"


def sharing(after: LevelResult, before: LevelResult, _noisy: NoisyRuns) -> Iterator[str]:
    """Which outputs share memory with an input or another output, or are that very object."""
    for place, (value, expected) in enumerate(zip(after.sharing, before.sharing, strict=True)):
        if value != expected:
            yield f"output {place} shares other memory, or is another object"


def writes(after: LevelResult, before: LevelResult, noisy: NoisyRuns) -> Iterator[str]:
    """What the tensor inputs hold afterwards."""
    yield from _each("tensor input {} afterwards", after.written, before.written, noisy, _one_of_written)


def gradients(after: LevelResult, before: LevelResult, noisy: NoisyRuns) -> Iterator[str]:
    """The gradients of the inputs that require grad."""
    if before.backward_error is not None or after.backward_error is not None:
        text = _error_difference(after.backward_error, before.backward_error)
        if text is not None:
            yield f"backward: {text}"
        return
    if len(after.gradients) != len(before.gradients):
        yield f"{len(after.gradients)} gradients, not {len(before.gradients)}"
        return
    yield from _each("gradient {}", after.gradients, before.gradients, noisy, _one_of_gradients, layout=False)


def draws(after: LevelResult, before: LevelResult, _noisy: NoisyRuns) -> Iterator[str]:
    """Where the random generators are afterwards."""
    if after.generators is not None and before.generators is not None and not after.generators.same(before.generators):
        yield "the random generators are elsewhere afterwards"


ASPECTS: tuple[Callable[[LevelResult, LevelResult, NoisyRuns], Iterator[str]], ...] = (
    outputs,  # first: most faults show here
    writes,
    gradients,
    histories,
    sharing,
    draws,
)


def _each(
    name: str,
    after: Sequence[object],
    before: Sequence[object],
    noisy: NoisyRuns,
    pick: Callable[[int, LevelResult], object],
    *,
    layout: bool = True,
) -> Iterator[str]:
    """Yield what differs place by place; name: of a place, with braces for its number."""
    for place, (value, expected) in enumerate(zip(after, before, strict=True)):
        text = _difference(value, expected, noisy, partial(pick, place), layout=layout)
        if text is not None:
            yield f"{name.format(place)}: {text}"


def _difference(value: object, expected: object, noisy: NoisyRuns, pick: Pick, *, layout: bool) -> str | None:
    if not isinstance(expected, torch.Tensor) or not isinstance(value, torch.Tensor):
        return None if _same_plain(value, expected) else f"{_shown(value)}, the stage before gives {_shown(expected)}"
    if _kind(value, layout=layout) != _kind(expected, layout=layout):
        return f"{type_text(value)}, the stage before gives {type_text(expected)}"
    if value.layout is not torch.strided or value.is_quantized or not value.numel():
        return None
    difference = value_difference(value, expected, lambda count: _tensors(noisy, pick, expected, count))
    return None if difference is None else difference.text


def _one_of_outputs(place: int, result: LevelResult) -> object:
    return result.outputs[place]


def _one_of_written(place: int, result: LevelResult) -> object:
    return result.written[place]


def _one_of_gradients(place: int, result: LevelResult) -> object:
    return result.gradients[place] if result.backward_error is None else None


def _tensors(noisy: NoisyRuns, pick: Pick, expected: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Return one part of the noisy results, where noise left it the tensor that it was."""
    parts = (pick(result) for result in noisy.results(count))
    return [part for part in parts if isinstance(part, torch.Tensor) and part.shape == expected.shape]


def _kind(value: torch.Tensor, *, layout: bool) -> tuple[object, ...]:
    facts = (value.dtype, value.device, value.layout, tuple(value.shape))
    if not layout or value.layout is not torch.strided or not value.numel():
        return facts
    return (*facts, tuple(step for size, step in zip(value.shape, value.stride(), strict=True) if size > 1))


def _same_plain(value: object, expected: object) -> bool:
    if value is expected:
        return True
    if type(value) is not type(expected) or isinstance(value, torch.Tensor):
        return False
    try:
        return bool(value == expected) or (value != value and expected != expected)
    except Exception:  # objects that cannot be compared: nothing is said against them
        return True


def _shown(value: object) -> str:
    return type_text(value) if isinstance(value, torch.Tensor) else repr(value)


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """What became of levels that ran beside each other.

    departure: None where all agree.  compared: the stages that ran; one alone says nothing: the first raised.
    """

    compared: tuple[str, ...]
    departure: Departure | None = None


def compare_levels(
    levels: Sequence[ProgramLevel], arguments: Sequence[object], *, backward: Sequence[int] | None = None
) -> LevelComparison:
    """Run levels on copies of the arguments and hold each to the one before; the first is right by definition.

    backward: see `run_level`.  Where the first raises nothing is compared: which error it is, running the program says.
    """
    generators = GeneratorStates.now(arguments)
    noisy = NoisyRuns(levels[0], arguments, generators, backward)
    before = run_level(levels[0], arguments, generators, backward=backward)
    compared = [levels[0].stage]
    if before.error is not None:
        return LevelComparison(tuple(compared))
    for level in levels[1:]:
        after = run_level(level, arguments, generators, backward=backward)
        compared.append(level.stage)
        text = departure(after, before, noisy)
        if text is not None:
            part = _part(level, before, arguments, noisy)
            return LevelComparison(tuple(compared), part or Departure(level.stage, before.stage, text))
        before = after
    return LevelComparison(tuple(compared))


def _part(level: ProgramLevel, before: LevelResult, arguments: Sequence[object], noisy: NoisyRuns) -> Departure | None:
    """Return which part of a stage departs; None where it has no parts, or none departs by itself."""
    for finer in level.between():
        after = run_level(finer, arguments, noisy.generators, backward=noisy.backward)
        text = departure(after, before, noisy)
        if text is not None:
            return Departure(finer.stage, before.stage, text)
        before = after
    return None
