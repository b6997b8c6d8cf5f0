"""Three ways to check guards give one answer: the generated Python, the table in C, the meaning of each kind."""

import contextlib
import gc
import sys
import threading
import types
import weakref
from collections.abc import Callable
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.options import Options
from plumbline.compiler.frontend.guards.generated_function import MISS
from plumbline.compiler.frontend.guards.guard_evaluator import evaluator_type, native_evaluator
from plumbline.compiler.frontend.guards.guard_rules import guard_words
from plumbline.compiler.frontend.guards.guard_table import guard_table
from plumbline.compiler.frontend.guards.steps import StepOp
from plumbline.compiler.values.guard import ABSENT, PLAIN, Guard, GuardKind, Member
from plumbline.compiler.values.source import Attribute, Injected, Item, Source
from support import guard_frames as frames
from support.guard_ways import PARAMETERS, body, generated, meaning, native, verdict

X, Y = frames.argument(0), frames.argument(1)
pytestmark = pytest.mark.cc


@pytest.fixture(autouse=True, scope="module")
def _needs_the_evaluator() -> None:
    if evaluator_type(Options()) is None:
        pytest.skip("no C compiler or no Python headers: guards are checked in Python")


@st.composite
def _guarded_frames(draw: st.DrawFn) -> tuple[list[object], tuple[Guard, ...], list[tuple[Source, object]]]:
    args = [draw(frames.values), draw(frames.values)]
    found = frames.reachable(args[0], X) + frames.reachable(args[1], Y)
    offered = frames.relations(found)
    for source, value in found:
        offered += frames.guards_of(value, source)
    return args, tuple(draw(st.lists(st.sampled_from(offered), min_size=1, max_size=12))), found


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_three_ways_agree(data: st.DataObject) -> None:
    args, guards, found = data.draw(_guarded_frames())
    runs = [generated(guards), meaning(guards), native(guards)]
    assert [verdict(run, *args) for run in runs] == ["hit"] * 3, [guard_words(guard) for guard in guards]
    for _ in range(data.draw(st.integers(1, 4))):
        frames.change(data.draw, data.draw(st.sampled_from(found))[1])
        other = [data.draw(frames.values) if data.draw(st.integers(0, 4)) == 0 else arg for arg in args]
        grad, inference = data.draw(st.booleans()), data.draw(st.integers(0, 4)) == 0
        with torch.set_grad_enabled(grad), torch.inference_mode(inference):
            verdicts = [verdict(run, *other) for run in runs]
        assert len(set(verdicts)) == 1, (verdicts, [guard_words(guard) for guard in guards])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(frames.TENSORS), st.sampled_from(frames.TENSORS), st.sampled_from([None, 0]))
def test_tensors_against_tensors(
    known: Callable[[], torch.Tensor], met: Callable[[], torch.Tensor], free: int | None
) -> None:
    guard = (Guard(X, GuardKind.TENSOR, frames.facts_of(known(), free)),)
    value = met()
    assert len({verdict(run, value, None) for run in (generated(guard), meaning(guard), native(guard))}) == 1
    assert verdict(native(guard), known(), None) == "hit"


def test_ordinary_tensors_are_checked_without_python() -> None:
    for make in frames.TENSORS:
        value = make()
        facts = frames.facts_of(value)
        steps = guard_table((Guard(X, GuardKind.TENSOR, facts),), PARAMETERS).steps
        assert [step.op for step in steps] == [StepOp.PYTHON if any(facts.bits) else StepOp.TENSOR]


def test_tensor_subclasses_are_another_type() -> None:
    class Sub(torch.Tensor):
        pass

    guard = (Guard(X, GuardKind.TENSOR, frames.facts_of(torch.zeros(2))),)
    assert native(guard)(torch.zeros(2).as_subclass(Sub), None) is MISS
    assert native(guard)(torch.nn.Parameter(torch.zeros(2)), None) is MISS


def test_sparse_and_quantized_tensors_miss() -> None:
    guard = (Guard(X, GuardKind.TENSOR, frames.facts_of(torch.zeros(2, 2))),)
    for value in (torch.eye(2).to_sparse(), torch.quantize_per_tensor(torch.zeros(2, 2), 1.0, 0, torch.qint8)):
        assert verdict(native(guard), value, None) == verdict(generated(guard), value, None) == "miss"


def test_what_is_fetched_is_passed_on() -> None:
    module = torch.nn.Linear(2, 3)
    parameters = Item(Attribute(X, "__dict__"), "_parameters")
    guards = (
        Guard(X, GuardKind.TYPE, torch.nn.Linear),
        Guard(Item(parameters, "bias"), GuardKind.TYPE, torch.nn.Parameter),
        Guard(Item(parameters, "weight"), GuardKind.TYPE, torch.nn.Parameter),
    )
    table = guard_table(guards, PARAMETERS)
    passed = (1, table.places[Item(parameters, "weight")], table.places[Item(parameters, "bias")])
    got = native(guards, passed)(module, 5)
    assert isinstance(got, tuple)
    assert got[0] == 5
    assert got[1] is module.weight
    assert got[2] is module.bias


def test_shared_prefixes_are_walked_once() -> None:
    parameters = Item(Attribute(X, "__dict__"), "_parameters")
    guards = tuple(Guard(Item(parameters, name), GuardKind.TYPE, torch.nn.Parameter) for name in ("weight", "bias"))
    ops = [step.op for step in guard_table(guards, PARAMETERS).steps]
    assert ops == [StepOp.ATTRIBUTE, StepOp.ITEM, StepOp.ITEM, StepOp.TYPE, StepOp.ITEM, StepOp.TYPE]


def test_a_namespace_is_read_directly_only_where_no_class_says_otherwise() -> None:
    class Odd:
        @property
        def __dict__(self) -> dict[str, object]:
            return {"a": 1}

    class Nosy:
        def __getattribute__(self, name: str) -> object:
            return {"a": 1} if name == "__dict__" else object.__getattribute__(self, name)

    for kind in (Odd, Nosy, types.FunctionType, frames.Chatty, torch.nn.Linear):
        place = Attribute(X, "__dict__")
        guards = (Guard(X, GuardKind.TYPE, kind), Guard(place, GuardKind.TYPE, dict))
        direct = StepOp.NAMESPACE in {step.op for step in guard_table(guards, PARAMETERS).steps}
        assert direct is (kind in (frames.Chatty, torch.nn.Linear))
    odd = (Guard(X, GuardKind.TYPE, Odd), Guard(Item(Attribute(X, "__dict__"), "a"), GuardKind.EQUALS, 1))
    assert native(odd)(Odd(), None) == ()


def test_errors_that_are_no_misses_reach_the_caller() -> None:
    class MineError(Exception):
        pass

    class Broken:
        def __len__(self) -> int:
            raise MineError

        def __bool__(self) -> bool:
            raise KeyboardInterrupt

    guards = (Guard(X, GuardKind.LENGTH, 1),)
    assert [verdict(run, Broken(), None) for run in (generated(guards), meaning(guards), native(guards))] == [
        "MineError"
    ] * 3
    with pytest.raises(KeyboardInterrupt):
        native((Guard(X, GuardKind.TRUTH, True),))(Broken(), None)
    with pytest.raises(ZeroDivisionError):
        native((), (), lambda: 1 // 0)(None, None)
    with pytest.raises(TypeError):
        native(())(1)
    with pytest.raises(TypeError):
        native(())(1, _l1=2)


def test_a_check_may_drop_what_it_was_reached_through() -> None:
    holder: dict[str, object] = {}

    class Dropper:
        def __len__(self) -> int:
            holder.clear()
            gc.collect()
            return 1

    holder["a"] = [Dropper(), object()]
    inside = Item(Injected(holder), "a")
    guards = (
        Guard(Item(inside, 1), GuardKind.TYPE, object),
        Guard(Item(inside, 0), GuardKind.LENGTH, 1),
        Guard(inside, GuardKind.LENGTH, 2),
    )
    run = native(guards)
    assert run(None, None) == ()
    assert run(None, None) is MISS


def _references(objects: list[object]) -> list[int]:
    """Return reference counts, without those of small numbers and names, which the whole process uses."""
    return [sys.getrefcount(thing) for thing in objects if not isinstance(thing, (int, str, type, type(None)))]


def _everything() -> tuple[torch.nn.Module, tuple[Guard, ...], list[object]]:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
    module.__dict__["kept"] = [{"a": 1.5, "b": (2, "c")}, frames.first, types.CellType(7), {1, 2}]
    found = frames.reachable(module, X)
    guards = [guard for source, value in found for guard in frames.guards_of(value, source)] + frames.relations(found)
    return module, tuple(guards), [value for _, value in found]


@pytest.mark.parametrize("ending", ["hit", "miss", "error", "raise"])
def test_no_reference_is_kept_or_lost(ending: str) -> None:
    module, guards, reached = _everything()
    if ending == "miss":
        guards += (Guard(Y, GuardKind.TYPE, str),)
    elif ending == "error":
        guards += (Guard(Item(Y, "no"), GuardKind.TYPE, str),)
    elif ending == "raise":
        guards += (Guard(Attribute(Y, "boom"), GuardKind.TYPE, str),)

    class Loud:
        @property
        def boom(self) -> int:
            raise NameError

    run, y = native(guards, (0, 1), lambda *_: None), Loud()
    expected = {"hit": "hit", "miss": "miss", "error": "miss", "raise": "NameError"}[ending]
    assert verdict(run, module, y) == expected
    watched = [run, module, y, MISS, *reached]
    before = _references(watched)
    for _ in range(500):
        verdict(run, module, y)
    assert _references(watched) == before


def test_memory_does_not_grow() -> None:
    module, guards, _ = _everything()
    run = native(guards, (0, 1), lambda *_: None)
    for _ in range(50):
        run(module, None)
        native(guards)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(300):
        run(module, None)
        native(guards)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300


def test_cycles_through_an_evaluator_are_collected() -> None:
    class Owner:
        pass

    owner = Owner()
    owner.run = native((Guard(X, GuardKind.IDENTITY, owner),), (), lambda held=owner: held)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_guarded_objects_live_as_long_as_the_evaluator() -> None:
    known = frames.Plain()
    gone = weakref.ref(known)
    run = native((Guard(X, GuardKind.IDENTITY, known),))
    del known
    gc.collect()
    assert gone() is not None  # so that no other object can get its address and pass for it
    del run
    gc.collect()
    assert gone() is None


def test_threads_share_an_evaluator() -> None:
    module, guards, _ = _everything()
    run = native(guards, (0,), lambda _: sum(range(50)))
    wrong: list[object] = []

    def work() -> None:
        wrong.extend(result for result in (run(module, None) for _ in range(300)) if result != 1225)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_slots_and_others() -> None:
    many = [object() for _ in range(300)]
    sources = tuple(Item(X, place) for place in range(300))
    guards = (
        *(Guard(source, GuardKind.TYPE, object) for source in sources),
        Guard(None, GuardKind.DISTINCT, "", None, sources),
    )
    run = native(guards, tuple(range(2, 302)))
    assert run(many, None) == tuple(many)
    assert run([*many[:-1], many[0]], None) is MISS
    tensors = [torch.zeros(1) for _ in range(20)]
    pattern = Guard(None, GuardKind.STORAGES, tuple(range(20)), None, sources[:20])
    assert native((pattern,))(tensors, None) == ()
    assert native((pattern,))([*tensors[:-1], tensors[0]], None) is MISS


def test_a_body_without_a_compiler_runs_through_the_generated_check() -> None:
    options = Options(compiler="no-such-compiler")
    table = guard_table((), PARAMETERS)
    assert native_evaluator(table, (), body, MISS, options) is None


def test_a_class_is_looked_at_again_after_every_change() -> None:
    class Upper:
        """Has a method and plain data."""

        data: object = None

        def method(self) -> None:
            """Be looked up."""

    class Lower(Upper):
        """Inherits them."""

    class Describes:
        """A class that becomes one of descriptors."""

    Upper.data = Describes()
    method, place = Upper.method, Injected(Lower)
    whole = native((Guard(place, GuardKind.MEMBER, Member("method", None, method)),))
    behind = native((Guard(place, GuardKind.MEMBER, Member("method", Lower, method)),))
    plain = native((Guard(place, GuardKind.MEMBER, Member("data", None, PLAIN)),))
    absent = native((Guard(place, GuardKind.MEMBER, Member("extra", None, ABSENT)),))

    def verdicts() -> list[str]:
        return [verdict(run, None, None) for run in (whole, behind, plain, absent) for _ in range(2)][::2]

    def with_changes(owner: type, **changes: object) -> list[str]:
        with contextlib.ExitStack() as stack:
            for name, value in changes.items():
                stack.enter_context(mock.patch.object(owner, name, value, create=True))
            return verdicts()

    assert verdicts() == ["hit"] * 4
    assert with_changes(Lower, method=len) == ["miss", "hit", "hit", "hit"]
    assert verdicts() == ["hit"] * 4
    assert with_changes(Upper, method=len, extra=1) == ["miss", "miss", "hit", "miss"]
    assert verdicts() == ["hit"] * 4
    assert with_changes(Describes, __get__=len) == ["hit", "hit", "miss", "hit"]
    assert verdicts() == ["hit"] * 4
    Lower.__bases__ = (type("Other", (), {"method": method, "extra": 1}),)
    assert verdicts() == ["hit", "hit", "miss", "miss"]
