"""CPython's own tests with every test method compiled: which of them end otherwise than in plain Python.

Nobody who wrote these tests knows our code. Each test method runs twice, in a process of its own each time: as it is,
and inlined into a function that is compiled with backend "eager" and computes on a tensor before and after. Counted
are the tests whose outcome (passed, failed, skipped, died) is another one. Those that are known to differ stand in
`benchmarks/cpython_differences.toml` under the reason; a test that differs and is not listed makes the command exit 1,
and a listed one that passes is named, to be taken off the list.

    python benchmarks/cpython_tests.py                        # all modules of the list below
    python benchmarks/cpython_tests.py test_list test_dict    # some
    python benchmarks/cpython_tests.py test_dict --only test_views --traceback
"""

import argparse
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from plumbline.compiler.api import compile as compile_function

MODULES = """
test_list test_tuple test_dict test_set test_deque test_defaultdict test_ordered_dict test_collections test_userdict
test_userlist test_dictviews test_iter test_enumerate test_range test_slice test_sort test_heapq test_bisect
test_itertools test_functools test_operator test_generators test_yield_from test_contextlib test_with test_exceptions
test_raise test_baseexception test_exception_group test_except_star test_class test_super test_property test_decorators
test_scope test_call test_keywordonlyarg test_positional_only_arg test_unpack_ex test_augassign test_float test_int
test_bool test_complex test_math test_cmath test_compare test_richcmp test_contains test_index test_isinstance test_hash
test_grammar test_patma test_named_expressions test_copy test_dataclasses test_enum test_global test_string test_fstring
test_format test_builtin test_descr test_fractions test_statistics test_weakset test_abc test_types test_funcattrs
test_unary test_binop test_pow test_long test_numeric_tower test_string_literals test_reprlib test_textwrap test_bytes
test_random test_json test_typing test_inspect test_pprint test_difflib test_genericalias test_genericclass test_dynamic
test_dynamicclassattribute test_opcodes test_subclassinit test_module test_decimal
""".split()
KNOWN = Path(__file__).parent / "cpython_differences.toml"
SECONDS = 20  # a test that takes longer, plain or compiled, counts as died


def outcome(test: unittest.TestCase, compiled: bool) -> str:
    """Run one test and return how it ended; compiled: its method is inlined into a compiled function."""
    if compiled:
        _compile_method(test)
    result = _Subtests()
    unittest.TestSuite([test]).run(result)
    ended = [f"failed: {text}" for _, text in result.failures + result.errors] + result.subtests
    ended += ["skipped"] * bool(result.skipped) + ["failed as expected"] * bool(result.expectedFailures)
    return "\n".join(ended) or "passed"


class _Subtests(unittest.TestResult):
    """A result that keeps the failures of subtests in a text that says which they were."""

    def __init__(self) -> None:
        super().__init__()
        self.subtests: list[str] = []

    def addSubTest(self, test: object, subtest: object, err: object) -> None:  # noqa: N802 - unittest's own name
        """Note the error of a subtest."""
        if isinstance(err, tuple):
            self.subtests.append(f"failed: {getattr(subtest, 'params', '')}: {err[0].__name__}: {err[1]}")


def _compile_method(test: unittest.TestCase) -> None:
    name = test._testMethodName
    method = getattr(test, name)
    function = method.__func__

    def body(case: unittest.TestCase, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor + 1
        function(case)
        return tensor * 2

    compiled = compile_function(body, backend="eager")

    def run() -> None:
        assert torch.equal(compiled(test, torch.ones(2)), torch.full((2,), 4.0))

    run.__dict__.update(method.__dict__)  # that it is skipped, or expected to fail
    setattr(test, name, run)


def in_a_fork(work: Callable[[], str]) -> str:
    """Return the text that some work gives in a child process, or how the child died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        try:
            text = work()
        except BaseException as error:
            text = "failed: " + "".join(traceback.format_exception(error))
        os.write(writing, text.encode("utf8", "backslashreplace")[-30_000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read().decode("utf8", "replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"died: {signal.Signals(os.WTERMSIG(status)).name}"
    return text or "died"


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Yield the test methods of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        elif isinstance(test, unittest.TestCase) and hasattr(type(test), test._testMethodName):
            yield test


def run_module(name: str, only: str, told: bool) -> int:
    """Print the tests of a module that differ, one per line, and how many there were; return 0."""
    module = importlib.import_module(f"test.{name}")
    count, started = 0, time.process_time()
    for test in cases(unittest.TestLoader().loadTestsFromModule(module)):
        if only not in test.id():
            continue
        plain = in_a_fork(lambda test=test: outcome(test, False))
        if plain.startswith("died"):
            continue
        count += 1
        ours = in_a_fork(lambda test=test: outcome(test, True))
        first = (plain.partition(":")[0], ours.partition(":")[0])
        if first[0] != first[1]:
            print(f"{test.id()}: {first[0]}, compiled it {first[1]}", flush=True)
            if told:
                print(ours, flush=True)
    print(f"= {count} {time.process_time() - started + os.times().children_user:.0f}", flush=True)
    return 0


def known_differences() -> dict[str, str]:
    """Return the reason for each test that is known to differ."""
    groups = tomllib.loads(KNOWN.read_text())["group"]
    return {test: group["reason"] for group in groups for test in group["tests"]}


def main() -> int:
    """Run the modules, each in a process of its own, and compare what differs with the list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="modules of CPython's `test` package; all of the list without")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose id has this text")
    parser.add_argument("--traceback", action="store_true", help="print how the compiled test ended")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run_module(options.modules[0], options.only, options.traceback)
    if importlib.util.find_spec("test.test_list") is None:
        print("this Python was installed without its tests")
        return 2
    known, unlisted, ran, listed = known_differences(), list[str](), 0, set[str]()
    for name in options.modules or MODULES:
        command = [sys.executable, __file__, name, "--child", "--only", options.only]
        command += ["--traceback"] * options.traceback
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PLUMBLINE_GRAPH_CACHE": "0", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
        lines = done.stdout.splitlines()
        if done.returncode or not lines or not lines[-1].startswith("= "):
            print(f"{name}: does not run\n{done.stderr[-500:]}")
            unlisted.append(name)
            continue
        tests = [line for line in lines[:-1] if line.startswith("test.") and line.partition(":")[0] not in known]
        listed |= {line.partition(":")[0] for line in lines[:-1]} & known.keys()
        _, count, seconds = lines[-1].split()
        ran += int(count)
        unlisted += tests
        print(f"{name}: {count} tests, {len(tests)} differ and are not listed, {seconds} CPU s", flush=True)
        print(
            "\n".join(f"    {line}" for line in (lines[:-1] if options.traceback else tests)) or "",
            end="\n" * bool(tests),
        )
    print(f"{ran} tests, {len(unlisted)} differ and are not listed, {len(listed)} differ for a known reason")
    if not options.modules and not options.only:
        for test in sorted(known.keys() - listed):
            print(f"passes now, take it off the list: {test}")
    return bool(unlisted)


if __name__ == "__main__":
    sys.exit(main())
