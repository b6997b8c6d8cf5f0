"""What a traced call does to the world around its graph: the contract between the graphs and the call wrappers."""

import enum
from dataclasses import dataclass

from .view_writes import ViewStep


class OutputKind(enum.Enum):
    """Where an output of the call comes from."""

    RETURNED = "returned"  # value `index` of the graph, perhaps seen through views
    INPUT = "input"  # input `index` after it was written back: itself, or seen through views
    CONSTANT = "constant"  # no tensor of the graph: a number, None, a tensor known beforehand
    SAME = "same"  # the very object of output `index`


@dataclass(frozen=True, slots=True)
class OutputFact:
    """One output. steps: the views that lead to it, none if it is the thing itself. requires_grad: as eager's.

    shared: the number of the steps up to a `detach`, and that of what it gives, where other outputs are views of that,
    too: for autograd it is a tensor of its own, and they are views of one.
    """

    kind: OutputKind
    index: int = 0
    steps: tuple[ViewStep, ...] = ()
    requires_grad: bool = False
    constant: object = None
    shared: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class WriteFact:
    """An input that gets new content: tracked if eager's autograd sees the write, hidden from it otherwise.

    versions: by how much the version of the tensor rises, by which autograd knows that what it saved was overwritten;
    writes through `.data` do not raise it.
    """

    input: int
    tracked: bool
    versions: int


@dataclass(frozen=True, slots=True)
class CallSignature:
    """What one traced call takes, gives and changes.

    Lengths: inputs, one per tensor of the graph, positions in the call's arguments (constants not among them);
    outputs, one per output of the call; writes, one per overwritten input.
    The graph returns `returned` fresh values, then one new content per write. requires_grad: one per graph value.
    views: which of the returned values the program has as a view of memory that it does not return.
    """

    inputs: tuple[int, ...]
    outputs: tuple[OutputFact, ...]
    writes: tuple[WriteFact, ...]
    returned: int
    requires_grad: tuple[bool, ...]
    views: frozenset[int] = frozenset()

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through the graph at all."""
        return any(self.requires_grad)
