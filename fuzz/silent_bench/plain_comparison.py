"""The judge that people write by hand, as a yardstick: each program runs plain and compiled, and results are compared.

What a call returns and what its arguments hold then is compared by `torch.testing.assert_close` at its default
tolerances; so are the memory that results share with arguments, what is printed, and how the program ends.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy
import torch

from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.state.scope import seed_everything
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import TrialResult, signature_of
from .bench_cases import BenchCase
from .case_judgement import SEED, program_of

NAME = "assert_close"


def compared_case(case: BenchCase, compiler: str, backend: str) -> TrialResult:
    """Return WRONG where the compiled run of a program differs from the plain one, EQUAL elsewhere."""
    under_test = find_compiler(compiler, backend)

    def compiled(target: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        known = {name: options.pop(name) for name in ("fullgraph", "dynamic", "mode", "options") if name in options}
        return under_test.compile(target, backend, CompileRequest(**known, extra=options), rng="eager")

    plain = _log(case, lambda target, options: target)
    under_test.reset()
    other = _log(case, compiled)
    under_test.reset()
    difference = _difference(plain, other)
    if difference is None:
        return TrialResult(Verdict(VerdictKind.EQUAL, "no difference"))
    finding = Finding(VerdictKind.WRONG, "values", "the program", difference)
    verdict = Verdict(VerdictKind.WRONG, difference, (finding,))
    return TrialResult(verdict, signature_of(verdict, (case.name,)))


def _log(case: BenchCase, compile_target: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> list[object]:
    """Run a program and return what its compiled functions gave, call by call, and how it ended."""
    log: list[object] = []
    seed_everything(SEED)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_in_place_of_compile(log, compile_target))
        out = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        try:
            program_of(case)()
        except Exception as error:
            log.append(f"ends with {type(error).__name__}")
    return [*log, out.getvalue()]


@contextlib.contextmanager
def _in_place_of_compile(log: list[object], compile_target: Callable[..., Any]) -> Iterator[None]:
    def compile_logged(target: Any = None, **options: Any) -> Any:
        if target is None:
            return lambda function: compile_logged(function, **options)
        options.pop("backend", None)
        made = compile_target(target, options)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                result = made(*args, **kwargs)
            except Exception as error:
                log.append((type(error).__name__, _copied(args)))
                raise
            log.append((_copied(result), _copied(args), _shared(result, args)))
            return result

        return call

    with mock.patch.object(torch, "compile", compile_logged):
        yield


def _copied(value: object) -> object:
    """Return plain data that stays as it is; other objects by the name of their class."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            plain = value.detach().to_dense() if value.layout != torch.strided else value.detach()
            return plain.resolve_conj().resolve_neg().clone(), value.requires_grad, value.is_inference()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [_copied(item) for item in value]
    if isinstance(value, dict):
        return [(repr(key), _copied(item)) for key, item in value.items()]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return type(value).__name__, torch.as_tensor(numpy.array(value))
    return value if isinstance(value, (int, float, complex, str, type(None))) else type(value).__name__


def _shared(result: object, args: tuple[object, ...]) -> list[bool]:
    results = result if isinstance(result, (tuple, list)) else [result]
    return [_memory(one) == _memory(arg) for one in results for arg in args if _memory(one) and _memory(arg)]


def _memory(value: object) -> int:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return 0
    return value.untyped_storage().data_ptr()


def _difference(plain: Any, other: Any) -> str | None:
    """Return the first difference in words, None without one."""
    if isinstance(plain, torch.Tensor) and isinstance(other, torch.Tensor):
        try:
            torch.testing.assert_close(other, plain, equal_nan=True)
        except AssertionError as error:
            return str(error).replace("\n", " ")[:200]
        return None
    if isinstance(plain, (tuple, list)) and isinstance(other, (tuple, list)):
        if len(plain) != len(other):
            return f"{len(other)} parts, without a compiler {len(plain)}"
        return next((words for pair in zip(plain, other, strict=True) if (words := _difference(*pair))), None)
    if isinstance(plain, float) and isinstance(other, float):
        return _difference(torch.tensor(plain), torch.tensor(other))
    return None if type(plain) is type(other) and plain == other else f"{other!r}, without a compiler {plain!r}"[:200]
