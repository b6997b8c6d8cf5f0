"""Where the programs come from: each source names tasks, and makes the programs of a task in the process that asks.

A task is text, so that a run can be resumed and a child process can be told what to do.
"""

import copy
import importlib
import random
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hugging_face_tiny import Case, cases
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from plumbline.fuzz.generated_source import functions_of
from plumbline.fuzz.graph_programs.drawing import draw_batch
from plumbline.fuzz.operator_sweep.argument_trees import tensors_of, with_tensors
from plumbline.fuzz.operator_sweep.cases import MODULE, SweepTask, dtype_of
from plumbline.fuzz.operator_sweep.module_cases import ModuleCase, module_cases
from plumbline.fuzz.operator_sweep.prepared_cases import Sample, copy_of, samples_of
from plumbline.fuzz.operator_sweep.torch_samples import MODULES, OPERATORS, inlined
from plumbline.fuzz.python_programs.program_source import draw_program
from plumbline.fuzz.python_programs.python_program import CALL
from plumbline.fuzz.python_programs.python_trial import ends_in_plain_python
from plumbline.fuzz.transform_programs.generation import programs as draw_transforms

from .object_state_programs import OBJECT_STATE
from .parameter_programs import PARAMETERS
from .playing import Call, SoundProgram, seed_of
from .registry import Registry
from .state_programs import STATEFUL
from .tensor_kind_programs import TENSOR_KINDS
from .training_programs import TRAINING

TESTS = Path(__file__).resolve().parents[2] / "tests"
DTYPES = ("float32", "bfloat16", "float64", "int64", "complex64", "float16", "bool")
SAMPLES = 3
BATCHES = 400
"""Tasks of each generator; each draws its own programs from the seed."""
IN_A_BATCH = 5
SLOWEST_FAMILY = 20_000_000  # parameters


@dataclass(frozen=True, slots=True)
class Source:
    """One source.  tasks: names, from a seed.  programs: those of one task.  pairs: whether compilers may have them."""

    tasks: Callable[[int], list[str]]
    programs: Callable[[str, int], Iterable[SoundProgram]]
    pairs: bool = True


def _own(registry: Registry) -> Source:
    return Source(lambda seed: list(registry.plays), lambda task, seed: registry.programs(task))


def _shuffled(tasks: list[str], seed: int) -> list[str]:
    return sorted(tasks, key=lambda task: seed_of(seed, task))


def _backward(value: Any) -> None:
    """Run the user's backward, from the sum of all that has one."""
    sums = [one.abs().sum() for one in tensors_of(value) if one.requires_grad and one.grad_fn is not None]
    if sums:
        torch.stack([one.double() for one in sums]).sum().backward()


def _operator_tasks(seed: int) -> list[str]:
    known = {dtype_of(name): name for name in DTYPES}
    tasks = [
        f"{operator} {known[dtype]}"
        for operator, info in OPERATORS.items()
        for dtype in info.supported_dtypes("cpu")
        if dtype in known
    ]
    return _shuffled(tasks, seed)


def _operator_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    operator, dtype = task.split()
    samples = samples_of(SweepTask(operator, dtype, False, "eager"))
    chosen = sorted(range(len(samples)), key=lambda number: seed_of(seed, task, number))[:SAMPLES]
    for number in chosen:
        yield SoundProgram(f"{task} {number}", _operator_play(operator, samples[number]))


def _operator_play(operator: str, sample: Sample) -> Callable[[Call], Any]:
    function = inlined(OPERATORS[operator].op)

    def play(call: Call) -> Any:
        args, kwargs = with_tensors(sample.args, copy_of), with_tensors(sample.kwargs, copy_of)
        out = call(function, *args, **kwargs)
        _backward(out)
        return out, args, kwargs

    return play


def _module_tasks(seed: int) -> list[str]:
    return _shuffled([f"{name} {dtype}" for name in MODULES for dtype in ("float32", "bfloat16")], seed)


def _module_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    name, dtype = task.split()
    for case in module_cases(SweepTask(f"{MODULE}{name}", dtype, False, "eager")):
        yield SoundProgram(case.case.key, _module_play(case))


def _module_play(case: ModuleCase) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        module, args, kwargs = case.fresh()
        outs = [call(module, *args, **kwargs) for _ in range(2)]
        _backward(outs)
        return outs, module, args, kwargs

    return play


def _family_tasks(seed: int) -> list[str]:
    return _shuffled([f"{name} {mode}" for name in CONFIG_MAPPING_NAMES for mode in ("eval", "train")], seed)


def _family_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    name, mode = task.split()
    for case in cases(name):
        if isinstance(case, str):
            continue
        torch.manual_seed(0)
        try:
            model = case.make()
            if sum(parameter.numel() for parameter in model.parameters()) > SLOWEST_FAMILY:
                return
            model(**case.inputs())
        except Exception:  # whatever a model says of arguments that were guessed
            continue
        yield SoundProgram(task, _family_play(case, train=mode == "train"))
        return


def _family_play(case: Case, *, train: bool) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        model = case.make().train(train)
        torch.manual_seed(1)
        with torch.set_grad_enabled(train):
            out = call(model, **case.inputs())
        if train:
            found = [one.float().mean() for one in tensors_of(dict(out)) if one.requires_grad]
            torch.stack(found).sum().backward()
        return list(tensors_of(dict(out))), [parameter.grad for parameter in model.parameters()]

    return play


def _corpus_tasks(seed: int) -> list[str]:
    return [f"{file.stem}" for file in sorted((TESTS / "programs").glob("test_*.py"))]


def _corpus_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    corpus = getattr(_test_module(f"programs.{task}"), "corpus", None)
    for program in corpus.programs if corpus is not None else ():
        yield SoundProgram(program.id, _corpus_play(program))


def _corpus_play(program: Any) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        holder = program.state() if program.state else None
        before = copy.deepcopy(holder)
        arguments = program.arguments()
        try:
            out = [call(program.function, *arguments) for _ in range(2)]
            if program.backward:
                _backward(out)
            return out, arguments, copy.deepcopy(holder)
        finally:
            if isinstance(holder, dict):
                holder.clear()
                holder.update(before)
            elif isinstance(holder, list):
                holder[:] = before

    return play


def _test_module(name: str) -> Any:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return importlib.import_module(name)


def _numbers(seed: int) -> list[str]:
    return [f"{seed}:{number}" for number in range(BATCHES)]


def _generated_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    for number in range(IN_A_BATCH):
        program = draw_program(random.Random(f"{task}:{number}").randrange(2**32))
        if not ends_in_plain_python(program):
            continue
        yield SoundProgram(f"{task}:{number}", _generated_play(program.module, program.history))


def _generated_play(module: str, history: tuple[str, ...]) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        space = functions_of(module, _given())
        step, outs = space["step"], []
        space["step"] = lambda *args, **kwargs: call(step, *args, **kwargs)
        for statement in history:
            try:
                exec(statement, space)
                outs.append(space.get(statement.partition(" = ")[0]) if CALL in statement else None)
            except Exception as error:
                outs.append((type(error).__name__, str(error)))
        hidden = {"step", "__builtins__", *_given()}
        return outs, {name: value for name, value in space.items() if name not in hidden}

    return play


def _itself(function: Any) -> Any:
    return function


def _given() -> dict[str, Any]:
    return {
        "disable": _itself,
        "shallow_disable": _itself,
        "compiled": _itself,
        "graph_break": lambda: None,
        "reference": weakref.ref,
    }


def _graph_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    batch = draw_batch(random.Random(task), IN_A_BATCH, lambda names: False)
    for number in range(len(batch.programs)):
        yield SoundProgram(f"{task}:{number}", _graph_play(batch.source(), number, batch.calls))


def _graph_play(source: str, number: int, calls: int) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        space = functions_of(source)
        outs = []
        for turn in range(calls):
            arguments = space[f"arguments_{number}_{turn}"]()
            out = call(space[f"f{number}"], *arguments)
            _backward(out)
            outs.append((out, arguments))
        return outs

    return play


def _transform_programs(task: str, seed: int) -> Iterator[SoundProgram]:
    draws = random.Random(task)
    for number in range(IN_A_BATCH):
        program = draw_transforms(draws)
        yield SoundProgram(f"{task}:{number}", _transform_play(program))


def _transform_play(program: Any) -> Callable[[Call], Any]:
    def play(call: Call) -> Any:
        space = functions_of(program.source())
        arguments = program.arguments()
        return call(space[program.entry], *arguments), arguments

    return play


SOURCES: dict[str, Source] = {
    "state": _own(STATEFUL),
    "objects": _own(OBJECT_STATE),
    "training": _own(TRAINING),
    "parameters": _own(PARAMETERS),
    "tensors": _own(TENSOR_KINDS),
    "corpus": Source(_corpus_tasks, _corpus_programs),
    "modules": Source(_module_tasks, _module_programs),
    "operators": Source(_operator_tasks, _operator_programs),
    "graphs": Source(_numbers, _graph_programs),
    "transforms": Source(_numbers, _transform_programs),
    "python": Source(_numbers, _generated_programs),
    "families": Source(_family_tasks, _family_programs),
}
"""By name, in the order in which they are gone through: most alarms a minute first."""
