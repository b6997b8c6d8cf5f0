"""The function that stands for a compiled one: the user's signature, and a body that tries the specialisations."""

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Protocol

from ..guards.generated_function import MISS
from .small_calls import SmallCalls

HandsOver = Callable[[types.FunctionType, Callable[..., object]], object]


class Dispatched(Protocol):
    """What a template needs of a unit."""

    name: str
    runs: list[Callable[..., object]]
    small: SmallCalls

    def miss(self, args: tuple[object, ...]) -> object:
        """Go on where no specialisation fits."""


class _Default:
    """Stands for a default until the body asks the user's function for it, which may have been given others."""

    def __repr__(self) -> str:
        return "default"


DEFAULT = _Default()


def parameter_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of a function's parameters in the order of its slots."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


def default_of(function: types.FunctionType, name: str) -> object:
    """Return the default that a parameter has now; raises TypeError if it has none any more."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    if name in positional:
        defaults = function.__defaults__ or ()
        place = positional.index(name) - len(positional) + len(defaults)
        if place >= 0:
            return defaults[place]
    keyword_defaults = function.__kwdefaults__ or {}
    if name in keyword_defaults:
        return keyword_defaults[name]
    kind = "positional" if name in positional else "keyword-only"
    raise TypeError(f"{function.__qualname__}() missing 1 required {kind} argument: {name!r}")


def make_template(
    unit: Dispatched,
    tail_type: type,
    code: types.CodeType,
    defaults: int,
    keyword_defaults: Sequence[str],
    wrap: Callable[[types.FunctionType], types.FunctionType],
) -> Callable[..., types.FunctionType]:
    """Return make(cells, function) -> what stands for the function; parsed once per code.

    tail_type: of results that say which unit goes on; the function lets go of its arguments before.
    defaults, keyword_defaults: how many of the last positional parameters have one, and which others.  wrap: gives
    what stands for the function once it has other code.
    """
    names, parts, call = parameter_names(code), *_signature(code)
    arguments = ", ".join([f"*{_CELLS}", *names] if code.co_freevars else list(names))
    tail = "," if arguments else ""
    asked = (*code.co_varnames[code.co_argcount - defaults : code.co_argcount], *keyword_defaults)
    asks = "".join(f"        if {name} is {_DEFAULT}: {name} = {_DEFAULT_OF}({_USERS}, {name!r})\n" for name in asked)
    release = f"        del {', '.join(names)}\n" if names else ""
    text = (
        f"def {_MAKE}({_CELLS}, {_USERS}):\n"
        f"    def {_FUNCTION}({parts}):\n"
        f"{asks}"
        f"        if {_USERS}.__code__ is not {_CODE}: return {_WRAP}({_USERS})({call})\n"
        f"{_small_call(code)}"
        f"        for {_RUN} in {_RUNS}:\n"
        f"            {_RESULT} = {_RUN}({arguments})\n"
        f"            if {_RESULT} is not {_MISS}: break\n"
        f"        else: {_RESULT} = {_MISSED}(({arguments}{tail}))\n"
        f"        if {_TYPE}({_RESULT}) is not {_TAIL}: return {_RESULT}\n"
        f"{release}"
        f"        while {_TYPE}({_RESULT}) is {_TAIL}: {_RESULT} = {_RESULT}.unit(*{_RESULT}.take())\n"
        f"        return {_RESULT}\n"
        f"    return {_FUNCTION}\n"
    )
    namespace: dict[str, object] = {
        _RUNS: unit.runs,
        _SMALL: unit.small.tests,
        _MISS: MISS,
        _TYPE: type,
        _TAIL: tail_type,
        _MISSED: unit.miss,
        _DEFAULT: DEFAULT,
        _DEFAULT_OF: default_of,
        _CODE: code,
        _WRAP: wrap,
    }
    exec(compile(text, f"<plumbline dispatch {unit.name}>", "exec"), namespace)
    make = namespace[_MAKE]
    assert isinstance(make, types.FunctionType)
    return make


def _small_call(code: types.CodeType) -> str:
    """Return the statements that run the user's function where the call is small; only its own frame has the arguments.

    None for functions that take any number of arguments.
    """
    names = parameter_names(code)
    if not names or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return ""
    handed = [f"{_HELD}.pop()"] * code.co_argcount + [f"{n}={_HELD}.pop()" for n in names[code.co_argcount :]]
    return (
        f"        for {_TEST} in {_SMALL}:\n"
        f"            if {_TEST}({', '.join(names)}):\n"
        f"                {_HELD} = [{', '.join(reversed(names))}]\n"
        f"                del {', '.join(names)}\n"
        f"                return {_USERS}({', '.join(handed)})\n"
    )


def handing_over(code: types.CodeType) -> HandsOver:
    """Return call(function, take): a call whose arguments only the called frame holds.

    take: the `pop` of a list of the values of its parameters, the last first.
    """
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    parts = ["take()"] * count
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*take({-1 - keywords})")  # evaluated before keywords, wherever it stands
    parts += [f"{name}=take()" for name in code.co_varnames[count : count + keywords]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append("**take()")
    call: HandsOver = eval(f"lambda function, take: function({', '.join(parts)})")
    return call


def _signature(code: types.CodeType) -> tuple[str, str]:
    """Return the text of the parameters, and of a call that hands all of them on."""
    names, positional = parameter_names(code), code.co_argcount
    slot = positional + code.co_kwonlyargcount
    parts = [f"{name}=None" for name in names[:positional]]  # defaults are set on the function afterwards
    call = list(names[:positional])
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[slot]}")
        call.append(f"*{names[slot]}")
        slot += 1
    elif code.co_kwonlyargcount:
        parts.append("*")
    for name in names[positional : positional + code.co_kwonlyargcount]:
        parts.append(f"{name}=None")
        call.append(f"{name}={name}")
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[slot]}")
        call.append(f"**{names[slot]}")
    return ", ".join(parts), ", ".join(call)


_MAKE, _CELLS, _FUNCTION, _RUN, _RUNS, _RESULT, _MISS, _MISSED = (
    f"_plumbline_{word}" for word in ("make", "cells", "call", "run", "runs", "result", "miss", "missed")
)
_USERS, _CODE, _DEFAULT, _DEFAULT_OF, _WRAP, _TYPE, _TAIL, _SMALL, _TEST, _HELD = (
    f"_plumbline_{word}"
    for word in ("users", "code", "default", "default_of", "wrap", "type", "tail", "small", "test", "held")
)
