"""The chain of frames that a unit evaluates: from the function's own frame in to where a break cuts it."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ...bytecode.resume_chain import Place
from ...bytecode.resume_code import HANDLED
from ...bytecode.resume_code import NULL as NULL_KIND
from ...values.python.objects.functions import CellValue
from ...values.reasons import DATA_DEPENDENT_BRANCH, DATA_DEPENDENT_VALUE, EXPLICIT_BREAK, Break
from ...values.source import Argument
from ..context.frame import NULL, FrameState, HandledValue
from ..context.recorder import Recorder
from ..entry_questions import is_of_torch
from ..units.unit import Unit, parameter_names

REPEATS = 4  # of one code in a chain; a deeper recursion breaks at the call, where its own unit takes over


def frames_of(recorder: Recorder, unit: Unit, args: tuple[object, ...]) -> list[FrameState]:
    """Return the frames that the unit evaluates, from the outermost in, with these arguments."""
    sources = [Argument(name, shown) for name, shown in zip(unit.parameters, unit.shown, strict=True)]
    if not unit.places:
        return [_start(recorder, unit, args, sources)]
    remaining = list(zip(args, sources, strict=True))
    frames: list[FrameState] = []
    for place in unit.places:
        size = place.size()
        frames.insert(0, _continued(recorder, place, remaining[:size], innermost=not frames))
        remaining = remaining[size:]
    for caller, frame in pairwise(frames):
        frame.parent = caller
    return frames


def _cell(recorder: Recorder, value: object, source: Argument) -> CellValue:
    cell = recorder.wrap(value, source)
    assert isinstance(cell, CellValue)
    return cell


def _start(recorder: Recorder, unit: Unit, args: tuple[object, ...], sources: list[Argument]) -> FrameState:
    code = unit.decoded.code
    split = len(code.co_freevars)
    cells = [_cell(recorder, value, source) for value, source in zip(args[:split], sources[:split], strict=True)]
    local = {
        name: recorder.lazy(value, source)
        for name, value, source in zip(parameter_names(code), args[split:], sources[split:], strict=True)
    }
    return FrameState(recorder, unit.decoded, unit.namespace, local, {}, None, free_cells=cells)


def _continued(
    recorder: Recorder, place: Place, given: list[tuple[object, Argument]], *, innermost: bool
) -> FrameState:
    """Return a frame that stands at its place; it cannot be stopped at before it has gone on."""
    layout = place.layout
    frame = FrameState(recorder, place.decoded, place.namespace, {}, {}, None, transparent=True, step=-1, resumed=True)
    frame.index, frame.drops = layout.index, place.drops
    rest = iter(given)
    only_stored = innermost and place.decoded.instructions[layout.index].name in _ONLY_STORE
    for depth, kind in enumerate(layout.stack, 1):
        take = recorder.lazy if only_stored and depth == len(layout.stack) else recorder.wrap
        value = NULL if kind == NULL_KIND else take(*next(rest))
        frame.stack.append(HandledValue(value) if kind == HANDLED else value)
    for name in layout.cells:
        frame.cells[name] = _cell(recorder, *next(rest))
    for name in layout.locals:
        frame.locals[name] = recorder.lazy(*next(rest))
    return frame


_ONLY_STORE = ("STORE_FAST", "POP_TOP")  # what they are given is not looked at, so it needs no guard

_BEFORE_A_FIRST_CALL = frozenset(
    {
        "RESUME",
        "MAKE_CELL",
        "COPY_FREE_VARS",
        "PUSH_NULL",
        "LOAD_GLOBAL",
        "LOAD_DEREF",
        "LOAD_ATTR",
        "LOAD_METHOD",
        "PRECALL",
        "NOP",
    }
)


def places_to_stop(frames: Sequence[FrameState], signal: Break) -> list[tuple[int, int]]:
    """Return where a break under these frames (outermost first) may be put: (depth, step), the innermost first.

    At most three: the two innermost, and the outermost, which most often works.  A frame can be cut if every frame
    from the second down to it only hands its result to its caller's stack, and if it has begun the instruction it
    stands at in this capture.  A function that begins with graph_break() asks not to be inlined, so it is not cut but
    called; so is the step of an optimizer that reads data for each parameter, which then runs eagerly.
    """
    if signal.reason is EXPLICIT_BREAK and len(frames) > 1 and _begins(frames[-1]):
        frames = frames[:-1]
    places: list[tuple[int, int]] = []
    seen: Counter[object] = Counter()
    for depth, frame in enumerate(frames):
        seen[frame.decoded.code] += 1
        if (depth and not frame.transparent) or seen[frame.decoded.code] > REPEATS:
            break
        if frame.step >= 0:
            places.insert(0, (depth, frame.step))
    if signal.reason in (DATA_DEPENDENT_VALUE, DATA_DEPENDENT_BRANCH) and _is_of_optimizer(frames[-1]):
        places = [(depth, step) for depth, step in places if not is_of_torch(frames[depth].namespace)]
    return places[:2] + places[2:][-1:]  # each costs a capture


def _is_of_optimizer(frame: FrameState) -> bool:
    """Return whether a frame runs a step of torch's optimizers: a loop over parameters, which would break at each."""
    return str(frame.namespace.get("__name__", "")).startswith("torch.optim.")


def _begins(frame: FrameState) -> bool:
    """Return whether the frame stands at the first call of its code."""
    return all(i.name in _BEFORE_A_FIRST_CALL for i in frame.decoded.instructions[: frame.current().index])
