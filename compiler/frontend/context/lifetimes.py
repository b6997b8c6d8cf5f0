"""Lifetimes: objects whose end the program can notice, because they have a finaliser or are weakly referenced.

An object of Python lives as long as a name of a running frame holds it, read again or not.  Compiled code drops what is
not read again, and what plain Python drops in the middle of a frame it would hold to the end of a segment.  Neither can
be noticed of most objects; of the others the frames keep their names, and a segment ends where a name is dropped.
"""

import collections
import gc
import inspect
import itertools
import sys
import types
import weakref
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import torch

from ...base.real_objects.past_methods import is_really
from ...bytecode.instruction import decode
from ...bytecode.kept_generator import kept_state
from ...values.constant import Constant
from ...values.python.containers.mapping_views import Entry
from ...values.python.objects.exceptions import ExceptionValue
from ...values.python.objects.instances import OpaqueValue
from ...values.reasons import UNSUPPORTED_OBJECT, Break
from ...values.source import Argument
from ...values.torch.gradients import is_leaf_step
from ...values.torch.tensor import TensorValue
from ...values.value import Value, defines
from .frame import FrameState, SuspendedValue, cleans_up, parts_of
from .lazy import LazyValue

# plumbline, torch and Python hold weak references to these
_NEVER = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
_PARTS = ("items", "members", "entries", "unread", "namespace", "slots", "contents")  # where values keep others
_ITERATORS = (
    zip,
    map,
    filter,
    enumerate,
    reversed,
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
)
_MOST_INSIDE = 1000  # objects inside one that are asked
_HOLDERS_OF_CAPTURE = 2  # at most: a lazy value of an object, and the value that this turned into


def is_watched(value: Value) -> bool:
    """Return whether the end of a value from outside can be noticed, or the end of something that it holds.

    The program has a weak reference to it, or it has a finaliser, or it is a generator that cleans up.  A list that is
    made here is asked for what is in it from outside.
    """
    if _known_as(value).source is not None:
        return _noticed_in(value) is not None
    return any(part.source is not None and _noticed_in(part) is not None for part in _parts_of_made(value))


def break_where_noticed(frames: Sequence[FrameState], value: Value | None, given: Container[int]) -> None:
    """Break if a name lets go of an object whose end can be noticed: it has to be now.

    What was reached through something else, such as a module of a list, that holds on to it; a list that is made here
    ends with its last name, and lets go of what it holds. given: the ids of the objects that the evaluated frames
    were given.
    """
    if value is None or _is_bare(value):
        return
    if _is_given(value, given):
        break_where_lost(value)
    held = _given_in(value, given)
    if held and _times_held(frames, value) < 2:  # by the name itself
        for part in held:
            break_where_lost(part)


def _given_in(made: Value, given: Container[int]) -> list[Value]:
    """Return what a value that was made here holds of what was given; nothing of other values."""
    return [part for part in _parts_of_made(made) if _is_given(part, given)] if made.source is None else []


def _parts_of_made(made: Value) -> Iterator[Value]:
    """Give the values in an object that was made here, and in those of them that were made here."""
    pending, seen = _parts(made), {id(made)}
    while pending:
        part = pending.pop()
        part = _known_as(part) if isinstance(part, Value) else part
        if id(part) in seen or len(seen) > _MOST_INSIDE:
            continue
        seen.add(id(part))
        if isinstance(part, Entry):
            pending += _parts(part)
        elif isinstance(part, Value):
            yield part
            pending += _parts(part) if part.source is None else []


def break_where_handled(frames: Sequence[FrameState], exception: Value, given: Container[int]) -> None:
    """Break if a handler ends and only it holds an exception whose end can be noticed, by what the traceback holds."""
    if isinstance(exception, ExceptionValue) and _is_given(exception, given) and not _is_held_by(frames, exception):
        break_where_lost(exception)


def break_where_frame_ends(frames: Sequence[FrameState], given: Container[int]) -> None:
    """Break if the innermost frame returns and only it holds an object whose end can be noticed.

    The outermost frame ends with the segment, and what it holds with it.
    """
    if len(frames) < 2:
        return
    returned, instead = frames[-1].returned, frames[-1].instead  # of `__init__`, the object that is being made
    for value in frames[-1].locals.values():
        if value is returned or value is instead or _is_bare(value) or _is_held_by(frames[:-1], value):
            continue
        ending = [value] if _is_given(value, given) else _given_in(value, given)
        if not ending:
            continue
        if ending[0] is value or returned is None or not reaches(returned, [value]):
            for one in ending:
                break_where_lost(one)


def _is_bare(value: Value) -> bool:
    """Return whether a value is a literal or a tensor that was made here: most are, and neither holds an object."""
    return value.source is None and type(value) in (Constant, TensorValue)


def _is_given(value: Value, given: Container[int]) -> bool:
    """Return whether a value stands for an object that the evaluated frames were given."""
    return value.source is not None and (isinstance(value.source, Argument) or id(_real(value)) in given)


def _is_held_by(frames: Sequence[FrameState], value: Value) -> bool:
    """Return whether a frame has a value under a name or on its stack."""
    return any(_known_as(one) is value for frame in frames for one in (*frame.locals.values(), *frame.stack))


def _times_held(frames: Sequence[FrameState], value: Value) -> int:
    """Return under how many names and at how many places on stacks frames have a value."""
    return sum(_known_as(one) is value for frame in frames for one in (*frame.locals.values(), *frame.stack))


def _known_as(value: Value) -> Value:
    return value.inner or value if isinstance(value, LazyValue) else value


def break_where_lost(lost: object, together: Sequence[object] = (), given: Container[int] = ()) -> None:
    """Break if an object that a container or an attribute lets go of, or one inside it, has an end to be noticed.

    lost: a value, or an object from outside.  together: what is let go of at once, which ends in Python's order where
    nothing else holds it; given: the ids of the objects that the evaluated frames were given, and hold.
    """
    noticed = _noticed_in(lost)
    if noticed is not None:
        signal = Break(UNSUPPORTED_OBJECT, f"the program lets go of {noticed}")
        signal.lets_go_first = any(is_given(one, given) for one in together)
        raise signal


def is_given(one: object, given: Container[int]) -> bool:
    """Return whether what a container held is an object that the evaluated frames were given."""
    value = one.value if isinstance(one, Entry) else one
    return _is_given(value, given) if isinstance(value, Value) else id(value) in given


def _noticed_in(lost: object) -> str | None:
    """Return the words for what is in a lost object, or is that, and has an end to be noticed; None if nothing has."""
    seen: dict[int, object] = {}
    found: collections.Counter[int] = collections.Counter()  # how many of the lost ones hold a part
    pending = [lost]
    unheld = object()  # counted as a part is: how many references a call takes differs, as with a hook on frames
    while pending and len(seen) < _MOST_INSIDE:
        part = pending.pop()
        found[id(part)] += 1
        known = _references_to(unheld) + found[id(part)] + _HOLDERS_OF_CAPTURE
        held_elsewhere = _references_to(part) > known  # as loggers are
        if id(part) in seen or (part is not lost and held_elsewhere and not isinstance(part, Value | Entry)):
            continue
        seen[id(part)] = part
        known_as = part.inner if isinstance(part, LazyValue) else part
        if isinstance(known_as, SuspendedValue) and known_as.source is not None and known_as.cleans_up():
            return "a generator that does something at its end"
        real = _real(part) if isinstance(part, Value) else part
        if real is not None and not issubclass(type(real), _NEVER) and (_has_finaliser(real) or _references(real)):
            return f"a {type(real).__name__} object, whose end can be noticed"
        pending += _parts(part)
    return None


def _references_to(one: object) -> int:
    """Return how many references there are to an object, those of this call among them."""
    return sys.getrefcount(one)


_OF_EXCEPTIONS = tuple(
    vars(BaseException)[name].__get__ for name in ("args", "__cause__", "__context__", "__traceback__")
)


_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque)


def _parts(whole: object) -> list[object]:
    """Return what a value, or an object from outside, holds."""
    if isinstance(whole, Entry):
        return [whole.key, whole.value]
    if isinstance(whole, LazyValue):
        return _parts(whole.raw)  # which is asked already: the real object of the value
    if isinstance(whole, OpaqueValue):
        return _parts(whole.real)
    if isinstance(whole, ExceptionValue) and isinstance(whole.real, BaseException):
        return _parts(whole.real)
    if isinstance(whole, Value):
        held = (getattr(whole, name, None) for name in _PARTS)
        return [part for one in held if one is not None for part in _parts(one)]
    if isinstance(whole, dict):
        return [*dict.keys(whole), *dict.values(whole)]
    for base in _CONTAINERS:
        if isinstance(whole, base):
            return list(base.__iter__(whole))  # past the methods of a class of the user's
    if isinstance(whole, _ITERATORS):
        return gc.get_referents(whole)
    if isinstance(whole, BaseException):
        return [*_attributes(whole), *(read(whole, type(whole)) for read in _OF_EXCEPTIONS)]
    if isinstance(whole, types.TracebackType):
        return [whole.tb_frame, whole.tb_next]
    if isinstance(whole, types.FrameType):
        return _parts_of_frame(whole)
    plain = not isinstance(whole, (*_NEVER, torch.nn.Module, torch.Tensor))
    return _attributes(whole) if plain and type(whole).__dictoffset__ else []


def _attributes(whole: object) -> list[object]:
    """Return what an object's own attributes hold; no code of its class is asked, which may answer anything."""
    places = (vars(base)["__dict__"] for base in type(whole).__mro__ if "__dict__" in vars(base))
    place = next(places, None)
    return list(place.__get__(whole).values()) if type(place) is types.GetSetDescriptorType else []


def _parts_of_frame(frame: types.FrameType) -> list[object]:
    """Return what a frame holds; what one of ours or of torch's holds is nothing of the program's."""
    if str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("plumbline", "torch"):
        return []
    return [one for one in gc.get_referents(frame) if one is not frame.f_globals and one is not frame.f_builtins]


def watched_by(operands: Iterable[Value]) -> frozenset[int]:
    """Return the ids of the operands of an operation that may make weak references to them."""
    values = [value.inner or value if isinstance(value, LazyValue) else value for value in operands]
    if not any(map(_refers_weakly, values)):
        return frozenset()
    return frozenset(map(id, values))


def reaches(value: Value, targets: Sequence[Value]) -> bool:
    """Return whether a value holds one of the targets, directly or in what it holds."""
    return bool(targets) and any(part is target for part in parts_of(value) for target in targets)


def _refers_weakly(value: Value) -> bool:
    """Return whether a value is something of the weakref module; it must not be asked, which could need more guards."""
    owner = getattr(value, "owner", None)  # of a bound method
    objects = [getattr(one, name, None) for one in (value, owner) for name in ("real", "kind", "value")]
    return any(_is_of_weakref(real) or _is_of_weakref(type(real)) for real in objects)


def _is_of_weakref(real: object) -> bool:
    described = is_really(real, type) or is_really(real, types.FunctionType)
    return described and real.__module__ in ("weakref", "_weakref", "_weakrefset")


def _real(value: Value) -> object:
    """Return the object of a value from outside, None if it has none or its end is not watched."""
    if isinstance(value, LazyValue):
        real: object = value.raw
    else:
        real = getattr(value, "real", None) if value.source is not None else None
    return None if issubclass(type(real), _NEVER) else real


def _has_finaliser(real: object) -> bool:
    if is_really(real, types.GeneratorType):
        return _cleans_up(real)
    if is_leaf_step(real):
        return True  # only the program holds a leaf's own step, whose hooks end with it
    return defines(type(real), "__del__")


def _cleans_up(generator: "types.GeneratorType[object, object, object]") -> bool:
    """Return whether a generator from outside does something when it is closed."""
    state = kept_state(generator)
    if state is not None:
        place = state.place
        return place is not None and bool(place.layout.index) and cleans_up(place.decoded, place.layout.index)
    if inspect.getgeneratorstate(generator) != inspect.GEN_SUSPENDED:
        return False
    decoded, frame = decode(generator.gi_code), generator.gi_frame
    assert frame is not None  # it is suspended
    suspended = [one for one in decoded.instructions if one.offset <= frame.f_lasti]
    return cleans_up(decoded, suspended[-1].index + 1)


def _references(real: object) -> list["weakref.ref[object]"]:
    """Return the program's weak references to an object."""
    if not type(real).__weakrefoffset__:
        return []
    return [reference for reference in weakref.getweakrefs(real) if not _is_of_a_library(reference, real)]


def _is_of_a_library(reference: "weakref.ref[object]", real: object) -> bool:
    """Return whether torch or plumbline made a weak reference, as stock torch.compile does of every module.

    Keys of a WeakKeyDictionary do not tell whose it is: those of modules and tensors are taken for torch's.
    """
    callback = reference.__callback__
    makers = (type(reference).__module__, getattr(callback, "__module__", None) or "")
    if any(maker.startswith(("torch", "plumbline")) for maker in makers):
        return True
    return isinstance(real, torch.nn.Module | torch.Tensor) and makers[1] in ("weakref", "_weakrefset")
