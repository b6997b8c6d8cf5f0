"""Suspended generators across a break: handed over as real ones whose state the next unit reads and sets."""

from collections.abc import Generator
from dataclasses import dataclass
from types import GeneratorType

from ...bytecode.kept_generator import kept_state, new_generator, set_state
from ...bytecode.resume_chain import Place
from ...bytecode.resume_code import HANDLED, VALUE, ResumeLayout
from ...bytecode.resume_code import NULL as NULL_KIND
from ...values.guard import GuardKind
from ...values.python.objects.functions import CellValue
from ...values.reasons import CANNOT_RESUME, Break
from ...values.source import Attribute, Inject, Item, Source
from ...values.value import CaptureContext, Rebuilder, Value
from .frame import NULL, FrameState, HandledValue, kept_locals

AWAIT = 3  # the argument of a RESUME behind it
State = tuple[Place | None, list[Value]]


@dataclass(frozen=True, slots=True)
class KeptState(Source):
    """The state of a generator that capture handed over; None once plain Python has started it."""

    of: Source
    in_suspended_frame = True

    def base(self) -> Source:
        """Return the generator."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `kept_state(base)`."""
        return f"{inject(kept_state)}({base})"


def state_of(frame: FrameState, *, started: bool, finished: bool) -> State:
    """Return where a suspended frame stands, and the values it needs to go on; Break where that cannot be said."""
    if finished:
        return None, []
    if not started:
        code = frame.decoded.code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        names, cells = code.co_varnames[:count], list(frame.free_cells)
        layout = ResumeLayout(0, (), code.co_freevars, names)
        return Place(frame.decoded, frame.namespace, layout), [*cells, *(frame.locals[name] for name in names)]
    following = frame.decoded.instructions[frame.index]
    if following.name != "RESUME" or following.argument & 3 == AWAIT:
        raise Break(CANNOT_RESUME, f"{frame.decoded.code.co_name} stands in an `await`")
    kinds = tuple(NULL_KIND if v is NULL else HANDLED if isinstance(v, HandledValue) else VALUE for v in frame.stack)
    stack = [v.exception if isinstance(v, HandledValue) else v for v in frame.stack if v is not NULL]
    names = kept_locals(frame, frame.index)
    layout = ResumeLayout(frame.index, kinds, tuple(frame.cells), names)
    values = [*stack, *frame.cells.values(), *(frame.locals[name] for name in names)]
    return Place(frame.decoded, frame.namespace, layout), values


def rebuild_generator(value: Value, names: tuple[str, str], state: State, out: Rebuilder) -> str:
    """Write what makes a real generator in a state; made first, as its own frame may hold it."""
    name = out.fresh()
    out.line(f"{name} = {out.inject(new_generator)}({names[0]!r}, {names[1]!r})")
    out.bind(value, name)
    out.line(_setting(name, state, out))
    return name


def replay_generator(value: Value, state: State, out: Rebuilder) -> list[str]:
    """Return the statement that moves the original to a state."""
    return [_setting(out.value(value), state, out)]


def _setting(name: str, state: State, out: Rebuilder) -> str:
    place, values = state
    elements = "".join(f"{out.value(value)}, " for value in values)
    return f"{out.inject(set_state)}({name}, {out.inject(_one_for_all(place))}, ({elements}))"


def _one_for_all(place: Place | None) -> Place | None:
    """Return the one object that stands for equal places, which is what guards ask for."""
    return place and _PLACES.setdefault(place.key(), place)


_PLACES: dict[tuple[object, ...], Place] = {}


def revived(ctx: CaptureContext, generator: Generator[object, object, object], source: Source) -> FrameState | None:
    """Return the frame of a generator from outside, guarded; None if its state cannot be read."""
    state = kept_state(generator)
    if state is None or state.place is None:
        return None
    place, here = state.place, KeptState(source)
    ctx.guards.add(source, GuardKind.TYPE, GeneratorType)
    ctx.guards.add(Attribute(here, "place"), GuardKind.IDENTITY, place)
    layout = place.layout
    frame = FrameState(ctx, place.decoded, place.namespace, {}, {}, None)
    frame.index = layout.index
    stack_values = iter([(value, Item(Attribute(here, "values"), i)) for i, value in enumerate(state.values)])
    for kind in layout.stack:
        value = NULL if kind == NULL_KIND else ctx.wrap(*next(stack_values))
        frame.stack.append(HandledValue(value) if kind == HANDLED else value)
    for name in layout.cells:
        cell = ctx.wrap(*next(stack_values))
        assert isinstance(cell, CellValue)
        if layout.index:
            frame.cells[name] = cell
        else:
            frame.free_cells.append(cell)
    for name in layout.locals:
        frame.locals[name] = ctx.lazy(*next(stack_values))
    return frame
