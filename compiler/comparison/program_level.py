"""A level: the program as one stage of the compiler has it.  `run_level` runs it on copies and keeps all it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from ..base.torch_facts import storage_key
from .private_inputs import GeneratorStates, PrivateInputs, leaving_no_trace, private_inputs

Call = Callable[[Sequence[object]], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class ProgramLevel:
    """The program as one stage has it.

    stage: the stage's name.  call: takes the arguments of the call, writes to them as the program does, and returns its
    outputs; autograd sees it as it sees the program.  between: levels after which finer levels come, to tell which of
    its parts a stage went wrong in; made only where it did.
    """

    stage: str
    call: Call
    between: Callable[[], "Sequence[ProgramLevel]"] = field(default=tuple)


@dataclass(frozen=True, slots=True, eq=False)
class LevelResult:
    """What one level did to copies of the inputs.

    outputs: as the call returned them, without history; empty where it raised `error`.
    requires_grad: of each output, False for what is not a tensor.
    sharing: per output the first input or output whose memory it shares, and whether it is that very object.
    written: the contents of the tensor inputs afterwards.
    gradients: of the inputs that require grad, in order (None: there is none); empty where nothing is differentiable.
    generators: the states of the random generators afterwards.
    error, backward_error: what the call raised, and what taking gradients raised.
    """

    stage: str
    outputs: tuple[object, ...] = ()
    requires_grad: tuple[bool, ...] = ()
    sharing: tuple[tuple[int, bool], ...] = ()
    written: tuple[torch.Tensor, ...] = ()
    gradients: tuple[torch.Tensor | None, ...] = ()
    generators: GeneratorStates | None = None
    error: Exception | None = None
    backward_error: Exception | None = None


def run_level(
    level: ProgramLevel,
    arguments: Sequence[object],
    generators: GeneratorStates,
    *,
    backward: Sequence[int] | None = None,
) -> LevelResult:
    """Run a level on copies of the arguments; an error is part of the result.

    Gradients are taken of the outputs and of inputs with a new history, for cotangents that are the same in every run.
    backward: positions among these that get one; None: all, empty: no gradients.
    """
    with leaving_no_trace(generators):
        inputs = private_inputs(arguments)
        try:
            outputs = level.call(inputs.arguments)
        except Exception as error:  # what a level raises is compared like what it returns
            return LevelResult(level.stage, error=error)
        after = GeneratorStates.now(arguments)
        gradients = _gradients(inputs, outputs, backward)
        return LevelResult(
            level.stage,
            tuple(_plain(value) for value in outputs),
            tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in outputs),
            _sharing(inputs.tensors, outputs),
            tuple(tensor.detach() for tensor in inputs.tensors),
            gradients if isinstance(gradients, tuple) else (),
            after,
            backward_error=None if isinstance(gradients, tuple) else gradients,
        )


def _gradients(
    inputs: PrivateInputs, outputs: Sequence[object], backward: Sequence[int] | None
) -> tuple[torch.Tensor | None, ...] | Exception:
    """Return the gradients of the leaves, or what taking them raises."""
    ends = list(enumerate(differentiable(outputs, inputs.tensors, inputs.histories)))
    chosen = [(place, end) for place, end in ends if backward is None or place in backward]
    if not chosen or not inputs.leaves:
        return ()
    seeds = [cotangent(place, end) for place, end in chosen]
    try:
        return torch.autograd.grad([end for _, end in chosen], inputs.leaves, seeds, allow_unused=True)
    except Exception as error:  # a program may write over what its gradient needs
        return error


def differentiable(
    outputs: Sequence[object], tensors: Sequence[torch.Tensor], histories: Sequence[object]
) -> list[torch.Tensor]:
    """Return what gradients can be taken of: outputs, each object once, then inputs that were given a new history."""
    ends: dict[int, torch.Tensor] = {}
    for value in outputs:
        if isinstance(value, torch.Tensor) and value.grad_fn is not None:
            ends.setdefault(id(value), value)
    for tensor, history in zip(tensors, histories, strict=True):
        if tensor.grad_fn is not history:
            ends.setdefault(id(tensor), tensor)
    return list(ends.values())


def cotangent(place: int, value: torch.Tensor) -> torch.Tensor:
    """Return the gradient that the end at a place is given: normally distributed, the same in every run."""
    generator = torch.Generator(device="cpu").manual_seed(place)
    real = torch.randn(value.shape, generator=generator, dtype=torch.float64, device="cpu")
    if value.is_complex():
        real = torch.complex(real, real.flip(0) if real.dim() else -real)
    return real.to(value.dtype).to(value.device)


def _plain(value: object) -> object:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _sharing(tensors: Sequence[torch.Tensor], outputs: Sequence[object]) -> tuple[tuple[int, bool], ...]:
    """Return for each output the first tensor whose memory it shares: inputs count from 0, outputs behind them."""
    owners: dict[int, int] = {}
    objects: dict[int, int] = {}
    facts = []
    for place, value in enumerate((*tensors, *outputs)):
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            facts.append((place, False))
            continue
        owner = owners.setdefault(storage_key(value), place)
        facts.append((owner if value.numel() else place, objects.setdefault(id(value), place) != place))
    return tuple(facts[len(tensors) :])
