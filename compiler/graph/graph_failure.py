"""An error of ours in what becomes of a graph: what a bundle tells about it."""

from collections.abc import Sequence

import torch
from torch import fx

from ..base.bundle import REPRO, Failure, record_failure
from ..base.options import Options
from ..base.torch_facts import FakeTensorMode, quiet_fake_failures
from .graph_interpreter import interpret
from .graph_printing import graph_text
from .repro_scripts import graph_script
from .tracer import fake_like


def fails_by_itself(gm: fx.GraphModule, inputs: Sequence[object]) -> bool:
    """Return whether a program fails on inputs like these, or asks for their data, whoever runs it.

    Found without elements of tensors and without changing an input; then an error met on the way is not ours.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with quiet_fake_failures():
        try:
            fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in inputs]
            with mode:
                interpret(gm, fakes)
        except Exception:
            return True
    return False


def report_graph_failure(
    stage: str, gm: fx.GraphModule, inputs: Sequence[object], error: Exception, backend: str, options: Options
) -> None:
    """Put an error of ours on record, with the graph as Python and a script that compiles it on made-up inputs."""
    files: dict[str, str] = {}
    try:
        files["graph.py"] = f"import torch\n{graph_text(gm).text}"
        script = graph_script(gm, inputs, f"a graph: {type(error).__name__} in {stage}", backend, options)
        files |= {REPRO: script} if script is not None else {}
    except Exception as unprintable:  # then the bundle holds the error alone
        files["graph.txt"] = f"the graph cannot be printed: {unprintable!r}"
    record_failure(Failure(stage, "graph", "", error, files), options)
