"""What tells a compiled play of a program from a plain one; scripts of failures; and a slice of seeded programs."""

import runpy

import numpy
import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.program_data import to_plain
from plumbline.fuzz.python_programs import python_trial
from plumbline.fuzz.python_programs.program_source import draw_program
from plumbline.fuzz.python_programs.python_program import PythonProgram
from plumbline.fuzz.python_programs.python_trial import try_python_program
from plumbline.fuzz.python_programs.script import compare, plain_scripts, python_program_script
from plumbline.fuzz.python_programs.shrinking import simpler_python_programs
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind
from support.planted_compilers import PlantedCandidate, PlantedCompiler

OWN = find_compiler("plumbline", "eager")
FUZZER = find_fuzzer("programs")


class Replaced(PlantedCompiler):
    """Runs another function in the place of `step`; other: gets it and returns what runs."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def compile(self, target, backend, request, *, rng):
        return PlantedCandidate(self.other(target), self.fault)


def program_of(body, *history, setup="", parameters="x"):
    lines = [setup, "x0 = torch.ones(2)", f"def step({parameters}):", *(f"    {line}" for line in body.split("\n"))]
    return PythonProgram("\n".join(lines) + "\n", history or ("r0 = step(x0)",))


def raising(error):
    def run(*args):
        raise error

    return run


def written(step, change):
    def run(x):
        change(x)
        return step(x)

    return run


@pytest.mark.parametrize("growth", ["held.append('a' * 10 ** 7)", "held.extend(range(10 ** 6))"])
def test_what_takes_longer_to_describe_than_to_run_is_left_out(growth):
    grown = program_of(f"{growth}\nreturn x", setup="held = []")
    found = try_python_program(grown, OWN, "eager")
    assert found.signature is None
    assert found.verdict.kind is VerdictKind.VACUOUS


def test_what_plain_python_does_not_repeat_is_left_out():
    taken_apart = program_of("return ''.join(sorted(letter for _ in range(9) for letter in repr(make())))", setup=MADE)
    for _ in range(20):
        assert not try_python_program(taken_apart, OWN, "eager").verdict.failed
    beside = program_of("return x + 1, [sorted(repr(make())) for _ in range(9)]", setup=MADE)
    assert try_python_program(beside, Replaced(lambda step: lambda x: (x + 2, step(x)[1])), "eager").verdict.failed


MADE = "def make():\n    return lambda: None"


def test_a_compiled_program_that_holds_far_more_is_wrong():
    small = program_of("held.append(1)\nreturn x", setup="held = []")
    grown = Replaced(lambda step: written(step, lambda x: step.__globals__["held"].extend(range(10**6))))
    assert try_python_program(small, grown, "eager").verdict.kind is VerdictKind.WRONG


def test_compiled_code_may_need_less_of_the_stack():
    deep = program_of("return x if n == 0 else step(x, n - 1)", "r0 = step(x0, 100000)", parameters="x, n")
    found = try_python_program(deep, Replaced(lambda step: lambda x, n: x), "eager")
    assert found.signature is None
    shallow = program_of("return x", "r0 = step(x0)")
    found = try_python_program(shallow, Replaced(lambda step: raising(RecursionError())), "eager")
    assert found.signature is not None


DIFFERENCES = {
    "another number": ("return x * 2", lambda step: lambda x: x * 3, "result"),
    "another type": ("return [x]", lambda step: lambda x: (x,), "result"),
    "no identity": ("return x", lambda step: lambda x: x.clone(), "state"),
    "another memory": ("return x[:1], x", lambda step: lambda x: (x[:1].clone(), x), "result"),
    "an exception": ("return x", lambda step: raising(ValueError("a")), "result"),
    "another text of an exception": ("raise ValueError('a')", lambda step: raising(ValueError("b")), "result"),
    "no cause": ("raise ValueError('a') from KeyError()", lambda step: raising(ValueError("a")), "result"),
    "a write": ("return 1", lambda step: written(step, lambda x: x.add_(1)), "state"),
    "a draw": ("return 1", lambda step: written(step, lambda x: x.clone().uniform_()), "random numbers"),
    "nothing printed": ("print(1)", lambda step: lambda x: None, "printed text"),
    "no warning": ("import warnings\nwarnings.warn('a')", lambda step: lambda x: None, "warnings"),
    "a mode": ("return 1", lambda step: lambda x: (step.__globals__["torch"].set_grad_enabled(False), 1)[1], "modes"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_seen(name):
    body, other, aspect = DIFFERENCES[name]
    trial = try_python_program(program_of(body), Replaced(other), "eager")
    assert trial.signature is not None
    assert trial.signature.aspect == aspect


def test_an_error_of_ours_is_a_failure(monkeypatch):
    from plumbline.compiler.values.python.containers.lists import ListValue

    def broken(*_):
        raise KeyError("planted")

    monkeypatch.setattr(ListValue, "length", broken)
    trial = try_python_program(program_of("v = [x]\nreturn x * len(v)"), OWN, "eager")
    assert trial.verdict.kind is VerdictKind.CRASH
    assert trial.signature.aspect == "internal error"


def test_a_program_that_does_not_end_is_not_judged():
    trial = try_python_program(program_of("while True: pass"), OWN, "eager")
    assert trial.verdict.kind is VerdictKind.VACUOUS


def test_what_is_kept_too_long_is_seen():
    history = (
        "given = x0 + 1",
        "watched = reference(given)",
        "r0 = step(given)",
        "del given",
        "gone = watched() is None",
    )
    kept = []
    trial = try_python_program(program_of("return 1", *history), Replaced(lambda step: kept.append), "eager")
    assert trial.signature is not None


def test_a_failure_shrinks_to_the_statement_that_fails(monkeypatch):
    monkeypatch.setattr(python_trial, "PLAIN_AGAIN", 1)  # no address is taken apart here
    body = (
        "log = []\nfor i in range(3):\n    log.append(i)\nif len(log) > 1:\n    x = x + 1\nprint('seen')\nreturn log, x"
    )
    program = program_of(body, "r0 = step(x0)", "x0 = x0 + 1", "r1 = step(x0)", setup="unused = 3")
    silent = Replaced(lambda step: lambda x: step.__globals__.update(print=lambda *_: None) or step(x))
    first = try_python_program(program, silent, "eager").signature
    again = True
    while again:
        again = False
        for smaller in simpler_python_programs(program):
            trial = try_python_program(smaller, silent, "eager")
            if trial.signature is not None and trial.signature.same_failure(first):
                program, again = smaller, True
                break
    assert len(program.module.splitlines()) <= 4
    assert "print" in program.module
    assert len(program.history) == 1


def test_a_script_exits_with_the_outcome(tmp_path):
    program = program_of("print('\\'''')\nraise ValueError('a')")
    script = tmp_path / "found.py"
    script.write_text(python_program_script(program, "plumbline", "eager", Verdict(VerdictKind.WRONG, "text")))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script))
    assert ended.value.code == 0
    assert compare(program.module, list(program.history), "plumbline", "eager") == ""


SCRIPTED = {
    "result": ("return x * 2", ("r0 = step(x0)",), "result of call 1 (r0 = step(x0))"),
    "state": ("seen.append(1)\nreturn x", ("r0 = step(x0)", "seen = []"), "state of call 1 (r0 = step(x0)).seen[0]: 1"),
    "printed text": ("print('a')\nreturn x", ("r0 = step(x0)",), "printed text of call 1"),
    "warnings": ("return x", ("r0 = step(x0)",), "warnings of call 1"),
    "random numbers": ("return torch.rand(2)", ("r0 = step(x0)",), "random numbers of call 1"),
}


@pytest.mark.parametrize("aspect", SCRIPTED)
def test_plain_scripts_import_nothing_of_the_fuzzer_and_pass_where_nothing_is_wrong(aspect, tmp_path):
    body, history, sentence = SCRIPTED[aspect]
    program = program_of(body, *history, setup="import torch\nseen = []")
    finding = Finding(VerdictKind.WRONG, aspect, history[0], sentence)
    scripts = list(plain_scripts(program, "plumbline", "eager", Verdict(VerdictKind.WRONG, sentence, (finding,))))
    assert scripts
    for number, text in enumerate(scripts):
        assert "plumbline.fuzz" not in text
        file = tmp_path / f"plain{number}.py"
        file.write_text(text)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(file))
        assert ended.value.code == 0


def test_a_plain_script_fails_where_the_compiler_is_wrong(tmp_path, monkeypatch):
    program = program_of("return x * 2")
    sentence = "result of call 1 (r0 = step(x0))"
    finding = Finding(VerdictKind.WRONG, "result", "r0 = step(x0)", sentence)
    file = tmp_path / "plain.py"
    monkeypatch.setattr(plumbline, "compile", lambda step, backend: lambda x: step(x) + 1)
    for text in plain_scripts(program, "plumbline", "eager", Verdict(VerdictKind.WRONG, sentence, (finding,))):
        assert len(text.splitlines()) <= 24
        file.write_text(text)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(file))
        assert ended.value.code == 1


def test_a_saved_program_is_read_back():
    program = draw_program(3)
    assert FUZZER.read(to_plain(program)) == program
    with pytest.raises(UserError, match="not a saved program"):
        FUZZER.read({"module": "def step(:", "history": ["step(1)"]})
    with pytest.raises(UserError, match="does not call step"):
        FUZZER.read({"module": "x = 1", "history": ["x"]})


@pytest.mark.parametrize(("backend", "numbers"), [("eager", range(7010, 7040)), ("aot_eager", range(7100, 7108))])
def test_seeded_programs_are_plain_pythons(backend, numbers):
    compiler = find_compiler("plumbline", backend)
    for number in numbers:
        trial = try_python_program(draw_program(number), compiler, backend)
        assert trial.signature is None, f"program {number}: {trial.verdict.sentence}"


def test_what_a_program_sets_on_libraries_is_not_there_in_the_next_play():
    setup = "import numpy\nowner = torch.autograd.Function\nother = torch\nufunc = numpy.sin"
    body = "for one in (owner, other, ufunc):\n    one.left_behind = 1\nreturn hasattr(torch.nn, 'left_behind'), x + 1"
    program = program_of(body, "r0 = step(x0)", "other = torch.nn", "r1 = step(x0)", setup=setup)
    assert try_python_program(program, OWN, "eager").signature is None
    assert not any(hasattr(owner, "left_behind") for owner in (torch.autograd.Function, torch.nn, numpy.sin))


def test_what_an_error_holds_ends_with_the_call():
    body = "try:\n    raise ValueError\nfinally:\n    next(numbers)\n    {}[1]"
    setup = "numbers = (number for number in range(9))"
    history = ("given = x0 + 1", "watched = reference(given)", "r0 = step(given)", "del given")
    assert try_python_program(program_of(body, *history, setup=setup), OWN, "eager").signature is None


def test_what_a_program_sets_on_a_function_of_a_library_is_gone_afterwards():
    setting = program_of("helper.fresh = 1\nreturn x", setup="helper = torch.nn.functional.relu")
    assert try_python_program(setting, OWN, "eager").signature is None
    assert not hasattr(torch.nn.functional.relu, "fresh")


_WATCHED = ("given = x0 + 1", "watched = reference(given)", "r0 = step(given)", "del given")


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    1 // 0\nexcept ZeroDivisionError as error:\n    kept_error = error",
        "try:\n    x.append\nexcept AttributeError:\n    made = Ending()\n    raise",
    ],
)
def test_what_only_a_traceback_holds_may_end_earlier(body):
    ending = "ends = []\nclass Ending:\n    def __del__(self):\n        ends.append(1)"
    assert try_python_program(program_of(body, *_WATCHED, setup=ending), OWN, "eager").verdict.kind in (
        VerdictKind.EQUAL,
        VerdictKind.VACUOUS,
    )


@pytest.mark.parametrize("keep", ["held.append(x)", "cycle = [x]\n    cycle.append(cycle)"])
def test_what_is_held_for_longer_is_a_failure(keep):
    namespace = {"held": []}
    exec(f"def keep(x):\n    {keep}\n", namespace)
    trial = try_python_program(
        program_of("return 1", *_WATCHED), Replaced(lambda step: written(step, namespace["keep"])), "eager"
    )
    assert trial.signature.aspect == "state"
