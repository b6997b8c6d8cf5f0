"""A run of a graph that leaves nothing behind when it fails: what it wrote and drew before is undone.

Only what a failure could leave changed is saved: inputs that are written before something may fail on data. What fails
for another reason than data (no kernel for a dtype) fails at the first run, so that one saves all that is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ...base.torch_facts import set_version, storage_key
from .call_effects import Drawn, Effects
from .hook_failures import raised_by_tensor_hook

GeneratorState = tuple[torch.Generator, torch.Tensor]

HOOKED = "hooked"  # in the meta of a graph module: the program puts hooks on its inputs when it has run
READS_LATER = "reads later"  # in the meta of a graph module: constants of the program that its backward was made with
STEPS_WANTED = "steps wanted"  # in the meta of a graph module, and of a value whose `grad_fn` the program takes away
WARNED = "warned"  # in the meta of a graph module: the texts of warnings that are given again after each run of it
EFFECTS = "effects"  # in the meta of a graph module: the Effects of its run


def effects_of(gm: torch.fx.GraphModule) -> Effects | None:
    """Return what the capture of a graph has found that it does; None for a graph that nobody has captured."""
    effects = gm.meta.get(EFFECTS)
    return effects if isinstance(effects, Effects) else None


def undoing(run: Callable[..., Any], effects: Effects | None, *, writes_last: bool = False) -> Callable[..., Any]:
    """Return `run` such that a failure leaves what it wrote and drew as it was.

    writes_last: `run` writes when all that may fail has run, so that there is nothing of that to undo.
    """
    if effects is None:
        return run
    chosen = replace(effects, written=(), at_risk=()) if writes_last else effects
    return Undoing(run, chosen) if chosen.written or chosen.draws else run


class CannotUndo(Exception):
    """A run that fails could not be undone."""


def takes_history_for_good(effects: Effects, inputs: Sequence[object]) -> bool:
    """Return whether an input takes a history that nobody can take from it: a view without one."""
    views = (value for place in effects.histories if isinstance(value := inputs[place], torch.Tensor))
    return any(value._is_view() and value.grad_fn is None for value in views)


@dataclass(slots=True, eq=False)
class Undoing:
    """Calls `run`; see `undoing`. passed: it has come to its end once."""

    run: Callable[..., Any]
    effects: Effects
    passed: bool = False
    saves: bool = field(init=False)  # at every run, not at the first alone

    def __post_init__(self) -> None:
        self.saves = bool(self.effects.at_risk or (self.effects.draws and self.effects.may_fail))

    def __call__(self, *inputs: object) -> Any:
        """Run; on an error put back what was saved, and let the error through; one of a caller's hook undoes nothing.

        Raises CannotUndo, and does not run, where a failure would leave something that cannot be put back.
        """
        passed = self.passed and not _share_memory(self.effects.written, inputs)
        if passed and not self.saves:
            return self.run(*inputs)
        written = self.effects.at_risk if passed else self.effects.written
        if written and takes_history_for_good(self.effects, inputs):
            raise CannotUndo
        before = saved(written, self.effects.draws, inputs)
        try:
            result = self.run(*inputs)
        except Exception as error:
            if not raised_by_tensor_hook(error):
                before.restore()
            raise
        self.passed = True
        return result


def _share_memory(written: Sequence[int], inputs: Sequence[object]) -> bool:
    """Return whether inputs of a run that writes share memory: kernels refuse some that overlap."""
    if not written:
        return False
    tensors = [value for value in inputs if isinstance(value, torch.Tensor) and value.layout is torch.strided]
    return len(set(map(storage_key, tensors))) < len(tensors)


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """State from before a run."""

    tensors: "tuple[SavedTensor, ...]"
    generators: tuple[GeneratorState, ...]

    def restore(self) -> None:
        """Put everything back."""
        for tensor in self.tensors:
            tensor.restore()
        for generator, state in self.generators:
            generator.set_state(state)


def saved(written: Sequence[int], draws: Sequence[Drawn], inputs: Sequence[object]) -> Saved:
    """Save the inputs at these positions and the generators."""
    tensors = [value for place in written if isinstance(value := inputs[place], torch.Tensor)]
    return Saved(tuple(map(SavedTensor.of, tensors)), generator_states(draws))


def generator_states(draws: Sequence[Drawn]) -> tuple[GeneratorState, ...]:
    """Return the generators with the states they are in; the meta device has none, and draws nothing."""
    real = [drawn for drawn in draws if isinstance(drawn, torch.Generator) or drawn.type != "meta"]
    return tuple((generator, generator.get_state()) for generator in map(_generator, real))


def _generator(drawn: Drawn) -> torch.Generator:
    if isinstance(drawn, torch.Generator):
        return drawn
    if drawn.type == "cpu":
        return torch.default_generator
    module = torch.get_device_module(drawn)
    index = module.current_device() if drawn.index is None else drawn.index
    generator: torch.Generator = module.default_generators[index]
    return generator


@dataclass(frozen=True, slots=True, eq=False)
class SavedTensor:
    """A tensor that something may write to: its memory, its contents, its flags and its history."""

    tensor: torch.Tensor
    memory: torch.Tensor  # the same elements, under an object of their own
    contents: torch.Tensor  # a copy, which leads on to the history
    requires_grad: bool
    history: object
    version: int | None

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "SavedTensor":
        """Save a tensor as it is."""
        history = tensor.grad_fn
        if history is None:
            contents = tensor.detach().clone()
        else:
            with torch.enable_grad():
                contents = tensor.clone()
        version = None if tensor.is_inference() else tensor._version
        return cls(tensor, tensor.data, contents, tensor.requires_grad, history, version)

    def restore(self) -> None:
        """Make the tensor what it was."""
        tensor = self.tensor
        if tensor.grad_fn is not self.history:
            self._restore_history()
        if _memory(tensor) != _memory(self.memory):
            tensor.data = self.memory
        tensor.data.copy_(self.contents.detach())
        if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
            tensor.requires_grad_(self.requires_grad)
        if self.version is not None:
            set_version(tensor, self.version)

    def _restore_history(self) -> None:
        """Take the new history away: a tensor without one becomes a leaf again, another leads to the old one."""
        if self.history is None:
            self.tensor.detach_()
        else:
            with torch.enable_grad():
                self.tensor.copy_(self.contents)


def _memory(tensor: torch.Tensor) -> tuple[object, ...]:
    return storage_key(tensor), tensor.storage_offset(), tensor.dtype, tensor.shape, tensor.stride()
