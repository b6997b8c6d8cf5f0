"""Fake modes start, and run, without torch's own compiler: half a second of imports for three settings and two names.

`FakeTensorMode` imports `torch._dynamo` for three settings, and what makes fake tensors of real ones imports it for the
class of a name that no tensor of ours has, and for the name of a gradient.  Here that code of torch's runs with an
`import` that answers for these.  Once somebody has imported the compiler, or set the variables that the switches come
from, torch's own import is used.  Shape rules written in Python (`stack`, `cat`, a sum of integers) would import it to
be left alone by it, and are called as they are until then.  Whatever else fails is done again with it, so that a later
torch which needs more there costs time and nothing else.
"""

import builtins
import importlib
import os
import sys
from functools import cache
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import torch
import torch._refs.fft
import torch._refs.linalg
import torch._refs.nn.functional
import torch._refs.special
from torch._compile import _disable_dynamo  # what wraps a function that torch's compiler is to leave alone
from torch._guards import Source  # names an input; without one torch imports its compiler for the class of a constant
from torch._subclasses.fake_tensor import FakeTensorMode

_COMPILER = "torch._dynamo"
_SETTINGS = {
    "fake_tensor_cache_enabled": True,
    "fake_tensor_cache_crosscheck_enabled": False,
    "_custom_ops_profile": None,
}
_VARIABLES = ("TORCH_FAKE_TENSOR_DISPATCH_CACHE", "TORCH_FAKE_TENSOR_DISPATCH_CACHE_CROSSCHECK")


def start_fake_mode(mode: FakeTensorMode, **settings: Any) -> None:
    """Do what `FakeTensorMode.__init__` does."""
    try:
        if _COMPILER in sys.modules or any(name in os.environ for name in _VARIABLES):
            _start()(mode, **settings)
            return
        let_references_run()
        without_compiler(_start())(mode, **settings)
        converter: Any = mode.fake_tensor_converter
        converter.from_real_tensor = _named(MethodType(without_compiler(type(converter).from_real_tensor), converter))
        meta: Any = converter.meta_converter
        meta.meta_tensor = MethodType(without_compiler(type(meta).meta_tensor), meta)
    except Exception:  # torch wants more of its compiler, or of its own names, than is known here
        mode.__dict__.clear()
        FakeTensorMode.__init__(mode, **settings)


@cache
def _start() -> Any:
    """Return `FakeTensorMode.__init__` without the stack that it keeps for one error: a tenth of a short capture."""
    return _with_scope(FakeTensorMode.__init__, traceback=_NoStack)


class _NoStack:
    """`traceback` for the start of a mode."""

    extract_stack: Any = staticmethod(list)


def _named(from_real_tensor: Any) -> Any:
    """Return the method that makes fake tensors of real ones, which names those that nobody names."""

    def make(mode: FakeTensorMode, tensor: torch.Tensor, *args: Any, **settings: Any) -> Any:
        if settings.get("source") is None and _COMPILER not in sys.modules:
            settings = {"trace": False, **settings, "source": UnknownInput()}  # its log would import it too
        return from_real_tensor(mode, tensor, *args, **settings)

    return make


@cache
def let_references_run() -> None:
    """Let torch's reference implementations run without its compiler where nobody has imported that.

    Each is wrapped in a function that asks the compiler to leave it alone, and keeps what it is given on the function.
    If torch keeps it elsewhere, the import comes back and nothing else.
    """
    for module in (torch._refs, torch._refs.fft, torch._refs.linalg, torch._refs.nn.functional, torch._refs.special):
        for outer in list(vars(module).values()):
            wrapper = outer
            while isinstance(wrapper, FunctionType):
                _let_run(wrapper)
                wrapper = _variable(wrapper, "fn") or getattr(wrapper, "__wrapped__", None)


def let_dispatch_run(mode: type) -> None:
    """Let the calls that a class of modes sees reach it without torch's compiler, which is to leave them alone.

    torch wraps the method of every such class, and its compiler would be imported with the first call.
    """
    method = vars(mode).get("__torch_dispatch__")
    if isinstance(method, FunctionType):
        _let_run(method)


def _let_run(wrapper: FunctionType) -> None:
    inner = _variable(wrapper, "fn")  # `__wrapped__` may be another: a reference of two operands names its primitive
    if wrapper.__code__ in _WRAPPERS and isinstance(inner, FunctionType) and _KEPT not in vars(inner):
        setattr(inner, _KEPT, _left_alone(inner, _variable(wrapper, "recursive") is not False))


def _variable(function: FunctionType, name: str) -> Any:
    """Return what a function has bound a variable of the functions around it to, None if there is none."""
    variables = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return next((cell.cell_contents for variable, cell in variables if variable == name), None)


_WRAPPERS = tuple(each for each in _disable_dynamo.__code__.co_consts if isinstance(each, CodeType))


_KEPT = "__dynamo_disable"


def _left_alone(function: FunctionType, recursive: bool) -> Any:
    """Return a function that the compiler, once there is one, leaves alone as torch wants it to."""

    def call(*args: Any, **kwargs: Any) -> Any:
        disable = getattr(sys.modules.get(_COMPILER), "disable", None)
        if disable is None:  # nobody has imported it, or not to its end
            return function(*args, **kwargs)
        setattr(function, _KEPT, disable(function, recursive, wrapping=False))
        return getattr(function, _KEPT)(*args, **kwargs)

    return call


class _Torch:
    """`torch` for some functions: its compiler is there with a few settings until somebody imports it."""

    def __getattr__(self, name: str) -> Any:
        return _COMPILER_ALONE if name == "_dynamo" and _COMPILER not in sys.modules else getattr(torch, name)


class _NoSource:
    """In place of a class of names of inputs: nothing is of this class."""


class _PartOfInput(Source):
    """The name of what belongs to an input: its gradient, or what it is a view of."""

    def __init__(self, owner: Source, member: str) -> None:
        self._text = f"{owner.name}.{member}"

    @property
    def _name_template(self) -> str:
        return self._text


class _NamesOfInputs:
    """The compiler's names of inputs for some functions: two of them are known here."""

    RandomValueSource = _NoSource
    AttrSource = _PartOfInput

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(_NAMES), name)


_NAMES = f"{_COMPILER}.source"
_COMPILER_ALONE = SimpleNamespace(config=SimpleNamespace(**_SETTINGS), source=_NamesOfInputs())
_STAND_IN = _Torch()
_MODULES = {
    f"{_COMPILER}.config": _STAND_IN,
    _NAMES: _COMPILER_ALONE.source,
    # a checker of the compiler's guards, which stands on the compiler
    "torch.fx.experimental.validator": SimpleNamespace(translation_validation_enabled=lambda: False),
}


def _answer(name: str, scope: Any = None, inner: Any = None, listed: Any = (), level: int = 0) -> Any:
    """Do what `import` does; for the compiler, where nobody has imported it, with what is known here."""
    if _COMPILER not in sys.modules and name in _MODULES:
        return _MODULES[name]
    found = builtins.__import__(name, scope, inner, listed, level)
    return _STAND_IN if found is torch and not listed and _COMPILER not in sys.modules else found


@cache
def without_compiler(code: Any) -> Any:
    """Return a function of torch's that does not import its compiler for a setting."""
    return _with_scope(code, torch=_STAND_IN, __builtins__={**vars(builtins), "__import__": _answer})


def _with_scope(code: Any, **names: Any) -> Any:
    """Return a function that finds other objects under these global names."""
    alone = FunctionType(
        code.__code__, {**code.__globals__, **names}, code.__name__, code.__defaults__, code.__closure__
    )
    alone.__kwdefaults__ = code.__kwdefaults__
    return alone


class UnknownInput(Source):
    """What torch wants to know of a tensor whose origin does not matter, for none of its sizes is a symbol: a name."""

    @property
    def _name_template(self) -> str:
        return "unknown"


def in_legacy_vmap(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a batch of torch's old vmap, which hides one dimension."""
    found: bool = torch._C._functorch.is_legacy_batchedtensor(tensor)
    return found


def make_fake(mode: FakeTensorMode, tensor: torch.Tensor) -> torch.Tensor:
    """Return the fake twin of an input, with static sizes; twins share storage as their originals do."""
    if torch.is_inference_mode_enabled() and not tensor.is_inference():
        with torch.inference_mode(False):
            return mode.from_tensor(tensor, static_shapes=True, source=UnknownInput(), trace=False)
    base = tensor._base
    if tensor.is_complex() and base is not None and not base.is_complex() and base.shape[-1:] != (2,):
        return _fake_complex_view(mode, tensor)
    return mode.from_tensor(tensor, static_shapes=True, source=UnknownInput(), trace=False)


def forget_originals(mode: FakeTensorMode) -> None:
    """Drop a mode's weak references to the tensors that it made twins of: `swap_tensors` refuses what has some.

    If torch keeps them elsewhere, it refuses the inputs of compiled code, which the tests of that see.
    """
    mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()


def _fake_complex_view(mode: FakeTensorMode, tensor: torch.Tensor) -> torch.Tensor:
    """Return the fake twin of complex numbers in the memory of real ones, where torch views the base as it is."""
    with torch.set_grad_enabled(not tensor.is_leaf):
        pairs = torch.view_as_real(tensor.conj() if tensor.is_conj() else tensor)
        with mode:
            fake = torch.view_as_complex(make_fake(mode, pairs))
            fake = fake.conj() if tensor.is_conj() else fake
    return fake.requires_grad_() if tensor.is_leaf and tensor.requires_grad else fake
