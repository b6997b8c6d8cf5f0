"""The aspects of a call that are judged: one row for each, in one table, with everything the oracle does for it.

A row says what is written down of a run, how two runs are compared, and whether a difference fails a test.  No other
file lists aspects: runs observe, `compare` compares and the judge decides by this table.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..state.process_state import ProcessState
from ..state.random_state import RandomState
from .compare_exceptions import exception_differences
from .compare_objects import (
    mutation_differences,
    output_differences,
    python_differences,
    zero_sign_of_numbers,
)
from .compare_process_state import generator_differences
from .compare_tensors import (
    GradientPair,
    Pair,
    filled_gradient_sentences,
    gradient_differences,
    gradient_memory_sentences,
    gradient_stride_differences,
    identity_differences,
    metadata_differences,
    order_differences,
    placement_differences,
    sharing_differences,
    version_differences,
    zero_sign_sentences,
)
from .matching import Difference, MatchedOutcomes
from .spoken import listening, spoken_differences, standing, stream_differences, text_differences

Observe = Callable[[], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True, slots=True)
class Aspect:
    """One aspect of a call.

    name: in verdicts, and for `--compile-ignore`.  meaning: what is compared, as the documents say it.
    fails: a difference fails a test; otherwise it is a note.

    observe: what is written down of a run besides its result and the objects it changed.  A context manager entered
    around the program in reference, trial and live runs; it yields a function that is called right after the program,
    and whose result is `outcome.observed[name]`.  The live run is the user's: pass on what you intercept.  In the
    other runs it is discarded.  observe_live: whether the live run is observed as well.

    How two runs are compared; a row has at least one of:
    outcomes: yields the differences of two outcomes.
    gradients: yields the differences of two gradients of one leaf, each as a sentence about it.
    equal_values: yields the differences of two tensors of equal values and different bits, each as a sentence.
    backward_refused: says that the compiled program refuses, with this error or with none, a backward of gradients
    that eager gives.
    """

    name: str
    meaning: str
    fails: bool = True
    observe: Observe | None = None
    observe_live: bool = True
    outcomes: Callable[[MatchedOutcomes], Iterable[Difference]] | None = None
    gradients: Callable[[GradientPair], Iterable[str]] | None = None
    equal_values: Callable[[Pair], Iterable[str]] | None = None
    backward_refused: Callable[[BaseException | None], str] | None = None


def after_the_run(read: Callable[[], object]) -> Observe:
    """Return an observer that reads something right after the program and needs nothing before it."""

    @contextlib.contextmanager
    def observe() -> Iterator[Callable[[], object]]:
        yield read

    return observe


def refusal_of_double(error: BaseException | None) -> str:
    """Say that gradients of gradients are refused."""
    return "have no history, eager's have one" if error is None else f"raise {type(error).__name__}, eager gives them"


def placement_and_order(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield how new tensors and arrays lie in memory otherwise than eager's."""
    yield from placement_differences(outcomes)
    yield from order_differences(outcomes)


# Differences at one place are reported in the order of the rows.
ASPECTS: tuple[Aspect, ...] = (
    Aspect("values", "the elements of outputs", outcomes=output_differences),
    Aspect(
        "gradients", "gradients of inputs and parameters; `None` differs from zeros", gradients=gradient_differences
    ),
    Aspect("mutations", "every tensor the caller can reach, after the call", outcomes=mutation_differences),
    Aspect("metadata", "shape, dtype, device, strides, `requires_grad`", outcomes=metadata_differences),
    Aspect("aliasing", "which outputs and inputs share memory", outcomes=sharing_differences),
    Aspect(
        "exceptions",
        "the class of an exception, and whether it comes from forward or backward",
        outcomes=exception_differences,
    ),
    Aspect(
        "python",
        "attributes, containers, closure cells, globals, class attributes; torch's modes, `os.environ` and its like",
        observe=after_the_run(ProcessState.now),
        outcomes=python_differences,
    ),
    Aspect(
        "rng",
        "the state of random generators",
        observe=after_the_run(RandomState.now),
        outcomes=generator_differences,
    ),
    Aspect(
        "double-backward",
        "gradients of gradients that the compiled program refuses; where it gives them they are judged as gradients",
        fails=False,
        backward_refused=refusal_of_double,
    ),
    Aspect(
        "spoken",
        "printed text, warnings and logs",
        fails=False,
        observe=listening,
        observe_live=False,
        outcomes=spoken_differences,
    ),
    Aspect(
        "streams",
        "where standard output goes, and which warnings are shown",
        observe=standing,
        outcomes=stream_differences,
    ),
    Aspect(
        "exception-text",
        "the text of an exception, its notes, attributes and cause",
        fails=False,
        outcomes=text_differences,
    ),
    Aspect(
        "filled-gradients",
        "zeros for `None` in the backward of one output alone",
        fails=False,
        gradients=filled_gradient_sentences,
    ),
    Aspect(
        "identity",
        "whether a tensor that comes back is the caller's own object",
        fails=False,
        outcomes=identity_differences,
    ),
    Aspect(
        "versions",
        "whether autograd counts a write into a tensor",
        fails=False,
        outcomes=version_differences,
    ),
    Aspect(
        "placement",
        "at which element of its memory a new tensor starts, how large that is; the order of an array in memory",
        fails=False,
        outcomes=placement_and_order,
    ),
    Aspect(
        "gradient-memory",
        "gradients of two leaves in one memory",
        fails=False,
        gradients=gradient_memory_sentences,
    ),
    Aspect("gradient-strides", "strides of gradients", fails=False, gradients=gradient_stride_differences),
    Aspect(
        "zero-sign",
        "the sign of zeros",
        fails=False,
        equal_values=zero_sign_sentences,
        outcomes=zero_sign_of_numbers,
    ),
)


def aspect_names() -> tuple[str, ...]:
    """Return the names of all aspects, in the order of the table."""
    return tuple(aspect.name for aspect in ASPECTS)


def reported_only() -> frozenset[str]:
    """Return the names of the aspects whose differences are notes."""
    return frozenset(aspect.name for aspect in ASPECTS if not aspect.fails)


@contextlib.contextmanager
def observing(*, live: bool = False) -> Iterator[Callable[[], dict[str, object]]]:
    """Observe the block for every aspect; the function it yields is to be called right after the program.

    live: the block is the user's own run.
    """
    with contextlib.ExitStack() as stack:
        readers = {
            aspect.name: stack.enter_context(aspect.observe())
            for aspect in ASPECTS
            if aspect.observe and (aspect.observe_live or not live)
        }
        yield lambda: {name: read() for name, read in readers.items()}
