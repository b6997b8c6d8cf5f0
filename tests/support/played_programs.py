"""Programs as text, played in plain Python and compiled, as `plumbline fuzz programs` plays them."""

from plumbline.fuzz.python_programs.python_program import PythonProgram
from plumbline.fuzz.python_programs.python_trial import try_python_program
from plumbline.oracle.harness.known_compilers import find_compiler

_PREAMBLE = """
import torch
x0 = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
x1 = torch.tensor([[2.0, 0.0, -1.0], [1.5, -3.0, 2.5]])
"""
_CALLS = ("r0 = step(x0)", "r1 = step(x0)", "r2 = step(x1)")


def difference_of(module: str, history: tuple[str, ...] = _CALLS, backend: str = "eager") -> str:
    """Return what compiled `step` does differently from plain Python, empty if nothing."""
    program = PythonProgram(_PREAMBLE + module, history)
    trial = try_python_program(program, find_compiler("plumbline", backend), backend, exact_ends=True)
    return "" if trial.signature is None else trial.verdict.sentence
