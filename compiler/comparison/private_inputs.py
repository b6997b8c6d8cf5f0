"""A call's inputs as copies of their own, and a run that changes nothing outside: state, generators and modes stay."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from ..base.torch_facts import any_autocast, apply_function, storage_key


@dataclass(frozen=True, slots=True, eq=False)
class PrivateInputs:
    """Copies of a call's arguments. leaves: what gradients are asked for, one per tensor that requires grad, in order.

    tensors: the copies of the tensors, in order and each once; histories: the grad_fn that each came with.
    """

    arguments: tuple[object, ...]
    tensors: tuple[torch.Tensor, ...]
    leaves: tuple[torch.Tensor, ...]
    histories: tuple[object, ...]


class _History(torch.autograd.Function):
    """Gives a tensor of its own memory that is not a leaf: what the program sees of an input with a history."""

    @staticmethod
    def forward(ctx: object, leaf: torch.Tensor) -> torch.Tensor:
        """Return a copy with the same strides."""
        del ctx
        return strided_copy(leaf)

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        """Hand the gradient on."""
        del ctx
        return gradient


def strided_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in memory of its own with the strides of the original, whatever these are."""
    return _copy(tensor, {})


def private_inputs(arguments: Sequence[object]) -> PrivateInputs:
    """Copy the tensors among the arguments: strides, shared memory, requires_grad and being a leaf stay as they are."""
    storages: dict[int, torch.UntypedStorage] = {}
    copies: dict[int, torch.Tensor] = {}
    leaves: list[torch.Tensor] = []
    for value in arguments:
        if not isinstance(value, torch.Tensor) or id(value) in copies:
            continue
        copy = _copy(value, storages)
        if value.requires_grad:
            leaves.append(copy.requires_grad_())
            if not value.is_leaf:
                with torch.enable_grad():
                    copy = apply_function(_History, copy)
        copies[id(value)] = copy
    listed = tuple(copies.values())
    arguments_copied = tuple(copies[id(value)] if isinstance(value, torch.Tensor) else value for value in arguments)
    return PrivateInputs(arguments_copied, listed, tuple(leaves), tuple(copy.grad_fn for copy in listed))


def _copy(tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    plain = tensor.detach()
    if plain.layout is not torch.strided or plain.is_quantized or plain.is_conj() or plain.is_neg():
        return plain.clone()
    key = storage_key(plain)
    if key not in storages:
        storages[key] = plain.untyped_storage().clone()  # type: ignore[no-untyped-call]  # untyped in torch
    copy = torch.empty(0, dtype=plain.dtype, device=plain.device)
    copy.set_(storages[key], plain.storage_offset(), plain.shape, plain.stride())
    return copy


@dataclass(frozen=True, slots=True, eq=False)
class GeneratorStates:
    """The states of the default generators of the CPU and of the devices that a call's tensors are on."""

    states: Mapping[torch.Generator, torch.Tensor]

    @staticmethod
    def now(arguments: Sequence[object]) -> "GeneratorStates":
        """Return the states as they are."""
        generators = [torch.default_generator]
        devices = {value.device for value in arguments if isinstance(value, torch.Tensor)}
        for device in sorted((device for device in devices if device.type == "cuda"), key=str):
            generators.append(torch.cuda.default_generators[device.index or 0])
        return GeneratorStates({generator: generator.get_state() for generator in generators})

    def put_back(self) -> None:
        """Make the generators what they were."""
        for generator, state in self.states.items():
            generator.set_state(state)

    def same(self, other: "GeneratorStates") -> bool:
        """Return whether all generators are in the same states."""
        return all(torch.equal(state, other.states[generator]) for generator, state in self.states.items())


@contextmanager
def leaving_no_trace(generators: GeneratorStates) -> Iterator[None]:
    """Start from these states of the generators, and put them, grad mode and autocast back afterwards.

    The caller's hooks on saved tensors are not called: they would see tensors of a run that never was.
    """
    generators.put_back()
    with ExitStack() as stack:
        stack.callback(generators.put_back)
        stack.enter_context(torch.set_grad_enabled(torch.is_grad_enabled()))
        if any_autocast():
            for device in ("cpu", "cuda"):
                if torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, dtype=torch.get_autocast_dtype(device)))
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(_itself, _itself))
        yield


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
