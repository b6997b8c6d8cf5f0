"""An import inside a function is asked again at every call: a stale module was used, a replaced import not called."""

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import plumbline

NAME, PACKAGE = "plumbline_test_module", "plumbline_test_package"


def made(name: str, **names: object) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(names)
    return module


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = made(f"{PACKAGE}.inner", SCALE=3.0)
    for module in (made(NAME, SCALE=2.0), made(PACKAGE, __path__=[], inner=inner), inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def whole(x):
    import plumbline_test_module

    return x * plumbline_test_module.SCALE


def name_of(x):
    from plumbline_test_module import SCALE

    return x * SCALE


def within_try(x):
    try:
        import plumbline_test_module
    except ImportError as error:
        return x, type(error), str(error), error.name
    return x * plumbline_test_module.SCALE


def missing_name(x):
    try:
        from plumbline_test_module import NOTHING
    except ImportError as error:
        return x + 1, error.args, error.name, error.path
    return x * NOTHING


def parts(x):
    import plumbline_test_package.inner
    import plumbline_test_package.inner as other
    from plumbline_test_package import inner
    from plumbline_test_package.inner import SCALE

    return x * plumbline_test_package.inner.SCALE + other.SCALE + inner.SCALE + SCALE


def replaced_within(x):
    sys.modules["plumbline_test_late"] = made("plumbline_test_late", SCALE=7.0)
    import plumbline_test_late

    y = x * plumbline_test_late.SCALE
    del sys.modules["plumbline_test_late"]
    try:
        import plumbline_test_late
    except ImportError as error:
        return y, str(error)
    return y


class OtherScale:
    SCALE = 9.0


CHANGES: dict[str, Callable[[], object]] = {
    "an attribute": lambda: setattr(sys.modules[NAME], "SCALE", 5.0),
    "a module": lambda: sys.modules.update({NAME: made(NAME, SCALE=4.0, NOTHING=6.0)}),
    "a submodule": lambda: sys.modules.update({f"{PACKAGE}.inner": made(f"{PACKAGE}.inner", SCALE=8.0)}),
    "a package": lambda: sys.modules.update({PACKAGE: made(PACKAGE, __path__=[])}),
    "None": lambda: sys.modules.update({NAME: None}),
    "nothing": lambda: sys.modules.pop(NAME),
    "an object": lambda: sys.modules.update({NAME: OtherScale()}),
}
PROGRAMS = (whole, name_of, within_try, missing_name, parts, replaced_within)


def outcome(function: Callable[[Any], object], x: torch.Tensor) -> str:
    try:
        return repr(function(x))
    except (ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_what_is_imported_may_change(function: Callable[[Any], object], change: str) -> None:
    compiled, x = plumbline.compile(function), torch.ones(2)
    assert outcome(compiled, x) == outcome(function, x)
    CHANGES[change]()
    assert [outcome(compiled, x) for _ in range(2)] == [outcome(function, x)] * 2


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_an_import_by_ones_own_function(function: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, x, asked, plain = plumbline.compile(function), torch.ones(2), [], builtins.__import__
    compiled(x)

    def noting(name: str, *rest: Any) -> object:
        asked.append(name) if name.startswith("plumbline_test") else None
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", noting)
    expected = outcome(function, x), list(asked)
    asked.clear()
    assert (outcome(compiled, x), asked) == expected


def counting(kind: type[types.ModuleType] = types.ModuleType) -> Any:
    module = kind("plumbline_test_counting")
    vars(module)["asked"] = 0
    return module


class WithProperty(types.ModuleType):
    @property
    def value(self) -> float:
        self.asked += 1
        return float(self.asked)


class WithGetattr(types.ModuleType):
    def __getattr__(self, name: str) -> float:
        if name != "value":
            raise AttributeError(name)
        self.asked += 1
        if self.asked > 2:
            self.value = 100.0
        return float(self.asked)


def with_own_getattr() -> Any:
    module = counting()

    def answer(name: str) -> float:
        if name != "value":
            raise AttributeError(name)
        module.asked += 1
        return float(module.asked)

    module.__getattr__ = answer
    return module


MODULES: dict[str, Callable[[], Any]] = {
    "property": lambda: counting(WithProperty),
    "getattr of the class": lambda: counting(WithGetattr),
    "getattr of the module": with_own_getattr,
}


def imported(x):
    from plumbline_test_counting import value

    return x * value


def attribute(x):
    return x * sys.modules["plumbline_test_counting"].value


def asked_for(x):
    module = sys.modules["plumbline_test_counting"]
    return x * getattr(module, "absent", 3.0) + hasattr(module, "value")


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("function", [imported, attribute, asked_for], ids=lambda one: one.__name__)
def test_code_of_a_module_runs_once_for_each_reading(
    function: Callable[[Any], object], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for one in (function, plumbline.compile(function)):
        module = MODULES[kind]()
        monkeypatch.setitem(sys.modules, "plumbline_test_counting", module)
        told.append([(outcome(one, torch.ones(2)), module.asked) for _ in range(4)])
    assert told[0] == told[1]
