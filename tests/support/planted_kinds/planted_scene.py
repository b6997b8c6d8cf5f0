"""What a planted kind consists of: a sound program, a compiler that is wrong in one way, and what a user sees."""

import collections
import contextlib
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from plumbline.oracle.harness.boundary import Boundary
from plumbline.oracle.harness.compilers import CompileRequest, CompileStatistics
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Verdict, VerdictKind

Program = Callable[..., Any]
Plant = Callable[[Program], Program]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedScene:
    """One program with its calls, made anew for every use.

    plant: the compiler; it takes the program and returns one that is wrong in one way.  calls: the arguments of each
    call, in order.  seen: takes the results, an exception for a call that raised, and returns what a user can see.
    """

    program: Program
    plant: Plant
    calls: tuple[tuple[Any, ...], ...]
    seen: Callable[..., object]
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlantedKind:
    """One kind of miscompile: its class of effect, its name, how a scene of it is made, and which answer is due.

    aspect: the aspect that notes it where the answer due is a report; "" where it is WRONG.
    """

    effect: str
    name: str
    make: Callable[[], PlantedScene]
    aspect: str = ""

    @property
    def key(self) -> str:
        """Return the name of this kind in tests and data."""
        return f"{self.effect}: {self.name}"


KINDS: dict[str, PlantedKind] = {}
"""All kinds by key, in the order of the files."""


def planted(effect: str, *, aspect: str = "") -> Callable[[Callable[[], PlantedScene]], Callable[[], PlantedScene]]:
    """Enter a kind; its name is that of the function."""

    def enter(make: Callable[[], PlantedScene]) -> Callable[[], PlantedScene]:
        kind = PlantedKind(effect, make.__name__.strip("_").replace("_", " "), make, aspect)
        assert kind.key not in KINDS, kind.key
        KINDS[kind.key] = kind
        return make

    return enter


def scene(
    program: Program,
    plant: Plant,
    *args: Any,
    seen: Callable[..., object] | None = None,
    calls: Sequence[tuple[Any, ...]] | None = None,
    **keywords: Any,
) -> PlantedScene:
    """Return a scene of one call with `args`, or of several `calls`; without `seen`, users see the results."""
    return PlantedScene(
        program=program,
        plant=plant,
        calls=(args,) if calls is None else tuple(calls),
        seen=seen or (lambda *results: looked_at(results)),
        keywords=keywords,
    )


# -- compilers that are wrong ------------------------------------------------------------------------------------------


def instead(wrong: Program) -> Plant:
    """The program is compiled to another one."""
    return lambda program: wrong


def on_result(change: Callable[[Any], Any]) -> Plant:
    """What the program returns is changed."""
    return lambda program: lambda *args, **keywords: change(program(*args, **keywords))


def on_arguments(change: Callable[..., tuple[Any, ...]]) -> Plant:
    """The program gets other arguments."""
    return lambda program: lambda *args: program(*change(*args))


def and_then(effect: Callable[..., object]) -> Plant:
    """Something more happens after the program, given the call's arguments."""

    def compiler(program: Program) -> Program:
        def wrong(*args: Any, **keywords: Any) -> Any:
            result = program(*args, **keywords)
            effect(*args)
            return result

        return wrong

    return compiler


# -- what programs get -------------------------------------------------------------------------------------------------


def floats(*shape: int) -> torch.Tensor:
    """Numbers between -2 and 2."""
    count = 1
    for size in shape or (6,):
        count *= size
    return torch.linspace(-2, 2, count).reshape(shape or (6,)).clone()  # no view


def leaf(*shape: int) -> torch.Tensor:
    """A leaf that requires gradients."""
    return floats(*shape).requires_grad_()


# -- what a user sees --------------------------------------------------------------------------------------------------


def looked_at(value: object, depth: int = 6) -> object:
    """Return plain data about a value: of tensors the numbers and what they say of themselves."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, BaseException):
        return type(value).__name__, str(value)
    if isinstance(value, (int, float, complex, str, bytes, slice, type(None), torch.dtype, torch.Size)) or depth == 0:
        return type(value).__name__, repr(value)
    if isinstance(value, numpy.ndarray):
        return value.dtype.str, value.shape, value.strides, repr(value.tolist())
    if isinstance(value, Mapping):
        return type(value).__name__, [(repr(key), looked_at(item, depth - 1)) for key, item in value.items()]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [looked_at(item, depth - 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, looked_at(vars(value), depth - 1)
    return type(value).__name__


def _tensor(value: torch.Tensor) -> object:
    said = (type(value).__name__, value.dtype, tuple(value.shape), value.layout, value.device.type)
    flags = (value.requires_grad, value.is_leaf, value.is_inference())
    if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
        return said, flags, repr(value.detach())
    plain = value.detach().resolve_conj().resolve_neg()
    return said, flags, tuple(value.stride()), value.is_conj(), value.is_neg(), repr(plain.tolist())


def after_backward(*leaves: torch.Tensor) -> Callable[..., object]:
    """What a user sees who calls backward on the first tensor that comes back: the gradients."""

    def seen(result: Any) -> object:
        first = result if isinstance(result, torch.Tensor) else result[0]
        try:
            first.sum().backward()
        except Exception as error:
            return looked_at(error)
        return [looked_at(one.grad) for one in leaves]

    return seen


def play(kind: PlantedKind, *, wrong: bool) -> object:
    """Make the calls of a kind with one of its programs and without the judge, and return what a user sees."""
    with put_back():
        one = kind.make()
        program = one.plant(one.program) if wrong else one.program
        _seed()
        results = []
        for args in one.calls:
            try:
                results.append(program(*args, **one.keywords))
            except Exception as error:
                results.append(error)
        return one.seen(*results)


# -- the judge ---------------------------------------------------------------------------------------------------------


class KindCandidate:
    """A wrong program, counted as one graph."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.program(*args, **keywords)

    def statistics(self) -> CompileStatistics:
        return CompileStatistics(graphs=1, ops=1)


class KindCompiler:
    """A compiler that is wrong in one way."""

    name = "planted kind"
    backends: tuple[str, ...] = ("eager",)
    double_backward = True

    def __init__(self, plant: Plant) -> None:
        self.plant = plant

    def compile(self, target: Program, backend: str, request: CompileRequest, *, rng: str) -> KindCandidate:
        return KindCandidate(self.plant(target))

    def reset(self) -> None:
        pass


def judge_kind(kind: PlantedKind, *, wrong: bool) -> tuple[list[Verdict], object]:
    """Have the calls of a kind judged, the sound program or the wrong one as the compiled form of the sound one.

    Returns the verdicts, and what a user sees afterwards.
    """
    with put_back():
        one = kind.make()
        compiler = KindCompiler(one.plant if wrong else lambda program: program)
        _seed()
        boundary = Boundary(one.program, "program", CompileRequest(), compiler, "eager", JudgeOptions())
        verdicts, results = [], []
        for args in one.calls:
            judgement = boundary.call(args, one.keywords)
            try:
                if judgement is None:
                    results.append(boundary.run_unjudged(args, one.keywords))
                else:
                    verdicts.append(judgement.verdict)
                    results.append(judgement.unwrap())
            except Exception as error:
                results.append(error)
        return verdicts, one.seen(*results)


def is_found(kind: PlantedKind, verdicts: Sequence[Verdict]) -> bool:
    """Return whether the verdicts are the answer that is due."""
    if kind.aspect:
        return any(note.startswith(f"{kind.aspect}:") for verdict in verdicts for note in verdict.notes)
    return any(verdict.failed for verdict in verdicts)


def is_quiet(verdicts: Sequence[Verdict]) -> bool:
    """Return whether nothing at all is said against a program."""
    right = (VerdictKind.EQUAL, VerdictKind.EAGER_FAILED)
    return all(verdict.kind in right and not verdict.notes for verdict in verdicts)


# -- the process -------------------------------------------------------------------------------------------------------


def _seed() -> None:
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def _set_environment(before: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


def _set_collector(before: tuple[bool, tuple[int, int, int]]) -> None:
    (gc.enable if before[0] else gc.disable)()
    gc.set_threshold(*before[1])


def _set_logging(before: tuple[int, int, list[logging.Handler]]) -> None:
    logging.disable(before[0])
    logging.root.setLevel(before[1])
    logging.root.handlers[:] = before[2]


# How each is read, and how it is put back.
_STATE: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (lambda: dict(os.environ), _set_environment),
    (os.getcwd, os.chdir),
    (lambda: list(sys.path), lambda before: sys.path.__setitem__(slice(None), before)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
    (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    (lambda: (gc.isenabled(), gc.get_threshold()), _set_collector),
    (lambda: decimal.getcontext().copy(), decimal.setcontext),
    (lambda: locale.setlocale(locale.LC_ALL), lambda before: locale.setlocale(locale.LC_ALL, before)),
    (lambda: (logging.root.manager.disable, logging.root.level, list(logging.root.handlers)), _set_logging),
    (lambda: signal.getsignal(signal.SIGUSR1), lambda before: signal.signal(signal.SIGUSR1, before)),
    (lambda: (sys.excepthook, sys.displayhook), lambda before: _set_hooks(*before)),
    (lambda: threading.excepthook, lambda before: setattr(threading, "excepthook", before)),
    (lambda: (sys.stdout, sys.stderr), lambda before: _set_streams(*before)),
    (numpy.geterr, lambda before: numpy.seterr(**before)),
    (numpy.get_printoptions, lambda before: numpy.set_printoptions(**before)),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.is_warn_always_enabled, torch.set_warn_always),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (lambda: torch.is_autocast_enabled("cpu"), lambda before: torch.set_autocast_enabled("cpu", before)),
    (lambda: torch.get_autocast_dtype("cpu"), lambda before: torch.set_autocast_dtype("cpu", before)),
    (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    (
        lambda: torch.utils.deterministic.fill_uninitialized_memory,
        lambda before: setattr(torch.utils.deterministic, "fill_uninitialized_memory", before),
    ),
    (
        lambda: torch.distributions.Distribution._validate_args,
        torch.distributions.Distribution.set_default_validate_args,
    ),
    (lambda: torch.backends.mkldnn.deterministic, lambda before: _set(torch.backends.mkldnn, "deterministic", before)),
    (
        lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        lambda before: _set(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", before),
    ),
    (lambda: torch.backends.cudnn.allow_tf32, lambda before: _set(torch.backends.cudnn, "allow_tf32", before)),
    (
        lambda: torch.backends.mkldnn.matmul.fp32_precision,
        lambda before: _set(torch.backends.mkldnn.matmul, "fp32_precision", before),
    ),
    (torch.sparse.check_sparse_tensor_invariants.is_enabled, lambda before: _check_sparse(before)),
    (torch.autograd.is_multithreading_enabled, torch._C._set_multithreading_enabled),
    (lambda: torch.autograd.forward_ad._current_level, lambda before: _leave_levels(before)),
    (torch.serialization.get_safe_globals, lambda before: _set_safe(before)),
    (torch.multiprocessing.get_sharing_strategy, torch.multiprocessing.set_sharing_strategy),
    (sys.getprofile, sys.setprofile),
)


def _set(holder: Any, name: str, value: object) -> None:
    setattr(holder, name, value)


def _check_sparse(on: bool) -> None:
    checks = torch.sparse.check_sparse_tensor_invariants
    (checks.enable if on else checks.disable)()


def _leave_levels(before: int) -> None:
    while torch.autograd.forward_ad._current_level > before:
        torch.autograd.forward_ad.exit_dual_level()


def _set_safe(before: list[Any]) -> None:
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(list(before))


def _set_hooks(excepthook: Any, displayhook: Any) -> None:
    sys.excepthook, sys.displayhook = excepthook, displayhook


def _set_streams(output: Any, errors: Any) -> None:
    sys.stdout, sys.stderr = output, errors


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Put the state of the process back after the block."""
    with warnings.catch_warnings(), torch.random.fork_rng([]), contextlib.ExitStack() as stack:
        states = random.getstate(), numpy.random.get_state()
        for read, write in _STATE:
            stack.callback(write, read())
        try:
            yield
        finally:
            torch.set_default_device(None)
            random.setstate(states[0])
            numpy.random.set_state(states[1])
