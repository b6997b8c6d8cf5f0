"""A finding of the sweep as a stand-alone script of a dozen lines; it exits 1 while the fault is there."""

import importlib
import re

from .argument_trees import tensor_text
from .case_trial import SWALLOWED, CaseFault
from .cases import read_case
from .prepared_cases import PreparedCase

LONGEST_LINE = 20_000
MOST_LINES = 12


def sweep_script(fault: CaseFault, prepared: PreparedCase | None) -> str:
    """Return the script of a fault; prepared: its case, None for a module.

    A case with arguments that have no literal, or with large tensors, is replayed by its name.
    """
    said = re.sub(r"\s+", " ", fault.sentence)[:160]
    head = [f"# plumbline sweep: {fault.case}", f"# {fault.kind} {fault.aspect}: {said}"]
    own = _own_program(fault, prepared) if prepared is not None and not fault.together else None
    lines = head + (own or _replay(fault))
    assert len(lines) <= MOST_LINES
    return "\n".join(lines) + "\n"


def _own_program(fault: CaseFault, prepared: PreparedCase) -> list[str] | None:
    """Return lines that need nothing of the sweep; None if the case cannot be written so."""
    if prepared.constants.keys() - {"operator"} or fault.kind == "CRASH" or _seen_by_writing_only(fault):
        return None
    lines = []
    if "operator" in prepared.constants:
        function = prepared.constants["operator"]
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
        if module is None or not name.isidentifier():
            return None
        if getattr(importlib.import_module(module), name, None) is not function:
            return None
        lines.append(f"from {module} import {name} as operator")
    task = prepared.case.task
    inputs = ", ".join(tensor_text(tensor) for tensor in prepared.inputs)
    lines = ["import torch", *lines, f"a = [{inputs}]", *prepared.definition("f").splitlines()]
    if fault.aspect == SWALLOWED:
        lines[0:1] = [
            "import contextlib, plumbline, torch",
            "from plumbline.compiler.base.events import recording, swallowed_error",
        ]
        lines += [
            "with recording() as events, contextlib.suppress(Exception):",
            f"    plumbline.compile(f, backend={task.backend!r}, dynamic={task.dynamic})(a)",
            "raise SystemExit(any(swallowed_error(event) for event in events))",
        ]
    else:
        lines[1:1] = [
            "from plumbline.oracle import check",
            "from plumbline.oracle.harness.compilers import CompileRequest",
        ]
        asked = f"compiler='plumbline', backend={task.backend!r}, request=CompileRequest(dynamic={task.dynamic})"
        lines += [f"verdict = check(f, (a,), {asked})", "raise SystemExit(verdict.failed)"]
    return lines if max(map(len, lines)) <= LONGEST_LINE and len(lines) <= MOST_LINES - 2 else None


def _seen_by_writing_only(fault: CaseFault) -> bool:
    return fault.aspect == "aliasing" and fault.sentence.startswith("writing to")


def _replay(fault: CaseFault) -> list[str]:
    read_case(fault.case)
    names = (fault.case, *fault.together)
    return [
        "from plumbline.fuzz.operator_sweep.replay import still_fails",
        "if __name__ == '__main__':",
        f"    raise SystemExit(still_fails({names!r}))",
    ]
