"""Torch's own samples of its operators, forward and backward: each graph half in Triton's interpreter beside C.

    python tests/support/sampled_operators.py                       every operator, hours
    python tests/support/sampled_operators.py --op '^(sum|where)$'  some
    python tests/support/sampled_operators.py --share 0,20          every 20th, from the first

Samples go through the whole compiler: capture, gradients, decompositions, loops.  Both levels get the same inputs and
the same random state.  What no sum and no function of libm takes part in has to have the same bits; the rest has to lie
within the noise that `verify="run"` allows between stages.  At the level `triton`, whatever has no kernel has to be in
`left_to_aten.toml` or be of a family that nobody writes loops for; a whole graph run by ATen is a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from plumbline.compiler.autograd.compile import compile_with_autograd
from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.events import CompilerFailed, FellBack, KernelLaunched, StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton.interpreted_segments import interpreted_kernels
from plumbline.compiler.comparison.noise import Noise
from plumbline.compiler.comparison.values import same_bits, value_difference
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.promises import checked_at_first
from plumbline.compiler.loops.ir import Loop, LoopProgram, Ref
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph, extra_decompositions
from plumbline.compiler.pipeline import compile_callable, make_family
from plumbline.fuzz.generated_source import forget_sources
from plumbline.fuzz.operator_sweep.argument_trees import tensors_of
from plumbline.fuzz.operator_sweep.cases import SweepCase, SweepTask, dtype_of
from plumbline.fuzz.operator_sweep.prepared_cases import UNINITIALISED, PreparedCase, prepare, program_of, samples_of
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS
from support.rounded_results import rounded

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
CONTEXTS = ("alone", "special_values", "transposed", "size_0")
BATCH = 16  # cases in one compiled function


@dataclass
class LevelAccount:
    """What a comparison found: results by how they agree, kernels launched, faults, processes that eager ended."""

    results: Counter[str] = field(default_factory=Counter)
    kernels: int = 0
    graphs: int = 0
    faults: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def add(self, other: LevelAccount) -> None:
        """Add what another comparison found."""
        self.results.update(other.results)
        self.kernels += other.kernels
        self.graphs += other.graphs
        self.faults += other.faults
        self.ended += other.ended


Say = Callable[[str], None]
Half = Callable[..., tuple[object, ...]]


def held_to_c(account: LevelAccount) -> Callable[[fx.GraphModule, Sequence[object]], Half]:
    """Return what makes a half of a graph: it runs at both levels at each call, and gives what C gives."""

    def compile_half(gm: fx.GraphModule, examples: Sequence[object]) -> Half:
        program = lower_graph(gm, scans=True)
        if not any(isinstance(step, Loop) for step in program.steps):
            return checked_at_first(gm)
        account.graphs += 1
        try:
            with recording() as events:
                in_c = compile_graph(gm, examples, Options(strict=True))
                in_triton = compile_graph(gm, examples, Options(strict=True, kernel_language="triton"))
        except Exception as error:  # the whole compiler would run the graph eagerly, and nobody would know
            account.faults.append(f"{type(error).__name__}: {error}, in a graph of {_operators(gm)}")
            return checked_at_first(gm)
        assigned = [event for event in events if isinstance(event, StepsAssigned)]
        whole = [event.why for event in events if isinstance(event, FellBack) and event.operation == "graph"]
        if whole or [event.language for event in assigned] != ["c", "triton"]:
            account.faults.append(f"a graph runs op by op: {whole}")
            return checked_at_first(gm)
        launched = assigned[1].launched

        def run(*inputs: object) -> tuple[object, ...]:
            wanted = _called(in_c, inputs)
            try:
                with recording() as calls:
                    found = _called(in_triton, inputs)
            except Exception as error:
                account.faults.append(f"{type(error).__name__}: {error}, in a call of {_operators(gm)}")
                return _called(in_c, inputs, copied=False)
            names = tuple(event.name for event in calls if isinstance(event, KernelLaunched))
            account.kernels += len(names)
            if names != launched:
                account.faults.append(f"launched were {names}, not {launched}")
            if any(isinstance(event, FellBack) and event.operation == "graph" for event in calls):
                account.faults.append("a call went back to ATen")
            _compare(account, gm, program, inputs, found, wanted)
            return _called(in_c, inputs, copied=False)

        return run

    return compile_half


def _called(call: Half, inputs: Sequence[object], *, copied: bool = True) -> tuple[object, ...]:
    given = [each.clone() if copied and isinstance(each, torch.Tensor) else each for each in inputs]
    torch.manual_seed(0)
    with torch.no_grad():
        return call(*given)


def _compare(
    account: LevelAccount,
    gm: fx.GraphModule,
    program: LoopProgram,
    inputs: Sequence[object],
    found: Sequence[object],
    wanted: Sequence[object],
) -> None:
    loose = rounded(program)
    replicas: list[tuple[object, ...]] = []

    def noisy(number: int, count: int) -> list[torch.Tensor]:
        for seed in range(len(replicas), count):
            with Noise(seed):
                replicas.append(_called(lambda *given: interpret(gm, given), inputs))
        rows = [row[number] for row in replicas[:count]]
        return [row for row in rows if isinstance(row, torch.Tensor)]

    for number, (a, b, place) in enumerate(zip(found, wanted, program.outputs, strict=True)):
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            continue
        what = f"result {number} of {_operators(gm)}"
        if (a.dtype, a.shape, a.stride()) != (b.dtype, b.shape, b.stride()):
            account.faults.append(f"{what}: {a.dtype} {a.shape} {a.stride()}, not {b.dtype} {b.shape} {b.stride()}")
        elif same_bits(a, b):
            account.results["same bits"] += 1
        elif isinstance(place, Ref) and place.name not in loose:
            account.faults.append(f"{what}: other bits, and nothing in it rounds: {_first_difference(a, b)}")
        elif (difference := value_difference(a, b, lambda count, number=number: noisy(number, count))) is not None:
            account.faults.append(f"{what}: {difference.text}")
        else:
            account.results["within noise"] += 1


def _operators(gm: fx.GraphModule) -> str:
    return ", ".join(dict.fromkeys(str(node.target) for node in gm.graph.nodes if node.op == "call_function"))[:300]


def _first_difference(a: torch.Tensor, b: torch.Tensor) -> str:
    differs = ~((a == b) | ((a != a) & (b != b)))
    if not bool(differs.any()):
        return "signs of zero or NaN"
    return f"{a[differs].flatten()[0].item()!r}, in C {b[differs].flatten()[0].item()!r}"


def compare_cases(cases: Sequence[PreparedCase]) -> LevelAccount:
    """Return what both levels make of some calls, forward and backward, compiled as one function."""
    account = LevelAccount()
    compile_half = held_to_c(account)

    def backend(graph: fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        return compile_with_autograd(graph, inputs, compile_half, Options(), decompositions=extra_decompositions)

    family = make_family(backend, CONFIG.over_environment(), fullgraph=False, dynamic=False)
    compiled = compile_callable(program_of(cases), family)
    with recording() as events:
        _run(compiled, cases)
    account.faults += [event.text() for event in events if isinstance(event, CompilerFailed)]
    forget_sources()
    return account


def _run(program: Callable[[list[list[torch.Tensor]]], object], cases: Sequence[PreparedCase]) -> None:
    """Run a program of calls forward and backward; every result is its own cotangent."""
    arguments = [case.fresh_inputs() for case in cases]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = program(arguments)
        ends = [each for each in tensors_of(results) if each.requires_grad and each.grad_fn is not None]
        leaves = [each for each in tensors_of(arguments) if each.requires_grad]
        if ends and leaves:
            torch.autograd.grad(ends, leaves, [each.detach().clone() for each in ends], allow_unused=True)


def cases_of(operator: str, dtype: str, samples: int, say: Say = lambda text: None) -> list[PreparedCase]:
    """Return calls that eager takes: the first samples as they are, and one in the other contexts.

    say: told of each call before eager runs it, which may end the process.
    """
    task = SweepTask(operator, dtype, dynamic=False, backend="triton")
    if operator in UNINITIALISED or dtype_of(dtype) not in OPERATORS[operator].supported_dtypes("cpu"):
        return []
    drawn = samples_of(task)
    step = max(1, len(drawn) // samples)
    asked = [SweepCase(task, number, "alone") for number in range(0, len(drawn), step)][:samples]
    asked += [SweepCase(task, len(drawn) // 2, context) for context in CONTEXTS[1:] if drawn]
    prepared = [prepare(case, drawn[case.sample]) for case in asked]
    return [each for each in prepared if each is not None and _works(each, say)]


def _works(case: PreparedCase, say: Say) -> bool:
    say(f"eager: {case.case.key}")
    try:
        _run(program_of([case]), [case])
    except Exception:  # whatever eager refuses, nobody has to compile
        return False
    return True


def compare_operators(pairs: Sequence[tuple[str, str]], samples: int, say: Say = lambda text: None) -> LevelAccount:
    """Return what both levels make of operators in dtypes; one that differs is tried again alone, to name it."""
    cases = [case for operator, dtype in pairs for case in cases_of(operator, dtype, samples, say)]
    total = LevelAccount()
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        say(f"compiled: {batch[0].case.key} and those after it")
        try:
            account = compare_cases(batch)
        except Exception as error:
            account = LevelAccount(faults=[f"{type(error).__name__}: {error}"])
        if account.faults:
            account = _one_by_one(batch, account)
        total.add(account)
    return total


def _one_by_one(cases: Sequence[PreparedCase], together: LevelAccount) -> LevelAccount:
    total = LevelAccount()
    for case in cases:
        try:
            account = compare_cases([case])
        except Exception as error:
            account = LevelAccount(faults=[f"{type(error).__name__}: {error}"])
        account.faults = [f"{case.case.key}: {fault}" for fault in account.faults]
        total.add(account)
    if not total.faults:  # what shows only beside other calls
        total.faults = [f"{cases[0].case.key} and the {len(cases) - 1} after it: {each}" for each in together.faults]
    return total


def compared_apart(operator: str, dtypes: Sequence[str], samples: int) -> LevelAccount:
    """Do as `compare_operators` in a process of its own: where it dies in eager that is no fault, else it is one."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def work() -> None:
        there.send(compare_operators([(operator, dtype) for dtype in dtypes], samples, there.send))

    child = context.Process(target=work)
    child.start()
    there.close()
    last: object = "started"
    with contextlib.suppress(EOFError):
        while not isinstance(last, LevelAccount):
            last = here.recv()
    child.join()
    if isinstance(last, LevelAccount):
        return last
    what = f"{operator}: the process ended with {child.exitcode}; {last}"
    return LevelAccount(ended=[what]) if str(last).startswith("eager:") else LevelAccount(faults=[what])


def main() -> int:
    """Compare, and print the faults and a count; returns 1 where there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="", metavar="REGEX")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--share", default="0,1", metavar="FIRST,STEP")
    parser.add_argument("--minutes", type=float, default=1e9)
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # before the first fork
    interpreted_kernels()  # imported once, for all children
    first, step = map(int, chosen.share.split(","))
    names = [name for name in OPERATORS if re.search(chosen.op, name)][first::step]
    total, done, begun = LevelAccount(), 0, time.monotonic()
    for name in names:
        if time.monotonic() - begun > 60 * chosen.minutes:
            break
        account = compared_apart(name, chosen.dtypes.split(","), chosen.samples)
        for fault in (*account.faults, *account.ended):
            print(fault[:500], flush=True)
        total.add(account)
        done += 1
        print(f"  {done} of {len(names)}, {name}: {account.graphs} graphs, {account.kernels} kernels", file=sys.stderr)
    agreed = ", ".join(f"{count} {how}" for how, count in sorted(total.results.items()))
    print(
        f"{done} of {len(names)} operators, {total.graphs} graphs, {total.kernels} launches; results: {agreed}; "
        f"{len(total.faults)} faults; eager ended {len(total.ended)} processes"
    )
    return 1 if total.faults else 0


if __name__ == "__main__":
    sys.exit(main())
