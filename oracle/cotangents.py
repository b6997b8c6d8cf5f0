"""Gradients of one run: several backwards, every differentiable tensor within reach, None distinct from zero.

A mean or a ones cotangent alone is in the null space of softmax and layer norm; a random one and a one-hot one are
not.  They also differ in how they lie in memory: a row-major one, one of transposed strides, and one number expanded,
which is what `y.sum().backward()` hands on.  Gradients come from `torch.autograd.grad`, so that the user's `.grad` is
never touched, and the graph is retained: it may be joined to the user's own.
"""

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch.autograd.graph import Node

from plumbline.compiler.base.torch_facts import without_dispatch_modes

from .equal_memory import TensorDigest, digest_of, equal_memory
from .freed_memory import without_frames
from .numeric.bits import equal_bits
from .state.argument_stand_ins import StandIns
from .state.run_outcome import RunOutcome
from .state.saved_tensors import SavedTensorState, has_storage
from .state.snapshot import Snapshot
from .user_overrides import with_overrides

COTANGENTS = ("random", "one-hot", "ones")
DOUBLE = "random, of the gradients"
"""A backward of the gradients."""
ALONE = " alone"
"""Behind the path of an output: a backward from it alone, the other outputs having no gradient."""

_MOST_ALONE = 3
LARGEST_FOR_DOUBLE = 100_000
"""Elements of leaves up to which gradients of gradients are judged: a graph of the backward costs several backwards."""
LARGEST_HELD = 48 << 20
"""Bytes of leaves up to which the gradients of all backwards are held until they are judged."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Gradients of every leaf by name for one cotangent, or the exception the backward raised.

    digests: in place of the gradients where these were let go.  shared: by leaf, the leaves before it whose gradients
    are in the same memory.  layouts: by leaf, of those that are sparse and were made dense.
    """

    by_leaf: dict[str, torch.Tensor | None]
    error: BaseException | None
    digests: Mapping[str, TensorDigest | None] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)

    def let_go(self) -> "Gradients":
        """Return these as digests only, without the numbers."""
        digests = {leaf: None if each is None else digest_of(each) for leaf, each in self.by_leaf.items()}
        return Gradients({}, self.error, digests, self.shared, self.layouts)

    def repeats(self, other: "Gradients") -> bool:
        """Return whether these certainly are the other ones again, in form, layout and every byte; both are held."""
        if self.error is not None or other.error is not None or self.by_leaf.keys() != other.by_leaf.keys():
            return False
        if self.shared != other.shared or self.layouts != other.layouts:
            return False
        return all(_certainly_same(each, other.by_leaf[leaf]) for leaf, each in self.by_leaf.items())

    def differing_leaves(self, other: "Gradients") -> list[str]:
        """Return the leaves whose gradients differ in form or bits; both sides are held, or both let go."""
        layouts = {leaf for leaf, _ in self.layouts.items() ^ other.layouts.items()}
        if self.digests or other.digests:
            return [
                leaf for leaf, digest in self.digests.items() if digest != other.digests.get(leaf) or leaf in layouts
            ]
        every = self.by_leaf.items()
        return [leaf for leaf, each in every if leaf in layouts or not _same(each, other.by_leaf.get(leaf))]


@dataclass(frozen=True, slots=True, eq=False)
class FullRun:
    """A run and its backwards: by kind the gradients, and what they left behind; None where none was run.

    paths: the outputs and changed tensors that the backwards started from; a rewind takes histories away.
    """

    outcome: RunOutcome
    paths: tuple[str, ...]
    gradients: dict[str, Gradients | None]
    after: RunOutcome | None


def _certainly_same(one: torch.Tensor | None, two: torch.Tensor | None) -> bool:
    if one is None or two is None:
        return one is two
    form = type(one) is type(two) and one.shape == two.shape and one.dtype == two.dtype
    return form and one.requires_grad == two.requires_grad and equal_memory(one, two)


def _same(one: torch.Tensor | None, two: torch.Tensor | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.shape == two.shape and one.dtype == two.dtype and equal_bits(one, two)


def backwards_of(
    paths: Sequence[str], leaves: Mapping[str, torch.Tensor], seed: int, turn: int | None = None
) -> tuple[str, ...]:
    """Return the kinds of backward to run from the outputs at these paths, in this order; none without paths.

    turn: the random cotangent and one other kind only, another one at every turn.
    """
    if not paths:
        return ()
    chosen = random.Random(seed).sample(list(paths), min(len(paths), _MOST_ALONE)) if len(paths) > 1 else []
    small = sum(leaf.numel() for leaf in leaves.values()) <= LARGEST_FOR_DOUBLE
    kinds = (*COTANGENTS, *(path + ALONE for path in chosen), *([DOUBLE] if small else []))
    return kinds if turn is None else (kinds[0], kinds[1 + turn % (len(kinds) - 1)])


def may_be_held(leaves: Mapping[str, torch.Tensor]) -> bool:
    """Return whether gradients of these leaves are small enough for those of all backwards to be held together."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves.values()) <= LARGEST_HELD


def leaves_of(snapshot: Snapshot, stand_ins: StandIns) -> dict[str, torch.Tensor]:
    """Return the tensors whose gradients are judged, by name: those within reach, and the leaves of stand-ins."""
    leaves = {
        path: saved.value
        for path, _, saved in snapshot.entries
        if isinstance(saved, SavedTensorState) and saved.requires_grad and id(saved.value) not in stand_ins.by_original
    }
    names = {id(saved.value): path for path, _, saved in snapshot.entries if isinstance(saved, SavedTensorState)}
    for pair in stand_ins.pairs:
        leaves.setdefault(names.get(id(pair.original), "argument"), pair.leaf)
    return leaves


def differentiable(outcome: RunOutcome) -> dict[str, torch.Tensor]:
    """Return the live outputs and changed tensors that have a backward, by path."""
    return {
        path: record.original
        for path, record in outcome.tensors().items()
        if record.original.requires_grad and record.original.grad_fn is not None
    }


def cotangents_for(outputs: Sequence[torch.Tensor], kind: str, seed: int) -> list[torch.Tensor]:
    """Return one cotangent per output, of its shape and dtype, drawn from the oracle's own generator.

    kind: one of COTANGENTS; any other kind of backward has random ones.
    """
    generator = torch.Generator().manual_seed(seed)
    if kind == "ones":
        return [torch.ones((), dtype=output.dtype, device=output.device).expand(output.shape) for output in outputs]
    if kind != "one-hot":
        return [_normal(output, generator) for output in outputs]
    cotangents = [_transposed_zeros(output) for output in outputs]
    filled = [number for number, output in enumerate(outputs) if output.numel()]
    if filled:
        chosen = cotangents[filled[int(torch.randint(len(filled), (1,), generator=generator))]]
        position = int(torch.randint(chosen.numel(), (1,), generator=generator))
        index = torch.unravel_index(torch.tensor(position), tuple(chosen.shape)) if chosen.dim() else ()
        chosen[tuple(int(i) for i in index)] = 1
    return cotangents


def _transposed_zeros(output: torch.Tensor) -> torch.Tensor:
    """Return zeros in the memory order of a transposed tensor."""
    zeros = torch.zeros(tuple(reversed(output.shape)), dtype=output.dtype, device=output.device)
    return zeros.permute(tuple(reversed(range(output.dim()))))


def _normal(output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    dtype = torch.complex128 if output.is_complex() else torch.float64
    drawn = torch.randn(tuple(output.shape), generator=generator, dtype=dtype)
    return drawn.to(device=output.device, dtype=output.dtype)


def earlier_steps(snapshot: Snapshot) -> list[Node]:
    """Return the steps of autograd's graph at which the history from before the call begins, each once."""
    steps = [saved.grad_fn for _, _, saved in snapshot.entries if isinstance(saved, SavedTensorState)]
    return list({id(step): step for step in steps if step is not None}.values())


@contextlib.contextmanager
def ending_at(steps: Sequence[Node]) -> Iterator[None]:
    """Let backwards hand zeros on to these steps, after the gradients of the tensors that they made are taken.

    A call is not to blame for what lies behind what it was given: gradients there say how far the rounding of its own
    is carried by steps that no lane follows, those of an earlier compiled call above all.
    """
    with contextlib.ExitStack() as stack:
        for step in steps:
            stack.callback(step.register_prehook(_zeros_instead).remove)
        yield


def _zeros_instead(gradients: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
    return tuple(None if gradient is None else torch.zeros_like(gradient) for gradient in gradients)


@contextlib.contextmanager
def handed_over(leaves: Mapping[str, torch.Tensor], take: Callable[[str, torch.Tensor], None]) -> Iterator[set[str]]:
    """Let backwards give gradients to `take` as each is complete, and keep none of these; yields the names taken.

    A backward that keeps all needs their memory twice where each has a lane beside it.  What is no leaf is left alone:
    its gradient goes further.
    """
    taken: set[str] = set()

    def handing(name: str) -> Callable[[torch.Tensor], torch.Tensor | None]:
        def hook(gradient: torch.Tensor) -> torch.Tensor | None:
            if gradient.layout != torch.strided:
                return None
            with without_dispatch_modes(), torch.no_grad():
                take(name, gradient)
                taken.add(name)
                return gradient.new_zeros(()).expand(gradient.shape)

        return hook

    with contextlib.ExitStack() as stack:
        for name, leaf in leaves.items():
            if leaf.is_leaf:
                hook = leaf.register_hook(handing(name))  # type: ignore[no-untyped-call]  # torch leaves it untyped
                stack.callback(hook.remove)
        yield taken


def gradients_of(
    outputs: dict[str, torch.Tensor],
    leaves: dict[str, torch.Tensor],
    kind: str,
    seed: int,
    earlier: Sequence[Node] = (),
) -> Gradients:
    """Run one backward of this kind from the outputs.

    outputs: by path; the order of paths decides the order of draws, so equal paths give equal cotangents.
    earlier: what `earlier_steps` says.
    """
    alone = kind.removesuffix(ALONE) if kind.endswith(ALONE) else None
    chosen = [outputs[path] for path in sorted(outputs) if alone in (None, path)]
    asked, handled = list(leaves.values()), sys.exception()
    try:
        cotangents = cotangents_for(chosen, kind, seed)
        with with_overrides(), ending_at(earlier):
            gradients: tuple[torch.Tensor | None, ...] = torch.autograd.grad(
                chosen, asked, cotangents, retain_graph=True, create_graph=kind == DOUBLE, allow_unused=True
            )
        if kind == DOUBLE:
            with ending_at(earlier):
                gradients = _gradients_of_gradients(gradients, asked, seed)
    except Exception as error:
        return Gradients({}, without_frames(error, handled))
    named = dict(zip(leaves, gradients, strict=True))
    layouts = {
        leaf: str(each.layout) for leaf, each in named.items() if each is not None and each.layout != torch.strided
    }
    found = {leaf: _dense(each) for leaf, each in named.items()}
    return Gradients(found, None, shared=_shared(found), layouts=layouts)


def _shared(gradients: Mapping[str, torch.Tensor | None]) -> dict[str, str]:
    """Return the leaves whose gradients are in the memory of another leaf's, with that leaf."""
    owners: dict[int, str] = {}
    shared = {}
    for leaf, gradient in gradients.items():
        if gradient is not None and has_storage(gradient) and gradient.numel():
            owner = owners.setdefault(gradient.untyped_storage()._cdata, leaf)
            if owner != leaf:
                shared[leaf] = owner
    return shared


def _dense(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """Return a gradient as it is compared: that of a sparse embedding with all its rows."""
    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()


def _gradients_of_gradients(
    gradients: Sequence[torch.Tensor | None], asked: Sequence[torch.Tensor], seed: int
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of all gradients that have a history; None everywhere where none has."""
    chosen = [gradient for gradient in gradients if gradient is not None and gradient.requires_grad]
    if not chosen:
        return (None,) * len(asked)
    cotangents = cotangents_for(chosen, "random", seed + 1)
    with with_overrides():
        found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(
            chosen, asked, cotangents, retain_graph=True, allow_unused=True
        )
    return found
