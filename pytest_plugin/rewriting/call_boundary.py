"""The boundary at run time: which calls that a test file makes are judged, and with which arguments."""

import functools
import inspect
import sysconfig
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from plumbline.oracle.state.kinds import home_of

from ..current import current_session
from .held_tensors import holds_module, holds_tensor, is_plain, is_tensors
from .written_operators import OPERATORS, methods_of

# Their functions are parts of programs, not programs of the user.
BUILDING_BLOCKS = frozenset(
    "hypothesis matplotlib numpy pandas parameterized pluggy plumbline scipy sklearn torch xdist".split()
)
DEPTH = 3  # how often a callable may be wrapped

_STANDARD_LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

# Classes of torch that programs derive from, and whose inherited methods do little but call the program's own.
_TEMPLATES = "torch.distributions"

# Functions of torch that call what they are given, often, and with nothing between that a compiler could see.
_CALLERS = ("torch.autograd.gradcheck",)


class CallBoundary:
    """Stands in front of every call in the test files; set up once per run.

    test_files: paths of the files whose calls are looked at; what is defined in them is not a callee.
    kinds: some of BOUNDARIES.
    """

    def __init__(self, test_files: frozenset[str], kinds: Iterable[str] = ("call",)) -> None:
        self._test_files = test_files
        kinds = frozenset(kinds)
        self._modules = bool(kinds & {"auto", "module"})
        self._functions = bool(kinds & {"auto", "call"})
        self._modules_first = "call" not in kinds
        self._torch_calls: dict[Any, Callable[..., Any]] = {}
        self._constructors: dict[type, Callable[..., Any]] = {}
        self._worth_judging: set[types.CodeType] = set()  # of functions that met no module, or made tensors of nothing

    def __call__(self, callee: Any) -> Any:
        """Return what the test file shall call in place of `callee`: itself, unless it may be judged."""
        session = current_session()
        if session is None:
            return callee
        if isinstance(callee, type):
            return functools.partial(self._construction, session, callee) if self._builds(callee) else callee
        if isinstance(callee, torch.nn.Module):
            return self._module(session, callee)
        owner = getattr(callee, "__self__", None)
        if self._modules and isinstance(owner, torch.nn.Module) and self.is_programs_own(callee):
            return functools.partial(_offer, session, callee)
        if not self._functions:
            return callee
        if self.is_library_callee(callee):
            transformed = isinstance(callee, types.FunctionType) and is_transformed(callee)
            return functools.partial(self._function, session, _calling(callee) if transformed else callee)
        if _calls_what_it_gets(callee):
            return functools.partial(_hand_over, session, callee)
        return functools.partial(self._of_torch, session, callee) if _is_torchs(callee) else callee

    def operate(self, name: str, left: Any, right: Any) -> Any:
        """Evaluate an operator: as a boundary where code of a program evaluates it.  name: of the node of syntax."""
        written = OPERATORS[name]
        methods = methods_of(written, left, right) if self._functions else []
        session = current_session() if methods else None
        if session is None or not any(map(self.is_library_callee, methods)) or not holds_tensor((left, right)):
            return written.function(left, right)
        return _offer(session, written.call, left, right)

    def is_library_callee(self, callee: Any) -> bool:
        """Return whether a callee is a function, method or callable object from outside test files and libraries."""
        if isinstance(callee, (type, types.BuiltinFunctionType, types.MethodWrapperType)):
            return False
        function = underlying_function(callee)
        if function is None or function.__name__.startswith("assert"):  # an assertion compares, it is no program
            return False
        return (
            is_transformed(function)
            or _is_inherited_template(function, callee)
            or (self.is_programs_own(callee) and self._written_in(function) not in self._test_files)
        )

    def is_programs_own(self, callee: Any) -> bool:
        """Return whether a callee runs a function of a program, not of torch and its like, and comes back at once."""
        function = underlying_function(callee)
        if function is None:
            return False
        plain = inspect.unwrap(function)
        if not isinstance(plain, types.FunctionType) or _returns_later(plain):
            return False
        name = home_of(plain).partition(".")[0]
        path = plain.__code__.co_filename
        if name in BUILDING_BLOCKS or name.startswith(("pytest", "_pytest")) or path.startswith("<"):
            return False
        return path.startswith(_SITES) or not path.startswith(_STANDARD_LIBRARY)

    def _module(self, session: Any, module: torch.nn.Module) -> Any:
        """Return what stands for a module: one that inherits its `__call__` is met when torch calls it."""
        own = underlying_function(type(module).__call__)
        called_by_torch = own is None or (
            home_of(own).partition(".")[0] in BUILDING_BLOCKS and not _is_inherited_template(own, module)
        )
        if called_by_torch and self._modules:
            return module
        if called_by_torch:
            return functools.partial(self._function, session, module) if self.is_library_callee(module) else module
        if not self._modules and not self.is_library_callee(module):
            return module
        return functools.partial(_offer, session, types.MethodType(type(module).__call__, module))

    def _function(self, session: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a function of the library: as a boundary if it computes, and leaves modules to be boundaries."""
        owner = getattr(callee, "__self__", callee)
        given = (owner, args, kwargs)
        has_tensor = holds_tensor(given)
        if not has_tensor and not (owner is callee and is_plain((args, tuple(kwargs.values())))):
            return callee(*args, **kwargs)  # builds things (models, configurations), or reads them
        modules_first = self._modules_first and holds_module(given)
        function = underlying_function(callee)
        code = function.__code__ if function is not None else None
        if code in self._worth_judging or (has_tensor and not modules_first):
            return _offer(session, callee, *args, **kwargs)
        calls, outside = len(session.calls), session.outside.count
        result = callee(*args, **kwargs)
        # With modules and without one call of theirs, or with numbers alone: whether it computes shows afterwards.
        computed = session.outside.count > outside if has_tensor else is_tensors(result)
        if code is not None and computed and len(session.calls) == calls and not session.inside:
            self._worth_judging.add(code)
            session.learned = True
        return result

    def _of_torch(self, session: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of torch: a boundary where an object of a program answers it, by `__torch_function__`."""
        if not any(map(_answers_torch, args)):
            return callee(*args, **kwargs)
        return _offer(session, self._torch_calls.setdefault(callee, _calling(callee)), *args, **kwargs)

    def _builds(self, kind: type) -> bool:
        """Return whether a class is of a program, and its `__init__` is code of Python's."""
        if not self._functions or home_of(kind).partition(".")[0] in BUILDING_BLOCKS:
            return False
        start = getattr(kind, "__init__", None)
        return (
            isinstance(start, types.FunctionType)
            and self.is_programs_own(start)
            and self._written_in(start) not in self._test_files
        )

    def _construction(self, session: Any, kind: type, /, *args: Any, **kwargs: Any) -> Any:
        """Make an object: judged only in a body that calls nothing else which computes."""
        if session.judges_constructions:
            return _offer(session, self._constructors.setdefault(kind, _constructing(kind)), *args, **kwargs)
        calls, outside = len(session.calls), session.outside.count
        made = kind(*args, **kwargs)
        if session.outside.count > outside and len(session.calls) == calls and not session.inside:
            session.has_constructed = True
        return made

    def _written_in(self, function: types.FunctionType) -> str:
        plain = inspect.unwrap(function)
        return plain.__code__.co_filename if isinstance(plain, types.FunctionType) else ""


def underlying_function(callee: Any) -> types.FunctionType | None:
    """Return the Python function that a call of `callee` runs, None for what is not made of one."""
    for _ in range(DEPTH):
        if isinstance(callee, types.FunctionType):
            return callee
        callee = next(inner(callee) for kind, inner in _WRAPPERS if isinstance(callee, kind))
    return None


_WRAPPERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # what a callable of a kind calls; the first that fits
    (types.MethodType, lambda method: method.__func__),
    (functools.partial, lambda partial: partial.func),
    (torch.nn.Module, lambda module: type(module).forward),
    (object, lambda instance: getattr(type(instance), "__call__", None)),  # noqa: B004 - the function itself is wanted
)


def is_transformed(function: types.FunctionType) -> bool:
    """Return whether this is what torch.func or torch.vmap made of a function that is not torch's."""
    if not (function.__globals__.get("__name__") or "").startswith("torch._functorch"):
        return False
    inner = inspect.unwrap(function)
    root = home_of(inner).partition(".")[0]
    return isinstance(inner, types.FunctionType) and inner is not function and root not in BUILDING_BLOCKS


def _is_inherited_template(function: types.FunctionType, callee: Any) -> bool:
    """Return whether this is a method of torch's that an object of a program inherits: it calls the program's."""
    owner = getattr(callee, "__self__", callee)
    return home_of(function).startswith(_TEMPLATES) and home_of(type(owner)).partition(".")[0] not in BUILDING_BLOCKS


def _calling(function: Any) -> Callable[..., Any]:
    """Return a function that calls one of torch's: compilers capture that call, and not torch's own code."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    inner = inspect.unwrap(function)
    call.__name__ = inner.__name__
    call.__qualname__ = (
        f"torch.{inner.__name__}" if isinstance(inner, types.BuiltinFunctionType) else inner.__qualname__
    )
    return call


def _is_torchs(callee: Any) -> bool:
    """Return whether this is a function in torch's namespaces, which objects of a program may answer."""
    return isinstance(callee, types.BuiltinFunctionType | types.FunctionType) and (
        vars(torch).get(callee.__name__) is callee or home_of(callee).startswith("torch.nn.functional")
    )


def _answers_torch(value: object) -> bool:
    kind = type(value)
    return (
        not isinstance(value, torch.Tensor)
        and hasattr(kind, "__torch_function__")
        and home_of(kind).partition(".")[0] not in BUILDING_BLOCKS
    )


def _constructing(kind: type) -> Callable[..., Any]:
    """Return a function that makes an object of a class: compilers take functions."""

    def construct(*args: Any, **kwargs: Any) -> Any:
        return kind(*args, **kwargs)

    construct.__name__, construct.__qualname__ = kind.__name__, kind.__qualname__
    return construct


def _returns_later(function: types.FunctionType) -> bool:
    return bool(
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    )


def _calls_what_it_gets(callee: Any) -> bool:
    return isinstance(callee, types.FunctionType) and callee.__module__ in _CALLERS


def _hand_over(session: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of torch with functions of the program as boundaries."""

    def handed(value: Any) -> Any:
        if not isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            return value
        function = underlying_function(value)
        root = (getattr(function, "__module__", None) or "torch").partition(".")[0]
        return value if root in BUILDING_BLOCKS else session.compiled(value)

    return callee(*map(handed, args), **{name: handed(value) for name, value in kwargs.items()})


def _offer(session: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    return session.compiled(callee)(*args, **kwargs)
