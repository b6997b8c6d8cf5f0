"""One test becomes several items: one per compiler and backend, side by side."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import _pytest.python
import pytest
import torch
from _pytest.unittest import TestCaseFunction
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from plumbline.compiler.base.errors import UserError

from .limits.budget import LIMITS, check_budget
from .plugin_options import read_aspects
from .seeding import seed_test
from .variants import Variant, unknown_name

# pytest renamed it in 9.1; the fields stayed.
CallSpec: Any = getattr(_pytest.python, "CallSpec", None) or _pytest.python.CallSpec2

Body = Callable[[], None]


class JudgedItem:
    """What a judged item knows; mixed into the two kinds of item below.

    variant: under which it runs.  test_id: node id without the backend, the same for all variants.
    hooks: called around set-up and body by the run (see `judged_run`).
    """

    variant: Variant
    test_id: str
    stash: pytest.Stash
    around_setup: Callable[[Any, Body], None]
    around_body: Callable[[Any, Body], None]


class JudgedFunction(JudgedItem, pytest.Function):
    """A test function or method under one variant."""

    def _traceback_filter(self, excinfo: Any) -> Any:
        return _without_our_frames(super()._traceback_filter(excinfo))

    def setup(self) -> None:
        """Set up the fixtures, seeded."""
        self.around_setup(self, super().setup)

    def runtest(self) -> None:
        """Run the test body, judged."""
        self.around_body(self, super().runtest)


class JudgedTestCase(JudgedItem, TestCaseFunction):
    """A method of a unittest.TestCase under one variant."""

    silent = False  # while re-run to find the stage: sub-tests are not reported again

    def _traceback_filter(self, excinfo: Any) -> Any:
        return _without_our_frames(super()._traceback_filter(excinfo))

    def setup(self) -> None:
        """Set up the fixtures, seeded."""
        self.around_setup(self, super().setup)

    def _getinstance(self) -> Any:
        # unittest looks its method up by name, and the name of this item has the variant in brackets.
        assert self.parent is not None
        return self.parent.obj(self.originalname)  # type: ignore[attr-defined]  # a UnitTestCase, checked by pytest

    def runtest(self) -> None:
        """Run setUp, the method (judged) and tearDown."""
        _ = self.location  # pytest keeps it once asked, and would ask for it under the borrowed name
        name, self.name, method = self.name, self.originalname, self.obj
        if not hasattr(method, "__wrapped_for_judging__"):
            self.obj = _judged_method(self, method)
        seed_test(self.test_id)  # for setUp, which runs before the method
        try:
            super().runtest()
        finally:
            self.name = name

    def addSubTest(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - unittest's name
        """Report a sub-test, unless this is a silent re-run."""
        if not self.silent:
            super().addSubTest(*args, **kwargs)


def _without_our_frames(traceback: Any) -> Any:
    """Return a test's traceback without the harness between the test and the code that failed."""
    theirs = traceback.filter(lambda entry: not str(entry.frame.f_globals.get("__name__", "")).startswith("plumbline."))
    return theirs or traceback


def _judged_method(item: JudgedTestCase, method: Any) -> Any:
    # Only the method is judged, not setUp and tearDown around it.
    def judged(*args: Any, **kwargs: Any) -> None:
        item.around_body(item, lambda: method(*args, **kwargs))

    # unittest reads its own marks (expectedFailure, skip) off the method.
    judged.__dict__.update(getattr(method, "__dict__", {}))
    judged.__name__, judged.__doc__ = item.originalname, method.__doc__
    judged.__wrapped_for_judging__ = True  # type: ignore[attr-defined]  # our mark on our own function
    return judged


def multiply(
    items: Iterable[pytest.Item], variants_of: Callable[[pytest.Item], list[Variant]], equip: Callable[[Any], None]
) -> list[pytest.Item]:
    """Return the items with each test function replaced by its variants, adjacent and in order.

    variants_of: under which a test runs.  equip: gives a new item its hooks.  Coroutine tests and items of other
    plugins stay as they are.
    """
    result: list[pytest.Item] = []
    for item in items:
        kind = _JUDGED_KINDS.get(type(item))
        if kind is None or _is_coroutine(item):
            result.append(item)
            continue
        for variant in variants_of(item):
            clone = _variant_of(item, kind, variant)
            equip(clone)
            item.ihook.pytest_itemcollected(item=clone)
            result.append(clone)
    return result


_JUDGED_KINDS: dict[type, Any] = {pytest.Function: JudgedFunction, TestCaseFunction: JudgedTestCase}


def _is_coroutine(item: Any) -> bool:
    function = inspect.unwrap(item.obj)
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _variant_of(item: Any, kind: Any, variant: Variant) -> Any:
    spec = getattr(item, "callspec", None) or CallSpec()
    spec = dataclasses.replace(spec, _idlist=[*spec._idlist, variant.label])
    clone = kind.from_parent(
        item.parent,
        name=f"{item.originalname}[{spec.id}]",
        originalname=item.originalname,
        callspec=spec,
        fixtureinfo=item._fixtureinfo,
        keywords={spec.id: True, variant.label: True},
    )
    clone.own_markers[:] = item.own_markers
    clone.variant = variant
    clone.test_id = item.nodeid
    return clone


def side_by_side(items: list[pytest.Item], order: tuple[Variant, ...]) -> None:
    """Bring the variants of each test together again, where a plugin (pytest-randomly) has shuffled them; in place.

    order: of the variants within a test.  A test stands where its first variant stood.
    """
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(item.test_id if isinstance(item, JudgedItem) else id(item), []).append(item)
    if all(len(group) == 1 for group in groups.values()):
        return
    for group in groups.values():
        group.sort(key=lambda item: order.index(item.variant) if isinstance(item, JudgedItem) else 0)
    items[:] = [item for group in groups.values() for item in group]


def check_markers(items: Iterable[pytest.Item]) -> None:
    """Raise UserError for a marker of ours with unknown arguments."""
    for item in items:
        for mark in item.iter_markers("compile_ignore"):
            read_aspects(mark.args, where=item.nodeid)
        for name in ("compile_xfail", "compile_skip"):
            for mark in item.iter_markers(name):
                _check_choice(item, mark)
        for mark in item.iter_markers("compile_budget"):
            _check_names(item, mark, {*LIMITS, *_WHERE})
            check_budget(item, mark)


def _check_choice(item: pytest.Item, mark: pytest.Mark) -> None:
    _check_names(item, mark, {"reason", *_WHERE} | ({"strict"} if mark.name == "compile_xfail" else set()))
    if len(mark.args) > 1 or (mark.args and not isinstance(mark.args[0], str)):
        hint = f"write @pytest.mark.{mark.name}('why', backend='inductor')"
        raise UserError(f"{mark.name} takes a reason and names", where=item.nodeid, hint=hint)


_WHERE = ("backend", "compiler", "torch")


def _check_names(item: pytest.Item, mark: pytest.Mark, allowed: set[str]) -> None:
    for unknown in mark.kwargs.keys() - allowed:
        hint = "see pytest --markers"
        raise unknown_name(f"argument of {mark.name}", unknown, tuple(sorted(allowed)), where=item.nodeid, hint=hint)
    try:
        SpecifierSet(str(mark.kwargs.get("torch", "")))
    except InvalidSpecifier as error:
        hint = f'write @pytest.mark.{mark.name}(torch="<2.16")'
        what = f"{mark.name} names no versions of torch"
        raise UserError(what, where=item.nodeid, why=str(error), hint=hint) from None


def applies(mark: pytest.Mark, variant: Variant) -> bool:
    """Return whether a mark means this variant and this version of torch; names or lists of names."""
    if not SpecifierSet(str(mark.kwargs.get("torch", ""))).contains(torch.__version__, prereleases=True):
        return False
    return all(
        choice is None or name == choice or (isinstance(choice, (list, tuple, set)) and name in choice)
        for choice, name in (
            (mark.kwargs.get("backend"), variant.backend),
            (mark.kwargs.get("compiler"), variant.compiler),
        )
    )


def reason_of(mark: pytest.Mark) -> str:
    """Return the reason a mark gives, empty when it gives none."""
    return str(mark.kwargs.get("reason") or (mark.args[0] if mark.args else ""))
