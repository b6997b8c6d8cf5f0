"""One random program on trial: played in plain Python and compiled, each in a module of its own, and compared.

Every call is judged by what it returns or raises, what it prints and warns of, the state of the program and of the
random generators after it, and the modes of torch.  An error of the compiler's own is a failure even where it was
handled and the answer is right.
"""

import contextlib
import functools
import gc
import hashlib
import io
import random
import re
import signal
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch

from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.controls import disable, graph_break
from plumbline.compiler.pipeline import compile_callable, make_family
from plumbline.oracle.harness.compilers import CompileRequest, CompilerUnderTest, CompileStatistics
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import FuzzSignature, TrialResult
from ..generated_source import functions_of
from .observation import PROGRAM_MODULE, Observer, TooLarge, difference, plain_text, without_addresses
from .python_program import CALL, PythonProgram

PLAIN_SECONDS = 1.0
PLAIN_AGAIN = 12
"""Plays in plain Python that may show that a program differs from itself, where the compiled one differs from it."""
COMPILED_SECONDS = 60.0
TOLERANCE = 1e-4
"""How far numbers of kernels and traced graphs may be from eager's; the eager backend has to be exact."""

ASPECTS = ("result", "printed text", "warnings", "random numbers", "modes", "state")
STACK_FULL = (("the stack was full",),)
"""What is observed of a call that ended so, in place of the aspects."""

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class TooSlow(BaseException):
    """The time of a play is over; not an Exception, so that no handler of the program takes it."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What one call left behind: a description by aspect, and its statement."""

    statement: str
    observed: tuple[Any, ...]


def ends_in_plain_python(program: PythonProgram) -> bool:
    """Return whether a program is one, and ends in plain Python with the time, memory and stack that trials give."""
    try:
        records = play(program, _plain, _plain, PLAIN_SECONDS)
    except (TooSlow, TooLarge):
        return False
    words = ("maximum recursion depth", "RecursionError", *STACK_FULL[0])
    return records is not None and not any(word in str(one.observed) for one in records for word in words)


def try_python_program(
    program: PythonProgram, compiler: CompilerUnderTest, backend: str, *, exact_ends: bool = False
) -> TrialResult:
    """Play a program in plain Python and compiled; the verdict names the first difference.

    exact_ends: also one that docs/limits.md names, where only a traceback or a cycle holds what ends earlier.
    """
    try:
        expected = play(program, _plain, _plain, PLAIN_SECONDS)
    except TooSlow:
        return _vacuous("does not end in plain Python")
    except TooLarge:
        return _vacuous("holds too much in plain Python")
    if expected is None:
        return _vacuous("is not a program in plain Python")
    compiler.reset()
    candidates: list[Any] = []

    def wrap(step: Callable[..., Any]) -> Callable[..., Any]:
        candidate = compiler.compile(step, backend, CompileRequest(), rng="eager")
        candidates.append(candidate)
        return _function_around(step, candidate)

    try:
        actual = play(program, wrap, functools.partial(_compiled_inside, compiler.name, backend), COMPILED_SECONDS)
    except TooSlow:
        late = Finding(VerdictKind.CRASH, "hang", "step", f"does not end within {COMPILED_SECONDS:g} s")
        return _result(program, late, "", candidates)
    except TooLarge:
        grown = Finding(VerdictKind.WRONG, "state", "step", "holds far more than in plain Python")
        return _result(program, grown, "", candidates)
    finally:
        compiler.reset()
    tolerance = 0.0 if backend == "eager" else TOLERANCE
    finding, detail = _first_difference(expected, actual or [], tolerance)
    if finding is not None and _differs_from_itself(program, expected, finding, tolerance):
        return _vacuous("differs from itself in plain Python")
    may_end_earlier = finding is not None and finding.aspect == "state" and not exact_ends
    if may_end_earlier and _only_ends_earlier(program, expected, actual or [], tolerance):
        finding = None
    if finding is None:
        finding, detail = _own_error(candidates)
    return _result(program, finding, detail, candidates)


def _differs_from_itself(
    program: PythonProgram, expected: list[CallRecord], finding: Finding, tolerance: float
) -> bool:
    """Return whether plain Python, run once more, departs at the same place: by an address that it took apart, say."""
    for turn in range(PLAIN_AGAIN):
        ballast = [_ballast() for _ in range(16 * (1 + turn) ** 2)]  # what the program makes then lies somewhere else
        try:
            again = play(program, _plain, _plain, 2 * PLAIN_SECONDS)
        except (TooSlow, TooLarge):
            return True
        del ballast
        found, _ = _first_difference(expected, again or [], tolerance)
        if found is not None and _place(found) == _place(finding):
            return True
    return False


def _only_ends_earlier(
    program: PythonProgram, expected: list[CallRecord], actual: list[CallRecord], tolerance: float
) -> bool:
    """Return whether each call leaves what it leaves in plain Python, or there once tracebacks and cycles let go."""
    try:
        gc.freeze()  # only what the play makes is looked at
        collected = play(program, _plain, _plain, 2 * PLAIN_SECONDS, collects=True)
    except (TooSlow, TooLarge):
        return False
    finally:
        gc.unfreeze()
    if collected is None or not len(expected) == len(collected) == len(actual):
        return False
    plays = zip(actual, expected, collected, strict=True)
    return all(any(_first_difference([one], [mine], tolerance)[0] is None for one in others) for mine, *others in plays)


_BALLAST = compile("class Ballast:\n    pass\ndef step(): return lambda: step", "<ballast>", "exec")


def _ballast() -> tuple[object, ...]:
    namespace: dict[str, Any] = {}
    exec(_BALLAST, namespace)
    made = namespace["Ballast"](), namespace["step"](), namespace["step"].__code__.replace(co_firstlineno=2)
    return namespace, *made, [], {}, object(), torch.empty(1)


def _place(finding: Finding) -> tuple[str, str, str]:
    """Return the part of what a call left that differs; inside of it another letter of an address may come first."""
    path = finding.sentence.partition(f"({finding.where})")[2]
    part = re.match(r"\[[^]]*\]|\.\w+|", path)
    assert part is not None
    return finding.aspect, finding.where, part.group()


def play(
    program: PythonProgram, wrap: Wrap, inside: Wrap, seconds: float, *, collects: bool = False
) -> list[CallRecord] | None:
    """Run the whole history in a new module and return what each call left; None if the module itself raises.

    wrap: compiles `step`.  inside: compiles functions that the program marks.  collects: after each statement, what
    only a traceback or a cycle holds ends.  Raises TooSlow and TooLarge.
    """
    with _surroundings(), _time_limit(seconds):
        try:
            namespace = _module(program, inside)
        except Exception:
            return None
        if "step" not in namespace:
            return None
        namespace["step"] = wrap(namespace["step"])
        borrowed = _Borrowed(program.module)
        try:
            return next(_in_a_frame_that_suspends(lambda: _records(program, namespace, borrowed, collects)))
        finally:
            borrowed.put_back()


def _in_a_frame_that_suspends(run: Callable[[], list[CallRecord]]) -> Iterator[list[CallRecord]]:
    """Yield what a function returns; an exception that it leaves as being handled ends with this frame."""
    yield run()


def _records(
    program: PythonProgram, namespace: dict[str, Any], borrowed: "_Borrowed", collects: bool
) -> list[CallRecord]:
    """Run the history in the module of a program and return what each call left."""
    records: list[CallRecord] = []
    borrowed.look_at(namespace)
    for statement in program.history:
        if CALL in statement:
            observed = _call(statement, namespace, collects)
            if observed is None:  # how far the program came before the stack was full is not its own doing
                return [*records, CallRecord(statement, STACK_FULL)]
            records.append(CallRecord(statement, observed))
        else:
            _change(statement, namespace)
            if collects:
                gc.collect()
            borrowed.look_at(namespace)
    records.append(CallRecord("the end", _observed(("nothing",), "", [], namespace, _random_states())))
    return records


def _weakly(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # a ufunc, which lives as long as its library
        return lambda: value


_SHARED = (
    type,
    types.ModuleType,
    types.FunctionType,
    numpy.ufunc,
    type(torch.ops.aten.add),
    type(torch.ops.aten.add.Tensor),
)


class _Borrowed:
    """The objects of libraries in the globals of a program: what it sets on them, the next play would find there."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.owners: dict[int, tuple[Callable[[], Any], frozenset[str]]] = {}  # by id: the object, what it had before

    def look_at(self, namespace: dict[str, Any]) -> None:
        """Remember the attributes of the objects that were not there before; nothing is kept alive."""
        for value in namespace.values():
            if isinstance(value, _SHARED) and getattr(value, "__module__", None) != PROGRAM_MODULE:
                self.owners.setdefault(id(value), (_weakly(value), frozenset(vars(value))))

    def put_back(self) -> None:
        """Remove the attributes that the program has set."""
        for reference, before in self.owners.values():
            owner = reference()
            for name in set() if owner is None else set(vars(owner)) - before:
                if f".{name} = " in self.source:  # a library may have set others, for itself
                    delattr(owner, name)


_TOOLS = (
    "disable",
    "shallow_disable",
    "compiled",
    "graph_break",
    "reference",
    "step",
    "__builtins__",
    "__warningregistry__",
)


def _module(program: PythonProgram, inside: Wrap) -> dict[str, Any]:
    return functions_of(
        program.module,
        {
            "disable": disable,
            "shallow_disable": functools.partial(disable, recursive=False),
            "compiled": inside,
            "graph_break": graph_break,
            "reference": weakref.ref,
        },
    )


def _call(statement: str, namespace: dict[str, Any], collects: bool) -> tuple[Any, ...] | None:
    """Run a statement that calls `step` and return what is observed of it, None if the stack was full."""
    printed = io.StringIO()
    target = statement.partition(" = ")[0]
    namespace[target] = None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(statement, namespace)
            outcome: tuple[Any, ...] = ("returns", namespace[target])
        except RecursionError:
            return None
        except Exception as error:
            outcome = ("raises", error)  # with its traceback: what the frames hold ends when a program lets go of both
    if collects:
        _let_go_of_frames(outcome[1])
        gc.collect()
    try:
        return _observed(outcome, printed.getvalue(), warned, namespace, _random_states())
    finally:
        if outcome[0] == "raises":
            outcome[1].__traceback__ = None
        del outcome  # the frames that the context of an error holds know this one, and would live as long as it


def _let_go_of_frames(outcome: object) -> None:
    """Take the tracebacks of an exception, and of those behind it."""
    while isinstance(outcome, BaseException) and outcome.__traceback__ is not None:
        outcome.__traceback__ = None
        outcome = outcome.__cause__ or outcome.__context__


def _observed(
    outcome: tuple[Any, ...], printed: str, warned: list[Any], namespace: dict[str, Any], drawn: tuple[str, ...]
) -> tuple[Any, ...]:
    observer = Observer()
    words = tuple((entry.category.__name__, plain_text(entry.message)) for entry in warned)
    state = [(name, value) for name, value in namespace.items() if name not in _TOOLS]
    return (
        (outcome[0], *(observer.describe(part) for part in outcome[1:])),
        without_addresses(printed),
        words,
        drawn,
        (torch.is_grad_enabled(), str(torch.get_default_dtype()), torch.is_autocast_enabled("cpu"), _handled()),
        ("globals", *observer.named(sorted(state, key=lambda entry: entry[0]))),
    )


def _handled() -> str:
    """Return what the thread takes for the exception that is being handled: none between calls."""
    kind = sys.exc_info()[0]
    return "" if kind is None else kind.__name__


def _change(statement: str, namespace: dict[str, Any]) -> None:
    """Run a statement between two calls; one that raises does the same in every play."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(statement, namespace)
        except Exception as error:
            namespace["failed_change"] = type(error).__name__


def _random_states() -> tuple[str, ...]:
    words: Any = numpy.random.get_state()
    states = (
        torch.get_rng_state().numpy().tobytes(),
        repr(random.getstate()).encode(),
        words[1].tobytes() + str(words[2:]).encode(),
    )
    return tuple(hashlib.blake2s(state, digest_size=6).hexdigest() for state in states)


@contextlib.contextmanager
def _surroundings() -> Iterator[None]:
    """Seed all generators, warn always, and put the modes of torch back afterwards.

    Patterns that were compiled before are forgotten: they fill a cache, and one that is full gives new objects.
    """
    re.purge()
    random.seed(0)
    numpy.random.seed(0)
    torch.default_generator.manual_seed(0)  # that of all devices reads the stack for each
    always, grad, dtype = torch.is_warn_always_enabled(), torch.is_grad_enabled(), torch.get_default_dtype()
    collecting = gc.isenabled()
    gc.disable()  # what is freed, and when, is part of a program
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(always)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if collecting:
            gc.enable()


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return

    def late(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return _function_around(function, function)


def _function_around(function: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def around(*args: Any, **kwargs: Any) -> Any:
        return run(*args, **kwargs)

    return around


def _compiled_inside(compiler: str, backend: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that the program marks; only ours offers that inside of what it compiles."""
    if compiler != "plumbline":
        return _plain(function)
    compiled: Callable[..., Any] = compile_callable(
        function, make_family(backend, CONFIG.over_environment(), fullgraph=False, dynamic=None)
    )
    return compiled


def _first_difference(
    expected: list[CallRecord], actual: list[CallRecord], tolerance: float
) -> tuple[Finding | None, str]:
    for number, (left, right) in enumerate(zip(expected, actual, strict=False)):
        if left.observed is STACK_FULL:  # compiled code takes less of it: calls are inlined
            return None, ""
        for aspect, one, other in zip(ASPECTS, left.observed, right.observed, strict=right.observed is not STACK_FULL):
            found = difference(one, other, tolerance)
            if found:
                sentence = f"{aspect} of call {number + 1} ({left.statement}){found}"
                return Finding(VerdictKind.WRONG, aspect, left.statement, sentence), _detail(one, other, found)
    return None, ""


def _detail(expected: Any, actual: Any, found: str) -> str:
    """Return what tells one difference from another: the exceptions, or the type of the place."""
    if isinstance(expected, tuple) and expected and expected[0] in ("returns", "raises"):
        kinds = [f"{one[0]} {one[1][0]}" if one[0] == "raises" else one[0] for one in (expected, actual)]
        if kinds != ["returns", "returns"]:
            return f"{kinds[1]} for {kinds[0]}"
    return " ".join(re.findall(r"\('(\w+)'", found)[:2])


def _own_error(candidates: list[Any]) -> tuple[Finding | None, str]:
    """Return the first error of the compiler's own that it recorded and survived."""
    for event in _statistics(candidates).events:
        if event.kind == "internal_error":
            text = re.sub(r"0x[0-9a-f]+|\d+|<fuzz program[^>]*>", "", event.what)
            return Finding(VerdictKind.CRASH, "internal error", "step", event.what[:300]), text[:70]
    return None, ""


def _statistics(candidates: list[Any]) -> CompileStatistics:
    return sum((candidate.statistics() for candidate in candidates), CompileStatistics())


def _result(program: PythonProgram, finding: Finding | None, detail: str, candidates: list[Any]) -> TrialResult:
    done = _statistics(candidates)
    if finding is None:
        kind = VerdictKind.EQUAL if done.ops else VerdictKind.VACUOUS
        sentence = "every call is plain Python's" if done.ops else "nothing was compiled, so nothing was tested"
        verdict, signature = Verdict(kind, sentence), None
    else:
        verdict = Verdict(finding.kind, finding.sentence, (finding,))
        signature = FuzzSignature(finding.kind.value, finding.aspect, detail, program.names)
    verdict = replace(verdict, graphs=done.graphs, ops=done.ops, breaks=done.breaks, recompiles=done.recompiles)
    return TrialResult(verdict, signature)


def _vacuous(sentence: str) -> TrialResult:
    return TrialResult(Verdict(VerdictKind.VACUOUS, sentence))
